// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// One run of a sweep: a process group with a directory of its own, its plan of faults, and how it ended.
#ifndef CLI_SWEEP_RUN_H
#define CLI_SWEEP_RUN_H

#include "cli/sweep.h"

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

// Also the order of the table's end.
enum sweep_outcome {
	SWEEP_CRASHED,
	SWEEP_HUNG,
	SWEEP_LIED, // success, but --verify fails
	SWEEP_REPORTED, // the checker has a report that the run without faults lacks
	SWEEP_LEAKED, // the same, of nothing but leaks
	SWEEP_FAILED, // an error, as it should be
	SWEEP_SURVIVED, // success
	SWEEP_MISSED, // the call was not made
	SWEEP_OUTCOMES,
};

#define SWEEP_CRASH_MAX 160
#define SWEEP_WORDS_MAX 224 // of what became of a run

struct sweep_place {
	unsigned name; // index of check/faults/names.h
	uint64_t nth;
};

struct sweep_run {
	struct sweep_place place; // nth 0: no call fails
	pid_t pid; // 0: not started, or over
	bool is_verify; // the process is --verify's
	bool is_late; // the time was over
	int64_t start_ns; // of the process
	char dir[64];
	int status; // of waitpid(2)
	int verify_status;
	enum sweep_outcome outcome;
	unsigned leaks, reports; // the checker's
	char crash
		[SWEEP_CRASH_MAX]; // where the program crashed, "function file.c:12"; "": not known
};

// Starts the command. False: it cannot, which was printed.
__attribute__((warn_unused_result)) bool aw_sweep_run_start(const struct cli_sweep *sweep,
							    struct sweep_run *run);

// Waits for the process, which has ended, and ends those that it has left behind. True: the run is over; false: --verify was
// started for it.
bool aw_sweep_run_reap(const struct cli_sweep *sweep, struct sweep_run *run);

// Ends all of its processes.
void aw_sweep_run_kill(struct sweep_run *run);

// Judges the run that is over, by what the run without faults was like.
void aw_sweep_run_judge(struct sweep_run *run, const struct sweep_run *first);

// The calls of the run by function, into calls of AW_FAULT_NAMES_MAX. False: they are not known.
bool aw_sweep_run_calls(const struct sweep_run *run, uint64_t *calls);

// Prints the first lines of its output on standard error.
void aw_sweep_run_show(const struct sweep_run *run, unsigned lines);

// Removes its directory.
void aw_sweep_run_remove(const struct sweep_run *run);

// Writes "ibv_reg_mr:nth=3".
void aw_sweep_place_write(const struct sweep_place *place, char *text, size_t size);

// Writes what became of the run, in words.
void aw_sweep_run_tell(const struct sweep_run *run, char *text, size_t size);

#endif
