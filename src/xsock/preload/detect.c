// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Judges a client by its first bytes.
#include "xsock/preload/detect.h"

#include <errno.h>
#include <sys/param.h>

#include "base/clock.h"
#include "xsock/base/libc.h"
#include "xsock/base/sockopt.h"
#include "xsock/framed/first_bytes.h"
#include "xsock/framed/framed.h"
#include "xsock/process/deadline.h"
#include "xsock/process/mode.h"
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

/* Waits for bytes, AW_DEADLINE_LOOK_NS at most. Returns whether the wait goes on; else errno is set, or the time of end_ns is over. */
static bool await_bytes(const struct aw_first_io_call *call, int64_t end_ns, int64_t limit_ns)
{
	int64_t left_ns = limit_ns < 0 ? AW_DEADLINE_LOOK_NS
				       : MIN(AW_DEADLINE_LOOK_NS, end_ns - aw_now_ns());
	struct timespec turn = { .tv_nsec = left_ns > 0 ? (long)left_ns : 0 };
	struct pollfd pollfd = { .fd = call->fd, .events = POLLIN };

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
		if (!await_bytes(call, end_ns, limit_ns))
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

	if (sock->role == AW_ROLE_PASSIVE) {
		detected = AW_DETECTED_ENDPOINT;
		if (!is_begun(sock) && call->kind != AW_FIRST_HAND_OVER)
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
