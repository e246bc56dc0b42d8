// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The memfds, in a ring of places. An offer's name is its number and its memfd: a thread that comes late to close it takes no
// later offer's memfd for it.
#include "net/qp/offer.h"

#include "net/base/io_now.h"

#include <stdatomic.h>
#include <sys/resource.h>

static _Atomic uint32_t made; /* offers of this process, ever; relaxed: only the number matters */
static _Atomic uint64_t places[AW_OFFERS_MAX]; /* names of offers; 0: none */

uint32_t aw_offers_places(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0 ||
	    limit.rlim_cur / AW_OFFERS_SHARE > AW_OFFERS_MAX)
		return AW_OFFERS_MAX;
	return limit.rlim_cur < AW_OFFERS_SHARE ? 1 : (uint32_t)(limit.rlim_cur / AW_OFFERS_SHARE);
}

static _Atomic uint64_t *place_of(uint32_t number)
{
	return &places[number % AW_OFFERS_MAX];
}

static void close_memfd(uint64_t name)
{
	if (name)
		aw_close_now((int)((uint32_t)name - 1));
}

uint64_t aw_offer_begin(int fd)
{
	uint32_t number = atomic_fetch_add_explicit(&made, 1, memory_order_relaxed);
	uint64_t name = (uint64_t)number << 32 | ((uint32_t)fd + 1);

	/* The places are fewer than AW_OFFERS_MAX where fds are. */
	close_memfd(atomic_exchange(place_of(number - aw_offers_places()), 0));
	close_memfd(atomic_exchange(place_of(number), name));
	return name;
}

void aw_offer_end(uint64_t offer)
{
	uint64_t name = offer;

	if (atomic_compare_exchange_strong(place_of((uint32_t)(offer >> 32)), &name, 0))
		close_memfd(offer);
}
