// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Moves bytes between the program's pair and the endpoint, as far as each takes them. Any call may
// do so. The pump is a thread that does it while no call is made; it also sees the connection's
// end. Functions before aw_ext_wake() need ext.lock, but for the endpoint's callback
// complete_part().
#define _GNU_SOURCE /* POLLRDHUP */
#include "xsock/ext/ext.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#define ZERO_RETRY_MS 1
#define POSTED_RETRY_MS 1

enum {
	POLL_FAR = AW_XS_EP_FDS,
	POLL_WAKE,
	POLL_FDS,
};

static void complete_recv(struct aw_ext *ext, int error)
{
	struct aw_ext_op *op = TAILQ_FIRST(&ext->recvs);

	TAILQ_REMOVE(&ext->recvs, op, entry);
	aw_ext_op_complete(op, error);
}

/* Gives up a hold on a send. The last one completes it, with the first error: until then its memory is in use. */
static void release_send(struct aw_ext_op *op, int error)
{
	struct aw_ext *ext = op->ext;
	bool last;

	pthread_mutex_lock(&ext->cq_lock);
	if (!op->error)
		op->error = error;
	last = --op->holders == 0;
	pthread_mutex_unlock(&ext->cq_lock);
	if (last)
		aw_ext_op_complete(op, op->error);
}

static void dequeue_send(struct aw_ext_op *op, int error)
{
	TAILQ_REMOVE(&op->ext->sends, op, entry);
	release_send(op, error);
}

static void fail_queued(struct aw_ext *ext, int error)
{
	struct aw_ext_op *op;

	while ((op = TAILQ_FIRST(&ext->sends)))
		dequeue_send(op, error);
}

/* Fails all operations: the connection has ended. */
static void fail_all(struct aw_ext *ext, int error)
{
	if (!ext->error)
		ext->error = error;
	fail_queued(ext, error);
	while (!TAILQ_EMPTY(&ext->recvs))
		complete_recv(ext, error);
	ext->out_ended = ext->out_forwarded = ext->in_ended = ext->in_forwarded = true;
	shutdown(ext->far, SHUT_RDWR);
}

void aw_ext_fail_sends(struct aw_ext *ext, ssize_t result)
{
	int error = aw_xs_ep_error(ext->ep);

	if (!error)
		error = (int)-result;
	if (error != EPIPE && !ext->out_error)
		ext->out_error = error;
	fail_queued(ext, error);
	ext->out_ended = ext->out_forwarded = true;
	shutdown(ext->far, SHUT_RD);
}

void aw_ext_fail_with(struct aw_ext *ext, ssize_t result)
{
	int error = aw_xs_ep_error(ext->ep);

	fail_all(ext, error ? error : (int)-result);
}

/* Returns whether the send's memory is the library's from now on. */
static bool own(struct aw_ext_op *op)
{
	size_t len = op->bytes - op->moved;

	op->copy = malloc(len);
	if (!op->copy)
		return false;
	memcpy(op->copy, op->from + op->moved, len);
	op->from = op->copy;
	op->bytes = len;
	op->moved = 0;
	return true;
}

void aw_ext_let_go(struct aw_ext *ext)
{
	struct aw_ext_op *op;
	bool owned = true;

	while (!TAILQ_EMPTY(&ext->recvs))
		complete_recv(ext, ECANCELED);
	TAILQ_FOREACH(op, &ext->sends, entry)
	if (!op->zero_copy && !op->silent)
		owned = owned && own(op);
	if (!owned)
		aw_ext_fail_with(ext, -ENOMEM);
}

static bool send_span(struct aw_ext *ext, const uint8_t *bytes, size_t len, size_t *sent)
{
	struct iovec iov = { .iov_base = (void *)bytes, .iov_len = len };
	ssize_t taken = aw_xs_ep_send(ext->ep, &iov, 1, 0);

	if (taken < 0 && taken != -EAGAIN)
		aw_ext_fail_sends(ext, taken);
	if (taken <= 0)
		return false;
	*sent += (size_t)taken;
	return true;
}

/* Returns whether the pair's bytes are due: there are some before the place of the first send. */
static bool is_pair_due(const struct aw_ext *ext)
{
	const struct aw_ext_op *send = TAILQ_FIRST(&ext->sends);

	return !ext->out_ended && (!send || send->mark != ext->taken);
}

/* Sends what the pair has, up to the place of the first send, as far as the endpoint has room. */
static bool push_pair(struct aw_ext *ext)
{
	struct aw_ext_op *send = TAILQ_FIRST(&ext->sends);
	size_t limit, sent = 0;
	ssize_t got;

	ext->out_full = false;
	if (!is_pair_due(ext))
		return false;
	limit = aw_xs_ep_room(ext->ep);
	ext->out_full = !limit;
	if (ext->out_full)
		return false;
	if (limit > AW_EXT_BUFFER)
		limit = AW_EXT_BUFFER;
	if (send && send->mark - ext->taken < limit)
		limit = (size_t)(send->mark - ext->taken);
	got = recv(ext->far, ext->buffer, limit, MSG_DONTWAIT);
	if (got == 0 || (got < 0 && (errno != EAGAIN || ext->leaving) && errno != EINTR))
		ext->out_ended = true;
	if (got <= 0)
		return false;
	ext->taken += (uint64_t)got;
	return send_span(ext, ext->buffer, (size_t)got, &sent);
}

/* A part of a zero-copy send has completed. The endpoint calls it under its lock. */
static void complete_part(void *arg, int error)
{
	struct aw_ext_op *op = arg;
	struct aw_ext *ext = op->ext;

	release_send(op, error);
	aw_ext_complete_post(ext);
}

static void hold_send(struct aw_ext_op *op)
{
	pthread_mutex_lock(&op->ext->cq_lock);
	op->holders++;
	pthread_mutex_unlock(&op->ext->cq_lock);
}

/* Sends a part of registered memory, which holds the send until it has completed. */
static bool send_zero(struct aw_ext *ext, struct aw_ext_op *op)
{
	ssize_t taken;

	hold_send(op);
	atomic_fetch_add(&ext->posted, 1);
	taken = aw_xs_ep_send_zero(ext->ep, op->from + op->moved, op->bytes - op->moved, op->lkey,
				   complete_part, op);
	if (taken > 0) {
		op->moved += (size_t)taken;
		return true;
	}
	release_send(op, 0);
	atomic_fetch_sub(&ext->posted, 1);
	if (taken < 0 && taken != -EAGAIN)
		aw_ext_fail_sends(ext, taken);
	return false;
}

/* Returns whether all bytes of the pair that go before the send have been received. */
static bool is_due(const struct aw_ext *ext, const struct aw_ext_op *send)
{
	return send && (send->mark == ext->taken || ext->out_ended);
}

static bool push_send(struct aw_ext *ext)
{
	struct aw_ext_op *op = TAILQ_FIRST(&ext->sends);
	bool sent;

	if (!is_due(ext, op))
		return false;
	sent = op->zero_copy
		       ? send_zero(ext, op)
		       : send_span(ext, op->from + op->moved, op->bytes - op->moved, &op->moved);
	if (sent && op->moved == op->bytes)
		dequeue_send(op, 0);
	return sent;
}

static void forward_end_out(struct aw_ext *ext)
{
	if (!ext->out_ended || ext->out_forwarded || !TAILQ_EMPTY(&ext->sends))
		return;
	ext->out_forwarded = true;
	(void)aw_xs_ep_shutdown(ext->ep, SHUT_WR);
}

/* Receives into buf. Returns how many bytes; 0: nothing came. */
static size_t receive_span(struct aw_ext *ext, uint8_t *buf, size_t len, int flags)
{
	struct iovec iov = { .iov_base = buf, .iov_len = len };
	ssize_t came;

	if (ext->in_ended)
		return 0;
	came = aw_xs_ep_recv(ext->ep, &iov, 1, flags);
	if (came == 0)
		ext->in_ended = true;
	else if (came < 0 && came != -EAGAIN)
		aw_ext_fail_with(ext, came);
	return came > 0 ? (size_t)came : 0;
}

/* Serves the first receive. */
static bool serve_recv(struct aw_ext *ext)
{
	struct aw_ext_op *op = TAILQ_FIRST(&ext->recvs);
	size_t moved = receive_span(ext, op->to, op->bytes, 0);

	/* A failure has ended all receives. */
	if (TAILQ_EMPTY(&ext->recvs) || (!moved && !ext->in_ended))
		return false;
	op->moved = moved;
	complete_recv(ext, 0);
	return true;
}

/* Moves bytes to the pair. If the program reads no more, they are dropped. */
static bool put_to_pair(struct aw_ext *ext)
{
	size_t came = receive_span(ext, ext->buffer, AW_EXT_BUFFER, MSG_PEEK);
	ssize_t put;

	if (!came)
		return false;
	put = send(ext->far, ext->buffer, came, MSG_DONTWAIT | MSG_NOSIGNAL);
	ext->in_full = put < 0 && (errno == EAGAIN || errno == EINTR);
	if (ext->in_full)
		return false;
	(void)receive_span(ext, ext->buffer, put < 0 ? came : (size_t)put, 0);
	ext->pair_used = true;
	return true;
}

static bool progress_in(struct aw_ext *ext)
{
	ext->in_full = false;
	if (!TAILQ_EMPTY(&ext->recvs))
		return serve_recv(ext);
	return !ext->direct && put_to_pair(ext);
}

void aw_ext_forward_end_in(struct aw_ext *ext)
{
	if (!ext->in_ended || ext->in_forwarded)
		return;
	ext->in_forwarded = true;
	shutdown(ext->far, SHUT_WR);
}

static bool is_ended(struct aw_ext *ext)
{
	return aw_xs_ep_state(ext->ep) >= AW_XS_CLOSED;
}

/* Notes whether the completion of a post wakes the pump. */
static void note_wake_on_done(struct aw_ext *ext)
{
	atomic_store(&ext->wake_on_done,
		     !TAILQ_EMPTY(&ext->sends) || (ext->out_forwarded && ext->in_forwarded));
}

static void move_bytes(struct aw_ext *ext)
{
	bool more = true;

	while (more && !ext->error) {
		more = push_pair(ext);
		more = push_send(ext) || more;
		more = progress_in(ext) || more;
	}
}

void aw_ext_progress(struct aw_ext *ext)
{
	if (ext->pump_ended)
		return;
	note_wake_on_done(ext);
	(void)aw_xs_ep_ready(ext->ep);
	move_bytes(ext);
	/* The peer's bytes come before the failure that a send has met. */
	if (ext->out_error && ext->in_ended)
		fail_all(ext, ext->out_error);
	if (ext->error)
		return;
	forward_end_out(ext);
	aw_ext_forward_end_in(ext);
	/* A peer that is gone takes no more bytes. */
	if (ext->in_forwarded && is_ended(ext))
		ext->out_ended = ext->out_forwarded = true;
	note_wake_on_done(ext);
}

/* Returns the events that the pump should wait for on far. */
static short far_events(const struct aw_ext *ext)
{
	bool reads = !ext->out_full && is_pair_due(ext);

	return (short)((reads ? POLLIN : 0) | (ext->in_full ? POLLOUT : 0));
}

/* Returns whether the pump has to see the endpoint's events. */
static bool serves_ep(struct aw_ext *ext)
{
	return !ext->direct || ext->out_full || !TAILQ_EMPTY(&ext->sends) ||
	       atomic_load(&ext->posted);
}

void aw_ext_wake(struct aw_ext *ext)
{
	if (!ext->asleep ||
	    (far_events(ext) == ext->far_events && (ext->serves_ep || !serves_ep(ext)) &&
	     !ext->error && !(ext->out_forwarded && ext->in_forwarded)))
		return;
	ext->asleep = false; /* one wake-up is enough */
	(void)eventfd_write(ext->wake, 1);
}

/* The pump stays until what was posted has completed; exit(3) waits for no completion of an ended connection. */
static bool has_ended(struct aw_ext *ext, short far_revents)
{
	bool gone = far_revents & POLLHUP || ext->leaving;

	if (atomic_load(&ext->posted) && !(ext->leaving && is_ended(ext)))
		return false;
	return ext->error || (ext->out_forwarded && (ext->in_forwarded || gone));
}

/* Returns what to poll far for. POLLHUP is reported for ever: once seen, far is left out. */
static struct pollfd poll_far(const struct aw_ext *ext, short far_revents)
{
	bool left_out = far_revents & POLLHUP && !ext->far_events;

	return (struct pollfd){ .fd = left_out ? -1 : ext->far, .events = ext->far_events };
}

/*
 * Returns the events of the endpoint that the pump can act on. Another thread may have changed them
 * since the pump tried, and an armed endpoint reports only later changes. *timeout_ms: a zero-copy
 * send also waits for room that is no event.
 */
static short wanted_events(struct aw_ext *ext, int *timeout_ms)
{
	const struct aw_ext_op *send;
	bool out, in;

	pthread_mutex_lock(&ext->lock);
	send = TAILQ_FIRST(&ext->sends);
	out = ext->out_full;
	*timeout_ms = !out && is_due(ext, send) && send->zero_copy ? ZERO_RETRY_MS : -1;
	out = out || (is_due(ext, send) && !send->zero_copy);
	in = !ext->direct && !ext->in_ended && !ext->in_full;
	pthread_mutex_unlock(&ext->lock);
	return (short)((out ? POLLOUT : 0) | (in ? POLLIN : 0));
}

/*
 * Sleeps until there may be something to do. An endpoint that has ended reports nothing more.
 * Returns whether the sleep has run out.
 */
static bool pump_sleep(struct aw_ext *ext, short *far_revents)
{
	int timeout_ms = -1, patience_ms = ext->patience_ms, ready;
	struct pollfd fds[POLL_FDS];
	bool serves = ext->serves_ep;
	eventfd_t count;

	if (is_ended(ext)) {
		/* No event tells of a completion behind the end. */
		if (atomic_load(&ext->posted))
			patience_ms = POSTED_RETRY_MS;
		serves = false;
	}
	if (serves && !aw_xs_ep_arm_for(ext->ep, wanted_events(ext, &timeout_ms)))
		return false;
	aw_xs_ep_fds(ext->ep, fds);
	for (size_t i = 0; !serves && i < AW_XS_EP_FDS; i++)
		fds[i].fd = -1;
	fds[POLL_FAR] = poll_far(ext, *far_revents);
	fds[POLL_WAKE] = (struct pollfd){ .fd = ext->wake, .events = POLLIN };
	ready = poll(fds, POLL_FDS, timeout_ms < 0 ? patience_ms : timeout_ms);
	if (ready <= 0)
		return ready == 0;
	if (fds[POLL_WAKE].revents)
		(void)eventfd_read(ext->wake, &count);
	*far_revents |= fds[POLL_FAR].revents & POLLHUP;
	return false;
}

void *aw_ext_pump(void *arg)
{
	struct aw_ext *ext = arg;
	bool slept = false;
	short far_revents = 0;

	pthread_mutex_lock(&ext->lock);
	for (;;) {
		ext->asleep = false;
		aw_ext_review_direct(ext, slept);
		aw_ext_progress(ext);
		if (has_ended(ext, far_revents))
			break;
		ext->far_events = far_events(ext);
		ext->serves_ep = serves_ep(ext);
		ext->asleep = true;
		pthread_mutex_unlock(&ext->lock);
		slept = pump_sleep(ext, &far_revents);
		pthread_mutex_lock(&ext->lock);
	}
	aw_ext_end_direct(ext);
	fail_all(ext, ext->error ? ext->error : ENOTCONN);
	ext->pump_ended = true;
	pthread_mutex_unlock(&ext->lock);
	aw_ext_pump_end(ext);
	return NULL;
}
