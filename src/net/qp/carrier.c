// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The choice of a carrier, and the carrier of a responder that waits for the initiator's verdict.
#include "net/qp/carrier.h"

#include "base/log.h"
#include "net/base/addr.h"
#include "net/base/io_now.h"
#include "net/qp/stat_qp.h"
#include "net/qp/uqp_sock.h"

#include <errno.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/socket.h>

static void log_path(const struct aw_uqp *qp)
{
	if (aw_log_level() >= AW_LOG_INFO)
		aw_log(AW_LOG_INFO, "qp 0x%x path %s", qp->qpn, qp->carrier->name);
}

static void choose(struct aw_uqp *qp, const struct aw_carrier *carrier)
{
	qp->carrier = carrier;
	aw_stat_write_path(qp);
	log_path(qp);
}

static void count(struct aw_uqp *qp, uint32_t change)
{
	atomic_fetch_add_explicit(&qp->attr.send_cq->over_memory, change, memory_order_relaxed);
	atomic_fetch_add_explicit(&qp->attr.recv_cq->over_memory, change, memory_order_relaxed);
}

/*
 * Bytes that reach no wire need no CRC. The program still sees the CRC setting that MPA start-up
 * agreed on.
 */
static void choose_host(struct aw_uqp *qp)
{
	choose(qp, &aw_carrier_host);
	count(qp, 1);
	qp->core.stream.crc = false;
	aw_qp_set_emss(&qp->core, qp->carrier->segment_size(qp));
}

static void begin_undecided(struct aw_uqp *qp)
{
	qp->carrier = &aw_carrier_undecided;
	aw_stat_write_path(qp);
}

void aw_carrier_begin(struct aw_uqp *qp, struct aw_host_ring *ring)
{
	qp->ring = ring;
	qp->verdict_len = 0;
	if (!ring)
		choose(qp, &aw_carrier_tcp);
	else if (ring->fd >= 0)
		begin_undecided(qp);
	else
		choose_host(qp);
}

void aw_carrier_end(struct aw_uqp *qp, bool forgets)
{
	if (qp->carrier == &aw_carrier_host)
		count(qp, -1u);
	if (qp->ring && !forgets)
		aw_duplex_leave(&qp->ring->duplex);
	aw_host_ring_free(qp->ring);
	qp->ring = NULL;
	qp->carrier = &aw_carrier_tcp;
}

/*
 * The initiator sends the verdict before all else. This end may have begun to close before it
 * comes.
 */
static void decide(struct aw_uqp *qp)
{
	enum aw_host_verdict verdict = aw_host_ring_decide(qp->ring, qp->verdict);

	switch (verdict) {
	case AW_HOST_RING:
		aw_uqp_leave_sets(qp);
		choose_host(qp);
		break;
	case AW_HOST_TCP:
		aw_host_ring_free(qp->ring);
		qp->ring = NULL;
		choose(qp, &aw_carrier_tcp);
		break;
	case AW_HOST_LIE:
		aw_uqp_stream_lost(qp);
		return;
	}
	/* This end began to close before the verdict came. */
	if (qp->fin_sent)
		qp->carrier->finish(qp);
	qp->carrier->receive(qp, false);
}

static void receive(struct aw_uqp *qp, bool polled)
{
	size_t left = sizeof(qp->verdict) - qp->verdict_len;
	ssize_t n = aw_recv_now(qp->fd, qp->verdict + qp->verdict_len, left, 0);

	(void)polled;
	if (n > 0)
		qp->verdict_len += (uint32_t)n;
	if (n > 0 && (size_t)n == left)
		decide(qp);
	else if (n == 0)
		aw_uqp_peer_closed(qp, qp->verdict_len);
	else if (n < 0 && errno != EAGAIN && errno != EINTR)
		aw_uqp_stream_lost(qp);
}

/* RFC 5044 7.1.2: a responder has nothing to send before an FPDU has come. */
static ssize_t send_nothing(struct aw_uqp *qp, const struct aw_iov *iov, size_t count)
{
	(void)qp;
	(void)iov;
	(void)count;
	errno = EAGAIN;
	return -1;
}

static bool is_never(struct aw_uqp *qp)
{
	(void)qp;
	return false;
}

static uint32_t segment_size(const struct aw_uqp *qp)
{
	return aw_carrier_tcp.segment_size(qp);
}

static bool is_reset(struct aw_uqp *qp)
{
	return aw_carrier_tcp.is_reset(qp);
}

/* decide calls finish of the chosen carrier. */
static void finish_later(struct aw_uqp *qp)
{
	(void)qp;
}

static uint32_t listens_for(struct aw_uqp *qp)
{
	return qp->starved || qp->core.peer_closed ? 0 : EPOLLIN;
}

const struct aw_carrier aw_carrier_undecided = {
	.name = "undecided",
	.is_socket = true,
	.send = send_nothing,
	.has_room = is_never,
	.segment_size = segment_size,
	.receive = receive,
	.is_reset = is_reset,
	.has_ended = is_never,
	.has_taken_all = is_never,
	.finish = finish_later,
	.listens_for = listens_for,
};
