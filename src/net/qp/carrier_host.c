// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The stream through shared memory. A bell is one byte in a pipe (net/qp/bells.h), or on the TCP socket
// where there are no pipes; its content is ignored. The end of the socket is the end of the peer,
// whether the peer closed or was killed. Where there is TLS such a bell is a record, and an end of the socket that TLS did not tell of is a
// reset. An end that no pollers serve sleeps (ring/duplex.h)
// until a bell, and drains the bells before it looks at the memory: a bell for bytes that come after
// the look therefore leaves the pipe readable. QPs that pollers serve do not sleep.
#include "net/qp/carrier.h"

#include "core/rx.h"
#include "net/base/io_now.h"
#include "net/base/probe.h"
#include "net/mem/pool.h"
#include "net/qp/capture.h"
#include "net/qp/uqp_sock.h"
#include "net/tls/tls.h"
#include "wire/fpdu.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#define TURN_BYTES (4 * AW_HOST_RING_BYTES) /* bytes per turn, so that other QPs have theirs */
#define BELLS 4096 /* bells that one recv drains: a peer may send many in one call */

_Static_assert(AW_HOST_RING_BYTES - FPDU_MAX >= AW_HOST_RING_BYTES / 2,
	       "half an FPDU in the ring leaves the room for which its writer is woken");

/*
 * A failed send is ignored: a full socket holds bells already, and a peer that is gone needs none. While FPDUs of this end
 * go over TCP the peer hears no bell; the last of them wakes it.
 */
static void ring_bell(struct aw_uqp *qp) AW_REQUIRES(qp->lock)
{
	uint8_t bell = 0;
	ssize_t sent;

	if (qp->out->is_socket || aw_host_ring_ring(qp->ring))
		return;
	sent = aw_tls_or_plain_send(qp->fd, qp->tls, &bell, sizeof(bell));
	if (sent > 0)
		aw_host_ring_count_bell(qp->ring);
}

/*
 * The peer no longer reads. After its orderly end the bytes are dropped, as its TCP would drop
 * them.
 */
static ssize_t send_to_nobody(struct aw_uqp *qp, const struct aw_iov *iov, size_t count)
	AW_REQUIRES(qp->lock)
{
	if (aw_duplex_peer_left(&qp->ring->duplex))
		return (ssize_t)aw_carrier_octets(iov, count);
	errno = ECONNRESET;
	return -1;
}

/* FPDUs for a peer that no longer reads go into a batch, as over TCP, and from there to nobody. */
static uint8_t *place(struct aw_uqp *qp, size_t *room) AW_REQUIRES(qp->lock)
{
	struct aw_duplex *d = &qp->ring->duplex;

	if (qp->ring->gone)
		return NULL;
	*room = aw_duplex_room_seen(d, FPDU_MAX);
	return aw_duplex_tx(d);
}

static void publish(struct aw_uqp *qp, size_t n) AW_REQUIRES(qp->lock)
{
	aw_duplex_produce(&qp->ring->duplex, n);
	if (aw_duplex_wakes_reader(&qp->ring->duplex))
		ring_bell(qp);
}

/* Also true when a send is due that will find that the peer is gone, and when a turn will end the broken stream. */
static bool has_room(struct aw_uqp *qp) AW_REQUIRES(qp->lock)
{
	return qp->ring->gone || aw_duplex_has_room(&qp->ring->duplex) || qp->ring->duplex.broken;
}

static uint32_t segment_size(const struct aw_uqp *qp)
{
	(void)qp;
	return FPDU_MAX;
}

/*
 * Reads the bells on the socket; the result is recv(2)'s. Of records that the session has read already the socket tells nothing, so all are
 * opened; with them come the peer's alerts, tickets and changes of keys.
 */
static ssize_t read_bells(struct aw_uqp *qp) AW_REQUIRES(qp->lock)
{
	uint8_t bells[BELLS];
	bool heard = false;
	ssize_t n;

	if (!qp->tls)
		return aw_recv_now(qp->fd, bells, sizeof(bells), 0);
	aw_tls_begin_turn(qp->tls);
	while ((n = aw_tls_recv(qp->tls, bells, sizeof(bells))) > 0)
		heard = true;
	if (n == 0 || errno != EAGAIN)
		return n;
	/* An answer to a change of keys, for which the socket has no room, leaves before the next bell. */
	if (aw_tls_has_output(qp->tls))
		(void)aw_tls_flush(qp->tls);
	errno = EAGAIN;
	return heard ? 1 : -1;
}

/* An empty pipe means that the socket has woken this end. */
static void drain_bells(struct aw_uqp *qp) AW_REQUIRES(qp->lock)
{
	ssize_t n;

	qp->ring->drained = true;
	qp->ring->wakes += qp->ring->asked;
	qp->ring->asked = false;
	if (qp->ring->bells.own >= 0 && aw_bells_drain(&qp->ring->bells)) {
		qp->ring->wakes++;
		return;
	}
	n = read_bells(qp);
	if (n > 0) {
		qp->ring->wakes++;
		aw_host_ring_count_bell(qp->ring);
	}
	qp->ring->reset |= n < 0 && errno != EAGAIN && errno != EINTR;
	qp->ring->gone |= n == 0 || qp->ring->reset;
}

/* Responder: nothing shows that the peer has read this end's last FPDU over TCP, behind which it reads the memory. */
static bool may_owe_tcp(const struct aw_uqp *qp) AW_REQUIRES(qp->lock)
{
	return !qp->core.stream.initiator && qp->ring->duplex.head_seen == 0;
}

/*
 * TCP reports such an end as a reset; it has done so where the bytes before those in the memory were not read. Under TLS each end is one
 * that the peer has told of neither there nor in the memory.
 */
bool aw_carrier_is_cut(struct aw_uqp *qp)
{
	struct aw_duplex *d = &qp->ring->duplex;

	if (aw_duplex_peer_left(d) || aw_duplex_peer_closed(d))
		return false;
	return !aw_duplex_is_drained(d) || (qp->ring->reset && (qp->tls || may_owe_tcp(qp)));
}

bool aw_carrier_is_broken(const struct aw_uqp *qp)
{
	return qp->ring && qp->ring->duplex.broken;
}

/* True when the peer was killed before it had read all that it was sent. */
static bool is_cut(struct aw_uqp *qp) AW_REQUIRES(qp->lock)
{
	return qp->ring->gone && aw_carrier_is_cut(qp);
}

/*
 * Copies a whole FPDU into a stage, for one that waits for its receive or comes behind such a one: the core takes it from
 * there, keeps it (core/stash.h), or leaves it where it is.
 */
static bool hold(struct aw_uqp *qp, size_t len) AW_REQUIRES(qp->lock)
{
	struct aw_stage *stage = aw_uqp_take_stage(qp);

	if (!stage)
		return false;
	memcpy(stage->buf, aw_duplex_rx(&qp->ring->duplex), len);
	stage->len = len;
	aw_duplex_consume(&qp->ring->duplex, len);
	aw_uqp_use(qp, stage);
	/* The FPDU was whole before the copy and is not now: another process has overwritten it. */
	if (stage->len > 0 && !qp->core.rx_held)
		qp->ring->duplex.broken = true;
	aw_uqp_leave_stage(qp, stage);
	return true;
}

/* Gives the core some whole FPDUs of the ready bytes. Returns the number of bytes used. */
static size_t ring_receive(struct aw_uqp *qp, size_t ready) AW_REQUIRES(qp->lock)
{
	struct aw_duplex *d = &qp->ring->duplex;
	size_t len = ready < FPDU_MAX ? ready : FPDU_MAX;
	size_t used, wanted;

	if (aw_capture_is_asked(qp))
		aw_capture_in(qp, aw_duplex_rx(d), len);
	used = aw_rx_lent(&qp->core, aw_duplex_rx(d), len);
	if (used > 0) {
		aw_duplex_consume(d, used);
		return used;
	}
	wanted = aw_rx_wanted(&qp->core, aw_duplex_rx(d), len);
	return wanted > FPDU_LEN_FIELD && wanted <= len && hold(qp, wanted) ? wanted : 0;
}

/* The end is looked at before the amount of data, so no bytes come after an end that was seen. */
static bool take_turn(struct aw_uqp *qp, size_t *used) AW_REQUIRES(qp->lock)
{
	struct aw_host_ring *ring = qp->ring;
	bool over = ring->gone || aw_duplex_peer_closed(&ring->duplex);
	size_t ready = aw_duplex_ready(&ring->duplex);

	*used = ready ? ring_receive(qp, ready) : 0;
	ring->closed_seen = over;
	if (*used > 0) {
		aw_probe_receive(qp->qpn, *used);
		return true;
	}
	if (!over || !aw_uqp_may_read(qp) || qp->starved || ring->duplex.broken)
		return false;
	if (is_cut(qp))
		aw_carrier_lose(qp);
	else
		aw_uqp_peer_closed(qp, ready);
	return false;
}

static void receive(struct aw_uqp *qp, bool polled) AW_REQUIRES(qp->lock)
{
	struct aw_host_ring *ring = qp->ring;
	size_t taken = 0, used;

	if (!polled)
		drain_bells(qp);
	struct aw_stage *held = aw_qp_has_waiting(&qp->core) ? aw_uqp_take_stage(qp) : NULL;

	if (held) {
		aw_uqp_retry_held(qp, held);
		aw_uqp_leave_stage(qp, held);
	}
	do {
		used = 0;
	} while (aw_uqp_may_read(qp) && take_turn(qp, &used) && (taken += used) < TURN_BYTES);
	ring->more = used > 0 && !polled;
	/* Bytes that this turn has left are news to the next one. */
	ring->looked = used > 0 ? ring->duplex.head : ring->duplex.tail_seen;
	ring->closed_seen &= used == 0;
	if (taken > 0 && aw_duplex_wakes_writer(&ring->duplex))
		ring_bell(qp);
}

static bool is_reset(struct aw_uqp *qp) AW_REQUIRES(qp->lock)
{
	return is_cut(qp);
}

static bool has_ended(struct aw_uqp *qp) AW_REQUIRES(qp->lock)
{
	struct aw_duplex *d = &qp->ring->duplex;

	return qp->ring->gone || aw_duplex_peer_closed(d);
}

/* Bytes in the shared memory count as taken by the peer; those before them went over TCP. */
static bool has_taken_all(struct aw_uqp *qp) AW_REQUIRES(qp->lock)
{
	if (qp->in->is_socket && !qp->in->has_taken_all(qp))
		return false;
	return !qp->batch && !is_cut(qp);
}

static void finish(struct aw_uqp *qp) AW_REQUIRES(qp->lock)
{
	aw_duplex_close(&qp->ring->duplex);
	if (aw_duplex_wakes_reader(&qp->ring->duplex))
		ring_bell(qp);
}

bool aw_carrier_has_news(struct aw_uqp *qp)
{
	struct aw_host_ring *ring = qp->ring;

	if (!ring || qp->in->is_socket)
		return false;
	if (aw_uqp_may_read(qp) &&
	    ((!ring->closed_seen && aw_duplex_peer_closed(&ring->duplex)) ||
	     (aw_duplex_ready(&ring->duplex) > 0 && ring->duplex.tail_seen != ring->looked)))
		return true;
	return ring->duplex.broken || (qp->tx_blocked && qp->out->has_room(qp));
}

bool aw_carrier_awaits_room(struct aw_uqp *qp)
{
	if (has_room(qp))
		return true;
	aw_duplex_await_room(&qp->ring->duplex);
	return has_room(qp);
}

/* The socket itself reports its room. */
static bool may_send(struct aw_uqp *qp) AW_REQUIRES(qp->lock)
{
	return qp->tx_blocked && (qp->out->is_socket || aw_carrier_awaits_room(qp));
}

bool aw_carrier_owes_turn(const struct aw_uqp *qp)
{
	return !qp->in->is_socket && qp->ring->more && may_owe_tcp(qp) &&
	       aw_poll_now(qp->fd, POLLOUT) == 0;
}

/* EPOLLOUT asks for another turn at once: a socket that has room for a bell is writable. */
static uint32_t listens_for(struct aw_uqp *qp) AW_REQUIRES(qp->lock)
{
	struct aw_host_ring *ring = qp->ring;
	uint32_t events = ring->gone ? 0 : EPOLLIN;

	if (qp->starved)
		return 0;
	if (ring->drained && !ring->more) {
		aw_duplex_sleep(&ring->duplex);
		ring->more = aw_carrier_has_news(qp);
		ring->drained = false;
	}
	ring->asked |= ring->more;
	return ring->more || may_send(qp) ? events | EPOLLOUT : events;
}

/* Of a QP that no pollers serve: this end is asleep, or falls asleep, with nothing to read, and hears the bells where it is to. */
static bool awaits_bells(struct aw_uqp *qp) AW_REQUIRES(qp->lock)
{
	enum aw_bell_set set = qp->serving.channel ? AW_BELL_CHANNEL : AW_BELL_ENGINE;

	return (!qp->bell_watch || (qp->bell_set == set && qp->ring->bells_told)) &&
	       listens_for(qp) == qp->listens_for;
}

bool aw_carrier_is_steady(struct aw_uqp *qp)
{
	const struct aw_host_ring *ring = qp->ring;

	return !qp->in->is_socket && !qp->out->is_socket && !ring->more && !ring->duplex.broken &&
	       (ring->bells.own < 0 || qp->bell_watch) &&
	       (aw_serving_is_polled(&qp->serving) || awaits_bells(qp));
}

/* Pollers look at the memory, so the peer rings no bells. The socket notifies only of the end. */
static uint32_t polled(struct aw_uqp *qp) AW_REQUIRES(qp->lock)
{
	aw_duplex_wake(&qp->ring->duplex);
	return qp->ring->gone ? 0 : EPOLLRDHUP;
}

/*
 * Bytes may have come between the pollers' last look and this end's sleep, so the next turn looks
 * at the memory once more.
 */
static uint32_t taken_back(struct aw_uqp *qp) AW_REQUIRES(qp->lock)
{
	aw_duplex_sleep(&qp->ring->duplex);
	qp->ring->more = true;
	return qp->ring->gone ? EPOLLOUT : EPOLLIN | EPOLLOUT;
}

const struct aw_carrier aw_carrier_host = {
	.place = place,
	.publish = publish,
	.send = send_to_nobody,
	.has_room = has_room,
	.segment_size = segment_size,
	.receive = receive,
	.is_reset = is_reset,
	.has_ended = has_ended,
	.has_taken_all = has_taken_all,
	.finish = finish,
	.listens_for = listens_for,
	.polled = polled,
	.taken_back = taken_back,
};
