// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The file "totals" among the device's files of a user (ANYWARP_PATHS): what QPs that are gone had counted, so that the
// port's counters go on where a program ends. Each process of the user maps it. A process adds to it what leaves its
// statistics table, between `begun` and `ended`: a reader that finds the two equal before and after it has read the
// tables (net/stat/stat_read.h) and this file has missed nothing and counted nothing twice.
#ifndef NET_STAT_TOTALS_LAYOUT_H
#define NET_STAT_TOTALS_LAYOUT_H

#include "core/count.h"

#include <stdint.h>

#define AW_TOTALS_NAME "totals"
#define AW_TOTALS_MAGIC UINT64_C(0x3154544f545f5741)
#define AW_TOTALS_LEN 4096u
#define AW_TOTALS_SHOWN 64u /* counters that a reader keeps */

struct aw_totals {
	uint64_t magic;
	uint64_t begun, ended; /* additions */
	struct aw_qp_count count;
	uint64_t crc_errors, terminates_sent, terminates_received;
	/* The highest value that a reader has shown of each counter: a process that is killed takes its own with it, and no counter goes back. */
	uint64_t shown[AW_TOTALS_SHOWN];
};

_Static_assert(sizeof(struct aw_totals) <= AW_TOTALS_LEN, "the file holds it");

#endif
