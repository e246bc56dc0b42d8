// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Every octet of a fixed exchange, in each direction and under all terms, as the place of a fault.
#ifndef SIM_SPLITS_H
#define SIM_SPLITS_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Each prints what failed and how many runs there were; false after a failure. every: 1, or N, at least 1, for each Nth octet
 * alone.
 */
bool splits_run(size_t every); /* cut at every octet; of a brief exchange at every pair of them */
bool severs_run(size_t every); /* FIN, RST */
bool flips_run(size_t every);

#endif
