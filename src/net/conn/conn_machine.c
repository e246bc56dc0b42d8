// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The states of a conn and what moves it from one to the next. All steps run on the progress thread
// under the conn's lock; the resulting event runs after the lock has been released. RFC 5044 7.1,
// RFC 6581.
#include "net/conn/conn_machine.h"

#include "base/log.h"
#include "core/attempt.h"
#include "core/setup_term.h"
#include "net/base/addr.h"
#include "net/base/bounds.h"
#include "net/base/io_now.h"
#include "net/base/policy.h"
#include "net/conn/order.h"
#include "net/progress/linger.h"
#include "net/progress/watch.h"
#include "net/qp/replied.h"
#include "ring/lock.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define BIT(n) (1u << (n))
#define CAUSE_MAX 256 /* bytes of a cause's text */

static const uint32_t arrows[] = {
	[AW_CONN_WAITING] = BIT(AW_CONN_CONNECTING) | BIT(AW_CONN_OVER),
	[AW_CONN_CONNECTING] = BIT(AW_CONN_REFUSED) | BIT(AW_CONN_SENDING) | BIT(AW_CONN_OVER),
	[AW_CONN_REFUSED] = BIT(AW_CONN_CONNECTING) | BIT(AW_CONN_OVER),
	[AW_CONN_SENDING] = BIT(AW_CONN_AWAIT_REPLY) | BIT(AW_CONN_OVER),
	[AW_CONN_AWAIT_REPLY] = BIT(AW_CONN_READY) | BIT(AW_CONN_OVER),
	[AW_CONN_AWAIT_REQUEST] = BIT(AW_CONN_DECIDING) | BIT(AW_CONN_OVER),
	[AW_CONN_DECIDING] = BIT(AW_CONN_OVER),
	[AW_CONN_READY] = BIT(AW_CONN_OVER),
	[AW_CONN_OVER] = 0,
};

/*
 * The events that the progress thread waits for in each state, and whether the deadline runs. A socket that is about
 * to pass to a QP keeps the events that it has: bytes behind the peer's frame are rare (quieten).
 */
static const struct {
	uint32_t events;
	bool deadline;
} waits[] = {
	[AW_CONN_WAITING] = { 0, true },
	[AW_CONN_CONNECTING] = { EPOLLOUT, true },
	[AW_CONN_REFUSED] = { 0, true },
	[AW_CONN_SENDING] = { EPOLLOUT, true },
	[AW_CONN_AWAIT_REPLY] = { EPOLLIN, true },
	[AW_CONN_AWAIT_REQUEST] = { EPOLLIN | EPOLLRDHUP, true },
	[AW_CONN_DECIDING] = { EPOLLIN | EPOLLRDHUP, false },
	[AW_CONN_READY] = { EPOLLIN, false },
	[AW_CONN_OVER] = { 0, false },
};

static bool is_early(enum aw_conn_state state)
{
	return state <= AW_CONN_REFUSED;
}

static void enter(struct aw_conn *c, enum aw_conn_state next) AW_REQUIRES(c->lock)
{
	assert(arrows[c->state] & BIT(next));
	if (is_early(c->state) && !is_early(next))
		aw_order_pass(c);
	c->state = next;
}

void aw_conn_set_state(struct aw_conn *c, enum aw_conn_state next)
{
	if (c->fd >= 0)
		aw_watch_events(&c->watch, waits[next].events);
	if (!waits[next].deadline)
		aw_watch_deadline(&c->watch, 0);
	enter(c, next);
}

int aw_conn_take_fd(struct aw_conn *c)
{
	int fd = c->fd;

	aw_watch_drop_fd(&c->watch);
	c->fd = -1;
	return fd;
}

int aw_conn_pass_fd(struct aw_conn *c, bool *watched)
{
	int fd = c->fd;

	*watched = aw_watch_pass_fd(&c->watch);
	c->fd = -1;
	return fd;
}

void aw_conn_close_fd(int fd)
{
	if (fd < 0)
		return;
	shutdown(fd, SHUT_RDWR);
	aw_close_now(fd);
}

void aw_conn_terminate_fd(int fd, enum aw_error error, bool markers)
{
	uint8_t fpdu[AW_SETUP_TERM_MAX];
	size_t len = aw_setup_term(error, markers, fpdu);
	ssize_t sent = aw_send_now(fd, fpdu, len);

	(void)sent; /* the connection ends either way */
	aw_linger(fd);
}

static void conclude(struct aw_conn *c, enum aw_conn_state next, enum aw_conn_event event)
	AW_REQUIRES(c->lock)
{
	aw_conn_set_state(c, next);
	c->due = true;
	c->due_event = event;
}

/* The peer has connected to this end, whose program has not accepted it. */
static bool has_stranger(const struct aw_conn *c) AW_REQUIRES(c->lock)
{
	return c->state == AW_CONN_AWAIT_REQUEST || c->state == AW_CONN_DECIDING;
}

/*
 * On a socket that the program has connected or accepted, the peer's program may begin MPA at any
 * time, and TCP finds out when the peer is gone. The deadline runs only from the first byte of the
 * peer's frame.
 */
static bool is_patient(const struct aw_conn *c) AW_REQUIRES(c->lock)
{
	return c->info.given && c->in.done == 0;
}

/* Logged for the user: the peer's program may begin MPA later, or never. */
static void log_waits(const struct aw_conn *c) AW_REQUIRES(c->lock)
{
	const char *peer = aw_addr_text(&c->info.peer).text;

	if (c->state == AW_CONN_AWAIT_REPLY)
		aw_log(AW_LOG_WARN,
		       "connection waits on peer %s: no mpa reply yet: its program comes late, or speaks no iwarp",
		       peer);
	else
		aw_log(AW_LOG_INFO, "connection waits on peer %s: no mpa request yet", peer);
}

static enum aw_frame_io receive(struct aw_conn *c, struct mpa_frame *frame) AW_REQUIRES(c->lock)
{
	bool patient = is_patient(c);
	enum aw_frame_io io = aw_frame_recv(c->fd, &c->in, frame);

	if (io == AW_FRAME_MORE && patient && !is_patient(c))
		aw_watch_deadline(&c->watch, aw_bounds.startup_ms);
	return io;
}

/*
 * The user is told at the default level why a connection of the program's own has failed, unless the program gets a clear
 * error, or a second try follows.
 */
static void fail(struct aw_conn *c, int err, const char *cause) AW_REQUIRES(c->lock)
{
	bool is_obscure = err == EPROTO || err == EOPNOTSUPP || err == ENOMEM || err == ETIMEDOUT;
	bool told = !has_stranger(c) && !c->info.next_revision && is_obscure && aw_log_has_room();

	c->info.err = err;
	aw_log(told ? AW_LOG_ERROR : AW_LOG_INFO, "connection failed peer %s cause %s",
	       aw_addr_text(&c->info.peer).text, cause);
	aw_conn_close_fd(aw_conn_take_fd(c));
	conclude(c, AW_CONN_OVER, AW_CONN_FAILED);
}

/* Fails the conn for each way in which no whole frame came. */
static void fail_frame(struct aw_conn *c, enum aw_frame_io io) AW_REQUIRES(c->lock)
{
	bool begun = c->in.done > 0;

	switch (io) {
	case AW_FRAME_CLOSED:
		fail(c, ECONNRESET,
		     begun ? "the peer closed in the middle of its mpa frame"
			   : "the peer closed without an mpa frame");
		break;
	case AW_FRAME_LOST:
		fail(c, errno, strerror(errno));
		break;
	case AW_FRAME_BAD_KEY:
		fail(c, EPROTO,
		     has_stranger(c) ? "the peer does not speak mpa"
				     : "the peer does not speak mpa: is its program an rdma one, "
				       "and run by anywarp, or over another iwarp?");
		break;
	case AW_FRAME_BAD_LENGTH:
		fail(c, EPROTO, "the private data of the peer's mpa frame is over 512 bytes");
		break;
	case AW_FRAME_DONE:
	case AW_FRAME_MORE:
		assert(false);
	}
}

static void print_no_rtr(const struct aw_conn *c, char cause[CAUSE_MAX]) AW_REQUIRES(c->lock)
{
	char own[AW_POLICY_RTR_MAX], peer[AW_POLICY_RTR_MAX];

	aw_policy_print_rtr(c->local.rtr, own);
	aw_policy_print_rtr(c->info.result.peer_rtr, peer);
	snprintf(cause, CAUSE_MAX,
		 "no ready-to-receive message in common: this end sends %s, the peer takes %s: "
		 "give both ends one in common by rtr= in --mpa (" AW_POLICY_ENV
		 "), or leave rtr out at both",
		 own, peer);
}

/* Writes what is wrong, and where the user can mend it how. */
static void print_cause(const struct aw_conn *c, enum aw_setup setup, const struct mpa_frame *frame,
			char cause[CAUSE_MAX]) AW_REQUIRES(c->lock)
{
	switch (setup) {
	case AW_SETUP_REVISION:
		snprintf(cause, CAUSE_MAX, "mpa revision %u not supported, only 1 to %u%s",
			 frame->revision, c->local.revision,
			 frame->revision == 2 ? ": leave revision=1 out of " AW_POLICY_ENV : "");
		break;
	case AW_SETUP_WRONG_KIND:
		snprintf(
			cause, CAUSE_MAX, "%s",
			frame->kind == MPA_REQUEST
				? "a request where a reply is due: both ends are initiators: one of "
				  "the two programs has to listen"
				: "a reply where a request is due");
		break;
	case AW_SETUP_NO_RTR:
		print_no_rtr(c, cause);
		break;
	case AW_SETUP_IRD:
		snprintf(cause, CAUSE_MAX,
			 "the peer wants %u inbound reads, and this end takes %u: raise "
			 "responder_resources here, lower initiator_depth there, or leave them "
			 "to the programs by ird_ord=ulp in --mpa (" AW_POLICY_ENV ") here",
			 c->info.result.peer_ord, c->local.ird);
		break;
	case AW_SETUP_SHORT_PD:
	case AW_SETUP_OK:
		snprintf(cause, CAUSE_MAX, "%s", aw_setup_text(setup));
		break;
	}
}

/* Fails the conn for a whole frame that is not acceptable. */
static void fail_setup(struct aw_conn *c, enum aw_setup setup, const struct mpa_frame *frame)
	AW_REQUIRES(c->lock)
{
	char cause[CAUSE_MAX];
	int err = EPROTO;

	if (setup == AW_SETUP_NO_RTR)
		err = EOPNOTSUPP;
	else if (setup == AW_SETUP_IRD)
		err = ENOMEM;
	print_cause(c, setup, frame, cause);
	fail(c, err, cause);
}

/* A socket that the program has connected is the only one: there is no second try. */
static uint8_t next_revision(const struct aw_conn *c, enum aw_attempt_next next, uint8_t asked)
	AW_REQUIRES(c->lock)
{
	if (c->info.given)
		return 0;
	if (next == AW_ATTEMPT_REPEAT)
		return asked;
	return next == AW_ATTEMPT_PLAIN ? 1 : 0;
}

static void judge_reply(struct aw_conn *c, uint8_t asked) AW_REQUIRES(c->lock)
{
	enum aw_attempt_next next = aw_attempt_replied(asked, &c->info.result);

	switch (next) {
	case AW_ATTEMPT_STREAM:
		conclude(c, AW_CONN_READY, AW_CONN_ACCEPTED);
		break;
	case AW_ATTEMPT_REJECTED:
		conclude(c, AW_CONN_OVER, AW_CONN_REJECTED);
		break;
	case AW_ATTEMPT_REPEAT:
	case AW_ATTEMPT_PLAIN:
	case AW_ATTEMPT_FAILED:
		c->info.next_revision = next_revision(c, next, asked);
		fail(c, EPROTO,
		     "a reply of mpa revision 1 to a request of revision 2: set revision=1 in "
		     "--mpa (" AW_POLICY_ENV ") here");
		break;
	}
}

/* The peer's program will answer, perhaps: the Reply has its time anew. */
static void take_wait(struct aw_conn *c) AW_REQUIRES(c->lock)
{
	if (c->waits >= aw_bounds.waits_max) {
		fail(c, ETIMEDOUT,
		     "the peer has said too often that its program has not accepted yet");
		return;
	}
	if (c->waits++ == 0)
		aw_log(AW_LOG_INFO, "connection waits on peer %s: its program has not accepted yet",
		       aw_addr_text(&c->info.peer).text);
	c->in.done = 0;
	aw_watch_deadline(&c->watch, aw_bounds.startup_ms);
}

static void step_reply(struct aw_conn *c) AW_REQUIRES(c->lock)
{
	uint8_t asked = c->info.result.revision;
	struct mpa_frame frame;
	enum aw_frame_io io = receive(c, &frame);
	enum aw_setup setup;

	if (io == AW_FRAME_MORE)
		return;
	if (io != AW_FRAME_DONE) {
		/* A time-out of TCP is no end by the peer. */
		if (io == AW_FRAME_CLOSED || (io == AW_FRAME_LOST && errno == ECONNRESET))
			c->info.next_revision = next_revision(
				c, aw_attempt_closed(asked, c->again, c->in.done), asked);
		fail_frame(c, io);
		return;
	}
	if (aw_mpa_is_wait(&c->local, &frame)) {
		take_wait(c);
		return;
	}
	setup = aw_mpa_on_reply(&c->local, &frame, &c->info.result);
	if (setup == AW_SETUP_OK) {
		judge_reply(c, asked);
		return;
	}
	if (aw_attempt_terminate(setup) != AW_OK)
		aw_conn_terminate_fd(aw_conn_take_fd(c), aw_attempt_terminate(setup),
				     frame.flags & MPA_FLAG_MARKERS);
	fail_setup(c, setup, &frame);
}

static void step_send(struct aw_conn *c) AW_REQUIRES(c->lock)
{
	enum aw_frame_io io = aw_frame_send(c->fd, &c->out);

	if (io == AW_FRAME_DONE)
		aw_conn_set_state(c, AW_CONN_AWAIT_REPLY);
	else if (io != AW_FRAME_MORE)
		fail_frame(c, io);
}

/* False when the conn has no more tries. */
static bool pause_refused(struct aw_conn *c) AW_REQUIRES(c->lock)
{
	uint32_t pause_ms = aw_attempt_pause_ms(c->refusals);

	if (pause_ms == 0)
		return false;
	c->refusals++;
	aw_conn_set_state(c, AW_CONN_REFUSED);
	aw_watch_deadline(&c->watch, pause_ms);
	return true;
}

static int try_connect(struct aw_conn *c) AW_REQUIRES(c->lock)
{
	const struct sockaddr *peer = (const struct sockaddr *)&c->info.peer;

	return aw_connect_now(c->fd, peer, aw_addr_len(peer)) == 0 ? 0 : errno;
}

/* The conn's first try, if it has waited for another. */
static void connect_again(struct aw_conn *c) AW_REQUIRES(c->lock)
{
	aw_order_lead(c);
	int err = try_connect(c);

	/* Linux: the first connect after a failure only clears the old attempt. */
	if (err == ECONNABORTED)
		err = try_connect(c);
	aw_conn_set_state(c, AW_CONN_CONNECTING);
	if (err == 0 || err == EINPROGRESS)
		aw_watch_deadline(&c->watch, aw_bounds.startup_ms);
	else if (err != ECONNREFUSED || !pause_refused(c))
		fail(c, err, strerror(err));
}

void aw_conn_learn_local(struct aw_conn *c)
{
	socklen_t len = sizeof(c->info.local);

	if (!c->from_known)
		getsockname(c->fd, (struct sockaddr *)&c->info.local, &len);
}

void aw_conn_send_early(struct aw_conn *c)
{
	enum aw_frame_io io = aw_frame_send(c->fd, &c->out);

	/* TCP has taken it: the handshake is over. Until then it takes nothing, or tells the error that there is. */
	if (io == AW_FRAME_LOST) {
		c->early_errno = errno;
	} else if (c->out.done > 0) {
		aw_conn_learn_local(c);
		enter(c, AW_CONN_SENDING);
		if (io == AW_FRAME_DONE)
			enter(c, AW_CONN_AWAIT_REPLY);
	}
	aw_watch_events(&c->watch, waits[c->state].events);
}

static void step_connect(struct aw_conn *c) AW_REQUIRES(c->lock)
{
	socklen_t err_len = sizeof(int);
	int err = 0;

	if (getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &err, &err_len) != 0)
		err = errno;
	/* TCP tells an error once, and the send of the Request was told. */
	if (c->early_errno)
		err = c->early_errno;
	c->early_errno = 0;
	if (err == ECONNREFUSED && !c->info.given && pause_refused(c))
		return;
	if (err) {
		fail(c, err, strerror(err));
		return;
	}
	aw_conn_learn_local(c);
	aw_watch_deadline(&c->watch, aw_bounds.startup_ms);
	aw_conn_set_state(c, AW_CONN_SENDING);
	step_send(c);
}

static void step_request(struct aw_conn *c) AW_REQUIRES(c->lock)
{
	struct mpa_frame frame;
	enum aw_frame_io io = receive(c, &frame);
	enum aw_setup setup;

	if (io == AW_FRAME_MORE)
		return;
	if (io != AW_FRAME_DONE) {
		fail_frame(c, io);
		return;
	}
	setup = aw_mpa_on_request(&c->local, &frame, &c->info.result);
	if (setup != AW_SETUP_OK) {
		fail_setup(c, setup, &frame);
		return;
	}
	conclude(c, AW_CONN_DECIDING, AW_CONN_REQUEST);
	if (c->info.result.waits)
		aw_watch_deadline(&c->watch, aw_bounds.wait_ms);
}

/*
 * The peer learns that this end lives. A socket that has no room has none for the Reply either; that is found out when the
 * program answers.
 */
static void send_wait(struct aw_conn *c) AW_REQUIRES(c->lock)
{
	uint8_t frame[MPA_HDR_LEN];
	size_t len = aw_mpa_wait(frame);
	ssize_t sent = aw_send_now(c->fd, frame, len);

	if (sent > 0 && (size_t)sent < len)
		fail(c, ECONNRESET, "the peer takes no bytes: is its program stopped?");
	else if (++c->waits < aw_bounds.waits_max)
		aw_watch_deadline(&c->watch, aw_bounds.wait_ms);
}

static void step_decide(struct aw_conn *c) AW_REQUIRES(c->lock)
{
	fail(c, ECONNRESET, "the peer left before its request was answered");
}

/* The bytes that have come wait for the QP, and the program for as long as it likes. */
static void quieten(struct aw_conn *c) AW_REQUIRES(c->lock)
{
	aw_watch_events(&c->watch, waits[c->state].events & ~EPOLLIN);
}

static void (*const steps[])(struct aw_conn *c) = {
	[AW_CONN_WAITING] = NULL,
	[AW_CONN_CONNECTING] = step_connect,
	[AW_CONN_REFUSED] = NULL,
	[AW_CONN_SENDING] = step_send,
	[AW_CONN_AWAIT_REPLY] = step_reply,
	[AW_CONN_AWAIT_REQUEST] = step_request,
	[AW_CONN_DECIDING] = step_decide,
	[AW_CONN_READY] = quieten,
	[AW_CONN_OVER] = NULL,
};

static const char *const timeout_causes[] = {
	[AW_CONN_CONNECTING] =
		"no answer to tcp's connect: is the host up, and the port open in its firewall?",
	[AW_CONN_SENDING] = "the peer takes no bytes: is its program stopped?",
	[AW_CONN_AWAIT_REPLY] =
		"no mpa reply in time: does an rdma program listen on this port, and accept?",
	[AW_CONN_AWAIT_REQUEST] = "no mpa request in time",
};

static void step(struct aw_conn *c, uint32_t events) AW_REQUIRES(c->lock)
{
	bool hung_up = events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR);

	if (c->destroyed)
		return;
	if (!(events & AW_WATCH_TIMEOUT)) {
		if (c->state == AW_CONN_DECIDING && !hung_up)
			quieten(c);
		else if (steps[c->state])
			steps[c->state](c);
	} else if (c->state == AW_CONN_REFUSED || c->state == AW_CONN_WAITING) {
		connect_again(c);
	} else if (c->state == AW_CONN_DECIDING) {
		send_wait(c);
	} else if (waits[c->state].deadline && is_patient(c)) {
		log_waits(c);
	} else if (waits[c->state].deadline) {
		fail(c, ETIMEDOUT, timeout_causes[c->state]);
	}
}

/* Delivers the due event, if it has a receiver. The lock is released meanwhile. */
static void tell(struct aw_conn *c) AW_REQUIRES(c->lock)
{
	aw_conn_fn *fn = c->fn;
	void *arg = c->arg;

	if (c->destroyed || !c->due || !fn)
		return;
	bool request = c->due_event == AW_CONN_REQUEST;

	/* A Request goes to the listener's receiver; later events go to the new owner. */
	if (request)
		c->fn = NULL;
	c->due = false;
	c->telling = true;
	aw_unlock(&c->lock);
	if (request)
		aw_replied_serve();
	fn(arg, c, c->due_event);
	aw_lock(&c->lock);
	c->telling = false;
	pthread_cond_broadcast(&c->told);
}

void aw_conn_on_watch(struct aw_watch *w, uint32_t events)
{
	struct aw_conn *c = (struct aw_conn *)w;

	aw_lock(&c->lock);
	step(c, events);
	tell(c);
	aw_unlock(&c->lock);
}
