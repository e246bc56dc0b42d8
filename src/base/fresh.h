// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Files that other processes are just making: a memfd has its name before it has its content. A look
// that finds the name alone is repeated.
#ifndef BASE_FRESH_H
#define BASE_FRESH_H

#include <stdbool.h>

/*
 * Sleeps for 10 ms before the look is repeated, and counts that in *pauses. False, without a sleep:
 * there were 20 pauses, or 100 together with wasted, the pauses of other files that did not help.
 */
bool aw_fresh_pause(int *pauses, int wasted);

#endif
