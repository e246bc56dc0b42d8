// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Threads that take turns where the shim headers let another one run. Who runs next comes from a seed alone:
// what went wrong once goes wrong again.
#ifndef KMOD_TEST_FIBERS_H
#define KMOD_TEST_FIBERS_H

#include <stdbool.h>
#include <stdint.h>

/* odds: a thread gives its turn away at one of so many places, by chance. end: every thread is done. */
void fibers_begin(uint64_t seed, unsigned int odds);
void fibers_end(void);

/* A thread that does run(arg); false: there are too many. */
bool fiber_start(void (*run)(void *arg), void *arg);

/* So many turns, of threads, work and timers that are due. */
void fibers_run(unsigned int turns);

/* The clock goes to the next timer; false: there is none, or it is later than limit. */
bool fibers_wait(unsigned long limit);

/* Until nothing goes on, not even with time. */
void fibers_settle(void);

/* Threads that are not done; those of a test leave room for work and timers. */
unsigned int fibers_live(void);
#define FIBERS_OF_TEST 24

#endif
