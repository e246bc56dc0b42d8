// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The output of a sweep: its progress on standard error, and its table on standard output.
#ifndef CLI_SWEEP_TABLE_H
#define CLI_SWEEP_TABLE_H

#include "cli/sweep_run.h"

#include <stddef.h>

// Shows that the run is over, and that done of count runs are.
void aw_sweep_progress(const struct sweep_run *run, size_t done, size_t count);

// Clears the progress bar, if there is one.
void aw_sweep_progress_end(void);

// Prints the table, the numbers of each outcome, and how a bad run is repeated. left_out: calls that no run had fail.
void aw_sweep_table(const struct cli_sweep *sweep, const struct sweep_run *runs, size_t count,
		    uint64_t left_out);

#endif
