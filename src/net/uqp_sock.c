// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The socket under a QP: which epoll sets it is in and for what, FIN and linger at the end.
#include "net/uqp_sock.h"

#include "net/engine.h"
#include "net/lend.h"
#include "net/linger.h"
#include "net/log.h"
#include "net/pool.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

struct aw_uqp_watch {
	struct aw_watch watch;
	uint32_t handle; /* of the QP, which may be gone when an event comes */
};

static void on_watch(struct aw_watch *w, uint32_t events)
{
	uint32_t handle = ((struct aw_uqp_watch *)w)->handle;

	if (events & ~AW_WATCH_TIMEOUT)
		aw_uqp_on_event(handle);
	if (events & AW_WATCH_TIMEOUT)
		aw_uqp_on_deadline(handle);
}

static void free_watch(struct aw_watch *w)
{
	free(w);
}

static uint32_t segment_size(int fd)
{
	int mss = 0;
	socklen_t len = sizeof(mss);

	if (getsockopt(fd, IPPROTO_TCP, TCP_MAXSEG, &mss, &len) != 0 || mss < 128)
		mss = 536; /* RFC 9293 3.7.1: what every path can be asked to carry */
	return (uint32_t)mss;
}

static void control(struct aw_uqp *qp, int epfd, int op, uint32_t events)
{
	struct epoll_event ev = { .events = events, .data.ptr = qp };

	if (epoll_ctl(epfd, op, qp->fd, &ev) != 0 && op == EPOLL_CTL_ADD && errno != EEXIST)
		qp->out_of_reach = true;
}

/* For each epoll set of a CQ that the socket belongs into. */
static void each_cq_epoll(struct aw_uqp *qp, int op, uint32_t events)
{
	struct aw_cq *cqs[2] = { qp->attr.send_cq, qp->attr.recv_cq };

	for (int i = 0; i < 2; i++)
		if (cqs[i]->epfd >= 0 && (i == 0 || cqs[1] != cqs[0]))
			control(qp, cqs[i]->epfd, op, events);
}

void aw_uqp_join_epoll(struct aw_uqp *qp, int epfd)
{
	pthread_mutex_lock(&qp->lock);
	if (qp->fd >= 0)
		control(qp, epfd, EPOLL_CTL_ADD, qp->listens_for);
	pthread_mutex_unlock(&qp->lock);
}

/* IRQ and ORQ as deep as was agreed; a depth of 0 still gets an entry, for a Read RTR. */
static int make_reads(struct aw_uqp *qp, const struct aw_stream *stream)
{
	struct aw_qp *core = &qp->core;
	uint32_t ird = stream->ird + 1, ord = stream->ord + 1;
	struct aw_irq_entry *irq = calloc(1, ird * sizeof(*irq) + ord * sizeof(*core->orq));

	if (!irq)
		return ENOMEM;
	free(qp->reads);
	qp->reads = irq;
	core->irq = irq;
	core->irq_capacity = ird;
	core->orq = (struct aw_orq_entry *)(irq + ird);
	core->orq_capacity = ord;
	return 0;
}

static int make_watch(struct aw_uqp *qp, int fd)
{
	struct aw_uqp_watch *w = calloc(1, sizeof(*w));

	if (!w)
		return ENOMEM;
	w->handle = qp->handle;
	int err = aw_watch_add(&w->watch, fd, EPOLLIN, on_watch, free_watch);

	if (err)
		free(w);
	else
		qp->watch = w;
	return err;
}

int aw_uqp_take_socket(struct aw_uqp *qp, int fd, struct aw_stream *stream)
{
	int err = make_reads(qp, stream);

	if (!err)
		err = make_watch(qp, fd);
	if (err)
		return err;
	qp->fd = fd;
	qp->attached = true;
	qp->generation = aw_engine_generation();
	qp->listens_for = EPOLLIN;
	qp->ending = qp->fin_sent = qp->reset_seen = qp->tx_blocked = qp->out_of_reach = false;
	each_cq_epoll(qp, EPOLL_CTL_ADD, EPOLLIN);
	stream->emss = segment_size(fd);
	aw_qp_start(&qp->core, stream);
	return 0;
}

static void return_buffers(struct aw_uqp *qp)
{
	if (qp->stage)
		aw_stage_put(qp->stage);
	if (qp->batch)
		aw_batch_put(qp->batch);
	qp->stage = NULL;
	qp->batch = NULL;
	qp->tx_blocked = false;
}

/* In the child of a fork the connection, and every epoll set it is in, is the parent's alone. */
static bool is_inherited(const struct aw_uqp *qp)
{
	return qp->generation != aw_engine_generation();
}

void aw_uqp_drop_socket(struct aw_uqp *qp)
{
	if (qp->fd < 0)
		return;
	if (qp->lent)
		aw_lend_end(qp);
	if (!is_inherited(qp))
		each_cq_epoll(qp, EPOLL_CTL_DEL, 0);
	aw_watch_remove(&qp->watch->watch);
	qp->watch = NULL;
	return_buffers(qp);
	if (is_inherited(qp) || qp->reset_seen || (qp->fin_sent && qp->core.peer_closed))
		close(qp->fd);
	else
		aw_linger(qp->fd);
	qp->fd = -1;
}

/* What matters now: input until the peer's FIN, room while octets wait. */
static uint32_t wanted(const struct aw_uqp *qp)
{
	return (qp->core.peer_closed ? 0 : EPOLLIN) | (qp->tx_blocked ? EPOLLOUT : 0);
}

static void listen_for(struct aw_uqp *qp)
{
	uint32_t events = wanted(qp);

	if (events == qp->listens_for)
		return;
	qp->listens_for = events;
	each_cq_epoll(qp, EPOLL_CTL_MOD, events);
	if (!qp->lent)
		aw_watch_events(&qp->watch->watch, events);
}

int aw_uqp_listen_again(struct aw_uqp *qp)
{
	return aw_watch_events(&qp->watch->watch, qp->listens_for);
}

void aw_uqp_lend(struct aw_uqp *qp)
{
	aw_watch_events(&qp->watch->watch, 0);
	aw_lend_begin(qp);
}

/* The deadline starts with the ending, so that a peer that takes nothing cannot delay the flush. */
static void begin_ending(struct aw_uqp *qp)
{
	bool closing = qp->core.state == AW_QP_CLOSING;

	if (qp->ending || (!closing && qp->core.state != AW_QP_TERMINATE))
		return;
	qp->ending = true;
	aw_watch_deadline(&qp->watch->watch, closing ? AW_CLOSE_MS : AW_TERMINATE_MS);
}

/* Once all is said: FIN. Behind a Terminate nothing of the peer's matters, so that is the end. */
static void finish_ending(struct aw_uqp *qp)
{
	if (!qp->ending || qp->batch || !aw_qp_tx_finished(&qp->core))
		return;
	if (!qp->fin_sent) {
		aw_qp_close(&qp->core); /* what is posted from now on flushes */
		shutdown(qp->fd, SHUT_WR);
	}
	qp->fin_sent = true;
	if (qp->core.peer_closed || qp->core.state == AW_QP_TERMINATE)
		aw_qp_abort(&qp->core, qp->core.error);
}

static bool overflowed(const struct aw_uqp *qp)
{
	return qp->attr.send_cq->overflowed || qp->attr.recv_cq->overflowed;
}

/* Once, when the stream is found to have ended in an error. */
static void log_end(const struct aw_uqp *qp)
{
	const struct aw_qp *core = &qp->core;

	if (core->peer_error)
		aw_log(AW_LOG_WARN, "qp 0x%x: peer terminated the stream: %s", qp->qpn,
		       aw_error_text(core->peer_error));
	else if (core->error == AW_E_MPA_CLOSED)
		aw_log(AW_LOG_INFO, "qp 0x%x: peer vanished: %s", qp->qpn,
		       aw_error_text(core->error));
	else if (core->error)
		aw_log(AW_LOG_WARN, "qp 0x%x: stream terminated: %s", qp->qpn,
		       aw_error_text(core->error));
}

static bool failed(const struct aw_qp *core)
{
	return core->peer_error || (core->error && core->error != AW_E_MPA_CLOSED);
}

static void note_events(struct aw_uqp *qp)
{
	const struct aw_qp *core = &qp->core;
	bool over = core->state == AW_QP_TERMINATE || core->state == AW_QP_ERROR;

	if (core->peer_ready)
		qp->events_due |= AW_UQP_READY;
	if (qp->attached && (over || core->peer_closed))
		qp->events_due |= AW_UQP_CLOSED;
	if (qp->attached && over && failed(core))
		qp->events_due |= AW_UQP_FATAL;
	if (core->state == AW_QP_ERROR && qp->attr.srq)
		qp->events_due |= AW_UQP_LAST_WQE;
}

/* Follows the core's state with the socket. */
static void settle(struct aw_uqp *qp)
{
	if (overflowed(qp) && qp->core.state != AW_QP_ERROR)
		aw_qp_abort(&qp->core, AW_E_LOCAL_CATASTROPHIC);
	if (qp->fd >= 0) {
		begin_ending(qp);
		finish_ending(qp);
	}
	note_events(qp);
	if (qp->fd < 0)
		return;
	if (qp->core.state == AW_QP_ERROR) {
		log_end(qp);
		aw_uqp_drop_socket(qp);
	} else {
		listen_for(qp);
	}
}

/* Whether octets may move; in the child of a fork the stream is found to be lost instead. */
static bool is_usable(struct aw_uqp *qp)
{
	if (qp->fd < 0)
		return false;
	if (is_inherited(qp))
		aw_qp_abort(&qp->core, AW_E_MPA_CLOSED);
	return !is_inherited(qp);
}

void aw_uqp_push(struct aw_uqp *qp)
{
	if (is_usable(qp))
		aw_uqp_transmit(qp);
	settle(qp);
}

void aw_uqp_serve(struct aw_uqp *qp)
{
	if (is_usable(qp))
		aw_uqp_receive(qp);
	aw_uqp_push(qp);
}
