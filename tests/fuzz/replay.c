// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Runs a fuzz target without libFuzzer: replay_X [--runs N] [--seed S] FILE-OR-FOLDER...
// feeds it every file, then N strings made from the seed.
#include "fuzz.h"

#include <dirent.h>
#include <string.h>
#include <sys/stat.h>

#define INPUT_MAX (1 << 16)

static uint8_t input[INPUT_MAX];
static unsigned long files;

/* In memory of exactly that size, so that a sanitizer sees a read of one octet too many. */
static void run(const uint8_t *data, size_t len)
{
	uint8_t *copy = malloc(len);

	if (len && !copy)
		abort();
	if (len)
		memcpy(copy, data, len);
	LLVMFuzzerTestOneInput(copy, len);
	free(copy);
}

static int run_file(const char *path)
{
	FILE *file = fopen(path, "rb");
	size_t len;

	if (!file) {
		perror(path);
		return 1;
	}
	len = fread(input, 1, sizeof(input), file);
	fclose(file);
	printf("file %s\n", path);
	fflush(stdout);
	run(input, len);
	files++;
	return 0;
}

static int run_path(const char *path)
{
	DIR *folder = opendir(path);
	struct dirent *entry;
	char name[4096];
	int status = 0;

	if (!folder)
		return run_file(path);
	while ((entry = readdir(folder))) {
		if (entry->d_name[0] == '.')
			continue;
		snprintf(name, sizeof(name), "%s/%s", path, entry->d_name);
		status |= run_file(name);
	}
	closedir(folder);
	return status;
}

/* Steele, Lea and Flood's SplitMix64. */
static uint64_t next_random(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

static void run_random(uint64_t seed, unsigned long number)
{
	uint64_t state = seed + number * 0x2545f4914f6cdd1d;
	size_t len = next_random(&state) % 3000;

	for (size_t i = 0; i < len; i++) {
		uint64_t r = next_random(&state);

		input[i] = (uint8_t)(r % 4 ? r >> 8 : r >> 8 & 3);
	}
	run(input, len);
}

int main(int argc, char **argv)
{
	unsigned long runs = 0;
	uint64_t seed = 1;
	int status = 0;

	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--runs") == 0 && i + 1 < argc)
			runs = strtoul(argv[++i], NULL, 10);
		else if (strcmp(argv[i], "--seed") == 0 && i + 1 < argc)
			seed = strtoull(argv[++i], NULL, 10);
		else
			status |= run_path(argv[i]);
	}
	for (unsigned long number = 0; number < runs; number++)
		run_random(seed, number);
	printf("files %lu  seed %llu  strings %lu\n", files, (unsigned long long)seed, runs);
	return status;
}
