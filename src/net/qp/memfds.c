// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The memfds, in a ring of places. A memfd's name is its number in this process and its fd: a thread that comes late to close it
// takes no later memfd for it.
#include "net/qp/memfds.h"

#include "net/base/io_now.h"

#include <stdatomic.h>
#include <sys/resource.h>

static _Atomic uint32_t made; /* memfds of this process, ever; relaxed: only the number matters */
static _Atomic uint64_t places[AW_MEMFDS_MAX]; /* names; 0: none */

uint32_t aw_memfds_places(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0 ||
	    limit.rlim_cur / AW_MEMFDS_SHARE > AW_MEMFDS_MAX)
		return AW_MEMFDS_MAX;
	return limit.rlim_cur < AW_MEMFDS_SHARE ? 1 : (uint32_t)(limit.rlim_cur / AW_MEMFDS_SHARE);
}

static _Atomic uint64_t *place_of(uint32_t number)
{
	return &places[number % AW_MEMFDS_MAX];
}

static void close_memfd(uint64_t name)
{
	if (name)
		aw_close_now((int)((uint32_t)name - 1));
}

uint64_t aw_memfd_keep(int fd)
{
	uint32_t number = atomic_fetch_add_explicit(&made, 1, memory_order_relaxed);
	uint64_t name = (uint64_t)number << 32 | ((uint32_t)fd + 1);

	/* The places are fewer than AW_MEMFDS_MAX where fds are. */
	close_memfd(atomic_exchange(place_of(number - aw_memfds_places()), 0));
	close_memfd(atomic_exchange(place_of(number), name));
	return name;
}

void aw_memfd_close(uint64_t name)
{
	uint64_t kept = name;

	if (atomic_compare_exchange_strong(place_of((uint32_t)(name >> 32)), &kept, 0))
		close_memfd(name);
}
