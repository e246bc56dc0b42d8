// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// 'anywarp check --sweep': one run of a command counts its calls of verbs and rdma_cm, and in each further run one of these
// calls fails.
#ifndef CLI_SWEEP_H
#define CLI_SWEEP_H

#include <stdbool.h>

struct cli_sweep {
	const char *who; // "anywarp check", before every error
	char **command; // ended by NULL
	const char
		*verify; // a command of the shell, which fails where the data is wrong; NULL: none
	unsigned jobs; // runs at a time; 0: one for each processor
	unsigned timeout_s; // of one run; 0: ten times the first run, and 10 at least
	unsigned runs_max; // 0: SWEEP_RUNS
	unsigned each_max; // calls of one function that fail; 0: SWEEP_EACH
};

#define SWEEP_RUNS 256
#define SWEEP_EACH 8

// Takes --jobs, --timeout, --verify, --runs or --each at *arg. False: it is none of them, or *wrong, which was printed.
bool aw_cli_sweep_option(struct cli_sweep *sweep, char ***arg, bool *wrong);

// The environment has the checker and our libraries already. Prints the table, and returns the exit status: 0, or 1 where a run
// crashed, hung or ended with success though the data is wrong.
int aw_cli_sweep(const struct cli_sweep *sweep);

#endif
