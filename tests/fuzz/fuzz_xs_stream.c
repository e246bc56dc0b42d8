// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Two streams of extended sockets, each choice taken from the string; see lib/xs_pair.
#include "fuzz.h"

#include "lib/xs_pair.h"

static void failed(const char *claim, const char *file, int line)
{
	fuzz_check(false, claim, file, line);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct bytes b = { data, len };

	xs_pair_run(&b, failed);
	return 0;
}
