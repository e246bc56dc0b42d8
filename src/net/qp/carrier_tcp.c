// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The stream over its TCP socket.
#include "net/qp/carrier.h"

#include "net/base/io_now.h"
#include "net/base/probe.h"
#include "net/mem/mapping.h"
#include "net/mem/pool.h"
#include "net/qp/move.h"
#include "net/qp/rnr.h"
#include "net/qp/uqp_sock.h"

#include <errno.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#define READS_MAX 4 /* reads per turn, so that other QPs have theirs */

/* A lone message is mostly one piece, and send costs the kernel less than sendmsg. */
static ssize_t send_pieces(const struct aw_uqp *qp, const struct aw_iov *iov, size_t count)
	AW_REQUIRES(qp->lock)
{
	struct msghdr msg = { .msg_iov = (struct iovec *)(uintptr_t)iov, .msg_iovlen = count };

	if (count == 1)
		return aw_send_now(qp->fd, iov->base, iov->len);
	return aw_sendmsg_now(qp->fd, &msg);
}

size_t aw_uqp_readable(const struct aw_iov *iov, size_t count)
{
	size_t readable = 0;

	while (readable < count && aw_mapping_reach(iov[readable].base, iov[readable].len, false))
		readable++;
	return readable;
}

static ssize_t send_socket(struct aw_uqp *qp, const struct aw_iov *iov, size_t count)
	AW_REQUIRES(qp->lock)
{
	ssize_t n = send_pieces(qp, iov, count);

	/*
	 * The program has unmapped memory that a WR still names. EFAULT does not tell which piece cannot be read, so the
	 * pieces before the first unreadable one are found and sent.
	 */
	if (n < 0 && errno == EFAULT) {
		size_t readable = aw_uqp_readable(iov, count);

		if (readable > 0 && readable < count)
			n = send_pieces(qp, iov, readable);
		else
			errno = EFAULT;
	}
	if (n >= 0)
		aw_move_count(qp);
	return n;
}

/*
 * poll(2) is asked about a full socket, because a send that fails takes the socket's lock from the
 * peer's acknowledgements, and poll(2) reports room only when there is enough of it to be worth a
 * send.
 */
static bool has_room(struct aw_uqp *qp) AW_REQUIRES(qp->lock)
{
	return aw_poll_now(qp->fd, POLLOUT) != 0;
}

uint32_t aw_uqp_segment_size(int fd)
{
	int mss = 0;
	socklen_t len = sizeof(mss);

	if (getsockopt(fd, IPPROTO_TCP, TCP_MAXSEG, &mss, &len) != 0 || mss < 128)
		mss = 536; /* RFC 9293 3.7.1: what every path can be asked to carry */
	return (uint32_t)mss;
}

static uint32_t segment_size(const struct aw_uqp *qp) AW_REQUIRES(qp->lock)
{
	return aw_uqp_segment_size(qp->fd);
}

/* Reads once. True when the socket may have more. */
static bool read_once(struct aw_uqp *qp, struct aw_stage *stage) AW_REQUIRES(qp->lock)
{
	size_t room = stage->size - stage->len;
	ssize_t n = aw_recv_now(qp->fd, stage->buf + stage->len, room, 0);

	if (n > 0) {
		aw_probe_receive(qp->qpn, (size_t)n);
		stage->len += (size_t)n;
		aw_move_count(qp);
		aw_uqp_use(qp, stage);
		return (size_t)n == room;
	}
	if (n == 0)
		aw_carrier_socket_ended(qp, stage->len);
	else if (errno != EAGAIN && errno != EINTR)
		aw_uqp_stream_lost(qp);
	return false;
}

static void receive(struct aw_uqp *qp, bool polled) AW_REQUIRES(qp->lock)
{
	struct aw_stage *stage = aw_uqp_take_stage(qp);

	(void)polled;
	if (!stage)
		return;
	if (aw_qp_has_waiting(&qp->core))
		aw_uqp_retry_held(qp, stage);
	for (int i = 0; i < READS_MAX; i++)
		if (!qp->in->is_socket || !aw_uqp_may_read(qp) || !read_once(qp, stage))
			break;
	aw_uqp_leave_stage(qp, stage);
	/* A turn that is not a poller's: it drains the bells, and the QP marks itself asleep behind it. */
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

	return ioctl(qp->fd, SIOCOUTQ, &unacknowledged) == 0 && unacknowledged == 0;
}

static void finish(struct aw_uqp *qp) AW_REQUIRES(qp->lock)
{
	shutdown(qp->fd, SHUT_WR);
}

/*
 * The QP waits for input until the peer's FIN, but not while it reads nothing for want of a receive; for
 * room while bytes wait for the socket; and for nothing while it has no memory for a stage.
 */
static uint32_t listens_for(struct aw_uqp *qp) AW_REQUIRES(qp->lock)
{
	bool reads = !qp->core.peer_closed && !aw_rnr_stops_reading(qp);

	if (qp->starved)
		return 0;
	return (reads ? EPOLLIN : 0) | (aw_carrier_waits_for_socket(qp, reads) ? EPOLLOUT : 0);
}

const struct aw_carrier aw_carrier_tcp = {
	.is_socket = true,
	.send = send_socket,
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
