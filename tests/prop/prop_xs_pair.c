// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Two streams of extended sockets carry what is put into them, whatever the order of completions and
// deliveries; see lib/xs_pair.
#include "lib/xs_pair.h"
#include "prop/prop.h"

void prop_run(struct bytes *b)
{
	xs_pair_run(b, prop_failed);
}
