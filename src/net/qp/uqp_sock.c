// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The socket under a QP: its epoll sets and their events, then FIN and linger at the end.
#include "net/qp/uqp_sock.h"

#include "base/clock.h"
#include "base/log.h"
#include "net/base/addr.h"
#include "net/base/fork.h"
#include "net/base/io_now.h"
#include "net/cq/channel_set.h"
#include "net/mem/pool.h"
#include "net/progress/linger.h"
#include "net/progress/watch.h"
#include "net/qp/capture.h"
#include "net/qp/carrier.h"
#include "net/qp/cq_qps.h"
#include "net/qp/deferral.h"
#include "net/qp/lost.h"
#include "net/qp/move.h"
#include "net/qp/refusal.h"
#include "net/qp/replied.h"
#include "net/qp/rnr.h"
#include "net/qp/senders.h"
#include "net/qp/serving.h"
#include "net/qp/stat_qp.h"
#include "net/qp/varied.h"
#include "net/qp/watched.h"
#include "net/tls/identity.h"
#include "net/tls/records.h"
#include "ring/lock.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

struct aw_uqp_watch {
	struct aw_watch watch;
	uint32_t handle; /* of the QP, which may be gone when an event comes */
	const struct aw_uqp_calls *calls;
	struct sockaddr_storage peer; /* for the log: a socket that was reset does not know it */
};

static void on_watch(struct aw_watch *w, uint32_t events)
{
	const struct aw_uqp_watch *of = (struct aw_uqp_watch *)w;

	if (events & ~AW_WATCH_TIMEOUT)
		of->calls->on_event(of->handle);
	if (events & AW_WATCH_TIMEOUT)
		of->calls->on_deadline(of->handle);
}

static void free_watch(struct aw_watch *w)
{
	free(w);
}

/* Makes IRQ and ORQ as deep as was agreed; a depth of 0 still gets an entry, for a Read RTR. */
static int make_reads(struct aw_uqp *qp, const struct aw_stream *stream) AW_REQUIRES(qp->lock)
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

static int make_watch(struct aw_uqp *qp, const struct aw_uqp_socket *on, uint32_t events,
		      const struct aw_uqp_calls *calls, struct aw_uqp_watch **made)
{
	struct aw_uqp_watch *w = calloc(1, sizeof(*w));
	socklen_t len = sizeof(w->peer);

	if (!w)
		return ENOMEM;
	w->handle = qp->handle;
	w->calls = calls;
	if (on->peer)
		w->peer = *on->peer;
	else
		getpeername(on->fd, (struct sockaddr *)&w->peer, &len);
	int err = (on->watched ? aw_watch_add_passed : aw_watch_add)(&w->watch, on->fd, events,
								     on_watch, free_watch);

	if (err)
		free(w);
	else
		*made = w;
	return err;
}

static void drop_watch(struct aw_uqp_watch **watch)
{
	if (*watch)
		aw_watch_remove(&(*watch)->watch);
	*watch = NULL;
}

uint32_t aw_uqp_ready_socket(int fd)
{
	uint32_t segment_size = aw_uqp_segment_size(fd);

	aw_send_buffer_ready(fd, segment_size);
	return segment_size;
}

int aw_uqp_take_socket(struct aw_uqp *qp, const struct aw_uqp_socket *to, struct aw_stream *stream,
		       const struct aw_uqp_calls *calls)
{
	int err = make_reads(qp, stream);

	if (!err)
		err = make_watch(qp, to, EPOLLIN, calls, &qp->watch);
	if (!err && to->start)
		err = aw_replied_start(qp, to);
	if (err) {
		drop_watch(&qp->watch);
		return err;
	}
	qp->fd = to->fd;
	qp->attached = true;
	atomic_store_explicit(&qp->generation, aw_fork_generation(), memory_order_relaxed);
	qp->listens_for = EPOLLIN;
	aw_serving_begin(qp);
	qp->fail_ns = 0;
	qp->lingers = 0;
	qp->tells_delivered = qp->touched = qp->lost = qp->peer_gone = qp->leaves = qp->recall_due =
		qp->posts_drop = qp->reset_seen = qp->tx_blocked = qp->starved = qp->retry_due =
			qp->starving_told = qp->settled = false;
	stream->emss = to->segment_size ? to->segment_size : aw_uqp_ready_socket(to->fd);
	stream->fpdu_max = to->tls ? AW_TLS_RECORD_MAX : 0;
	aw_send_buffer_begin(&qp->send_buffer, stream->emss);
	qp->ending = (struct aw_ending){ 0 };
	qp->liveness = (struct aw_liveness){ 0 };
	qp->looked_pos = qp->quiet_pos = 0;
	aw_stat_stream_begun(qp, &qp->watch->peer);
	aw_stat_write_identity(qp, to->identity ? to->identity->name : "");
	qp->core.acks = qp->by_rc && !qp->attr.uc;
	/* A message of UC waits so briefly that what is behind it may wait as well. */
	qp->core.keeps = qp->by_rc && qp->peer_keeps && !qp->attr.uc;
	qp->core.copies = false;
	aw_qp_start(&qp->core, stream);
	qp->tls = to->tls;
	qp->in = qp->out = aw_varied_carrier(qp);
	aw_carrier_begin(qp);
	aw_move_begin(qp);
	aw_cq_sets_join(qp, EPOLLIN);
	aw_rnr_begin(qp);
	return 0;
}

/* The set by which threads of a channel serve the QP; -1: none do. */
static int set_of(const struct aw_uqp *qp) AW_REQUIRES(qp->lock)
{
	return qp->serving.channel ? aw_serving_set(qp->serving.channel, qp->serving.server) : -1;
}

/* set: that of AW_BELL_CHANNEL, where the pipe is or shall be. An error changes nothing. */
static int move_bell(struct aw_uqp *qp, int set, enum aw_bell_set to) AW_REQUIRES(qp->lock)
{
	enum aw_bell_set from = qp->bell_set;
	struct aw_watch *w = qp->bell_watch ? &qp->bell_watch->watch : NULL;
	int err = 0;

	if (!w || to == from)
		return 0;
	if (to == AW_BELL_ENGINE)
		err = aw_watch_events(w, EPOLLIN);
	else if (to == AW_BELL_CHANNEL)
		err = aw_channel_watch(set, w->fd, qp->handle, EPOLLIN);
	if (err)
		return err;
	if (from == AW_BELL_ENGINE)
		aw_watch_events(w, 0);
	else if (from == AW_BELL_CHANNEL)
		aw_channel_watch(set, w->fd, qp->handle, 0);
	qp->bell_set = to;
	return 0;
}

/*
 * Nobody rings for pollers, so a pipe stays where it was before the QP went to them. Where the
 * kernel has no memory to move the pipe, the bells are read when the next try comes.
 */
static void listen_for_bells(struct aw_uqp *qp) AW_REQUIRES(qp->lock)
{
	bool heard = !qp->starved && !qp->in->is_socket;
	bool polled = aw_serving_is_polled(&qp->serving);
	enum aw_bell_set set = qp->serving.channel ? AW_BELL_CHANNEL : AW_BELL_ENGINE;

	/* The ring gets its pipes within a turn or post. Without memory to watch one they are closed, and bells go over TCP. */
	if (!qp->bell_watch && qp->ring && qp->ring->bells.own >= 0) {
		const struct aw_uqp_socket pipe = { .fd = qp->ring->bells.own,
						    .peer = &qp->watch->peer };

		qp->bell_set = AW_BELL_NOWHERE;
		if (make_watch(qp, &pipe, 0, qp->watch->calls, &qp->bell_watch) != 0)
			aw_bells_close(&qp->ring->bells);
	}
	if (!qp->bell_watch)
		return;
	if (!polled && move_bell(qp, set_of(qp), heard ? set : AW_BELL_NOWHERE) != 0)
		aw_uqp_starve(qp);
	if (polled || qp->bell_set != AW_BELL_NOWHERE)
		aw_host_ring_tell_bells(qp->ring);
}

static void return_buffers(struct aw_uqp *qp) AW_REQUIRES(qp->lock)
{
	if (qp->stage)
		aw_stage_put(qp->stage);
	if (qp->batch)
		aw_batch_put(qp->batch);
	qp->stage = NULL;
	qp->batch = NULL;
	qp->tx_blocked = qp->settled = false;
}

static void leave_socket(struct aw_uqp *qp, const struct aw_linger_socket *socket)
	AW_REQUIRES(qp->lock)
{
	uint32_t number = aw_linger_stream(socket);

	if (socket->told)
		qp->lingers = number;
}

/* Nothing can come any more, or the connection is the parent's. */
static bool is_done_with_socket(struct aw_uqp *qp) AW_REQUIRES(qp->lock)
{
	return aw_uqp_is_inherited(qp) || qp->reset_seen ||
	       (qp->ending.fin_sent && qp->core.peer_closed);
}

void aw_uqp_drop_socket(struct aw_uqp *qp)
{
	struct aw_linger_socket socket = { .fd = qp->fd, .handle = qp->handle };

	if (socket.fd < 0)
		return;
	socket.fin_sent = qp->ending.fin_sent && qp->out->is_socket;
	aw_deferral_end(qp);
	if (qp->serving.channel && !aw_uqp_is_inherited(qp)) {
		aw_channel_watch(set_of(qp), qp->fd, qp->handle, 0);
		move_bell(qp, set_of(qp), AW_BELL_NOWHERE);
	}
	aw_serving_end(qp);
	drop_watch(&qp->bell_watch);
	if (!aw_uqp_is_inherited(qp) && qp->in->is_socket)
		aw_cq_sets_leave(qp);
	aw_carrier_end(qp, aw_uqp_is_inherited(qp));
	qp->in = qp->out = aw_varied_carrier(qp);
	aw_replied_end(qp);
	if (qp->tells_delivered)
		socket.told = qp->watch->calls->on_delivered;
	bool done = is_done_with_socket(qp);

	socket.watched = !done && aw_watch_pass_fd(&qp->watch->watch);
	drop_watch(&qp->watch);
	return_buffers(qp);
	aw_stash_drop(&qp->core);
	aw_capture_stream_gone(qp);
	/* A fork meanwhile must not take the number for the stream's, once it may be another file's. */
	qp->fd = -1;
	if (done)
		aw_close_now(socket.fd);
	else
		leave_socket(qp, &socket);
	if (!qp->lingers)
		aw_uqp_note_delivered(qp);
	aw_stat_stream_gone(qp);
}

/* Where the kernel has no memory to listen to the socket, a deadline brings the next try; an ending has one already. */
static void listen_for(struct aw_uqp *qp) AW_REQUIRES(qp->lock)
{
	/* While pollers serve a QP whose stream goes through memory, the socket notifies only of the end. */
	bool tells_end = aw_serving_is_polled(&qp->serving) && !qp->in->is_socket;

	listen_for_bells(qp);
	uint32_t events = tells_end ? qp->in->polled(qp) : qp->in->listens_for(qp);

	if (events == qp->listens_for)
		return;
	if ((!aw_serving_is_away(&qp->serving) || tells_end) &&
	    aw_watch_events(&qp->watch->watch, events) != 0) {
		qp->starved = !qp->ending.begun;
		return;
	}
	qp->listens_for = events;
	if (qp->in->is_socket)
		aw_cq_sets_change(qp, events);
	if (qp->serving.channel && aw_channel_watch(set_of(qp), qp->fd, qp->handle, events) != 0)
		aw_serving_lost_reach(qp);
}

/* A shortage that no event ends is tried again later. A post in between does not put that off. */
static void await_retry(struct aw_uqp *qp) AW_REQUIRES(qp->lock)
{
	uint32_t retry_ms = AW_TURN_RETRY_MS;

	if (qp->starved)
		retry_ms = AW_MEMORY_RETRY_MS;
	else if (aw_rnr_waits(qp))
		retry_ms = aw_rnr_retry_ms(qp);
	else if (!aw_carrier_owes_turn(qp))
		return;
	if (qp->starved && !qp->starving_told) {
		aw_log(AW_LOG_WARN, "qp 0x%x waits for memory for a buffer", qp->qpn);
		qp->starving_told = true;
	}
	if (qp->retry_due)
		return;
	qp->retry_due = true;
	aw_watch_deadline(&qp->watch->watch, retry_ms);
}

int aw_uqp_listen_again(struct aw_uqp *qp)
{
	if (qp->in->taken_back)
		qp->listens_for = qp->in->taken_back(qp);
	int err = aw_watch_events(&qp->watch->watch, qp->listens_for);

	if (!err)
		err = move_bell(qp, set_of(qp),
				qp->in->is_socket ? AW_BELL_NOWHERE : AW_BELL_ENGINE);
	if (!err && qp->serving.channel)
		aw_channel_watch(set_of(qp), qp->fd, qp->handle, 0);
	if (!err)
		await_retry(qp);
	return err;
}

static bool joins(struct aw_uqp *qp, int set) AW_REQUIRES(qp->lock)
{
	bool joined = aw_channel_watch(set, qp->fd, qp->handle, qp->listens_for) == 0;

	if (!joined || qp->in->is_socket || move_bell(qp, set, AW_BELL_CHANNEL) == 0)
		return joined;
	aw_channel_watch(set, qp->fd, qp->handle, 0);
	return false;
}

/* The socket is ready, so that it wakes the watchers' program as it joins. */
void aw_uqp_leave_to(struct aw_uqp *qp, enum aw_server server, struct aw_channel *channel)
{
	uint32_t events = 0;

	if (server == AW_SERVER_WATCHER)
		aw_watched_begin(qp, channel);
	if (channel && !joins(qp, aw_serving_set(channel, server))) {
		aw_watched_served(qp);
		return;
	}
	if (!channel && qp->in->polled)
		qp->listens_for = events = qp->in->polled(qp);
	aw_watch_events(&qp->watch->watch, events);
	aw_serving_leave_to(qp, server, channel);
	aw_watched_served(qp);
}

/* A watcher's program is woken only where it can be given an event. */
static void leave_watchers(struct aw_uqp *qp) AW_REQUIRES(qp->lock)
{
	aw_serving_lock();
	if (aw_uqp_listen_again(qp) == 0)
		aw_serving_take_back(qp);
	else
		aw_serving_look_again();
	aw_serving_unlock();
}

static void watch_ending(struct aw_uqp *qp, uint64_t now_ns) AW_REQUIRES(qp->lock)
{
	aw_watch_deadline(&qp->watch->watch,
			  (uint32_t)((qp->ending.deadline_ns - now_ns) / 1000000 + 1));
}

void aw_uqp_end_in_time(struct aw_uqp *qp)
{
	uint64_t now_ns = aw_now_ns();

	aw_ending_expire(&qp->ending, &qp->core, now_ns);
	if (qp->core.state != AW_QP_ERROR)
		watch_ending(qp, now_ns);
}

static void follow_ending(struct aw_uqp *qp) AW_REQUIRES(qp->lock)
{
	bool is_sent = !qp->batch && !aw_move_holds_end(qp);
	uint64_t now_ns = aw_now_ns();
	unsigned int steps = aw_ending_follow(&qp->ending, &qp->core, is_sent, now_ns);

	if (steps & AW_ENDING_BEGUN) {
		qp->retry_due = false;
		watch_ending(qp, now_ns);
	}
	if (steps & AW_ENDING_FIN)
		qp->out->finish(qp);
}

/* Logs the error in words, and as RFC 5040 4.8 numbers it: layer, type, code. */
static void log_error(const struct aw_uqp *qp, enum aw_log_level level, const char *what,
		      enum aw_error error) AW_REQUIRES(qp->lock)
{
	aw_log(level, "qp 0x%x peer %s: %s: %s (%u/%u/0x%02x)", qp->qpn,
	       aw_addr_text(&qp->watch->peer).text, what, aw_error_text(error),
	       aw_error_layer(error), aw_error_type(error), aw_error_code(error));
}

/* Called once, when the stream is found to have ended in an error. */
static void log_end(const struct aw_uqp *qp) AW_REQUIRES(qp->lock)
{
	const struct aw_qp *core = &qp->core;

	if (qp->leaves && core->error == AW_E_DDP_NO_BUFFER)
		log_error(qp, AW_LOG_INFO, "a message waited when the program ended the qp",
			  core->error);
	else if (core->peer_error && core->peer_mirrored)
		log_error(qp, AW_LOG_WARN,
			  "peer terminated the stream, layer and type swapped as by siw on x86",
			  aw_error_mirrored(core->peer_error));
	else if (core->peer_error)
		log_error(qp, AW_LOG_WARN, "peer terminated the stream", core->peer_error);
	else if (core->error == AW_E_MPA_CLOSED)
		log_error(qp, AW_LOG_INFO, "peer vanished", core->error);
	else if (core->error == AW_E_LOCAL_CATASTROPHIC)
		log_error(qp, AW_LOG_WARN, "stream terminated, by an error of this end",
			  core->error);
	else if (core->error)
		log_error(qp, AW_LOG_WARN, "stream terminated, by an error of the peer",
			  core->error);
}

/* Bytes that the socket has taken may find the peer gone. */
static void transmit(struct aw_uqp *qp) AW_REQUIRES(qp->lock)
{
	bool by_socket = qp->out->is_socket;
	uint64_t before = qp->core.sent_pos;

	/* Before the peer has it: the answer may be here before this call returns. */
	if (qp->attr.xrc == AW_XRC_INITIATOR)
		aw_senders_note(qp);
	aw_uqp_transmit(qp);
	if (by_socket && qp->core.sent_pos != before)
		aw_lost_sent();
}

/* RFC 5040 7.1 rule 1: a Terminate notifies the peer, but without a stream it could never leave. */
static void end_overflowed(struct aw_uqp *qp) AW_REQUIRES(qp->lock)
{
	if (qp->fd < 0 || qp->lost) {
		aw_qp_abort(&qp->core, AW_E_LOCAL_CATASTROPHIC);
		return;
	}
	aw_qp_terminate(&qp->core, AW_E_LOCAL_CATASTROPHIC);
	transmit(qp);
}

/* True while nothing but bytes moves, and neither end, program nor kernel asks for more. */
static bool is_steady(struct aw_uqp *qp) AW_REQUIRES(qp->lock)
{
	const struct aw_qp *core = &qp->core;
	uint32_t unnoted = ~qp->events_due & (core->peer_began ? AW_UQP_READY | AW_UQP_BEGUN
							       : (uint32_t)AW_UQP_READY);

	return core->state == AW_QP_RTS && !core->peer_closed && !aw_qp_has_waiting(core) &&
	       core->rx_drop.count == 0 && !unnoted && !qp->drain_asked && !qp->lost &&
	       !qp->peer_gone && !qp->starved && !qp->tx_blocked && !aw_uqp_has_overflowed(qp) &&
	       (qp->ring ? aw_carrier_is_steady(qp) : qp->in->listens_for(qp) == qp->listens_for);
}

/* Follows the core's state with the socket. Where that was done, and the stream is as steady since, all is as it was. */
static void settle(struct aw_uqp *qp) AW_REQUIRES(qp->lock)
{
	if (qp->settled && is_steady(qp))
		return;
	qp->settled = false;
	/*
	 * The peer has broken a rule, and the program is notified in either persona. No Terminate goes out: where the
	 * peer's positions lie there is no place to write it.
	 */
	if (aw_carrier_is_broken(qp) && !qp->lost) {
		qp->reset_seen = true;
		aw_qp_abort(&qp->core, AW_E_RDMAP_STREAM_CATASTROPHIC);
	}
	if (aw_uqp_has_overflowed(qp) && qp->core.state < AW_QP_TERMINATE)
		end_overflowed(qp);
	if (qp->lost && qp->fd >= 0)
		aw_uqp_drop_socket(qp);
	if (aw_uqp_is_cut_off(qp))
		qp->attr.kind->follow(qp);
	if (qp->fd >= 0 && qp->core.state > AW_QP_RTS)
		follow_ending(qp);
	aw_uqp_note_events(qp);
	if (qp->core.rx_drop.count > 0)
		aw_drop_log(qp);
	aw_stat_write_qp(qp);
	if (qp->fd < 0)
		return;
	if (qp->core.state == AW_QP_ERROR) {
		log_end(qp);
		aw_stat_stream_ended(qp);
		aw_uqp_drop_socket(qp);
	} else {
		if (qp->serving.server == AW_SERVER_WATCHER && !aw_serving_may_watch(qp))
			leave_watchers(qp);
		listen_for(qp);
		await_retry(qp);
		qp->settled = is_steady(qp);
	}
}

/* True when bytes may move. In the child of a fork an inherited stream is aborted instead. */
static bool is_usable(struct aw_uqp *qp) AW_REQUIRES(qp->lock)
{
	if (qp->fd < 0)
		return false;
	if (aw_uqp_is_inherited(qp))
		aw_qp_abort(&qp->core, AW_E_MPA_CLOSED);
	return !aw_uqp_is_inherited(qp);
}

static void receive(struct aw_uqp *qp, bool polled) AW_REQUIRES(qp->lock)
{
	aw_deferral_missed(qp);
	qp->starved = false;
	if (is_usable(qp))
		qp->in->receive(qp, polled);
}

/*
 * The peer's QP may have been reset, and connect again: a WR that went onto the old stream would be
 * lost. So a QP looks for the end of an unused stream before its first message, also behind what
 * start-up has sent; and of a stream that is not read while a message waits, where TCP's word completes a WR.
 */
static void look_for_end(struct aw_uqp *qp) AW_REQUIRES(qp->lock)
{
	uint64_t before;

	if (!qp->by_rc)
		return;
	do {
		before = qp->core.rx_pos;
		if ((!qp->touched || aw_rnr_stops_reading(qp)) && !qp->lost &&
		    qp->core.sq.next != qp->core.sq.tail)
			receive(qp, false);
	} while (qp->core.rx_pos != before);
}

/* Room for what waited may have woken the watchers' program, which finds none when it comes behind this thread. */
void aw_uqp_push(struct aw_uqp *qp)
{
	bool waits = qp->tx_blocked && qp->serving.watched_by;
	uint64_t before = qp->core.sent_pos;

	aw_deferral_end(qp);
	look_for_end(qp);
	if (is_usable(qp))
		transmit(qp);
	if (waits && qp->core.sent_pos != before)
		aw_watched_wake(qp, qp->serving.watched_by);
	settle(qp);
}

void aw_uqp_serve(struct aw_uqp *qp)
{
	receive(qp, false);
	aw_uqp_push(qp);
}

void aw_uqp_serve_polled(struct aw_uqp *qp)
{
	bool waited = qp->deferral.ack.waits;

	receive(qp, true);
	if (!waited && qp->core.acks && !aw_move_is_due(qp) && aw_deferral_ack(qp))
		settle(qp);
	else
		aw_uqp_push(qp);
}
