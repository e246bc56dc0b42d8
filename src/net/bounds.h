// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Times and counts that bound what a peer can make this process hold. They are variables only for
// the tests, which need neither wait nor open thousands of sockets; nothing else writes them. They
// are atomic because a test writes them while the progress thread reads them.
#ifndef NET_BOUNDS_H
#define NET_BOUNDS_H

#include <stdint.h>

/* The least time from DISCONNECTED to TIMEWAIT_EXIT, about as long as InfiniBand's timewait. */
#define AW_TIMEWAIT_MS 2000

struct aw_bounds {
	_Atomic uint32_t startup_ms; /* AW_CONN_STARTUP_MS */
	_Atomic uint32_t lost_ms; /* AW_CONN_LOST_MS */
	_Atomic uint32_t half_open_max; /* AW_HALF_OPEN_MAX */
	_Atomic uint32_t young_ms; /* AW_HALF_OPEN_YOUNG_MS */
	_Atomic uint32_t linger_ms; /* AW_LINGER_MS */
	_Atomic uint32_t patience_ms; /* AW_RC_PATIENCE_MS */
	_Atomic uint32_t yield_ms; /* AW_RC_YIELD_MS */
	_Atomic uint32_t timewait_ms; /* AW_TIMEWAIT_MS */
};

extern struct aw_bounds aw_bounds;

/*
 * Connections that the program has not accepted hold at most a quarter of the files that the
 * process may have (RLIMIT_NOFILE's soft limit), or five sixteenths where the program calls rlisten
 * (xsock/rs_listen.c), so that the program's own open(2) does not fail because of them. Each
 * constant divides that limit and bounds all connections of one kind together.
 */
#define AW_FILES_HALF_OPEN 16 /* connections that have sent no whole Request */
#define AW_FILES_LINGERING 16 /* rejected connections whose peer may not have received the reject */
#define AW_FILES_REQUESTS \
	8 /* Requests that the program has not taken from rdma_cm, or that its QP holds (roce) */

/* Each holder's share of the files: the soft limit / part / holders, and at least 4. */
uint32_t aw_bounds_files(uint32_t part, uint32_t holders);

#endif
