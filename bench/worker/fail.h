// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// How a measuring program ends badly: a message on standard error that names cause and remedy,
// told to the other end as well while there is one.
#ifndef BENCH_FAIL_H
#define BENCH_FAIL_H

#define EXIT_TROUBLE 1
#define EXIT_USAGE 2

/* Prints "bench-x: ..." and exits with EXIT_TROUBLE. */
void fail(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));

/* The same, followed by what errno says. */
void fail_errno(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));

/* The control connection on which the other end hears of a failure; -1: none any more. */
void fail_tell(int control);

/* Ends the program with EXIT_TROUBLE and this text unless called again within so many seconds. */
void fail_after(unsigned int seconds, const char *text);

#endif
