// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Adds to the totals of the user's device files (net/stat/totals_layout.h). Without them, as where a program runs without
// device files, nothing is added. For net/stat/stat.c, which serializes the calls of a process; other processes add
// at the same time.
#ifndef NET_STAT_TOTALS_H
#define NET_STAT_TOTALS_H

#include "net/stat/totals_layout.h"

#include <stdbool.h>

/*
 * Maps the file that the environment names, once a process. Returns the file's mark, by which a reader knows the tables that add to
 * it; 0: there is none.
 */
uint32_t aw_totals_open(void);

/* Between the two, rows that leave the table are added; no row leaves the table outside of them. */
void aw_totals_begin(void);
void aw_totals_add(const struct aw_qp_count *count);
void aw_totals_end(void);

/* Of a stream that has ended: a wrong CRC was found, a Terminate was sent, or received. */
void aw_totals_add_end(bool crc, bool sent, bool received);

#endif
