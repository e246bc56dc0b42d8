// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "xsock/preload/end.h"

#include <time.h>

#include "xsock/process/sandbox.h"

static sigset_t set_of_sigpipe(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGPIPE);
	return set;
}

void aw_end_begin(int fd, struct aw_end_call *call)
{
	const sigset_t set = set_of_sigpipe();
	struct aw_sock sock;
	sigset_t pending;

	call->holds_signal = aw_end_is_bridged(fd) && !aw_sandbox_is_on() &&
			     aw_fdtab_look(fd, &sock) && !sock.is_pair;
	if (!call->holds_signal)
		return;
	pthread_sigmask(SIG_BLOCK, &set, &call->before);
	call->was_pending = sigpending(&pending) == 0 && sigismember(&pending, SIGPIPE);
}

ssize_t aw_end_finish(int fd, const struct aw_end_call *call, ssize_t written)
{
	const sigset_t set = set_of_sigpipe();
	int err;

	if (!call->holds_signal)
		return aw_end_of_plain_write(fd, written);
	if (written < 0 && errno == EPIPE)
		written = aw_option_broken(fd, 0);
	err = errno;
	/* It has come also where a part was written before the end. */
	if (!call->was_pending)
		(void)sigtimedwait(&set, NULL, &(struct timespec){ 0 });
	if (written < 0 && err == EPIPE)
		raise(SIGPIPE);
	pthread_sigmask(SIG_SETMASK, &call->before, NULL);
	errno = err;
	return written;
}
