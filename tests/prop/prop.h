// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The frame of a property test. Each prop_*.c defines prop_run(); with runner.c it is a ctest
// program that feeds it seeded strings, with fuzzer.c a libFuzzer target.
#ifndef PROP_PROP_H
#define PROP_PROP_H

#include "lib/bytes.h"

#include <stdbool.h>

/* One test, driven by the string alone. Must call PROP() for what has to hold. */
void prop_run(struct bytes *b);

/* Prints what failed and how to replay it, and aborts. */
void prop_failed(const char *claim, const char *file, int line) __attribute__((noreturn));

static inline void prop_check(bool holds, const char *claim, const char *file, int line)
{
	if (!holds)
		prop_failed(claim, file, line);
}

#define PROP(claim) prop_check(claim, #claim, __FILE__, __LINE__)

#endif
