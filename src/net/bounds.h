// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Times and counts that bound what a peer can make us hold. Variables only so that tests need
// neither wait nor open thousands of sockets; nothing else writes them.
#ifndef NET_BOUNDS_H
#define NET_BOUNDS_H

#include <stdint.h>

/* From DISCONNECTED to TIMEWAIT_EXIT at the soonest: what InfiniBand's timewait comes to. */
#define AW_TIMEWAIT_MS 2000

struct aw_bounds {
	uint32_t startup_ms; /* AW_CONN_STARTUP_MS */
	uint32_t lost_ms; /* AW_CONN_LOST_MS */
	uint32_t half_open_max; /* AW_HALF_OPEN_MAX */
	uint32_t linger_ms; /* AW_LINGER_MS */
	uint32_t patience_ms; /* AW_RC_PATIENCE_MS */
	uint32_t yield_ms; /* AW_RC_YIELD_MS */
	uint32_t timewait_ms; /* AW_TIMEWAIT_MS */
};

extern struct aw_bounds aw_bounds;

#endif
