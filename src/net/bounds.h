// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Times and counts that bound what a peer can make us hold. Variables only so that tests need
// neither wait nor open thousands of sockets; nothing else writes them. A test writes them while the progress thread
// reads them: they are atomic.
#ifndef NET_BOUNDS_H
#define NET_BOUNDS_H

#include <stdint.h>

/* From DISCONNECTED to TIMEWAIT_EXIT at the soonest: what InfiniBand's timewait comes to. */
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
 * Of the files that the process may have (RLIMIT_NOFILE's soft limit) strangers hold a quarter at most, and where the program
 * calls rlisten five sixteenths (xsock/rs_listen.c): the program's own open(2) does not fail for them. One part of so many
 * for all of those together that:
 */
#define AW_FILES_HALF_OPEN 16 /* have sent no whole Request */
#define AW_FILES_LINGERING 16 /* were rejected, and may not have heard so */
#define AW_FILES_REQUESTS \
	8 /* have sent a Request that rdma_cm's program did not take, or that its QP holds (roce) */

/* That part, shared by so many holders. Each may have some, however few there are. */
uint32_t aw_bounds_files(uint32_t part, uint32_t holders);

#endif
