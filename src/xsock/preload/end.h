// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// How the end of a bridged connection shows in reads and writes: as TCP's, where AF_UNIX's would differ.
#ifndef XSOCK_PRELOAD_END_H
#define XSOCK_PRELOAD_END_H

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

#include "xsock/preload/option.h"
#include "xsock/process/fdtab.h"

static inline bool aw_end_is_ours(int fd)
{
	return __builtin_expect(aw_fdtab_state(fd) == AW_FD_BRIDGED, 0);
}

/* What a read of wanted bytes has given: the end of the stream may be a failure's. */
static inline ssize_t aw_end_of_read(int fd, ssize_t got, size_t wanted)
{
	if (__builtin_expect(got != 0, 1) || !wanted || !aw_end_is_ours(fd))
		return got;
	return aw_option_end(fd);
}

/* What a write without SIGPIPE has given: AF_UNIX forgets the signal when it fails while it waits. */
static inline ssize_t aw_end_of_write(ssize_t sent, int flags)
{
	if (__builtin_expect(sent < 0, 0) && errno == EPIPE && !(flags & MSG_NOSIGNAL)) {
		raise(SIGPIPE);
		errno = EPIPE;
	}
	return sent;
}

/*
 * What write(2) itself has given. It stays that call, since a sandbox may allow no other; so who is alive
 * although SIGPIPE is to kill has not had it.
 */
static inline ssize_t aw_end_of_plain_write(int fd, ssize_t written)
{
	struct sigaction action;

	if (__builtin_expect(written >= 0, 1) || errno != EPIPE || !aw_end_is_ours(fd))
		return written;
	if (sigaction(SIGPIPE, NULL, &action) == 0 && action.sa_handler == SIG_DFL)
		raise(SIGPIPE);
	errno = EPIPE;
	return written;
}

#endif
