// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The steps of a move. A message that comes out of turn ends the stream, as one that was not agreed
// on does.
#include "net/qp/move.h"

#include "base/log.h"
#include "core/machine.h"
#include "net/base/policy_env.h"
#include "net/qp/carrier.h"
#include "net/qp/uqp_sock.h"

#include <string.h>
#include <sys/socket.h>

_Static_assert(MOVE_HELLO_LEN == AW_HOST_HELLO_LEN && MOVE_VERDICT_LEN == AW_HOST_VERDICT_LEN,
	       "wire/move.h carries them");

struct addresses {
	struct sockaddr_storage local, peer;
};

static bool find_addresses(const struct aw_uqp *qp, struct addresses *found)
{
	socklen_t local_len = sizeof(found->local), peer_len = sizeof(found->peer);

	return getsockname(qp->fd, (struct sockaddr *)&found->local, &local_len) == 0 &&
	       getpeername(qp->fd, (struct sockaddr *)&found->peer, &peer_len) == 0;
}

static void log_refused(const struct aw_uqp *qp, const char *cause)
{
	aw_log(AW_LOG_INFO, "qp 0x%x host path not taken cause %s", qp->qpn, cause);
}

void aw_move_begin(struct aw_uqp *qp)
{
	qp->move = (struct aw_move){ 0 };
	if (qp->core.stream.moves)
		qp->move.state = qp->core.stream.initiator ? AW_MOVE_AWAITS : AW_MOVE_COUNTS;
	qp->move.calls = aw_policy_host_path_calls();
}

/* Responder: a connection that closes is not worth it. */
static void offer(struct aw_uqp *qp) AW_REQUIRES(qp->lock)
{
	const char *cause = "the connection's ends are not known";
	struct addresses found;

	qp->move.state = AW_MOVE_NEVER;
	if (qp->core.state != AW_QP_RTS)
		return;
	if (find_addresses(qp, &found))
		qp->ring = aw_host_ring_make(qp->move.due.data, &cause);
	if (!qp->ring) {
		log_refused(qp, cause);
		return;
	}
	aw_host_put_ports(qp->move.due.data, (const struct sockaddr *)&found.local,
			  (const struct sockaddr *)&found.peer);
	qp->move.due.kind = MOVE_HELLO;
	qp->move.state = AW_MOVE_OFFERED;
}

void aw_move_count(struct aw_uqp *qp)
{
	if (qp->move.state == AW_MOVE_COUNTS && --qp->move.calls == 0)
		offer(qp);
}

/* Initiator: opens the memory that the hello names, unless the stream is about to end. */
static struct aw_host_ring *open_ring(const struct aw_uqp *qp, const uint8_t *hello,
				      uint8_t *verdict) AW_REQUIRES(qp->lock)
{
	const char *cause = "the connection goes over a relay";
	struct aw_host_ring *ring = NULL;
	struct addresses found;

	memset(verdict, 0, MOVE_VERDICT_LEN);
	if (qp->core.state != AW_QP_RTS)
		return NULL;
	if (find_addresses(qp, &found) &&
	    aw_host_are_ports(hello, (const struct sockaddr *)&found.local,
			      (const struct sockaddr *)&found.peer))
		ring = aw_host_ring_open(hello, verdict, &cause);
	if (!ring)
		log_refused(qp, cause);
	return ring;
}

static void refuse(struct aw_uqp *qp) AW_REQUIRES(qp->lock)
{
	aw_qp_terminate(&qp->core, AW_E_DDP_UNTAGGED_VERSION);
}

static void take_verdict(struct aw_uqp *qp, const uint8_t *verdict) AW_REQUIRES(qp->lock)
{
	qp->move.state = AW_MOVE_NEVER;
	switch (aw_host_ring_decide(qp->ring, verdict)) {
	case AW_HOST_RING:
		aw_carrier_move_in(qp);
		qp->move.due.kind = MOVE_LAST;
		return;
	case AW_HOST_TCP:
		break;
	case AW_HOST_LIE:
		refuse(qp);
		break;
	}
	aw_host_ring_free(qp->ring);
	qp->ring = NULL;
}

bool aw_move_take(struct aw_uqp *qp)
{
	if (qp->core.move.kind == MOVE_MSG_NONE)
		return false;

	const struct move_msg msg = qp->core.move;

	qp->core.move.kind = MOVE_MSG_NONE;
	if (msg.kind == MOVE_HELLO && qp->move.state == AW_MOVE_AWAITS) {
		qp->ring = open_ring(qp, msg.data, qp->move.due.data);
		qp->move.due.kind = MOVE_VERDICT;
		qp->move.state = qp->ring ? AW_MOVE_LEAVES : AW_MOVE_NEVER;
	} else if (msg.kind == MOVE_VERDICT && qp->move.state == AW_MOVE_OFFERED &&
		   qp->move.due.kind == MOVE_MSG_NONE) {
		take_verdict(qp, msg.data);
	} else if (msg.kind == MOVE_LAST && qp->move.state == AW_MOVE_LEAVES &&
		   !qp->out->is_socket) {
		qp->move.state = AW_MOVE_NEVER;
		aw_carrier_move_in(qp);
	} else {
		refuse(qp);
	}
	return true;
}

/* The verdict for memory and the responder's last message end their direction over TCP. */
static bool is_last(const struct aw_uqp *qp) AW_REQUIRES(qp->lock)
{
	return qp->move.due.kind == MOVE_LAST || (qp->move.due.kind == MOVE_VERDICT && qp->ring);
}

bool aw_move_fill(struct aw_uqp *qp, struct aw_tx_out *out)
{
	if (!aw_move_is_due(qp))
		return false;
	aw_tx_move(&qp->core, out, &qp->move.due);
	qp->move.is_last = is_last(qp);
	qp->move.due.kind = MOVE_MSG_NONE;
	return qp->move.is_last;
}

void aw_move_sent(struct aw_uqp *qp)
{
	if (!qp->move.is_last)
		return;
	qp->move.is_last = false;
	aw_carrier_move_out(qp);
}

/* A peer that has ended its direction before its verdict will give none. */
bool aw_move_holds_end(const struct aw_uqp *qp)
{
	if (qp->core.state != AW_QP_CLOSING)
		return false;
	return aw_move_is_due(qp) || (qp->move.state == AW_MOVE_OFFERED &&
				      qp->move.due.kind == MOVE_MSG_NONE && !qp->core.peer_closed);
}
