// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The engine's part of the pump (endpoint/pump.h): sends and receives that do not go through the pair keep their place among the bytes
// that do. Any call may have the pump move bytes; a thread does it while no call is made, and also sees the connection's end. Functions before
// aw_ext_wake() need ext.lock, but for the endpoint's callback complete_part().
#define _GNU_SOURCE /* POLLRDHUP */
#include "xsock/ext/ext.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
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
	ext->pump.out.eof = ext->pump.out.eof_forwarded = true;
	ext->pump.in.eof = ext->pump.in.eof_forwarded = true;
	shutdown(ext->pump.far, SHUT_RDWR);
}

/* The line takes no more of the program's bytes. */
static void end_sends(struct aw_ext *ext, int error)
{
	fail_queued(ext, error);
	ext->pump.out.eof = ext->pump.out.eof_forwarded = true;
}

void aw_ext_fail_sends(struct aw_ext *ext, ssize_t result)
{
	int error = aw_xs_ep_error(ext->ep);

	if (!error)
		error = (int)-result;
	aw_pump_refuse(&ext->pump, error);
	end_sends(ext, error);
}

void aw_ext_fail_with(struct aw_ext *ext, ssize_t result)
{
	int error = aw_xs_ep_error(ext->ep);

	fail_all(ext, error ? error : (int)-result);
}

void aw_ext_let_go(struct aw_ext *ext)
{
	struct aw_ext_op *op;
	bool owned = true;

	while (!TAILQ_EMPTY(&ext->recvs))
		complete_recv(ext, ECANCELED);
	/* The memory of the sends is the library's from now on. */
	TAILQ_FOREACH(op, &ext->sends, entry)
	{
		size_t len = op->bytes - op->moved;

		if (op->zero_copy || op->silent)
			continue;
		op->copy = malloc(len);
		owned = op->copy;
		if (!owned)
			break;
		memcpy(op->copy, op->from + op->moved, len);
		op->from = op->copy;
		op->bytes = len;
		op->moved = 0;
	}
	if (!owned)
		aw_ext_fail_with(ext, -ENOMEM);
}

/* Returns whether all bytes of the pair that go before the send are with the endpoint. */
static bool is_due(const struct aw_ext *ext, const struct aw_ext_op *send)
{
	const struct aw_pump *pump = &ext->pump;

	return send && !pump->out.len && (send->mark == pump->taken || pump->out.eof);
}

/* Moves what the pair has, up to the place of the first send. */
static bool push_pair(struct aw_ext *ext, short ready)
{
	const struct aw_ext_op *send = TAILQ_FIRST(&ext->sends);
	struct aw_pump *pump = &ext->pump;
	bool moved;

	if (is_due(ext, send))
		return false;
	moved = aw_pump_out(pump, ready, send ? (size_t)(send->mark - pump->taken) : SIZE_MAX);
	if (pump->out.refused && !pump->out.eof)
		end_sends(ext, pump->error ? pump->error : EPIPE);
	if (moved || !ext->leaving || pump->out.eof || pump->out.len ||
	    aw_ext_is_queued(ext, FIONREAD))
		return moved;
	pump->out.eof = true;
	return true;
}

/* A part of a zero-copy send has completed. The endpoint calls it under its lock. */
static void complete_part(void *arg, int error)
{
	struct aw_ext_op *op = arg;
	struct aw_ext *ext = op->ext;

	release_send(op, error);
	aw_ext_complete_post(ext);
}

/* Sends a part of registered memory, which holds the send until it has completed. */
static bool send_zero(struct aw_ext *ext, struct aw_ext_op *op)
{
	ssize_t taken;

	pthread_mutex_lock(&ext->cq_lock);
	op->holders++;
	pthread_mutex_unlock(&ext->cq_lock);
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

static bool send_copied(struct aw_ext *ext, struct aw_ext_op *op)
{
	struct iovec iov = { .iov_base = (void *)(op->from + op->moved),
			     .iov_len = op->bytes - op->moved };
	ssize_t taken = aw_xs_ep_send(ext->ep, &iov, 1, 0);

	if (taken < 0 && taken != -EAGAIN)
		aw_ext_fail_sends(ext, taken);
	if (taken <= 0)
		return false;
	op->moved += (size_t)taken;
	return true;
}

static bool push_send(struct aw_ext *ext)
{
	struct aw_ext_op *op = TAILQ_FIRST(&ext->sends);
	bool sent;

	if (!is_due(ext, op))
		return false;
	sent = op->zero_copy ? send_zero(ext, op) : send_copied(ext, op);
	if (sent && op->moved == op->bytes)
		dequeue_send(op, 0);
	return sent;
}

/* Receives into the first receive's memory: what the pump holds comes before what the endpoint has. Returns how many bytes; 0: none came. */
static size_t fill_recv(struct aw_ext *ext, const struct aw_ext_op *op)
{
	struct iovec iov = { .iov_base = op->to, .iov_len = op->bytes };
	struct aw_pump *pump = &ext->pump;
	ssize_t came;

	if (pump->in.len)
		return aw_pump_take(pump, op->to, op->bytes);
	if (pump->in.eof)
		return 0;
	came = aw_xs_ep_recv(ext->ep, &iov, 1, 0);
	if (came == 0)
		pump->in.eof = true;
	else if (came < 0 && came != -EAGAIN)
		aw_ext_fail_with(ext, came);
	return came > 0 ? (size_t)came : 0;
}

static bool progress_in(struct aw_ext *ext, short ready)
{
	struct aw_ext_op *op = TAILQ_FIRST(&ext->recvs);
	size_t came;
	bool moved;

	if (op) {
		came = fill_recv(ext, op);
		/* A failure has ended all receives. */
		if (TAILQ_EMPTY(&ext->recvs) || (!came && !ext->pump.in.eof))
			return false;
		op->moved = came;
		complete_recv(ext, 0);
		return true;
	}
	if (ext->direct && !ext->pump.in.len)
		return false;
	moved = aw_pump_in(&ext->pump, ready);
	ext->pair_used |= moved;
	return moved;
}

void aw_ext_forward_end_in(struct aw_ext *ext)
{
	if (ext->pump.in.eof && !ext->pump.in.eof_forwarded)
		(void)aw_pump_in(&ext->pump, 0);
}

static bool is_ended(struct aw_ext *ext)
{
	return aw_xs_ep_state(ext->ep) >= AW_XS_CLOSED;
}

static bool are_ends_forwarded(const struct aw_ext *ext)
{
	return ext->pump.out.eof_forwarded && ext->pump.in.eof_forwarded;
}

/* Notes whether the completion of a post wakes the pump. */
static void note_wake_on_done(struct aw_ext *ext)
{
	atomic_store(&ext->wake_on_done, !TAILQ_EMPTY(&ext->sends) || are_ends_forwarded(ext));
}

/* Returns whether the pump waits for the program's bytes: no send goes before them. */
static bool is_pair_due(const struct aw_ext *ext)
{
	return !ext->pump.out.len && !ext->pump.out.eof && !is_due(ext, TAILQ_FIRST(&ext->sends));
}

void aw_ext_progress(struct aw_ext *ext)
{
	struct aw_pump *pump = &ext->pump;
	bool more = true;
	short ready = 0;

	if (ext->pump_ended)
		return;
	note_wake_on_done(ext);
	while (more && !ext->error) {
		ready = aw_xs_ep_ready(ext->ep);
		more = push_pair(ext, ready);
		more = push_send(ext) || more;
		more = progress_in(ext, ready) || more;
		/* The peer's bytes come before the failure that a send has met. */
		if (pump->error && pump->in.eof && !pump->in.len)
			fail_all(ext, pump->error);
	}
	if (ext->error)
		return;
	ext->out_full = pump->out.len || (is_pair_due(ext) && !(ready & POLLOUT));
	aw_ext_forward_end_in(ext);
	/* A peer that is gone takes no more bytes. */
	if (pump->in.eof_forwarded && is_ended(ext))
		pump->out.eof = pump->out.eof_forwarded = true;
	note_wake_on_done(ext);
}

/* Returns the events that the pump should wait for on the far end. */
static short far_events(const struct aw_ext *ext)
{
	bool reads = !ext->out_full && is_pair_due(ext);

	return (short)((reads ? POLLIN : 0) | (ext->pump.in.len ? POLLOUT : 0));
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
	     !ext->error && !are_ends_forwarded(ext)))
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
	return ext->error || (ext->pump.out.eof_forwarded && (ext->pump.in.eof_forwarded || gone));
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
	in = !ext->direct && !ext->pump.in.eof && !ext->pump.in.len;
	pthread_mutex_unlock(&ext->lock);
	return (short)((out ? POLLOUT : 0) | (in ? POLLIN : 0));
}

/*
 * Sleeps until there may be something to do. An endpoint that has ended reports nothing more; ended: it had before the pump
 * has last moved bytes, which then has seen the end. Returns whether the sleep has run out.
 */
static bool pump_sleep(struct aw_ext *ext, bool ended, short *far_revents)
{
	int timeout_ms = -1, recheck_ms = ext->recheck_ms, ready;
	struct pollfd fds[POLL_FDS];
	bool serves = ext->serves_ep;
	eventfd_t count;

	if (!ended && is_ended(ext))
		return false;
	if (ended) {
		/* No event tells of a completion behind the end. */
		if (atomic_load(&ext->posted))
			recheck_ms = POSTED_RETRY_MS;
		serves = false;
	}
	if (serves && !aw_xs_ep_arm_for(ext->ep, wanted_events(ext, &timeout_ms)))
		return false;
	aw_xs_ep_fds(ext->ep, fds);
	for (size_t i = 0; !serves && i < AW_XS_EP_FDS; i++)
		fds[i].fd = -1;
	fds[POLL_FAR] = (struct pollfd){ .fd = ext->pump.far, .events = ext->far_events };
	if (*far_revents & POLLHUP && !ext->far_events)
		fds[POLL_FAR].fd = -1; /* the kernel reports a hang-up for ever */
	fds[POLL_WAKE] = (struct pollfd){ .fd = ext->wake, .events = POLLIN };
	ready = poll(fds, POLL_FDS, timeout_ms < 0 ? recheck_ms : timeout_ms);
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
	bool slept = false, ended;
	short far_revents = 0;

	pthread_mutex_lock(&ext->lock);
	for (;;) {
		ext->asleep = false;
		ended = is_ended(ext);
		aw_ext_review_direct(ext, slept);
		aw_ext_progress(ext);
		if (has_ended(ext, far_revents))
			break;
		ext->far_events = far_events(ext);
		ext->serves_ep = serves_ep(ext);
		ext->asleep = true;
		pthread_mutex_unlock(&ext->lock);
		slept = pump_sleep(ext, ended, &far_revents);
		pthread_mutex_lock(&ext->lock);
	}
	aw_ext_end_direct(ext);
	fail_all(ext, ext->error ? ext->error : ENOTCONN);
	ext->pump_ended = true;
	pthread_mutex_unlock(&ext->lock);
	aw_ext_pump_end(ext);
	return NULL;
}
