// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The frame of a fuzz target: libFuzzer calls it, or replay.c does with a corpus.
#ifndef FUZZ_FUZZ_H
#define FUZZ_FUZZ_H

#include "lib/bytes.h"

#include <stdio.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static inline void fuzz_check(bool holds, const char *claim, const char *file, int line)
{
	if (holds)
		return;
	fprintf(stderr, "%s:%d: does not hold: %s\n", file, line, claim);
	abort();
}

#define FUZZ_CHECK(claim) fuzz_check(claim, #claim, __FILE__, __LINE__)

#endif
