// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Reads and writes of extended sockets, by libanywarp-xsock.so in the calling thread. Calls with
// unusual flags use the pair, and so do a signal handler that has interrupted a waiting read, and a
// process in a sandbox, which allows no further system calls.
#include <errno.h>
#include <limits.h>
#include <pthread.h>

#include "record/cursor.h"
#include "xsock/base/left.h"
#include "xsock/base/libc.h"
#include "xsock/ext/calls.h"
#include "xsock/preload/extended.h"
#include "xsock/preload/extended_engine.h"
#include "xsock/process/sandbox.h"
#include "xsock/process/shield.h"
#include "xsock/process/waits.h"

#define WINDOW_MAX 64 /* iovecs in one call of the engine */
#define SEND_FLAGS (MSG_NOSIGNAL | MSG_DONTWAIT | MSG_MORE)
#define RECV_FLAGS (MSG_PEEK | MSG_WAITALL | MSG_DONTWAIT | MSG_NOSIGNAL)

_Thread_local bool aw_extended_engaged;

/* Returns the engine if it may move the bytes of such a call. */
static const struct aw_ext_calls *engine_for(const struct iovec *iov, int count)
{
	const struct aw_ext_calls *engine = aw_extended_engine();

	if (!engine || aw_extended_engaged || aw_sandbox_is_on() || count <= 0 || count > IOV_MAX)
		return NULL;
	for (int i = 0; i < count; i++)
		if ((ssize_t)iov[i].iov_len < 0 || (iov[i].iov_len && !iov[i].iov_base))
			return NULL;
	return engine;
}

static void leave_wait(void *unused)
{
	(void)unused;
	aw_extended_engaged = false;
}

/* A read of the program's. */
struct extended_read {
	const struct aw_ext_calls *engine;
	int fd, flags;
	bool waits; /* the call waits for bytes */
	struct aw_cursor at;
};

static ssize_t receive_now(struct extended_read *call)
{
	struct iovec window[WINDOW_MAX];
	struct msghdr msg = { .msg_iov = window };
	struct aw_shield shield;
	size_t covered;
	ssize_t got;
	int count = aw_cursor_pieces(&call->at, call->at.left, window, WINDOW_MAX, &covered);

	aw_shield_raise(&shield);
	got = call->engine->stream_recv(call->fd, window, count, call->flags, call->waits);
	aw_shield_lower(&shield);
	if (got == -ENODATA) { /* the pair has bytes that come first */
		msg.msg_iovlen = (size_t)count;
		got = aw_libc()->recvmsg(call->fd, &msg, call->flags | MSG_DONTWAIT);
		got = got < 0 ? -errno : got;
	}
	if (got > 0)
		aw_cursor_skip(&call->at, (size_t)got);
	return got;
}

/*
 * Receives until the call has what it asks for. Returns a positive number; 0: the pair serves the
 * rest, or has the stream's end; or a negative errno.
 */
static ssize_t receive_bytes(struct extended_read *call)
{
	struct _pthread_cleanup_buffer left;
	size_t wanted = call->at.left;
	int64_t timeout_ns;
	ssize_t got;

	do {
		got = receive_now(call);
		if (got == -EAGAIN && call->waits) {
			timeout_ns = aw_waits_timeout_ns(call->fd, SO_RCVTIMEO);
			aw_extended_engaged = true;
			aw_left_push(&left, leave_wait, NULL);
			got = call->engine->stream_wait(call->fd, timeout_ns);
			aw_left_pop(&left, 1);
			if (!got || (got == -EINTR && aw_shield_restarts(timeout_ns)))
				got = 1;
		}
	} while (got > 0 && call->at.left > 0 &&
		 (call->flags & MSG_WAITALL || call->at.left == wanted));
	return got;
}

/* The pair has the rest of a MSG_WAITALL. A call of recvmsg that got less than it asked for ends it. */
static void finish_by_pair(struct extended_read *call)
{
	struct iovec window[WINDOW_MAX];
	struct msghdr msg = { .msg_iov = window };
	size_t covered;
	ssize_t got;

	do {
		msg.msg_iovlen = (size_t)aw_cursor_pieces(&call->at, call->at.left, window,
							  WINDOW_MAX, &covered);
		got = aw_libc()->recvmsg(call->fd, &msg, call->flags);
		if (got > 0)
			aw_cursor_skip(&call->at, (size_t)got);
	} while (got > 0 && (size_t)got == covered && call->at.left > 0);
}

bool aw_extended_receive(int fd, const struct iovec *iov, int count, int flags, ssize_t *result)
{
	struct extended_read call = { .engine = engine_for(iov, count), .fd = fd, .flags = flags };
	int saved = errno;
	size_t wanted;
	ssize_t got;

	if (!call.engine)
		return false;
	if (flags & ~RECV_FLAGS || (flags & MSG_PEEK && flags & MSG_WAITALL)) {
		aw_extended_watch(fd);
		return false;
	}
	pthread_testcancel();
	call.waits = aw_waits_may(fd, flags);
	call.at = aw_cursor_begin(iov, count);
	wanted = call.at.left;
	got = wanted ? receive_bytes(&call) : 0;
	errno = saved;
	if (got == 0 && call.at.left == wanted)
		return false;
	if (got == 0)
		finish_by_pair(&call);
	errno = call.at.left == wanted ? (int)-got : saved;
	*result = call.at.left == wanted ? -1 : (ssize_t)(wanted - call.at.left);
	return true;
}

bool aw_extended_transmit(int fd, const struct iovec *iov, int count, int flags, ssize_t *result)
{
	const struct aw_ext_calls *engine = engine_for(iov, count);
	struct iovec window[WINDOW_MAX];
	struct msghdr msg = { .msg_iov = window };
	struct aw_shield shield;
	struct aw_cursor at;
	int saved = errno;
	ssize_t sent, more;
	size_t covered;

	if (!engine || flags & ~SEND_FLAGS)
		return false;
	pthread_testcancel();
	aw_shield_raise(&shield);
	sent = engine->stream_send(fd, iov, count, flags);
	aw_shield_lower(&shield);
	errno = saved;
	if (sent <= 0)
		return false;

	at = aw_cursor_begin(iov, count);
	aw_cursor_skip(&at, (size_t)sent);
	/* The connection has no room for what is left: it goes through the pair. */
	while (at.left > 0) {
		msg.msg_iovlen =
			(size_t)aw_cursor_pieces(&at, at.left, window, WINDOW_MAX, &covered);
		more = aw_libc()->sendmsg(fd, &msg, flags | MSG_NOSIGNAL);
		if (more <= 0)
			break;
		aw_cursor_skip(&at, (size_t)more);
		sent += more;
	}
	errno = saved;
	*result = sent;
	return true;
}

void aw_extended_watch(int fd)
{
	const struct aw_ext_calls *engine = aw_extended_engine();
	struct aw_shield shield;
	int saved = errno;

	if (!engine || aw_extended_engaged || aw_sandbox_is_on())
		return;
	aw_shield_raise(&shield);
	engine->watch(fd);
	aw_shield_lower(&shield);
	errno = saved;
}

bool aw_extended_any_direct(void)
{
	const struct aw_ext_calls *engine = aw_extended_engine();

	return __builtin_expect(engine != NULL, 0) && atomic_load(engine->directs) > 0;
}
