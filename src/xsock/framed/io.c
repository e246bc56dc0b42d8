// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The parts that reads and writes of a FRAMED fd have in common: how a call waits, and how it ends when the fd is bridged or closed meanwhile.
#include "xsock/framed/io.h"

#include <limits.h>
#include <poll.h>
#include <sys/ioctl.h>

#include "base/clock.h"
#include "xsock/base/libc.h"
#include "xsock/framed/answer.h"
#include "xsock/process/memory.h"
#include "xsock/process/waits.h"

int aw_io_window(const struct aw_io *call, struct iovec window[AW_IO_WINDOW], size_t *covered)
{
	if (call->discards)
		return aw_memory_waste(call->at.left, window, AW_IO_WINDOW, covered);
	return aw_cursor_pieces(&call->at, call->at.left, window, AW_IO_WINDOW, covered);
}

static bool is_in_place(const struct aw_io *call)
{
	return call->kept || aw_framed_slot(call->fd) == call->slot;
}

/* The flags may be those of another file by now: aw_io_may_sleep finds that out. */
bool aw_io_may_wait(struct aw_io *call)
{
	if (!call->asked)
		call->may_wait = aw_waits_may(call->fd, call->flags) || !is_in_place(call);
	call->asked = true;
	return call->may_wait;
}

ssize_t aw_io_note_strike(struct aw_io *call, int timeout, ssize_t n)
{
	enum aw_strike strike = n == -EAGAIN ? aw_shield_strike() : AW_STRIKE_NONE;

	if (strike == AW_STRIKE_NONE || !aw_io_may_wait(call))
		return n;
	return strike == AW_STRIKE_ENDS || (strike == AW_STRIKE_RESTARTS &&
					    aw_waits_timeout_ns(call->fd, timeout) >= 0)
		       ? -EINTR
		       : n;
}

bool aw_io_is_paired(const struct aw_io *call)
{
	return aw_fdtab_is_pair_of(call->number,
				   (ino_t)(call->ino ? call->ino : aw_arena_ino(call->slot)));
}

bool aw_io_is_bridged(const struct aw_io *call)
{
	return call->kept && aw_io_is_paired(call);
}

static bool is_ready(int fd, short events)
{
	struct pollfd pollfd = { .fd = fd, .events = events };

	return aw_libc()->poll(&pollfd, 1, 0) > 0 && !(pollfd.revents & POLLNVAL);
}

/* Goes on with the copy that was kept for the call. events: what it has waited for; 0: it has not waited. */
static bool copy_take(struct aw_io *call, short events)
{
	int kept;

	aw_fdtab_await_left(call->fd);
	kept = aw_slot_kept(call->slot);
	if (kept < 0)
		return false;
	/*
	 * A thread that another one overtook on its way into the kernel slept on the number's new file. A call that has moved
	 * nothing then is that file's, as if it had begun later.
	 */
	if (events && !call->done && !is_ready(kept, events) && is_ready(call->fd, events))
		return false;
	call->fd = kept;
	call->kept = true;
	return true;
}

bool aw_io_may_sleep(struct aw_io *call)
{
	return is_in_place(call) || (call->done && copy_take(call, 0));
}

bool aw_io_is_still_ours(struct aw_io *call, short events)
{
	return is_in_place(call) || copy_take(call, events);
}

/*
 * Waits for events, at most limit_ns (negative: no limit), and while the Reply is due until its time is over. A call that has moved bytes leaves TCP's error where it is, for
 * poll(2) and the next call to tell. Returns 0 or a negative errno; -EAGAIN: the time is over, or there is an error.
 */
static ssize_t await_ready(const struct aw_io *call, short events, int64_t limit_ns)
{
	struct pollfd pollfd = { .fd = call->fd, .events = events };
	const short failed = POLLERR | POLLHUP;
	int64_t reply_ns = -1, ns;
	struct timespec limit;
	struct aw_sock sock;
	int ready, queued;
	bool is_limited;

	if (aw_answer_is_due(call->slot) && aw_fdtab_look(call->number, &sock) && sock.due_ns) {
		reply_ns = sock.due_ns - aw_now_ns();
		reply_ns = reply_ns > 0 ? reply_ns : 0;
	}
	is_limited = reply_ns >= 0 && (limit_ns < 0 || reply_ns < limit_ns);
	ns = is_limited ? reply_ns : limit_ns;
	limit = (struct timespec){ ns / 1000000000, ns % 1000000000 };

	aw_shield_begin_wait();
	ready = aw_libc()->ppoll(&pollfd, 1, ns < 0 ? NULL : &limit, NULL);
	if (ready > 0 && call->done && (pollfd.revents & failed) == failed)
		return events == POLLIN && aw_libc()->ioctl(call->fd, FIONREAD, &queued) == 0 &&
				       queued
			       ? 0
			       : -EAGAIN;
	if (ready > 0)
		return 0;
	if (ready == 0 && is_limited)
		aw_answer_expire(call->slot, call->fd);
	if (ready == 0)
		return is_limited ? 0 : -EAGAIN;
	return errno == EINTR && !call->done && aw_shield_restarts(limit_ns) ? 0 : -errno;
}

void aw_io_set_end(struct aw_io *call, int timeout)
{
	int64_t limit_ns;

	if (call->waits)
		return;
	call->waits = true;
	limit_ns = aw_waits_timeout_ns(call->fd, timeout);
	call->end_ns = limit_ns < 0 ? 0 : aw_now_ns() + limit_ns;
}

ssize_t aw_io_await(struct aw_io *call, short events, int timeout)
{
	int64_t limit_ns;

	aw_io_set_end(call, timeout);
	limit_ns = call->end_ns ? call->end_ns - aw_now_ns() : -1;
	return call->end_ns && limit_ns <= 0 ? -EAGAIN : await_ready(call, events, limit_ns);
}

bool aw_io_has_moved(const struct aw_io *call)
{
	return call->kept ? aw_io_is_bridged(call) : aw_framed_slot(call->fd) != call->slot;
}

ssize_t aw_io_continue(struct aw_io *call, bool sends)
{
	struct iovec window[AW_IO_WINDOW];
	ssize_t n = 1;

	while (n > 0 && call->at.left > 0 && aw_io_is_paired(call)) {
		struct msghdr msg = { .msg_iov = window };
		size_t covered;

		msg.msg_iovlen = (size_t)aw_io_window(call, window, &covered);
		n = sends ? aw_libc()->sendmsg(call->number, &msg, call->flags | MSG_NOSIGNAL)
			  : aw_libc()->recvmsg(call->number, &msg, call->flags & ~MSG_TRUNC);
		aw_io_count(call, n);
	}
	return (ssize_t)call->done;
}

bool aw_io_is_elsewhere(const struct aw_io *call, ssize_t n)
{
	if (n != -EBADF && n != -ENOTSOCK)
		return false;
	(void)aw_fdtab_look(call->number, NULL);
	return aw_io_has_moved(call);
}

bool aw_io_set_result(const struct aw_io *call, ssize_t n, ssize_t *result)
{
	*result = n < 0 ? -1 : n;
	errno = n < 0 ? (int)-n : call->saved_errno;
	return true;
}

int aw_io_check(const struct iovec *iov, int count)
{
	if (count < 0 || count > IOV_MAX)
		return -EINVAL;
	for (int i = 0; i < count; i++) {
		if ((ssize_t)iov[i].iov_len < 0)
			return -EINVAL;
		if (iov[i].iov_len && !iov[i].iov_base)
			return -EFAULT;
	}
	return 0;
}
