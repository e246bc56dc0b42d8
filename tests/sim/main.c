// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// sim --seed [G:]N [--steps M] [--verbose] one world; its trace when it fails
// sim --seeds A..B | --fresh COUNT       many; from a base that is printed
// sim --regressions FILE                 the seeds of a file, one a line
// sim --splits | --severs | --flips [N]  a fixed exchange, struck at its every octet, or every Nth
#include "splits.h"
#include "world.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
	STEPS_MAX = 4000,
	FAILURES_SHOWN = 5
};

static struct world world;
static uint64_t seed_now;
static uint32_t steps_max = STEPS_MAX;
static bool verbose;

static struct {
	uint64_t seeds, failures, events;
} totals;

/* Present only under a sanitizer. */
void __sanitizer_set_death_callback(void (*callback)(void)) __attribute__((weak));

static void tell_seed(void)
{
	printf("seed %llu died at step %u\n", (unsigned long long)seed_now, world.step);
	trace_print(&world.trace);
	fflush(stdout);
}

static void on_signal(int number)
{
	signal(number, SIG_DFL);
	tell_seed();
	raise(number);
}

static void catch_deaths(void)
{
	if (__sanitizer_set_death_callback)
		__sanitizer_set_death_callback(tell_seed);
	signal(SIGABRT, on_signal);
	signal(SIGILL, on_signal);
	signal(SIGTRAP, on_signal);
	if (!__sanitizer_set_death_callback)
		signal(SIGSEGV, on_signal);
}

static void run_seed(unsigned int generation, uint64_t seed)
{
	seed_now = seed;
	world_init(&world, (struct rng){ .state = seed * 0xd1342543de82ef95u + 1 }, generation,
		   steps_max, verbose);
	totals.seeds++;
	if (!world_run(&world) && totals.failures++ < FAILURES_SHOWN) {
		trace_print(&world.trace);
		printf("seed %u:%llu FAILS at step %u: %s\n", generation, (unsigned long long)seed,
		       world.step, world.why);
	} else if (world.failed) {
		printf("seed %u:%llu FAILS: %s\n", generation, (unsigned long long)seed, world.why);
	}
	totals.events += world.events;
	world_fini(&world);
}

static void run_range(uint64_t first, uint64_t last)
{
	for (uint64_t seed = first; seed <= last; seed++)
		run_seed(GENERATION, seed);
}

/* SEED, or GENERATION:SEED. */
static void run_named(const char *text)
{
	const char *colon = strchr(text, ':');

	if (colon)
		run_seed((unsigned int)strtoul(text, NULL, 10), strtoull(colon + 1, NULL, 10));
	else
		run_seed(GENERATION, strtoull(text, NULL, 10));
}

static int run_file(const char *path)
{
	FILE *file = fopen(path, "r");
	char line[256];

	if (!file) {
		perror(path);
		return 2;
	}
	while (fgets(line, sizeof(line), file))
		if (line[0] >= '0' && line[0] <= '9')
			run_named(line);
	fclose(file);
	return 0;
}

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* The one place that asks the world outside for a seed; it is printed to be replayed. */
static void run_fresh(uint64_t count)
{
	uint64_t base = (uint64_t)time(NULL) * 1000;

	printf("seeds %llu..%llu\n", (unsigned long long)base,
	       (unsigned long long)(base + count - 1));
	fflush(stdout);
	run_range(base, base + count - 1);
}

static int usage(void)
{
	fputs("usage: sim [--steps M] [--verbose] --seed N | --seeds A..B | --fresh COUNT | "
	      "--regressions FILE | --splits [N] | --severs [N] | --flips [N]\n",
	      stderr);
	return 2;
}

static int run_argument(const char *name, const char *value)
{
	const char *dots = strstr(value, "..");

	if (strcmp(name, "--seed") == 0)
		run_named(value);
	else if (strcmp(name, "--seeds") == 0 && dots)
		run_range(strtoull(value, NULL, 10), strtoull(dots + 2, NULL, 10));
	else if (strcmp(name, "--fresh") == 0)
		run_fresh(strtoull(value, NULL, 10));
	else if (strcmp(name, "--regressions") == 0)
		return run_file(value);
	else
		return usage();
	return 0;
}

/* Runs what argument names, if it is one of these; false when it is not. */
static bool run_octets(const char *argument, const char *every, int *status)
{
	size_t stride = every ? strtoul(every, NULL, 10) : 1;
	static const struct {
		const char *name;
		bool (*run)(size_t every);
	} modes[] = {
		{ "--splits", splits_run },
		{ "--severs", severs_run },
		{ "--flips", flips_run },
	};

	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		if (strcmp(argument, modes[i].name) != 0)
			continue;
		*status = stride ? !modes[i].run(stride) : usage();
		return true;
	}
	return false;
}

int main(int argc, char **argv)
{
	const char *name = NULL, *value = NULL;
	double start = now(), seconds;
	int status = 0;

	if ((argc == 2 || argc == 3) && run_octets(argv[1], argv[2], &status))
		return status;
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--verbose") == 0) {
			verbose = true;
			continue;
		}
		if (i + 1 == argc)
			return usage();
		if (strcmp(argv[i], "--steps") == 0) {
			steps_max = (uint32_t)strtoul(argv[++i], NULL, 10);
			continue;
		}
		name = argv[i];
		value = argv[++i];
	}
	if (!name)
		return usage();
	catch_deaths();
	status = run_argument(name, value);
	seconds = now() - start;
	printf("seeds %llu  failures %llu  events %llu  %.0f/s\n", (unsigned long long)totals.seeds,
	       (unsigned long long)totals.failures, (unsigned long long)totals.events,
	       (double)totals.seeds / (seconds + 1e-9));
	return status ? status : totals.failures != 0;
}
