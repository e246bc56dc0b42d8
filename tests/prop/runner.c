// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Feeds a property test seeded random strings: prop_X [--seed N] [--runs N] [--only RUN].
// The seed is always printed; --seed with --only replays one string.
#include "prop/prop.h"

#include <stdio.h>
#include <string.h>

#define STRING_MAX 2048

static struct {
	unsigned long long seed;
	unsigned long long run;
} now;

/* Steele, Lea and Flood's SplitMix64. */
static uint64_t next_random(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

/* Short strings and small octets are as frequent as others: that is where limits are. */
static void run_one(unsigned long long seed, unsigned long long run)
{
	static uint8_t string[STRING_MAX];
	uint64_t state = seed * 0x2545f4914f6cdd1d + run;
	size_t max = next_random(&state) % 4 ? STRING_MAX : 64;
	size_t len = next_random(&state) % (max + 1);
	struct bytes b = { string, len };

	for (size_t i = 0; i < len; i++) {
		uint64_t r = next_random(&state);

		string[i] = (uint8_t)(r % 5 ? r >> 8 : r >> 8 & 3);
	}
	now.seed = seed;
	now.run = run;
	prop_run(&b);
}

void prop_failed(const char *claim, const char *file, int line)
{
	fprintf(stderr, "%s:%d: does not hold: %s\nreplay with --seed %llu --only %llu\n", file,
		line, claim, now.seed, now.run);
	abort();
}

int main(int argc, char **argv)
{
	unsigned long long seed = 1, runs = 2000, only = 0;
	bool one = false;

	for (int i = 1; i + 1 < argc; i += 2) {
		unsigned long long value = strtoull(argv[i + 1], NULL, 0);

		if (strcmp(argv[i], "--seed") == 0)
			seed = value;
		else if (strcmp(argv[i], "--runs") == 0)
			runs = value;
		else if (strcmp(argv[i], "--only") == 0) {
			only = value;
			one = true;
		}
	}
	printf("seed %llu\n", seed);
	fflush(stdout);
	if (one) {
		run_one(seed, only);
		return 0;
	}
	for (unsigned long long run = 0; run < runs; run++)
		run_one(seed, run);
	printf("runs %llu\n", runs);
	return 0;
}
