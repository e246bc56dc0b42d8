// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Judges a client by its first bytes.
#include "xsock/preload/detect.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/param.h>

#include "base/clock.h"
#include "xsock/base/ip.h"
#include "xsock/base/libc.h"
#include "xsock/base/sockopt.h"
#include "xsock/framed/first_bytes.h"
#include "xsock/framed/framed.h"
#include "xsock/framed/tls_start.h"
#include "xsock/process/deadline.h"
#include "xsock/process/mode.h"
#include "xsock/process/protect.h"
#include "xsock/process/registration.h"
#include "xsock/process/shield.h"
#include "xsock/process/waits.h"

static bool may_wait(const struct aw_first_io_call *call)
{
	return call->kind != AW_FIRST_POLL && !call->dontwait &&
	       (call->kind == AW_FIRST_SHUTDOWN || aw_waits_may(call->fd, 0));
}

/*
 * Judges what has come from a client. LATER: *wanted is how many bytes the next look needs. An error is left in the socket, for the
 * program's own call to return.
 */
static enum aw_detected look_at_request(int fd, size_t *wanted)
{
	short ready = aw_first_io_poll(fd, POLLRDHUP, 0);
	enum aw_detected detected = AW_DETECTED_LATER;
	uint8_t bytes[AW_FIRST_BYTES_MAX];
	int queued = 0;
	ssize_t got;

	*wanted = 1;
	(void)aw_libc()->ioctl(fd, FIONREAD, &queued);
	if (queued == 0)
		return ready ? AW_DETECTED_ENDED : AW_DETECTED_LATER;
	got = aw_libc()->recv(fd, bytes, sizeof(bytes), MSG_PEEK | MSG_DONTWAIT);
	if (got > 0) {
		switch (aw_first_bytes_judge(bytes, (size_t)got, wanted)) {
		case AW_FIRST_BYTES_MORE:
			break;
		case AW_FIRST_BYTES_RECORD:
			detected = AW_DETECTED_RECORD;
			break;
		case AW_FIRST_BYTES_ENDPOINT:
			detected = AW_DETECTED_ENDPOINT;
			break;
		case AW_FIRST_BYTES_STRANGE:
			detected = AW_DETECTED_STRANGER;
			break;
		}
		*wanted += (size_t)got;
	}
	return detected == AW_DETECTED_LATER && ready ? AW_DETECTED_STRANGER : detected;
}

static bool is_overdue(const struct aw_sock *sock)
{
	return sock->due_ns && aw_now_ns() >= sock->due_ns;
}

/*
 * A part of a Request must not wake pollers again and again: until the next look has a use, the socket is not readable. The program's
 * own SO_RCVLOWAT is kept, and set again when the connection begins.
 */
static void set_lowat(int fd, size_t wanted)
{
	int bytes = (int)wanted;
	struct aw_sock *sock;

	aw_fdtab_lock();
	sock = aw_fdtab_get(fd);
	if (sock && sock->state == AW_FD_PENDING && (wanted > 1 || sock->lowat)) {
		if (!sock->lowat)
			sock->lowat = aw_sockopt_int(fd, SOL_SOCKET, SO_RCVLOWAT, 1);
		(void)aw_libc()->setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &bytes, sizeof(bytes));
	}
	aw_fdtab_unlock();
}

static bool is_connecting(const struct aw_sock *sock, int fd, const void *arg)
{
	(void)fd;
	(void)arg;
	return sock->state == AW_FD_CONNECTING && !sock->caller;
}

/* Waits for events, AW_DEADLINE_LOOK_NS at most. Returns whether the wait goes on; else errno is set, or the time of end_ns is over. */
static bool await_events(const struct aw_first_io_call *call, short events, int64_t end_ns,
			 int64_t limit_ns)
{
	int64_t left_ns = limit_ns < 0 ? AW_DEADLINE_LOOK_NS
				       : MIN(AW_DEADLINE_LOOK_NS, end_ns - aw_now_ns());
	struct timespec turn = { .tv_nsec = left_ns > 0 ? (long)left_ns : 0 };
	struct pollfd pollfd = { .fd = call->fd, .events = events };

	errno = EAGAIN;
	if (left_ns <= 0)
		return false;
	aw_shield_begin_wait();
	if (aw_libc()->ppoll(&pollfd, 1, &turn, NULL) >= 0)
		return true;
	return errno == EINTR && (call->kind == AW_FIRST_SHUTDOWN || aw_shield_restarts(limit_ns));
}

/* Returns whether another process has begun the connection. */
static bool is_begun(const struct aw_sock *sock)
{
	return sock->slot && aw_framed_is_begun(sock->slot);
}

/* Waits for the client's Request, or until another thread has begun the connection. */
static enum aw_detected await_request(const struct aw_sock *sock,
				      const struct aw_first_io_call *call)
{
	/* negative: as long as the client has time */
	int64_t limit_ns = call->kind == AW_FIRST_SHUTDOWN
				   ? -1
				   : aw_waits_timeout_ns(call->fd, call->kind == AW_FIRST_READ
									   ? SO_RCVTIMEO
									   : SO_SNDTIMEO);
	int64_t end_ns = limit_ns < 0 ? 0 : aw_now_ns() + limit_ns;
	enum aw_detected detected;
	size_t wanted;

	for (;;) {
		detected = look_at_request(call->fd, &wanted);
		if (detected != AW_DETECTED_LATER)
			return detected;
		if (is_overdue(sock))
			return AW_DETECTED_SILENT;
		set_lowat(call->fd, wanted);
		if (!await_events(call, POLLIN, end_ns, limit_ns))
			return AW_DETECTED_FAILED;
		if (aw_fdtab_state(call->fd) != AW_FD_PENDING)
			return AW_DETECTED_ENDPOINT; /* another thread has started it */
		if (is_begun(sock))
			return AW_DETECTED_RECORD;
	}
}

static enum aw_detected judge_fresh(const struct aw_sock *sock, const struct aw_first_io_call *call)
{
	size_t wanted;
	enum aw_detected detected = look_at_request(call->fd, &wanted);

	/* To a Request that comes to a closed socket the kernel would send a reset, though the client's program has sent nothing. */
	if (detected == AW_DETECTED_LATER && call->kind == AW_FIRST_CLOSE)
		return AW_DETECTED_ENDPOINT;
	if (detected != AW_DETECTED_LATER)
		return detected;
	if (is_overdue(sock))
		return AW_DETECTED_SILENT;

	if (call->kind != AW_FIRST_POLL) {
		/* The client may be this process, which has connected without waiting, and has not looked since. */
		for (int fd = aw_fdtab_find(0, is_connecting, NULL); fd >= 0;
		     fd = aw_fdtab_find(fd + 1, is_connecting, NULL))
			(void)aw_first_io_make(fd, AW_FIRST_POLL, true);
		detected = look_at_request(call->fd, &wanted);
	}
	if (detected == AW_DETECTED_LATER && may_wait(call))
		return await_request(sock, call);
	if (detected == AW_DETECTED_LATER)
		set_lowat(call->fd, wanted);
	if (detected != AW_DETECTED_LATER || call->kind == AW_FIRST_POLL)
		return detected;
	errno = EAGAIN;
	return AW_DETECTED_FAILED;
}

/* Judges whether connect has succeeded; waits for its end if the call may wait. */
static enum aw_detected judge_connect(const struct aw_first_io_call *call)
{
	union aw_address remote;
	socklen_t len = sizeof(remote);

	if (!aw_first_io_poll(call->fd, POLLIN | POLLOUT, 0)) {
		if (!may_wait(call)) {
			errno = EAGAIN;
			return call->kind == AW_FIRST_POLL ? AW_DETECTED_LATER : AW_DETECTED_FAILED;
		}
		if (!aw_first_io_poll(call->fd, POLLIN | POLLOUT, -1))
			return AW_DETECTED_FAILED;
	}
	/*
	 * After a connect that has failed the socket is plain, and the program's own call returns
	 * the error.
	 */
	return aw_libc()->getpeername(call->fd, (struct sockaddr *)&remote, &len) == 0
		       ? AW_DETECTED_RECORD
		       : AW_DETECTED_REFUSED;
}

bool aw_detect_has_ended(int fd)
{
	short revents = aw_first_io_poll(fd, POLLRDHUP, 0);
	uint8_t byte;

	return revents & (POLLERR | POLLHUP) ||
	       (revents && aw_libc()->recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0);
}

/*
 * The handshake has sent or taken a byte: from here on the socket waits for the peer as one does whose Request is due, and is
 * neither readable nor writable for the program.
 */
static void note_tls_begun(int fd, const struct aw_tls_start_wait *wait)
{
	struct aw_sock *sock;

	aw_fdtab_lock();
	sock = aw_fdtab_get(fd);
	if (sock && (sock->state == AW_FD_CONNECTING || sock->state == AW_FD_PENDING)) {
		sock->tls_begun = true;
		if (sock->state == AW_FD_CONNECTING) {
			sock->due_ns = aw_deadline_begin();
			aw_fdtab_set_state(sock, AW_FD_PENDING);
		}
		aw_registration_await(sock, wait->events == POLLOUT ? EPOLLOUT : EPOLLIN);
	}
	aw_fdtab_unlock();
}

/* The next step of the handshake. *begun: a byte was sent or taken. OpenSSL runs with signals and cancellation put off. */
static enum aw_tls_started step_handshake(const struct aw_sock *sock, int fd,
					  struct aw_tls_start_wait *wait, bool *begun)
{
	enum aw_tls_started started;
	struct aw_shield shield;

	aw_shield_raise(&shield);
	aw_fdtab_begin_step();
	started = aw_tls_start_step(sock->tls, fd, wait);
	aw_fdtab_end_step();
	*begun = aw_tls_start_has_begun(sock->tls);
	aw_shield_lower(&shield);
	return started;
}

static bool has_begun(const struct aw_sock *sock)
{
	struct aw_shield shield;
	bool begun;

	aw_shield_raise(&shield);
	begun = aw_tls_start_has_begun(sock->tls);
	aw_shield_lower(&shield);
	return begun;
}

/* RECORD: the handshake is done, and behind a client's the first record is there. */
static enum aw_detected step_tls(const struct aw_sock *sock, int fd, struct aw_tls_start_wait *wait)
{
	bool begun;

	switch (step_handshake(sock, fd, wait, &begun)) {
	case AW_TLS_START_LATER:
		break;
	case AW_TLS_START_DONE:
		*wait = (struct aw_tls_start_wait){ .events = POLLIN, .bytes = 1 };
		if (sock->role == AW_ROLE_ACTIVE || aw_tls_start_has_record(fd, &wait->bytes))
			return AW_DETECTED_RECORD;
		if (aw_first_io_poll(fd, POLLRDHUP, 0))
			return AW_DETECTED_RECORD; /* the record's start-up says what is wrong */
		break;
	case AW_TLS_START_FAILED:
		return AW_DETECTED_INSECURE;
	case AW_TLS_START_OTHER:
		return AW_DETECTED_ENDPOINT;
	}
	if (begun)
		note_tls_begun(fd, wait);
	return AW_DETECTED_LATER;
}

/* How long a call waits for the handshake. 0: not at all; negative: as long as the peer has time. */
static int64_t tls_limit_ns(const struct aw_first_io_call *call)
{
	if (call->kind == AW_FIRST_HAND_OVER && !call->dontwait)
		return AW_HAND_OVER_NS;
	if (call->kind == AW_FIRST_FORK || call->kind == AW_FIRST_CLOSE || call->connects ||
	    !may_wait(call))
		return 0;
	if (call->kind == AW_FIRST_SHUTDOWN)
		return -1;
	return aw_waits_timeout_ns(call->fd,
				   call->kind == AW_FIRST_READ ? SO_RCVTIMEO : SO_SNDTIMEO);
}

/* A call that does not wait, or has waited long enough, finds the handshake under way. */
static enum aw_detected leave_tls(const struct aw_sock *sock, const struct aw_first_io_call *call)
{
	switch (call->kind) {
	case AW_FIRST_CLOSE:
		return sock->fds > 1 ? AW_DETECTED_LATER : AW_DETECTED_ENDED;
	case AW_FIRST_HAND_OVER:
		return AW_DETECTED_UNMOVED;
	case AW_FIRST_FORK:
	case AW_FIRST_POLL:
		return AW_DETECTED_LATER;
	case AW_FIRST_READ:
	case AW_FIRST_WRITE:
	case AW_FIRST_SHUTDOWN:
		break;
	}
	if (call->connects)
		return AW_DETECTED_LATER;
	errno = EAGAIN;
	return AW_DETECTED_FAILED;
}

/* The sockets whose handshakes go on while one waits for its own. */
struct others {
	int fd; /* the one that waits */
	enum aw_role role;
	bool all; /* also those that have its role */
};

static bool is_undecided_other(const struct aw_sock *sock, int fd, const void *arg)
{
	const struct others *others = arg;

	return fd != others->fd && !sock->caller && !sock->error &&
	       (sock->state == AW_FD_CONNECTING || sock->state == AW_FD_PENDING) &&
	       (others->all || sock->role != others->role);
}

/* Returns whether fd's two ends have one address. */
static bool is_within_host(int fd)
{
	union aw_address ends[2] = { 0 };
	socklen_t lens[2] = { sizeof(ends[0]), sizeof(ends[1]) };
	uint8_t ips[2][16];
	uint16_t port;

	return aw_libc()->getsockname(fd, &ends[0].any, &lens[0]) == 0 &&
	       aw_libc()->getpeername(fd, &ends[1].any, &lens[1]) == 0 &&
	       aw_ip_get(&ends[0].any, ips[0], &port) && aw_ip_get(&ends[1].any, ips[1], &port) &&
	       memcmp(ips[0], ips[1], sizeof(ips[0])) == 0;
}

/* Returns whether no thread of the process has begun to look at all sockets for so long. */
static bool is_time_for_all(void)
{
	static _Atomic(int64_t) looked_ns;
	int64_t now_ns = aw_now_ns(), before_ns = atomic_load(&looked_ns);

	return now_ns - before_ns >= AW_DEADLINE_LOOK_NS &&
	       atomic_compare_exchange_strong(&looked_ns, &before_ns, now_ns);
}

/*
 * The peer may be this process, which waits at one end for what it has still to do at the other, or may wait for a third one, which
 * waits for this process. A server may have thousands of peers that stall, and a thread that waits for each: they do not all
 * look at all.
 */
static void step_own_peers(const struct aw_sock *sock, int fd)
{
	static _Thread_local __attribute__((tls_model("initial-exec"))) bool steps;
	struct others others = { .fd = fd, .role = sock->role };

	if (steps)
		return;
	others.all = is_time_for_all();
	if (!others.all && !is_within_host(fd))
		return;
	steps = true;
	for (int other = aw_fdtab_find(0, is_undecided_other, &others); other >= 0;
	     other = aw_fdtab_find(other + 1, is_undecided_other, &others))
		(void)aw_first_io_make(other, AW_FIRST_POLL, true);
	steps = false;
}

/* Returns whether no thread has started the connection. Before its ClientHello has left, a client is CONNECTING. */
static bool is_undecided(int fd)
{
	enum aw_fd_state state = aw_fdtab_state(fd);

	return state == AW_FD_CONNECTING || state == AW_FD_PENDING;
}

/* The deadline may have begun after the call. */
static bool is_overdue_now(int fd)
{
	struct aw_sock now;

	return aw_fdtab_look(fd, &now) && is_overdue(&now);
}

/* Goes on with the handshake, as long as the call may wait for the peer. */
static enum aw_detected await_tls(const struct aw_sock *sock, const struct aw_first_io_call *call)
{
	int64_t limit_ns = tls_limit_ns(call);
	int64_t end_ns = limit_ns > 0 ? aw_now_ns() + limit_ns : 0;
	struct aw_tls_start_wait wait;
	enum aw_detected detected;

	for (;;) {
		detected = step_tls(sock, call->fd, &wait);
		if (detected == AW_DETECTED_LATER) {
			step_own_peers(sock, call->fd);
			detected = step_tls(sock, call->fd, &wait);
		}
		if (detected != AW_DETECTED_LATER)
			return detected;
		if (is_overdue_now(call->fd))
			return AW_DETECTED_SILENT;
		set_lowat(call->fd, wait.bytes);
		if (limit_ns == 0 || (limit_ns > 0 && aw_now_ns() >= end_ns))
			return leave_tls(sock, call);
		if (!await_events(call, wait.events, end_ns, limit_ns))
			return call->kind == AW_FIRST_HAND_OVER ? leave_tls(sock, call)
								: AW_DETECTED_FAILED;
		if (!is_undecided(call->fd))
			return AW_DETECTED_RECORD; /* another thread has started it */
	}
}

/* A connection that is to be a record under TLS, and that is connected. */
static enum aw_detected judge_tls(const struct aw_sock *sock, const struct aw_first_io_call *call)
{
	/* OpenSSL does not run in the memory of another process. */
	if (aw_fdtab_is_vfork_child()) {
		errno = EPROTO;
		return AW_DETECTED_FAILED;
	}
	if (!sock->tls && sock->tls_begun)
		return AW_DETECTED_UNMOVED;
	if (!sock->tls) {
		errno = ENOMEM;
		return AW_DETECTED_FAILED;
	}
	/* Until the first byte the proxy process can have it, which waits for the peer where no thread of the program does. */
	if ((call->kind == AW_FIRST_HAND_OVER || call->kind == AW_FIRST_FORK ||
	     call->kind == AW_FIRST_CLOSE) &&
	    !has_begun(sock))
		return AW_DETECTED_ENDPOINT;
	return await_tls(sock, call);
}

enum aw_detected aw_detect_start(const struct aw_sock *sock, const struct aw_first_io_call *call)
{
	enum aw_detected detected;
	int queued = 0;

	if (sock->state == AW_FD_CONNECTING) {
		detected = judge_connect(call);
		if (detected != AW_DETECTED_RECORD)
			return detected;
	}
	/* An endpoint waits for its peer itself, and so does the proxy process where it speaks TLS for the program. */
	if (sock->extended || aw_xs_mode_is_tls_plain(sock->mode) || !aw_mode_records())
		return AW_DETECTED_ENDPOINT;
	if (aw_protect_is_on())
		return sock->mode == AW_XS_RSOCKETS ? AW_DETECTED_ENDPOINT : judge_tls(sock, call);

	if (sock->role == AW_ROLE_PASSIVE) {
		detected = AW_DETECTED_ENDPOINT;
		if (!is_begun(sock) && call->kind != AW_FIRST_HAND_OVER &&
		    call->kind != AW_FIRST_FORK)
			detected = judge_fresh(sock, call);
		/* Another process may begin a shared connection at any time: its bytes are then no Request's. */
		if (detected != AW_DETECTED_LATER && detected != AW_DETECTED_FAILED && sock->slot &&
		    aw_framed_has_begun(sock->slot, call->fd))
			detected = AW_DETECTED_RECORD;
		return detected;
	}

	if (sock->mode == AW_XS_RSOCKETS)
		return AW_DETECTED_ENDPOINT;
	/* A server that speaks first speaks no MPA. */
	(void)aw_libc()->ioctl(call->fd, FIONREAD, &queued);
	if (queued > 0)
		return AW_DETECTED_STRANGER;
	return aw_detect_has_ended(call->fd) ? AW_DETECTED_ENDED : AW_DETECTED_RECORD;
}
