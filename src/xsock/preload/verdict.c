// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Judges a server by its probe's answer, and a client by its first bytes and its probe.
#include "xsock/preload/verdict.h"

#include <errno.h>
#include <string.h>

#include "xsock/base/libc.h"
#include "xsock/base/sockopt.h"
#include "xsock/framed/framed.h"
#include "xsock/preload/preamble.h"
#include "xsock/preload/probe.h"
#include "xsock/process/mode.h"
#include "xsock/process/proxy.h"
#include "xsock/process/waits.h"

#define KEY "MPA ID Req Frame" /* RFC 5044 7.1 */
#define KEY_LEN 16
#define REQUEST_BYTES_MAX 1024 /* no Request is longer */

/* Returns ms, or the time until the call's deadline if that is less. */
static int limit_ms(const struct aw_first_io_call *call, int ms)
{
	return call->by ? aw_deadline_at_most_ms(call->by, ms) : ms;
}

static bool may_wait(const struct aw_first_io_call *call)
{
	return call->kind != AW_FIRST_POLL && !call->dontwait && aw_waits_may(call->fd, 0);
}

/*
 * Judges the first bytes of a client. An end that has records looks at a whole Request. wanted
 * NULL: the time for the rest of the Request is over, and the proxy process receives the rest. For
 * LATER *wanted is the number of bytes that the next look needs.
 */
static enum aw_verdict judge_bytes(const uint8_t *bytes, size_t got, size_t *wanted)
{
	size_t missing = KEY_LEN - got;

	if (memcmp(bytes, KEY, got < KEY_LEN ? got : KEY_LEN) != 0)
		return AW_VERDICT_PLAIN;
	if (got >= KEY_LEN && !aw_mode_records())
		return AW_VERDICT_IWARP;
	if (got >= KEY_LEN) {
		switch (aw_framed_judge(bytes, got, &missing)) {
		case AW_OFFER_WHOLE:
			return AW_VERDICT_RECORD;
		case AW_OFFER_NONE:
			return AW_VERDICT_IWARP;
		case AW_OFFER_MORE:
			break;
		}
	}
	if (!wanted)
		return got >= KEY_LEN ? AW_VERDICT_IWARP : AW_VERDICT_PLAIN;
	*wanted = got + missing;
	return AW_VERDICT_LATER;
}

/*
 * Waits up to ms for the rest of a key or Request of which some bytes have come. SO_RCVLOWAT keeps
 * the poll asleep until enough bytes are there.
 */
static enum aw_verdict await_rest(int fd, int ms)
{
	struct aw_deadline deadline = aw_deadline_after_ms(ms);
	uint8_t bytes[REQUEST_BYTES_MAX];
	size_t wanted = KEY_LEN;
	enum aw_verdict verdict;
	int before = aw_sockopt_int(fd, SOL_SOCKET, SO_RCVLOWAT, 1);

	do {
		int lowat = (int)wanted;
		short ready;
		ssize_t got;

		aw_libc()->setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &lowat, sizeof(lowat));
		ready = aw_first_io_poll(fd, POLLIN, aw_deadline_at_most_ms(&deadline, ms));
		got = aw_libc()->recv(fd, bytes, sizeof(bytes), MSG_PEEK | MSG_DONTWAIT);
		verdict = got > 0 ? judge_bytes(bytes, (size_t)got,
						ready && (size_t)got >= wanted ? &wanted : NULL)
				  : AW_VERDICT_PLAIN;
	} while (verdict == AW_VERDICT_LATER);
	aw_libc()->setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &before, sizeof(before));
	return verdict;
}

static enum aw_verdict judge_silent(int fd);

/* Judges by the bytes that are there: the time for the rest is over. */
static enum aw_verdict judge_late(int fd)
{
	uint8_t bytes[REQUEST_BYTES_MAX];
	ssize_t got;

	if (!aw_mode_records())
		return AW_VERDICT_PLAIN;
	got = aw_libc()->recv(fd, bytes, sizeof(bytes), MSG_PEEK | MSG_DONTWAIT);
	return got > 0 ? judge_bytes(bytes, (size_t)got, NULL) : AW_VERDICT_PLAIN;
}

/*
 * Judges a partial preamble. A call that must not wait finds nothing, and the next call looks
 * again. A write waits for the rest only if the client has sent the probe: another client may be
 * any TCP program.
 */
static enum aw_verdict judge_rest(const struct aw_first_io_call *call, size_t got)
{
	enum aw_verdict verdict;

	if (call->kind == AW_FIRST_CLOSE)
		return judge_silent(call->fd);
	if (call->kind == AW_FIRST_WRITE) {
		verdict = await_rest(call->fd, limit_ms(call, aw_probe_wait_ms(AW_FIRST_GRACE_MS)));
		if (verdict != AW_VERDICT_PLAIN || judge_silent(call->fd) == AW_VERDICT_PLAIN)
			return verdict;
		return await_rest(call->fd, limit_ms(call, aw_preamble_ms()));
	}
	if (may_wait(call))
		return await_rest(call->fd, aw_preamble_ms());
	if (!aw_preamble_lasts(call->fd, got))
		return judge_late(call->fd);
	errno = EAGAIN;
	return call->kind == AW_FIRST_POLL ? AW_VERDICT_LATER : AW_VERDICT_FAILED;
}

/* Judges by the bytes, or the end, that can be read. flags: MSG_DONTWAIT or 0. */
static enum aw_verdict judge_unread(const struct aw_first_io_call *call, int flags)
{
	uint8_t bytes[REQUEST_BYTES_MAX];
	ssize_t got = aw_libc()->recv(call->fd, bytes, sizeof(bytes), MSG_PEEK | flags);
	enum aw_verdict verdict;
	size_t wanted;

	if (got <= 0)
		return got ? AW_VERDICT_FAILED : AW_VERDICT_PLAIN;
	verdict = judge_bytes(bytes, (size_t)got, &wanted);
	return verdict == AW_VERDICT_LATER ? judge_rest(call, (size_t)got) : verdict;
}

/*
 * Returns whether bytes are unread, also when the client has sent a reset behind them: the program
 * must not read a record's Request.
 */
static bool has_unread(int fd)
{
	int count = 0;

	return aw_mode_records() && aw_libc()->ioctl(fd, FIONREAD, &count) == 0 && count > 0;
}

/*
 * Judges a socket that poll reports as ready. A socket with an error stays TCP, so that the
 * program's own call returns the error.
 */
static enum aw_verdict judge_readable(const struct aw_first_io_call *call, short revents)
{
	enum aw_verdict verdict;

	if (revents & POLLERR && !has_unread(call->fd))
		return AW_VERDICT_PLAIN;
	verdict = judge_unread(call, MSG_DONTWAIT);
	return verdict == AW_VERDICT_FAILED ? AW_VERDICT_LATER : verdict;
}

/*
 * Judges a client that has sent no bytes, when the program writes or closes first: asks the proxy
 * process whether the client has sent the probe. If it has not, the proxy process answers no to a
 * later probe.
 */
static enum aw_verdict judge_silent(int fd)
{
	struct aw_reply reply;
	struct aw_request request;

	aw_request_init(&request, AW_REQUEST_DECIDE);
	if (aw_proxy_call(&request, fd, &reply) != 0)
		return AW_VERDICT_PLAIN;
	return reply.error ? AW_VERDICT_PLAIN : AW_VERDICT_IWARP;
}

#define LOOK_MS 10 /* a waiting thread looks for a start by another one this often */

/*
 * Waits up to ms for the client's Request, or until another thread has started the connection.
 * Returns poll's events.
 */
static short await_request(int fd, int ms)
{
	struct aw_deadline deadline = aw_deadline_after_ms(ms);
	short revents;

	do
		revents = aw_first_io_poll(fd, POLLIN, aw_deadline_at_most_ms(&deadline, LOOK_MS));
	while (!revents && !aw_deadline_is_over(&deadline) && aw_fdtab_state(fd) == AW_FD_PENDING);
	return revents;
}

/*
 * Gives fd, which the program is closing, to the proxy process: fd's client has received a yes to
 * its probe, and its Request has yet to come. If the socket were closed, the kernel would answer
 * the Request with a reset. False: no proxy process has fd.
 */
static bool request_farewell(int fd)
{
	struct aw_request request;

	aw_request_init(&request, AW_REQUEST_FAREWELL);
	return aw_proxy_notify(&request, &fd, 1) == 0;
}

/*
 * Judges the client of an accepted connection. While the preamble is partial, SO_RCVLOWAT makes the
 * kernel's read wait for bytes that may never come: the thread waits in await_rest.
 */
static enum aw_verdict judge_client(const struct aw_sock *sock, const struct aw_first_io_call *call)
{
	bool decides = call->kind == AW_FIRST_WRITE || call->kind == AW_FIRST_CLOSE;
	int grace_ms = call->kind == AW_FIRST_WRITE ? aw_probe_wait_ms(AW_FIRST_GRACE_MS) : 0;
	short revents;

	if (aw_preamble_is_over(sock))
		return judge_late(call->fd);
	if (call->kind == AW_FIRST_READ && sock->preamble_ns && may_wait(call))
		return await_rest(call->fd, aw_preamble_ms());
	if (call->kind == AW_FIRST_READ)
		return judge_unread(call, call->dontwait ? MSG_DONTWAIT : 0);
	revents = aw_first_io_poll(call->fd, POLLIN, limit_ms(call, grace_ms));
	if (revents)
		return judge_readable(call, revents);
	if (!decides)
		return AW_VERDICT_LATER;
	if (judge_silent(call->fd) == AW_VERDICT_PLAIN)
		return AW_VERDICT_PLAIN;
	/*
	 * The client's probe was answered with yes, and the answer may have come too late for the
	 * client. A thread that closes does not wait for the Request.
	 */
	if (call->kind == AW_FIRST_CLOSE && !aw_mode_records())
		return AW_VERDICT_IWARP;
	if (call->kind == AW_FIRST_CLOSE && sock->fds == 1 && request_farewell(call->fd))
		return AW_VERDICT_OVER;
	revents = await_request(call->fd, limit_ms(call, aw_probe_patience_ms()));
	if (aw_fdtab_state(call->fd) != AW_FD_PENDING)
		return AW_VERDICT_IWARP; /* another thread has started it */
	return revents ? judge_readable(call, revents) : AW_VERDICT_PLAIN;
}

/*
 * Beside the round trips of its probe, a server's host has 10 ms for the answer. In mode `on` it has 100 ms, as a
 * loaded host needs: a silent server costs that wait once in 10 seconds, and a late answer costs
 * the record.
 */
static enum aw_verdict judge_server(int fd, enum aw_xs_mode mode)
{
	struct sockaddr_storage local, remote;
	socklen_t local_len = sizeof(local), remote_len = sizeof(remote);
	enum aw_answer answer;

	/* A server whose bytes, or the end, can be read speaks plain TCP. */
	if (aw_first_io_poll(fd, POLLIN, 0) ||
	    aw_libc()->getsockname(fd, (struct sockaddr *)&local, &local_len) != 0 ||
	    aw_libc()->getpeername(fd, (struct sockaddr *)&remote, &remote_len) != 0)
		return AW_VERDICT_PLAIN;
	answer = aw_probe_server(fd, &local, &remote, aw_mode_records(),
				 mode == AW_XS_ON ? 100 : 10);
	if (answer == AW_ANSWER_RECORDS)
		return AW_VERDICT_RECORD;
	return answer == AW_ANSWER_YES ? AW_VERDICT_IWARP : AW_VERDICT_PLAIN;
}

/* Judges whether connect has succeeded; waits for its end if the call may wait. */
static enum aw_verdict judge_connect(const struct aw_first_io_call *call)
{
	struct sockaddr_storage remote;
	socklen_t len = sizeof(remote);

	if (!aw_first_io_poll(call->fd, POLLIN | POLLOUT, 0)) {
		if (!may_wait(call)) {
			errno = EAGAIN;
			return call->kind == AW_FIRST_POLL ? AW_VERDICT_LATER : AW_VERDICT_FAILED;
		}
		if (!aw_first_io_poll(call->fd, POLLIN | POLLOUT, -1))
			return AW_VERDICT_FAILED;
	}
	/*
	 * After a connect that has failed the socket is plain, and the program's own call returns
	 * the error.
	 */
	return aw_libc()->getpeername(call->fd, (struct sockaddr *)&remote, &len) == 0
		       ? AW_VERDICT_IWARP
		       : AW_VERDICT_REFUSED;
}

bool aw_verdict_has_ended(int fd)
{
	short revents = aw_first_io_poll(fd, POLLRDHUP, 0);
	uint8_t byte;

	return revents & (POLLERR | POLLHUP) ||
	       (revents && aw_libc()->recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0);
}

enum aw_verdict aw_verdict_judge(const struct aw_sock *sock, const struct aw_first_io_call *call)
{
	enum aw_verdict verdict;

	if (sock->state == AW_FD_CONNECTING) {
		verdict = judge_connect(call);
		if (verdict != AW_VERDICT_IWARP)
			return verdict;
	}
	if (sock->mode == AW_XS_ON && (!aw_mode_records() || sock->extended))
		return AW_VERDICT_IWARP;
	verdict = sock->role == AW_ROLE_ACTIVE ? judge_server(call->fd, sock->mode)
					       : judge_client(sock, call);
	/* In mode `on` a peer that does not speak MPA is an error, which the start-up finds. */
	if (verdict == AW_VERDICT_PLAIN && sock->mode == AW_XS_ON &&
	    !aw_verdict_has_ended(call->fd))
		return AW_VERDICT_IWARP;
	return verdict;
}
