// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The kernel's news of interfaces and their addresses, to know whether what was read of them is
// still valid. A netlink socket of this process receives the news and is read on each call, so no
// thread has to run in between. The caller serializes its calls, over a fork as well.
#ifndef NET_IFNEWS_H
#define NET_IFNEWS_H

#include <stdint.h>

/*
 * A number for the state of the calling thread's interfaces: what the caller read after one call is
 * valid as long as later calls return the same number. 0 when the state cannot be known. A change
 * of the thread's network namespace is noticed within 10 ms, or at once after aw_ifnews_end.
 */
uint64_t aw_ifnews_state(void);

/* Closes the socket. The next call opens another one and returns another state. */
void aw_ifnews_end(void);

#endif
