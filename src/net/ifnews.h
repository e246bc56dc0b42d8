// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The kernel's news of interfaces and their addresses: whether what was read of them still holds. A
// netlink socket of this process gets them, and is asked whenever somebody wants to know, so that no
// thread has to have run in between. The caller keeps its calls apart, over a fork as well.
#ifndef NET_IFNEWS_H
#define NET_IFNEWS_H

#include <stdint.h>

/*
 * The state that the calling thread's interfaces are in: what was read after a call is true as long
 * as later ones return the same. 0 where nobody can tell. A thread that goes to another network
 * namespace is found out within 10 ms, or by aw_ifnews_end at once.
 */
uint64_t aw_ifnews_state(void);

/* Gives the socket back; the next call opens another, and says another state. */
void aw_ifnews_end(void);

#endif
