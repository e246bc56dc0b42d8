// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Every octet of a fixed exchange, in each direction and under all terms, as the place of a fault.
#ifndef SIM_SPLITS_H
#define SIM_SPLITS_H

#include <stdbool.h>

/* Each prints what failed and how many runs there were; false after a failure. */
bool splits_run(void); /* cut at every octet; of a brief exchange at every pair of them */
bool severs_run(void); /* FIN, RST */
bool flips_run(void);

#endif
