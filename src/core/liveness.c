// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "core/liveness.h"

/*
 * TCP has asked and had no answer: it has probed a closed window, or has sent bytes after it last heard from the peer. Between
 * two answered probes there may be two minutes.
 */
static bool is_unanswered(const struct aw_tcp_seen *seen)
{
	return seen->probing || (seen->unacked && seen->sent_ns < seen->heard_ns);
}

enum aw_liveness_state aw_liveness_look(struct aw_liveness *liveness,
					const struct aw_tcp_seen *seen, uint64_t timeout_ns,
					uint64_t now_ns)
{
	bool heard = liveness->owes && seen->heard_ns < now_ns - liveness->since_ns;

	if (!seen->under_way || !is_unanswered(seen)) {
		liveness->owes = false;
		return seen->under_way ? AW_LIVENESS_LOOK : AW_LIVENESS_IDLE;
	}
	if (!liveness->owes || heard) {
		liveness->owes = true;
		liveness->since_ns = now_ns;
	}
	return now_ns - liveness->since_ns >= timeout_ns ? AW_LIVENESS_LOST : AW_LIVENESS_LOOK;
}
