// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The stream over its TCP socket, as records of TLS (net/tls/tls.h). A batch becomes records, which are sealed from where its pieces
// lie, in the program's memory as well; a piece counts as sent once its records have left. A record has whole FPDUs, since large ones are no
// longer (aw_stream.fpdu_max). It is opened into the stage, and the core places from there what it has found right, before the next one is
// opened: so the stage's first 16 KiB stay in the nearest cache, and a receiver moves no rest to the front. Unlike plain TLS's bytes none are
// copied before they are sealed, and as many once they are opened. A turn gives all that it has opened to the core, so bytes wait in the
// session only while the core takes none; then EPOLLOUT, which a socket with room has, brings the next turn.
//
// The stream's end is the peer's close_notify. A FIN without it counts as a reset, since anybody between the two ends can
// make one.
#include "net/qp/carrier.h"

#include "net/base/io_now.h"
#include "net/base/probe.h"
#include "net/mem/guard.h"
#include "net/mem/pool.h"
#include "net/qp/move.h"
#include "net/qp/rnr.h"
#include "net/qp/stat_qp.h"
#include "net/qp/uqp_sock.h"
#include "net/tls/tls.h"
#include "wire/fpdu.h"
#include "wire/octets.h"

#include <errno.h>
#include <linux/sockios.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

/* A piece in the batch's own arena stays mapped. */
static bool is_own(const struct aw_uqp *qp, const struct aw_iov *iov) AW_REQUIRES(qp->lock)
{
	return (uintptr_t)iov->base - (uintptr_t)qp->batch->arena < sizeof(qp->batch->arena);
}

/* The pieces of a batch from a position on: done bytes of the first are behind it. */
struct pieces {
	const struct aw_iov *iov;
	size_t count;
	size_t done;
};

static void pass(struct pieces *at, size_t n)
{
	at->done += n;
	while (at->count > 0 && at->done >= at->iov->len) {
		at->done -= at->iov->len;
		at->iov++;
		at->count--;
	}
}

/* A piece, of which a part goes into a record. */
struct sealed_part {
	struct aw_tls *tls;
	const uint8_t *from;
	size_t len;
	bool right;
};

static void add_part(void *arg)
{
	struct sealed_part *part = arg;

	part->right = aw_tls_seal_add(part->tls, part->from, part->len);
}

/* Where no fault would be caught, the kernel copies what is sealed. */
static bool add_copy(struct sealed_part *part)
{
	uint8_t copy[AW_TLS_RECORD_MAX];

	if (!aw_guard_gather(copy, part->from, part->len))
		return false;
	part->right = aw_tls_seal_add(part->tls, copy, part->len);
	return true;
}

/* False: the program's memory is unmapped. */
static bool add_guarded(struct sealed_part *part)
{
	return aw_guard_can_read() ? aw_guard_read(add_part, part, part->from, part->len)
				   : add_copy(part);
}

/*
 * Seals the next pieces, len bytes, into the record that was started, each from where it lies. Returns the bytes before the
 * first that is unmapped, len if none is; -1: the session is over.
 */
static ssize_t add_pieces(struct aw_uqp *qp, struct pieces at, size_t len) AW_REQUIRES(qp->lock)
{
	size_t added = 0;

	while (added < len) {
		size_t n = at.iov->len - at.done;
		struct sealed_part part = { .tls = qp->tls,
					    .from = (const uint8_t *)at.iov->base + at.done,
					    .len = n < len - added ? n : len - added };

		if (is_own(qp, at.iov))
			add_part(&part);
		else if (!add_guarded(&part))
			break;
		if (!part.right)
			return -1;
		added += part.len;
		pass(&at, part.len);
	}
	return (ssize_t)added;
}

/* The bytes of the pieces, as far as a record has room for them. */
static size_t count_bytes(const struct pieces *at)
{
	size_t len = at->iov->len - at->done;

	for (size_t i = 1; i < at->count && len < AW_TLS_RECORD_MAX; i++)
		len += at->iov[i].len;
	return len;
}

/* False: some FPDUs are longer than a record, or begin with a marker. */
static bool fits_records(const struct aw_qp *core)
{
	return fpdu_size(core->mulpdu) <= AW_TLS_RECORD_MAX && !core->stream.markers_tx;
}

/* The bytes of the next FPDUs, as many as a record has room for; 0: none begins here, since memory was unmapped before. */
static size_t count_fpdus(struct aw_uqp *qp, struct pieces at) AW_REQUIRES(qp->lock)
{
	size_t len = 0;

	while (at.count > 0 && is_own(qp, at.iov) && at.iov->len - at.done >= FPDU_LEN_FIELD) {
		size_t size = fpdu_size(get_be16((const uint8_t *)at.iov->base + at.done));

		if (size > AW_TLS_RECORD_MAX - len)
			break;
		len += size;
		pass(&at, size);
	}
	return len;
}

/*
 * The length of the next record, which ends as an FPDU does: the peer places what it has opened, and keeps no rest. 0: so much has no
 * room behind the records that wait.
 */
static size_t choose_len(struct aw_uqp *qp, const struct pieces *at) AW_REQUIRES(qp->lock)
{
	size_t bytes = count_bytes(at);
	size_t whole = fits_records(&qp->core) ? count_fpdus(qp, *at) : 0;

	if (whole == 0 || whole > bytes)
		return bytes;
	return whole <= aw_tls_seal_room(qp->tls) ? whole : 0;
}

/* Makes a record of the next bytes. Returns the bytes; 0: as many records as leave at once wait already; -1: errno says why. */
static ssize_t seal_next(struct aw_uqp *qp, const struct pieces *at) AW_REQUIRES(qp->lock)
{
	ssize_t len, added = (ssize_t)choose_len(qp, at);

	if (added == 0)
		return 0;

	/* Again, where memory is unmapped: without what lies there. */
	do {
		len = aw_tls_seal_start(qp->tls, (size_t)added);
		if (len <= 0)
			return len;
		added = add_pieces(qp, *at, (size_t)len);
	} while (added > 0 && added < len);
	if (added == len)
		return aw_tls_seal_finish(qp->tls) ? len : -1;
	if (added == 0)
		errno = EFAULT;
	return -1;
}

/* Makes the records of one send. An error behind the first of them is found by the next call. */
static ssize_t seal(struct aw_uqp *qp, struct pieces at) AW_REQUIRES(qp->lock)
{
	ssize_t sealed = 0, n = 0;

	while (at.count > 0 && (n = seal_next(qp, &at)) > 0) {
		sealed += n;
		pass(&at, (size_t)n);
	}
	return sealed > 0 ? sealed : n;
}

static ssize_t send_pieces(struct aw_uqp *qp, const struct aw_iov *iov, size_t count)
	AW_REQUIRES(qp->lock)
{
	return aw_tls_send_pieces(qp->tls, (const struct iovec *)(const void *)iov, count);
}

/* Where the kernel makes the records, it seals from the pieces, as TCP copies them. */
static ssize_t send_to_kernel(struct aw_uqp *qp, const struct aw_iov *iov, size_t count)
	AW_REQUIRES(qp->lock)
{
	ssize_t n = send_pieces(qp, iov, count);
	size_t readable;

	if (n >= 0 || errno != EFAULT)
		return n;
	readable = aw_uqp_readable(iov, count);
	if (readable > 0 && readable < count)
		return send_pieces(qp, iov, readable);
	errno = EFAULT;
	return -1;
}

/* The first of the pieces may be in records that an earlier call left for the socket. */
static ssize_t seal_and_send(struct aw_uqp *qp, const struct aw_iov *iov, size_t count)
	AW_REQUIRES(qp->lock)
{
	struct pieces at = { .iov = iov, .count = count };
	size_t sent = 0;
	ssize_t n;

	while ((n = aw_tls_send_sealed(qp->tls)) >= 0) {
		sent += (size_t)n;
		pass(&at, (size_t)n);
		if (at.count == 0 || (n = seal(qp, at)) < 0)
			break;
	}
	return sent > 0 ? (ssize_t)sent : n;
}

/*
 * The socket's end was found already, in front of what the peer has left in the memory, and the session is over: this end's last FPDU here
 * is for nobody.
 */
static bool is_for_nobody(const struct aw_uqp *qp) AW_REQUIRES(qp->lock)
{
	return qp->move.is_last && !qp->in->is_socket && qp->ring->gone;
}

static ssize_t send_records(struct aw_uqp *qp, const struct aw_iov *iov, size_t count)
	AW_REQUIRES(qp->lock)
{
	ssize_t n;

	if (is_for_nobody(qp))
		return (ssize_t)aw_carrier_octets(iov, count);
	n = aw_tls_sends_pieces(qp->tls) ? send_to_kernel(qp, iov, count)
					 : seal_and_send(qp, iov, count);
	if (n > 0)
		aw_move_count(qp);
	return n;
}

/* After the last piece this also sends what the session itself has to say, and then the FIN that waits for that. */
static bool has_room(struct aw_uqp *qp) AW_REQUIRES(qp->lock)
{
	if (aw_poll_now(qp->fd, POLLOUT) == 0 || !aw_tls_flush(qp->tls))
		return false;
	if (qp->ending.fin_sent)
		shutdown(qp->fd, SHUT_WR);
	return true;
}

static uint32_t segment_size(const struct aw_uqp *qp) AW_REQUIRES(qp->lock)
{
	return aw_uqp_segment_size(qp->fd);
}

/* A peer that sends other records than whole FPDUs has the rest wait in the stage. */
static void fill(struct aw_uqp *qp, struct aw_stage *stage) AW_REQUIRES(qp->lock)
{
	bool counted = false;
	ssize_t n = 1;

	while (n > 0 && stage->len < stage->size && qp->in->is_socket && aw_uqp_may_read(qp)) {
		n = aw_tls_recv(qp->tls, stage->buf + stage->len, stage->size - stage->len);
		if (n <= 0)
			break;
		aw_probe_receive(qp->qpn, (size_t)n);
		stage->len += (size_t)n;
		if (!counted)
			aw_move_count(qp);
		counted = true;
		aw_uqp_use(qp, stage);
	}
	if (n == 0)
		aw_carrier_socket_ended(qp, stage->len);
	else if (n < 0 && errno != EAGAIN)
		aw_carrier_lose(qp);
}

static void receive(struct aw_uqp *qp, bool polled) AW_REQUIRES(qp->lock)
{
	struct aw_stage *stage = aw_uqp_take_stage(qp);
	enum aw_tls_by by = aw_tls_by(qp->tls);

	(void)polled;
	if (!stage)
		return;
	if (aw_qp_has_waiting(&qp->core))
		aw_uqp_retry_held(qp, stage);
	aw_tls_begin_turn(qp->tls);
	fill(qp, stage);
	aw_uqp_leave_stage(qp, stage);
	if (aw_tls_by(qp->tls) != by)
		aw_stat_write_path(qp);
	/* An answer to the peer's key update: the next turn sends what the socket does not take. */
	if (aw_tls_has_output(qp->tls) && !aw_tls_flush(qp->tls) && qp->out->is_socket)
		qp->tx_blocked = true;
	/* As over TCP. Behind the peer's last FPDU here the session holds bells. */
	if (!qp->in->is_socket)
		qp->in->receive(qp, false);
}

static bool is_reset(struct aw_uqp *qp) AW_REQUIRES(qp->lock)
{
	return aw_poll_now(qp->fd, 0) != 0;
}

static bool has_ended(struct aw_uqp *qp) AW_REQUIRES(qp->lock)
{
	return aw_poll_now(qp->fd, POLLRDHUP) != 0;
}

static bool has_taken_all(struct aw_uqp *qp) AW_REQUIRES(qp->lock)
{
	int unacknowledged = 1;

	return aw_tls_has_left(qp->tls) && ioctl(qp->fd, SIOCOUTQ, &unacknowledged) == 0 &&
	       unacknowledged == 0;
}

static void finish(struct aw_uqp *qp) AW_REQUIRES(qp->lock)
{
	if (aw_tls_finish(qp->tls))
		shutdown(qp->fd, SHUT_WR);
	else
		qp->tx_blocked = true;
}

static uint32_t listens_for(struct aw_uqp *qp) AW_REQUIRES(qp->lock)
{
	bool reads = !qp->core.peer_closed && !aw_rnr_stops_reading(qp);
	bool again = reads && aw_tls_has_input(qp->tls);

	if (qp->starved)
		return 0;
	return (reads ? EPOLLIN : 0) |
	       (aw_carrier_waits_for_socket(qp, reads) || again ? EPOLLOUT : 0);
}

const struct aw_carrier aw_carrier_tls = {
	.is_socket = true,
	.send = send_records,
	.has_room = has_room,
	.segment_size = segment_size,
	.receive = receive,
	.is_reset = is_reset,
	.has_ended = has_ended,
	.has_taken_all = has_taken_all,
	.finish = finish,
	.listens_for = listens_for,
	.moved = &aw_carrier_host,
};
