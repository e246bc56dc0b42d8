// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Random octets.
#include "rng.h"

#include <string.h>

void rng_fill(struct rng *rng, uint8_t *p, size_t len)
{
	struct rng own = { .state = rng_next(rng) };

	while (len) {
		uint64_t octets = rng_next(&own);
		size_t n = len < sizeof(octets) ? len : sizeof(octets);

		memcpy(p, &octets, n);
		p += n;
		len -= n;
	}
}
