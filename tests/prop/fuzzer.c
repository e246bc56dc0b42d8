// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Makes a property test a libFuzzer target; libFuzzer keeps the failing string itself.
#include "prop/prop.h"

#include <stdio.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct bytes b = { data, len };

	prop_run(&b);
	return 0;
}

void prop_failed(const char *claim, const char *file, int line)
{
	fprintf(stderr, "%s:%d: does not hold: %s\n", file, line, claim);
	abort();
}
