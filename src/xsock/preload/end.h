// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Makes the end of a bridged connection look as TCP's, where AF_UNIX's differs, to the program's
// reads and writes. Called by the wrappers, without a lock.
#ifndef XSOCK_PRELOAD_END_H
#define XSOCK_PRELOAD_END_H

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

#include "xsock/preload/option.h"
#include "xsock/process/fdtab.h"

static inline bool aw_end_is_bridged(int fd)
{
	return __builtin_expect(aw_fdtab_state(fd) == AW_FD_BRIDGED, 0);
}

/*
 * Returns what the program's read of wanted bytes returns, after libc's has returned got. The end
 * of the stream may be that of a failed connection.
 */
static inline ssize_t aw_end_of_read(int fd, ssize_t got, size_t wanted)
{
	if (__builtin_expect(got > 0, 1) || !wanted || !aw_end_is_bridged(fd))
		return got;
	if (got < 0)
		return errno == ECONNRESET ? aw_option_reset(fd) : got;
	return aw_option_end(fd);
}

/*
 * Returns what the program's write of len bytes returns, after libc's with MSG_NOSIGNAL has returned sent. AF_UNIX
 * loses SIGPIPE when a write fails while it waits.
 */
static inline ssize_t aw_end_of_write(int fd, ssize_t sent, size_t len, int flags)
{
	if (__builtin_expect(sent >= 0, 1) || errno != EPIPE)
		return sent;
	sent = aw_option_broken(fd, len);
	if (sent < 0 && errno == EPIPE && !(flags & MSG_NOSIGNAL)) {
		raise(SIGPIPE);
		errno = EPIPE;
	}
	return sent;
}

/*
 * Returns written, the result of a call that takes no MSG_NOSIGNAL, such as the write(2) of a sandbox, which may allow no other call. If
 * SIGPIPE ends the program and the thread still runs, the kernel has not sent the signal.
 */
static inline ssize_t aw_end_of_plain_write(int fd, ssize_t written)
{
	struct sigaction action;

	if (__builtin_expect(written >= 0, 1) || errno != EPIPE || !aw_end_is_bridged(fd))
		return written;
	if (sigaction(SIGPIPE, NULL, &action) == 0 && action.sa_handler == SIG_DFL)
		raise(SIGPIPE);
	errno = EPIPE;
	return written;
}

/*
 * Around any other such call that writes to fd: sendfile(2), splice(2), pwritev2(2). Of a connection that the proxy process has refused
 * finish returns -1 with its errno, as aw_end_of_write does, and without SIGPIPE. Else it returns written.
 */
struct aw_end_call {
	bool holds_signal; /* fd is bridged and no pair */
	bool was_pending;
	sigset_t before;
};
void aw_end_begin(int fd, struct aw_end_call *call);
ssize_t aw_end_finish(int fd, const struct aw_end_call *call, ssize_t written);

#endif
