// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// How fast the counters of QPs grow from one look of 'anywarp stat --watch' to the next.
#ifndef CLI_STAT_RATES_H
#define CLI_STAT_RATES_H

#include "net/stat/stat_read.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum stat_rate {
	STAT_BYTES_OUT,
	STAT_BYTES_IN,
	STAT_MESSAGES_OUT,
	STAT_MESSAGES_IN,
	STAT_RATES,
};

struct stat_counts {
	pid_t pid;
	uint32_t qp;
	uint64_t counts[STAT_RATES];
};

// All of one look.
struct stat_counted {
	struct stat_counts *qps;
	size_t count, room;
	int64_t ns; // when the look began
};

// Zeroed before the first look.
struct stat_rates {
	struct stat_counted before, now;
};

// Begins a look.
void aw_stat_rates_begin(struct stat_rates *rates);

// Notes the counters of the QP, and writes how much each has grown in a second since the look before. False: that is not
// known, as of a QP that is new.
bool aw_stat_rates_take(struct stat_rates *rates, pid_t pid, const struct aw_stat_qp *qp,
			uint64_t a_second[STAT_RATES]);

void aw_stat_rates_fini(struct stat_rates *rates);

#endif
