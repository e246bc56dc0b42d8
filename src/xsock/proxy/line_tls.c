// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The session takes each step that the socket is ready for when the bridge asks what is ready. Its fds are edge-triggered: a call reads until
// the socket has nothing more, or says so by arm.
#include "xsock/proxy/line_tls.h"

#include <errno.h>
#include <linux/sockios.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "net/tls/tls.h"
#include "xsock/base/ip.h"
#include "xsock/base/rules.h"
#include "xsock/base/startup_time.h"
#include "xsock/proxy/closer.h"
#include "xsock/proxy/conns.h"

#define MS INT64_C(1000000)
#define AGAIN_MS 2
#define AGAIN_MS_MAX 128 /* pauses grow to that, between looks that find nothing new */
#define ENDS (POLLHUP | POLLERR)

struct line_tls {
	struct aw_line line;
	struct aw_tls *tls;
	int tcp;
	int timer; /* the handshake's time is over, or another look is due */
	bool accepts;
	union aw_address remote;
	int64_t due_ns; /* the handshake's time is over then */

	bool secured; /* the handshake is done */
	bool ended; /* the client has left before its first byte */
	bool at_end; /* the peer's stream has ended, maybe without TCP's */
	bool shut; /* the program's stream has ended */
	bool closed; /* and the program reads no more */
	bool refused; /* the peer has sent bytes since, for which TCP has a reset */
	bool fin_sent;
	bool looks_again; /* the peer's first bytes are to be read before the program's leave */
	int error;
	int queued; /* bytes in TCP's queue at the last look */
	int queued_ms; /* the pause before the next look at that queue */
	struct aw_xs_stats stats;
};

static struct line_tls *tls_of(struct aw_line *line)
{
	return (struct line_tls *)line;
}

static void set_timer(const struct line_tls *t, int64_t ms)
{
	const struct itimerspec due = { .it_value = { ms / 1000, ms % 1000 * MS } };

	(void)timerfd_settime(t->timer, 0, &due, NULL);
}

static short poll_tcp(const struct line_tls *t, short events)
{
	struct pollfd pollfd = { .fd = t->tcp, .events = events };

	return poll(&pollfd, 1, 0) > 0 ? pollfd.revents : 0;
}

/* Until the peer has said something within TLS it may be one that has refused this end, which the user can mend. */
static void log_end(const struct line_tls *t, const char *cause)
{
	bool begins = !t->secured || !t->stats.bytes_in;
	const char *what = t->accepts ? "connection refused" : "connection failed";
	char text[INET6_ADDRSTRLEN] = "unknown";
	uint8_t ip[16];
	uint16_t port = 0;

	if (aw_ip_get(&t->remote.any, ip, &port))
		aw_ip_write(ip, text);
	if (aw_log_has_room())
		aw_log(begins ? AW_LOG_ERROR : AW_LOG_WARN, "%s peer %s port %u cause %s",
		       begins ? what : "stream lost", text, ntohs(port), cause);
}

static void fail(struct line_tls *t, int error, const char *cause)
{
	log_end(t, cause);
	t->error = error;
	t->stats.state = AW_XS_FAILED;
}

static void log_secured(const struct line_tls *t)
{
	struct aw_tls_identity *peer;
	char text[INET6_ADDRSTRLEN] = "unknown";
	uint8_t ip[16];
	uint16_t port = 0;

	if (aw_log_level() < AW_LOG_INFO)
		return;
	peer = aw_tls_identify(t->tls);
	if (aw_ip_get(&t->remote.any, ip, &port))
		aw_ip_write(ip, text);
	aw_log(AW_LOG_INFO,
	       "connection secured by tls without mpa peer %s port %u as %s certificate %s%s", text,
	       ntohs(port), t->accepts ? "server" : "client", peer ? peer->name : "none",
	       aw_tls_is_resumed(t->tls) ? " resumed" : "");
	aw_tls_identity_put(peer);
}

/* A client that looks whether the port is open, and closes, is no attack: the program reads the stream's end. */
static bool has_left(const struct line_tls *t)
{
	uint8_t byte;

	return t->accepts && !aw_tls_has_begun(t->tls) &&
	       recv(t->tcp, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

/* A server that nobody accepts for has said nothing that is wrong. */
static bool was_reset(const struct line_tls *t)
{
	return !t->accepts && !aw_tls_has_begun(t->tls) && poll_tcp(t, 0) & ENDS;
}

static void shake_hands(struct line_tls *t)
{
	t->ended = has_left(t);
	if (t->ended)
		return;
	switch (aw_tls_handshake(t->tls)) {
	case AW_TLS_DONE:
		t->secured = true;
		t->stats.state = AW_XS_ESTABLISHED;
		set_timer(t, 0);
		log_secured(t);
		return;
	case AW_TLS_FAILED:
		fail(t, was_reset(t) ? ECONNRESET : EPROTO, aw_tls_cause(t->tls));
		return;
	case AW_TLS_MORE:
		break;
	}
	if (aw_now_ns() >= t->due_ns)
		fail(t, t->accepts ? EPROTO : ETIMEDOUT,
		     t->accepts ? "no tls handshake within 10 s: is it a client of tls?"
				: "no tls handshake in time: is the server still there?");
}

/* Sends what waits for the socket: records, and behind the last of them the FIN. */
static void flush_records(struct line_tls *t)
{
	if (!t->secured || t->error || t->fin_sent)
		return;
	if (!(t->shut ? aw_tls_finish(t->tls) : aw_tls_flush(t->tls)) || !t->shut)
		return;
	(void)shutdown(t->tcp, SHUT_WR);
	t->fin_sent = true;
}

static ssize_t session_send(struct aw_line *line, const struct iovec *iov, int flags)
{
	struct line_tls *t = tls_of(line);
	ssize_t n;

	if (t->error || t->ended)
		return t->error ? -t->error : -EPIPE;
	if (flags & MSG_OOB)
		return -EOPNOTSUPP;
	/*
	 * A server judges this end's certificate behind the handshake, and may have ended the connection by now: its alert is to be read
	 * before a send finds TCP's reset.
	 */
	t->looks_again = t->secured && !t->stats.bytes_out && !t->stats.bytes_in && !t->at_end &&
			 poll_tcp(t, POLLIN);
	if (!t->secured || t->looks_again)
		return -EAGAIN;
	n = aw_tls_send(t->tls, iov->iov_base, iov->iov_len);
	if (n >= 0) {
		t->stats.bytes_out += (uint64_t)n;
		return n;
	}
	if (errno == EAGAIN)
		return -EAGAIN;
	fail(t, errno, aw_tls_cause(t->tls));
	return -t->error;
}

static ssize_t session_recv(struct aw_line *line, const struct iovec *iov, int flags)
{
	struct line_tls *t = tls_of(line);
	size_t len = 0;
	ssize_t n = 1;

	(void)flags;
	if (t->error || t->ended)
		return -t->error;
	if (!t->secured)
		return -EAGAIN;
	while (n > 0 && len < iov->iov_len) {
		aw_tls_begin_turn(t->tls);
		n = aw_tls_recv(t->tls, (uint8_t *)iov->iov_base + len, iov->iov_len - len);
		len += n > 0 ? (size_t)n : 0;
	}
	t->stats.bytes_in += len;
	t->refused |= t->closed && len > 0;
	t->at_end = n == 0;
	if (n < 0 && errno != EAGAIN)
		fail(t, errno, aw_tls_cause(t->tls));
	if (len > 0)
		return (ssize_t)len;
	if (t->at_end)
		return 0;
	return t->error ? -t->error : -EAGAIN;
}

static void session_shutdown(struct aw_line *line, bool closed)
{
	struct line_tls *t = tls_of(line);

	t->shut = true;
	t->closed |= closed;
	flush_records(t);
}

/* The peer's bytes are taken before the close: the kernel would send a reset for them, behind the alert. */
static void drop_received(int tcp)
{
	/* Over TCP MSG_TRUNC reads without a buffer. */
	while (recv(tcp, NULL, INT32_MAX, MSG_TRUNC | MSG_DONTWAIT) > 0)
		;
}

static void session_close(struct aw_line *line, bool abort)
{
	static const struct linger at_once = { .l_onoff = 1 };
	struct line_tls *t = tls_of(line);

	if (t->error)
		(void)shutdown(t->tcp, SHUT_WR);
	if (t->error || !(abort || t->refused))
		drop_received(t->tcp);
	else
		(void)setsockopt(t->tcp, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
	aw_tls_free(t->tls);
	aw_closer_close(t->tcp);
	close(t->timer);
	free(t);
}

static short session_ready(struct aw_line *line, size_t undelivered)
{
	struct line_tls *t = tls_of(line);
	short ready;

	(void)undelivered;
	if (!t->secured && !t->error && !t->ended)
		shake_hands(t);
	flush_records(t);
	if (t->error)
		return POLLIN | POLLOUT | POLLERR;
	if (t->ended)
		return POLLIN | POLLOUT | POLLRDHUP;
	if (!t->secured)
		return 0;
	ready = poll_tcp(t, POLLIN | POLLOUT | POLLRDHUP);
	if (aw_tls_has_input(t->tls) || t->at_end)
		ready |= POLLIN;
	if (aw_tls_has_output(t->tls))
		ready = (short)(ready & ~POLLOUT);
	return ready;
}

static void session_fds(struct aw_line *line, struct aw_line_fd fds[AW_LINE_FDS])
{
	const struct line_tls *t = tls_of(line);

	fds[0] = (struct aw_line_fd){ t->tcp, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET };
	fds[1] = (struct aw_line_fd){ t->timer, EPOLLIN | EPOLLET };
}

/* A turn of the handshake reads so often at most, and may leave bytes in the socket. */
static bool session_arm(struct aw_line *line)
{
	struct line_tls *t = tls_of(line);
	bool again = t->looks_again;

	t->looks_again = false;
	if (!t->secured && !t->error && !t->ended)
		again |= poll_tcp(t, POLLIN) & POLLIN;
	return !again;
}

static int session_error(struct aw_line *line)
{
	const struct line_tls *t = tls_of(line);
	int error = t->error;
	socklen_t len = sizeof(error);

	if (!error)
		(void)getsockopt(t->tcp, SOL_SOCKET, SO_ERROR, &error, &len);
	return error;
}

/* TLS has no urgent bytes. */
static bool session_at_mark(struct aw_line *line)
{
	(void)line;
	return false;
}

/* Returns how many bytes are in TCP's queue. No event tells that the peer's TCP has received them: the timer brings the next look. */
static size_t look_at_queue(struct line_tls *t)
{
	int queued = 0;

	/* Of a connection that was reset the kernel counts on what is left, which goes nowhere. */
	if (poll_tcp(t, 0) & ENDS)
		return 0;
	(void)ioctl(t->tcp, SIOCOUTQ, &queued);
	if (queued != t->queued)
		t->queued_ms = AGAIN_MS;
	t->queued = queued;
	if (queued && t->secured) {
		set_timer(t, t->queued_ms);
		t->queued_ms = t->queued_ms < AGAIN_MS_MAX ? 2 * t->queued_ms : AGAIN_MS_MAX;
	}
	return (size_t)queued;
}

/*
 * The program's end of the stream waits for the handshake. TCP may be closed once the peer has all: a ticket that has come, and that
 * nobody has read, makes the kernel send a reset in place of what is left.
 */
static size_t session_owed(struct aw_line *line)
{
	struct line_tls *t = tls_of(line);

	flush_records(t);
	if (t->error || t->ended || t->refused)
		return 0;
	if (t->fin_sent)
		return look_at_queue(t);
	if (t->secured && poll_tcp(t, 0) & ENDS)
		return 0;
	return !t->secured || aw_tls_has_output(t->tls);
}

static size_t session_unsent(struct aw_line *line)
{
	struct line_tls *t = tls_of(line);
	size_t owed = session_owed(line);

	if (t->error || t->ended || t->fin_sent)
		return owed;
	return owed + look_at_queue(t);
}

static void session_set_option(struct aw_line *line, int level, int name, int value)
{
	(void)setsockopt(tls_of(line)->tcp, level, name, &value, sizeof(value));
}

static void session_set_linger(struct aw_line *line, const struct linger *linger)
{
	(void)setsockopt(tls_of(line)->tcp, SOL_SOCKET, SO_LINGER, linger, sizeof(*linger));
}

static void session_stats(struct aw_line *line, struct aw_xs_stats *stats)
{
	*stats = tls_of(line)->stats;
}

static int make_session(struct line_tls *t, enum aw_xs_mode mode)
{
	const struct aw_tls_want want = {
		.mode = AW_TLS_REQUIRE,
		.without_mpa = true,
		.admits_any = mode == AW_XS_TLS_ANY && t->accepts,
	};

	t->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (t->timer < 0)
		return errno;
	return aw_tls_create(t->tcp, &t->remote.any, t->accepts, &want, &t->tls);
}

struct aw_line *aw_line_of_tls(const struct aw_request *request, int tcp)
{
	static const struct aw_line_ops ops = {
		.send = session_send,
		.recv = session_recv,
		.shutdown = session_shutdown,
		.close = session_close,
		.ready = session_ready,
		.fds = session_fds,
		.arm = session_arm,
		.error = session_error,
		.at_mark = session_at_mark,
		.unsent = session_unsent,
		.owed = session_owed,
		.set_option = session_set_option,
		.set_linger = session_set_linger,
		.stats = session_stats,
	};
	struct line_tls *t = calloc(1, sizeof(*t));
	bool accepts = request->role != 1;
	int64_t due_ms = accepts ? AW_PEER_STARTUP_MS : AW_CONNS_STARTUP_MS;
	int one = 1, err;

	if (!t)
		return NULL;
	*t = (struct line_tls){
		.line = { &ops },
		.tcp = tcp,
		.timer = -1,
		.accepts = accepts,
		.remote = request->remote,
		.due_ns = aw_now_ns() + due_ms * MS,
		.queued_ms = AGAIN_MS,
		.stats = { .state = AW_XS_CONNECTING },
	};
	err = make_session(t, (enum aw_xs_mode)request->mode);
	if (err) {
		if (t->timer >= 0)
			close(t->timer);
		free(t);
		errno = err;
		return NULL;
	}
	set_timer(t, due_ms);
	/* The program's mark would hide a part of a record, and an urgent byte would be missing in one. */
	(void)setsockopt(tcp, SOL_SOCKET, SO_RCVLOWAT, &one, sizeof(one));
	(void)setsockopt(tcp, SOL_SOCKET, SO_OOBINLINE, &one, sizeof(one));
	return &t->line;
}
