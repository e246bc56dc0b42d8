// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "cli/sweep_table.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define BAR 30
#define PLACE_WIDTH 36

static bool has_bar(void)
{
	return isatty(STDERR_FILENO);
}

void aw_sweep_progress(const struct sweep_run *run, size_t done, size_t count)
{
	char place[64], words[SWEEP_WORDS_MAX], bar[BAR + 1];

	aw_sweep_place_write(&run->place, place, sizeof(place));
	aw_sweep_run_tell(run, words, sizeof(words));
	if (!has_bar()) {
		fprintf(stderr, "%zu/%zu %s: %s\n", done, count, place, words);
		return;
	}
	memset(bar, '.', BAR);
	memset(bar, '#', count ? done * BAR / count : BAR);
	bar[BAR] = '\0';
	fprintf(stderr, "\r[%s] %zu/%zu  %-*.*s", bar, done, count, PLACE_WIDTH, PLACE_WIDTH,
		place);
}

void aw_sweep_progress_end(void)
{
	if (has_bar())
		fprintf(stderr, "\r%*s\r", BAR + PLACE_WIDTH + 24, "");
}

static void print_numbers(const struct sweep_run *runs, size_t count, uint64_t left_out)
{
	static const char *const words[SWEEP_OUTCOMES] = {
		[SWEEP_CRASHED] = "crashed",
		[SWEEP_HUNG] = "hung",
		[SWEEP_LIED] = "ended with success though the data is wrong",
		[SWEEP_REPORTED] = "had reports",
		[SWEEP_LEAKED] = "leaked",
		[SWEEP_FAILED] = "ended with an error",
		[SWEEP_SURVIVED] = "ended with success",
		[SWEEP_MISSED] = "did not make the call",
	};

	printf("\n%zu run%s", count, count == 1 ? "" : "s");
	for (int i = 0; i < SWEEP_OUTCOMES; i++) {
		size_t number = 0;

		for (size_t run = 0; run < count; run++)
			number += (int)runs[run].outcome == i;
		if (number)
			printf("; %zu %s", number, words[i]);
	}
	printf("\n");
	if (left_out)
		printf("%" PRIu64
		       " more calls did not fail in any run: --each and --runs let more\n",
		       left_out);
}

void aw_sweep_table(const struct cli_sweep *sweep, const struct sweep_run *runs, size_t count,
		    uint64_t left_out)
{
	char place[64], words[SWEEP_WORDS_MAX];
	const struct sweep_run *bad = NULL;

	printf("%-*s %s\n", PLACE_WIDTH, "call that fails", "outcome");
	for (size_t i = 0; i < count; i++) {
		aw_sweep_place_write(&runs[i].place, place, sizeof(place));
		aw_sweep_run_tell(&runs[i], words, sizeof(words));
		printf("%-*s %s\n", PLACE_WIDTH, place, words);
		if (!bad && (runs[i].outcome == SWEEP_CRASHED || runs[i].outcome == SWEEP_HUNG ||
			     runs[i].outcome == SWEEP_LIED || runs[i].outcome == SWEEP_REPORTED ||
			     runs[i].outcome == SWEEP_LEAKED))
			bad = &runs[i];
	}
	print_numbers(runs, count, left_out);
	if (!bad)
		return;
	aw_sweep_place_write(&bad->place, place, sizeof(place));
	printf("\nTo see one of these again, the first for example:\n"
	       "  anywarp check --faults %s --",
	       place);
	for (char **word = sweep->command; *word; word++)
		printf(strpbrk(*word, " \t\n'\"$&|;<>*?()\\") ? " '%s'" : " %s", *word);
	printf("\n");
}
