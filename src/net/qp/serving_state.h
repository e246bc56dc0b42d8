// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The threads that serve a QP, as the QP remembers them. net/qp/serving.h has all that is done with it.
#ifndef NET_SERVING_STATE_H
#define NET_SERVING_STATE_H

#include "net/qp/serve.h"

struct aw_channel;
struct aw_uqp;

/* In the QP. The QP's lock guards it; server and channel change with the list's lock, too. */
struct aw_serving {
	enum aw_server server;
	struct aw_channel
		*channel; /* its waiters or watchers serve the QP; NULL: other threads do */
	/* the channel whose watchers serve it, or did when it was last served: its program may have been woken (net/qp/watched.h) */
	struct aw_channel *watched_by;
	bool unreachable; /* an epoll set did not take its socket, so the progress thread keeps it */
	uint32_t polls_seen,
		spins_seen; /* turns of its pollers, and of spinners, at the last arrival */
	uint32_t arms_seen; /* of a CQ that is a feed, likewise */
	uint32_t vain_turns; /* of spinners, since bytes moved */
	struct aw_eventful eventful;
	TAILQ_ENTRY(aw_uqp) entry; /* guarded by the list's lock */
};

/* True while other threads than the progress thread serve it; while threads that poll do. */
static inline bool aw_serving_is_away(const struct aw_serving *s)
{
	return s->server >= AW_SERVER_POLLER;
}

static inline bool aw_serving_is_polled(const struct aw_serving *s)
{
	return s->server == AW_SERVER_POLLER || s->server == AW_SERVER_SPINNER;
}

#endif
