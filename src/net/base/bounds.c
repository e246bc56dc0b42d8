// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The values of the bounds, and a holder's share of the files.
#include "net/base/bounds.h"

#include <sys/resource.h>

struct aw_bounds aw_bounds = {
	.startup_ms = AW_CONN_STARTUP_MS,
	.wait_ms = AW_CONN_WAIT_MS,
	.waits_max = AW_CONN_WAITS_MAX,
	.lost_ms = AW_CONN_LOST_MS,
	.half_open_max = AW_HALF_OPEN_MAX,
	.young_ms = AW_HALF_OPEN_YOUNG_MS,
	.linger_ms = AW_LINGER_MS,
	.post_wait_ms = AW_RC_POST_WAIT_MS,
	.yield_ms = AW_RC_YIELD_MS,
	.timewait_ms = AW_TIMEWAIT_MS,
	.tls_records_max = AW_TLS_RECORDS_MAX,
};

uint32_t aw_bounds_files(uint32_t part, uint32_t holders)
{
	struct rlimit files;
	rlim_t share;

	if (getrlimit(RLIMIT_NOFILE, &files) != 0)
		return AW_FILES_LEAST;
	share = files.rlim_cur / part / (holders ? holders : 1);
	if (share < AW_FILES_LEAST)
		return AW_FILES_LEAST;
	return share < UINT32_MAX ? (uint32_t)share : UINT32_MAX;
}
