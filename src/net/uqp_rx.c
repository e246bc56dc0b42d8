// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Receive: from the socket into a borrowed stage, then through the core. A stage stays with the
// QP only while it holds the beginning of an FPDU, and only few QPs keep a large one.
#include "core/rx.h"
#include "net/pool.h"
#include "net/rnr.h"
#include "net/uqp_io.h"

#include <errno.h>
#include <linux/sockios.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#define READS_MAX 4 /* a round: leave others their turn */

void aw_uqp_stream_lost(struct aw_uqp *qp)
{
	qp->reset_seen = true;
	if (aw_uqp_ends_quietly(qp))
		qp->lost = true;
	else
		aw_qp_abort(&qp->core, AW_E_MPA_CLOSED);
}

/*
 * A program may end as soon as it has what it waited for, before its answer to our last request: what its
 * TCP has acknowledged counts as received.
 */
static void close_quietly(struct aw_uqp *qp)
{
	int unacknowledged = 1;

	if (ioctl(qp->fd, SIOCOUTQ, &unacknowledged) == 0 && unacknowledged == 0)
		aw_qp_taken(&qp->core);
	qp->lost = true;
}

static void peer_closed(struct aw_uqp *qp, size_t rest)
{
	if (aw_uqp_ends_quietly(qp))
		close_quietly(qp);
	else
		aw_qp_peer_closed(&qp->core, rest);
}

void aw_uqp_starve(struct aw_uqp *qp)
{
	if (qp->ending)
		aw_qp_abort(&qp->core, AW_E_LOCAL_CATASTROPHIC);
	else
		qp->starved = true;
}

/* Gives the stage's octets to the core and moves the rest to the front. */
static void use(struct aw_uqp *qp, struct aw_stage *stage)
{
	size_t used = aw_rx_octets(&qp->core, stage->buf, stage->len);

	stage->len -= used;
	if (stage->len > 0 && used > 0)
		memmove(stage->buf, stage->buf + used, stage->len);
}

/* A held stream is not read, so nothing else tells that the peer is gone. */
static bool is_reset(const struct aw_uqp *qp)
{
	struct pollfd pollfd = { .fd = qp->fd };

	return poll(&pollfd, 1, 0) > 0;
}

/* What waits for a receive, once more. */
static void retry_held(struct aw_uqp *qp, struct aw_stage *stage)
{
	aw_rnr_try(qp);
	use(qp, stage);
	/* What the peer sees as sent before it left is the program's all the same, in the roce persona. */
	if (aw_rnr_waits(qp) && !qp->by_rc && is_reset(qp))
		aw_uqp_stream_lost(qp);
}

static bool may_read(const struct aw_uqp *qp)
{
	return !qp->lost && !qp->core.peer_closed && qp->core.state != AW_QP_ERROR &&
	       !aw_rnr_waits(qp);
}

/* One read. True when the socket may have more. */
static bool read_once(struct aw_uqp *qp, struct aw_stage *stage)
{
	size_t room = stage->size - stage->len;
	ssize_t n = recv(qp->fd, stage->buf + stage->len, room, MSG_DONTWAIT);

	if (n > 0) {
		stage->len += (size_t)n;
		use(qp, stage);
		return (size_t)n == room;
	}
	if (n == 0)
		peer_closed(qp, stage->len);
	else if (errno != EAGAIN && errno != EINTR)
		aw_uqp_stream_lost(qp);
	return false;
}

void aw_uqp_receive(struct aw_uqp *qp)
{
	struct aw_stage *stage = qp->stage ? aw_stage_resume(qp->stage) : aw_stage_get();

	if (!stage) {
		aw_uqp_starve(qp);
		return;
	}
	qp->stage = NULL;
	if (qp->core.rx_held)
		retry_held(qp, stage);
	for (int i = 0; i < READS_MAX; i++)
		if (!may_read(qp) || !read_once(qp, stage))
			break;
	if (stage->len > 0 && !qp->lost && qp->core.state != AW_QP_ERROR)
		qp->stage = aw_stage_keep(stage);
	else
		aw_stage_put(stage);
}
