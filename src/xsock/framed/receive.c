// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Reads of a FRAMED fd behave as those of the kernel's socket.
#include <errno.h>
#include <poll.h>

#include "xsock/base/left.h"
#include "xsock/base/libc.h"
#include "xsock/framed/answer.h"
#include "xsock/framed/io.h"
#include "xsock/process/memory.h"

#define OTHERS_MS 1 /* so late, at the most, a thread sees bytes that others have left */

static void leave_rx(const struct aw_io *call, const struct aw_half *half)
{
	bool faulty = call->slot->record.rx.fault != AW_OK;

	aw_half_leave(half);
	if (__builtin_expect(faulty, 0))
		aw_slot_send_terminate(call->slot, call->fd);
}

static bool is_whole(const struct aw_io *call)
{
	return call->flags & MSG_WAITALL && !(call->flags & MSG_PEEK);
}

/* Returns whether a call that has got bytes waits for more of them. */
static bool wants_more(const struct aw_io *call)
{
	if (call->flags & MSG_PEEK)
		return call->due > 0 && !call->is_last;
	return call->at.left > 0 && !call->at_mark && !call->is_last &&
	       (is_whole(call) || call->done < call->wanted);
}

/* *covered: how many bytes the call's next buffers take. */
static ssize_t receive_once(struct aw_io *call, size_t *covered)
{
	struct aw_slot *slot = call->slot;
	struct aw_record *record = &slot->record;
	struct iovec window[AW_IO_WINDOW];
	int count = aw_io_window(call, window, covered);
	struct aw_half half;
	bool wrong;
	ssize_t n;

	n = -(call->kept ? aw_half_enter(&half, slot, &slot->rx_lock, call->fd)
			 : aw_half_enter_for(&half, slot, &slot->rx_lock, call->fd));
	if (n)
		return n;

	if (__builtin_expect(slot->given > 0, 0))
		n = -EAGAIN; /* this thread has yet to follow to the pair */
	else if (call->flags & MSG_PEEK)
		n = aw_record_peek(record, call->fd, window, count,
				   call->flags & MSG_WAITALL ? &call->due : NULL);
	else
		n = aw_record_receive(record, call->fd, window, count,
				      call->done ? AW_RECORD_GOES_ON : 0);
	call->at_mark = record->rx.mark == AW_MARK_FRONT;
	call->wanted = record->rx.wanted;

	wrong = aw_answer_is_due(slot) && aw_answer_is_wrong(slot, n);
	aw_io_count(call, n);
	if (n > 0 && (size_t)n < *covered && wants_more(call))
		call->is_last = aw_shield_strike() != AW_STRIKE_NONE && aw_io_may_wait(call);
	else
		n = aw_io_note_strike(call, SO_RCVTIMEO, n);
	leave_rx(call, &half);
	if (wrong)
		aw_answer_tell(call->number, n);
	return n;
}

static void leave_read(void *arg)
{
	struct aw_slot *slot = arg;

	atomic_fetch_sub(&slot->readers, 1);
	aw_slot_leave_wait(slot);
}

/*
 * Waits until the bytes that are due, or the stream's end, have come; copies nothing. After a wait for call->due bytes that a time-out, a
 * signal or the end has ended, the next look is the last. SO_RCVLOWAT, at least what is due, keeps the
 * thread asleep, also when another reader changes it meanwhile; the kernel fixes the length when the call begins, so that it
 * is one byte. At the mark the thread polls, because recv() would return the urgent byte, which is in the socket already, when
 * a time-out or a signal ends the wait; so does a thread that has got bytes. Returns 0 or a negative errno.
 */
static ssize_t await_bytes(struct aw_io *call)
{
	struct iovec window[AW_IO_WINDOW];
	struct msghdr msg = { .msg_iov = window };
	size_t covered;
	uint8_t byte;
	ssize_t n;

	if (call->due) {
		msg.msg_iovlen = (size_t)aw_memory_waste(call->due, window, AW_IO_WINDOW, &covered);
		n = aw_libc()->recvmsg(call->fd, &msg, MSG_PEEK | MSG_TRUNC | MSG_WAITALL);
		call->is_last = n < (ssize_t)call->due;
		return n < 0 ? -errno : 0;
	}
	if (call->at_mark || call->done || aw_answer_is_due(call->slot) ||
	    (call->waits && call->end_ns))
		return aw_io_await(call, POLLIN, SO_RCVTIMEO);
	if (is_whole(call))
		aw_io_set_end(call, SO_RCVTIMEO);
	return aw_libc()->recv(call->fd, &byte, 1, MSG_PEEK | MSG_TRUNC) < 0 ? -errno : 0;
}

/* Returns whether a call that may wait does so after result n. */
static bool is_to_wait(const struct aw_io *call, ssize_t n)
{
	if (n != -EAGAIN && n <= 0)
		return false;
	return call->done == 0 || wants_more(call);
}

/*
 * Receives what is there without waiting. Returns a number of bytes; 0 at the stream's end;
 * -EAGAIN: nothing, or too little for one FPDU; or another negative errno.
 */
static ssize_t receive_now(struct aw_io *call)
{
	size_t covered;
	bool filled; /* there are more buffers than a window, and more bytes may be there */
	ssize_t n;

	if (call->flags & MSG_PEEK) {
		call->at = call->all;
		call->done = 0;
	}
	do {
		n = receive_once(call, &covered);
		filled = n > 0 && (size_t)n == covered && !call->at_mark &&
			 !(call->flags & MSG_PEEK);
	} while (filled && call->at.left > 0);
	return n;
}

static ssize_t receive_waiting(struct aw_io *call)
{
	struct _pthread_cleanup_buffer left;
	ssize_t n;

	atomic_fetch_add(&call->slot->readers, 1);
	aw_slot_begin_wait(call->slot);
	call->ino = aw_arena_ino(call->slot);
	aw_left_push(&left, leave_read, call->slot);
	do {
		n = aw_io_may_sleep(call) ? await_bytes(call) : -EBADF;
		if (n == 0)
			n = aw_io_is_still_ours(call, POLLIN) ? receive_now(call) : -EBADF;
		else if (n == -EAGAIN)
			break;
		/* Bytes that the connection does not have any more are in the pair. */
		if (n == -EAGAIN && aw_io_is_bridged(call))
			n = -EBADF;
		else if (n == -EAGAIN && call->slot->given > 0)
			/*
			 * The thread cannot follow to the pair, where another program has yet to read bytes: the socket stays
			 * readable, and no event tells when it is so for new bytes.
			 */
			(void)aw_libc()->poll(NULL, 0, OTHERS_MS);
	} while (is_to_wait(call, n));
	aw_left_pop(&left, 0);
	leave_read(call->slot);
	return n;
}

/*
 * Receives, and waits if the call may. Looks first: what has come of an FPDU leaves the socket
 * then, and TCP's window opens for the rest. A thread that waited with a closed window would wait
 * for ever. Returns a number of bytes, 0 at the stream's end, or a negative errno.
 */
static ssize_t receive_bytes(struct aw_io *call)
{
	ssize_t n = receive_now(call);

	if (is_to_wait(call, n) && aw_io_may_wait(call))
		n = receive_waiting(call);
	if (call->done == 0)
		return n;
	if (n < 0)
		aw_slot_note_failure(call->slot, n);
	return (ssize_t)call->done;
}

/* A receive of no bytes: the kernel's call waits for a byte and returns 0, or fails. */
static ssize_t receive_nothing(struct aw_io *call)
{
	uint8_t byte;
	struct iovec one = { &byte, 1 };
	ssize_t n;

	call->at = call->all = aw_cursor_begin(&one, 1);
	call->flags = (call->flags & ~MSG_WAITALL) | MSG_PEEK;
	n = receive_bytes(call);
	return n > 0 ? 0 : n;
}

/* Receives the urgent byte; takes it from the record even if the call has no room for it. */
static ssize_t receive_urgent(struct aw_io *call)
{
	struct aw_half half;
	uint8_t byte;
	ssize_t n = -aw_half_enter_for(&half, call->slot, &call->slot->rx_lock, call->fd);

	if (n)
		return n;
	n = aw_record_receive_urgent(&call->slot->record, call->fd, &byte, call->flags & MSG_PEEK);
	leave_rx(call, &half);
	if (n == 1 && call->at.left == 0)
		return 0;
	if (n == 1 && !(call->flags & MSG_TRUNC))
		aw_cursor_put(&call->at, &byte, 1);
	return n;
}

bool aw_framed_receive(int fd, const struct iovec *iov, int count, int flags, ssize_t *result)
{
	struct aw_io call = aw_io_begin(fd, flags);
	struct iovec dropped = { 0 };
	ssize_t n;
	int err;

	if (!call.slot || flags & MSG_ERRQUEUE)
		return false;
	err = aw_io_check(iov, flags & MSG_TRUNC ? 0 : count);
	if (err)
		return aw_io_set_result(&call, err, result);
	call.at = aw_cursor_begin(iov, count);
	if (flags & MSG_OOB || call.at.left == 0) {
		n = flags & MSG_OOB ? receive_urgent(&call) : receive_nothing(&call);
		return !aw_io_is_elsewhere(&call, n) && aw_io_set_result(&call, n, result);
	}
	if (flags & MSG_TRUNC) {
		dropped.iov_len = call.at.left;
		call.at = aw_cursor_begin(&dropped, 1);
		call.discards = true;
	}
	call.all = call.at;
	n = receive_bytes(&call);
	/* A failure that was noted is this one, or is due now. */
	if (n == 0 || (n < 0 && aw_record_is_failure(n)))
		n = aw_slot_take_failure(call.slot, n);
	if (call.at.left > 0 && n == (ssize_t)call.done && is_whole(&call) &&
	    aw_io_has_moved(&call))
		n = aw_io_continue(&call, false);
	return !aw_io_is_elsewhere(&call, n) && aw_io_set_result(&call, n, result);
}
