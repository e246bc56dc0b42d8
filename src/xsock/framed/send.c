// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Writes of a FRAMED fd behave as those of the kernel's socket.
#include <errno.h>
#include <poll.h>
#include <signal.h>

#include "xsock/base/left.h"
#include "xsock/framed/answer.h"
#include "xsock/framed/bridge.h"
#include "xsock/framed/io.h"

#define SEND_FLAGS (MSG_MORE | MSG_OOB) /* the flags that a record uses */

static void leave_wait(void *slot)
{
	aw_slot_leave_wait(slot);
}

/* Sends what TCP takes without waiting. Returns a number of bytes or a negative errno. */
static ssize_t send_now(struct aw_io *call)
{
	struct aw_slot *slot = call->slot;
	struct aw_half half;
	ssize_t n;

	do {
		struct iovec window[AW_IO_WINDOW];
		size_t left = call->at.left, covered;
		int count = aw_cursor_pieces(&call->at, left, window, AW_IO_WINDOW, &covered);

		call->stuck = false;
		n = -(call->kept ? aw_half_enter(&half, slot, &slot->tx_lock, call->fd)
				 : aw_half_enter_for(&half, slot, &slot->tx_lock, call->fd));
		if (n)
			return n;
		n = aw_record_send(&slot->record, call->fd, window, count,
				   call->flags & (covered < left ? MSG_MORE : SEND_FLAGS));
		if (__builtin_expect(aw_slot_owes(slot), 0))
			call->stuck = !aw_slot_flush_later(slot, call->fd) &&
				      (n > 0 || n == -EAGAIN);
		n = aw_io_note_strike(call, SO_SNDTIMEO, n);
		aw_half_leave(&half);
		aw_io_count(call, n);
	} while (n > 0 && call->at.left > 0);
	return n;
}

/* Returns whether a call that may wait does so after result n. */
static bool is_to_send(const struct aw_io *call, ssize_t n)
{
	return call->at.left > 0 ? n == -EAGAIN : call->stuck && n != -EBADF;
}

static ssize_t send_waiting(struct aw_io *call)
{
	struct _pthread_cleanup_buffer left;
	bool is_pair;
	ssize_t n;

	aw_slot_begin_wait(call->slot);
	call->ino = aw_arena_ino(call->slot);
	aw_left_push(&left, leave_wait, call->slot);
	do {
		n = aw_io_may_sleep(call) ? aw_io_await(call, POLLOUT, SO_SNDTIMEO) : -EBADF;
		if (n)
			break;
		/* Where the program's fd is a pair by now, the bytes go through that. */
		is_pair = atomic_load(&call->slot->proxy) &&
			  aw_framed_slot(call->fd) != call->slot && aw_io_is_paired(call);
		n = !is_pair && aw_io_is_still_ours(call, POLLOUT) ? send_now(call) : -EBADF;
	} while (is_to_send(call, n));
	aw_left_pop(&left, 0);
	aw_slot_leave_wait(call->slot);
	return n;
}

bool aw_framed_transmit(int fd, const struct iovec *iov, int count, int flags, ssize_t *result)
{
	struct aw_io call = aw_io_begin(fd, flags);
	ssize_t n;

	if (!call.slot)
		return false;
	n = aw_io_check(iov, count);
	if (n)
		return aw_io_set_result(&call, n, result);
	call.at = aw_cursor_begin(iov, count);
	if (call.at.left == 0)
		return false; /* the kernel returns 0, or an error if the connection has ended */
	if (aw_answer_is_due(call.slot))
		aw_answer_look(call.slot, fd);

	n = send_now(&call);
	if (is_to_send(&call, n) && aw_io_may_wait(&call))
		n = send_waiting(&call);
	/* The program may not call again before its peer has answered the whole. */
	if (call.stuck && aw_framed_slot(call.number) == call.slot)
		(void)aw_framed_bridge(call.number);
	if (call.done && n < 0)
		aw_slot_note_failure(call.slot, n);
	if (call.done)
		n = (ssize_t)call.done;

	if ((n == -EPIPE || aw_record_is_failure(n)) && aw_answer_is_due(call.slot))
		aw_answer_note_end(call.slot, fd);
	if (n == -EPIPE)
		n = aw_slot_take_failure(call.slot, n);
	if (call.done && call.at.left > 0 && aw_io_has_moved(&call))
		n = aw_io_continue(&call, true);
	if (aw_io_is_elsewhere(&call, n))
		return false;
	if (n == -EPIPE && !(flags & MSG_NOSIGNAL))
		raise(SIGPIPE);
	return aw_io_set_result(&call, n, result);
}
