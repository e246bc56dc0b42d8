// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The bounds as they are in use.
#include "net/bounds.h"

#include "net/conn.h"
#include "net/linger.h"
#include "net/listener.h"
#include "net/rc.h"

struct aw_bounds aw_bounds = {
	.startup_ms = AW_CONN_STARTUP_MS,
	.lost_ms = AW_CONN_LOST_MS,
	.half_open_max = AW_HALF_OPEN_MAX,
	.linger_ms = AW_LINGER_MS,
	.patience_ms = AW_RC_PATIENCE_MS,
	.yield_ms = AW_RC_YIELD_MS,
	.timewait_ms = AW_TIMEWAIT_MS,
};
