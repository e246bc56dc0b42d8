// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Reads and writes of a FRAMED fd behave as those of the kernel's socket. A thread that waits does
// so in a system call on the fd, without a lock: the kernel's rules for time-outs, signals and
// O_NONBLOCK hold. A thread holds a half's lock only while it moves bytes.
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>

#include "base/clock.h"
#include "record/cursor.h"
#include "xsock/base/left.h"
#include "xsock/base/libc.h"
#include "xsock/framed/bridge.h"
#include "xsock/framed/framed.h"
#include "xsock/framed/slot.h"
#include "xsock/process/memory.h"
#include "xsock/process/waits.h"

#define WINDOW_MAX 64 /* iovecs in one call of the record */
#define SEND_FLAGS (MSG_MORE | MSG_OOB) /* the flags that a record uses */

/* A call of the program's on a FRAMED fd. */
struct framed_call {
	int fd, flags;
	int number; /* the program's fd; fd is it, or the duplicate */
	int saved_errno; /* a call that succeeds leaves it */
	struct aw_slot *slot;
	struct aw_cursor at; /* the rest of the program's buffers */
	struct aw_cursor all; /* the program's buffers */
	size_t done;
	size_t due; /* bytes that must be in the socket before a look finds all that it waits for; 0: it does not wait */
	bool kept; /* the program has closed its fd: this is the duplicate that wait.c keeps for waiting threads */
	bool is_last; /* the call's next look is its last one */
	bool at_mark; /* the next byte is urgent: a call that has got bytes ends before it */
	size_t wanted; /* SO_RCVLOWAT */
	uint64_t ino; /* the slot's, noted while the call holds the slot; 0: it has not waited */
	bool asked, may_wait; /* may_wait is known; neither the flags nor the fd forbid to wait */
	bool discards; /* the bytes of a receive are dropped (MSG_TRUNC): at and all have no memory */
	bool waits; /* the call waits: its time is set */
	bool stuck; /* TCP has yet to take the rest of an FPDU, which no thread sends */
	int64_t end_ns; /* of all its waits (SO_SNDTIMEO, SO_RCVTIMEO); 0: they have no end */
};

static struct framed_call call_begin(int fd, int flags)
{
	return (struct framed_call){
		.fd = fd,
		.number = fd,
		.flags = flags,
		.slot = aw_framed_slot(fd),
		.saved_errno = errno,
	};
}

/*
 * Finds the call's next buffers. Returns how many; *covered: their bytes. A receive checks FPDUs where they lie, and so has no memory
 * twice; a look copies.
 */
static int next_window(const struct framed_call *call, struct iovec window[WINDOW_MAX],
		       size_t *covered)
{
	if (call->discards)
		return aw_memory_waste(call->at.left, window,
				       call->flags & MSG_PEEK ? WINDOW_MAX : 1, covered);
	return aw_cursor_pieces(&call->at, call->at.left, window, WINDOW_MAX, covered);
}

static void count_bytes(struct framed_call *call, ssize_t n)
{
	if (n <= 0)
		return;
	call->done += (size_t)n;
	aw_cursor_skip(&call->at, (size_t)n);
}

static bool may_wait(struct framed_call *call)
{
	if (!call->asked)
		call->may_wait = aw_waits_may(call->fd, call->flags);
	call->asked = true;
	return call->may_wait;
}

/*
 * Returns -EINTR where the call, which is to wait after result n, is interrupted by a signal that came while the shield was up, as
 * the kernel's call would be; else n. timeout: the option with the socket's time-out.
 */
static ssize_t note_strike(struct framed_call *call, const struct aw_half *half, int timeout,
			   ssize_t n)
{
	enum aw_strike strike = AW_STRIKE_NONE;

	if (n == -EAGAIN && half->shield.up && may_wait(call))
		strike = aw_shield_strike(&half->shield);
	return strike == AW_STRIKE_ENDS || (strike == AW_STRIKE_RESTARTS &&
					    aw_waits_timeout_ns(call->fd, timeout) >= 0)
		       ? -EINTR
		       : n;
}

/* The caller holds the rx half. */
static ssize_t receive_in(struct framed_call *call, const struct iovec *iov, int count)
{
	struct aw_record *record = &call->slot->record;
	ssize_t n;

	if (__builtin_expect(call->slot->given > 0, 0))
		n = -EAGAIN; /* this thread has yet to follow to the pair */
	else if (call->flags & MSG_PEEK)
		n = aw_record_peek(record, call->fd, iov, count,
				   call->flags & MSG_WAITALL ? &call->due : NULL);
	else
		n = aw_record_receive(record, call->fd, iov, count,
				      call->done ? AW_RECORD_GOES_ON : 0);
	call->at_mark = record->rx.mark == AW_MARK_FRONT;
	call->wanted = record->rx.wanted;
	return n;
}

static void leave_rx(const struct framed_call *call, const struct aw_half *half)
{
	bool faulty = call->slot->record.rx.verdict != AW_OK;

	aw_half_leave(half);
	if (__builtin_expect(faulty, 0))
		aw_slot_send_terminate(call->slot, call->fd);
}

static bool is_whole(const struct framed_call *call)
{
	return call->flags & MSG_WAITALL && !(call->flags & MSG_PEEK);
}

/* Returns whether a call that has got bytes waits for more of them. */
static bool wants_more(const struct framed_call *call)
{
	if (call->flags & MSG_PEEK)
		return call->due > 0 && !call->is_last;
	return call->at.left > 0 && !call->at_mark && !call->is_last &&
	       (is_whole(call) || call->done < call->wanted);
}

/* *covered: how many bytes the call's next buffers take. */
static ssize_t receive_once(struct framed_call *call, size_t *covered)
{
	struct aw_slot *slot = call->slot;
	struct iovec window[WINDOW_MAX];
	int count = next_window(call, window, covered);
	struct aw_half half;
	ssize_t n;

	n = -(call->kept ? aw_half_enter(&half, slot, &slot->rx_lock, call->fd)
			 : aw_half_enter_for(&half, slot, &slot->rx_lock, call->fd));
	if (n)
		return n;
	n = receive_in(call, window, count);
	count_bytes(call, n);
	if (n > 0 && (size_t)n < *covered && wants_more(call))
		call->is_last = half.shield.up && may_wait(call) &&
				aw_shield_strike(&half.shield) != AW_STRIKE_NONE;
	else
		n = note_strike(call, &half, SO_RCVTIMEO, n);
	leave_rx(call, &half);
	return n;
}

static void leave_wait(void *slot)
{
	aw_slot_leave_wait(slot);
}

static void leave_read(void *arg)
{
	struct aw_slot *slot = arg;

	atomic_fetch_sub(&slot->readers, 1);
	aw_slot_leave_wait(slot);
}

/* Returns whether another thread has made a pair of the program's fd. */
static bool is_paired(const struct framed_call *call)
{
	return aw_fdtab_is_pair_of(call->number,
				   (ino_t)(call->ino ? call->ino : aw_arena_ino(call->slot)));
}

static bool is_bridged(const struct framed_call *call)
{
	return call->kept && is_paired(call);
}

/*
 * Returns whether the call may go on: call->fd is still the connection's, or a copy was kept. The
 * number fd may be another file's by now.
 */
static bool is_still_ours(struct framed_call *call)
{
	if (call->kept || aw_framed_slot(call->fd) == call->slot)
		return true;
	call->fd = aw_slot_kept(call->slot);
	call->kept = call->fd >= 0;
	return call->kept;
}

/* Returns whether the socket has no more bytes. */
static bool is_empty(int fd)
{
	int count = 0;

	return aw_libc()->ioctl(fd, FIONREAD, &count) != 0 || count == 0;
}

/*
 * Waits for events, at most limit_ns (negative: no limit). A call that has moved bytes leaves TCP's error where it is, for
 * poll(2) and the next call to tell. Returns 0 or a negative errno; -EAGAIN: the time is over, or there is an error.
 */
static ssize_t await_ready(const struct framed_call *call, short events, int64_t limit_ns)
{
	struct pollfd pollfd = { .fd = call->fd, .events = events };
	struct timespec limit = { limit_ns / 1000000000, limit_ns % 1000000000 };
	const short failed = POLLERR | POLLHUP;
	int ready;

	aw_shield_begin_wait();
	ready = aw_libc()->ppoll(&pollfd, 1, limit_ns < 0 ? NULL : &limit, NULL);
	if (ready > 0 && call->done && (pollfd.revents & failed) == failed)
		return events == POLLIN && !is_empty(call->fd) ? 0 : -EAGAIN;
	if (ready > 0)
		return 0;
	if (ready == 0)
		return -EAGAIN;
	return errno == EINTR && !call->done && aw_shield_restarts(limit_ns) ? 0 : -errno;
}

/*
 * Waits until call->due bytes are in the socket, or the time is over, a signal or the stream's end has come; copies nothing.
 * Returns 0, or a negative errno; where fewer bytes have come, the next look is the last.
 */
static ssize_t await_due(struct framed_call *call)
{
	struct iovec window[WINDOW_MAX];
	struct msghdr msg = { .msg_iov = window };
	size_t covered;
	ssize_t n;

	msg.msg_iovlen = (size_t)aw_memory_waste(call->due, window, WINDOW_MAX, &covered);
	n = aw_libc()->recvmsg(call->fd, &msg, MSG_PEEK | MSG_TRUNC | MSG_WAITALL);
	call->is_last = n < (ssize_t)call->due;
	return n < 0 ? -errno : 0;
}

/* A socket's time-out holds for all waits of a call together. timeout: the option with it. */
static void set_end(struct framed_call *call, int timeout)
{
	int64_t limit_ns;

	if (call->waits)
		return;
	call->waits = true;
	limit_ns = aw_waits_timeout_ns(call->fd, timeout);
	call->end_ns = limit_ns < 0 ? 0 : aw_now_ns() + limit_ns;
}

/* Waits for events until that end. Returns 0 or a negative errno. */
static ssize_t await_until_end(struct framed_call *call, short events, int timeout)
{
	int64_t limit_ns;

	set_end(call, timeout);
	limit_ns = call->end_ns ? call->end_ns - aw_now_ns() : -1;
	return call->end_ns && limit_ns <= 0 ? -EAGAIN : await_ready(call, events, limit_ns);
}

/*
 * Waits until the bytes that are due, or the stream's end, have come; copies nothing. SO_RCVLOWAT, at least what is due, keeps the
 * thread asleep, also when another reader changes it meanwhile; the kernel fixes the length when the call begins, so that it
 * is one byte. At the mark the thread polls, because recv() would return the urgent byte, which is in the socket already, when
 * a time-out or a signal ends the wait; so does a thread that has got bytes. Returns 0 or a negative errno.
 */
static ssize_t await_bytes(struct framed_call *call)
{
	uint8_t byte;

	if (call->due)
		return await_due(call);
	if (call->at_mark || call->done || (call->waits && call->end_ns))
		return await_until_end(call, POLLIN, SO_RCVTIMEO);
	if (is_whole(call))
		set_end(call, SO_RCVTIMEO);
	return aw_libc()->recv(call->fd, &byte, 1, MSG_PEEK | MSG_TRUNC) < 0 ? -errno : 0;
}

/* Returns whether a call that may wait does so after result n. */
static bool is_to_wait(const struct framed_call *call, ssize_t n)
{
	if (n != -EAGAIN && n <= 0)
		return false;
	return call->done == 0 || wants_more(call);
}

/*
 * Receives what is there without waiting. Returns a number of bytes; 0 at the stream's end;
 * -EAGAIN: nothing, or too little for one FPDU; or another negative errno.
 */
static ssize_t receive_now(struct framed_call *call)
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

static ssize_t receive_waiting(struct framed_call *call)
{
	struct _pthread_cleanup_buffer left;
	ssize_t n;

	atomic_fetch_add(&call->slot->readers, 1);
	aw_slot_begin_wait(call->slot);
	call->ino = aw_arena_ino(call->slot);
	aw_left_push(&left, leave_read, call->slot);
	do {
		n = await_bytes(call);
		if (n == 0)
			n = is_still_ours(call) ? receive_now(call) : -EBADF;
		else if (n == -EAGAIN)
			break;
		/* Bytes that the connection does not have any more are in the pair. */
		if (n == -EAGAIN && is_bridged(call))
			n = -EBADF;
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
static ssize_t receive_bytes(struct framed_call *call)
{
	ssize_t n = receive_now(call);

	if (is_to_wait(call, n) && may_wait(call))
		n = receive_waiting(call);
	if (call->done == 0)
		return n;
	if (n < 0)
		aw_slot_note_failure(call->slot, n);
	return (ssize_t)call->done;
}

/* A receive of no bytes: the kernel's call waits for a byte and returns 0, or fails. */
static ssize_t receive_nothing(struct framed_call *call)
{
	uint8_t byte;
	struct iovec one = { &byte, 1 };
	ssize_t n;

	call->at = call->all = aw_cursor_begin(&one, 1);
	call->flags = (call->flags & ~MSG_WAITALL) | MSG_PEEK;
	n = receive_bytes(call);
	return n > 0 ? 0 : n;
}

/* Returns whether the fd has been bridged or closed, by another thread or unseen. */
static bool has_moved(const struct framed_call *call)
{
	return call->kept ? is_bridged(call) : aw_framed_slot(call->fd) != call->slot;
}

/*
 * Moves the rest of a call, part of which went through the record, through the pair that another thread
 * has made of the fd.
 */
static ssize_t continue_bridged(struct framed_call *call, bool sends)
{
	struct iovec window[WINDOW_MAX];
	ssize_t n = 1;

	while (n > 0 && call->at.left > 0 && is_paired(call)) {
		struct msghdr msg = { .msg_iov = window };
		size_t covered;

		msg.msg_iovlen = (size_t)next_window(call, window, &covered);
		n = sends ? aw_libc()->sendmsg(call->number, &msg, call->flags | MSG_NOSIGNAL)
			  : aw_libc()->recvmsg(call->number, &msg, call->flags & ~MSG_TRUNC);
		count_bytes(call, n);
	}
	return (ssize_t)call->done;
}

/* Returns whether result n says that the fd is not the connection's any more: then libc's call is the program's. */
static bool is_elsewhere(const struct framed_call *call, ssize_t n)
{
	if (n != -EBADF && n != -ENOTSOCK)
		return false;
	(void)aw_fdtab_look(call->number, NULL);
	return has_moved(call);
}

static bool set_result(const struct framed_call *call, ssize_t n, ssize_t *result)
{
	*result = n < 0 ? -1 : n;
	errno = n < 0 ? (int)-n : call->saved_errno;
	return true;
}

/* Checks the arguments as the kernel does. Returns 0 or a negative errno. */
static int check_iov(const struct iovec *iov, int count)
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

/* Receives the urgent byte; takes it from the record even if the call has no room for it. */
static ssize_t receive_urgent(struct framed_call *call)
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
	struct framed_call call = call_begin(fd, flags);
	struct iovec dropped = { 0 };
	ssize_t n;
	int err;

	if (!call.slot || flags & MSG_ERRQUEUE)
		return false;
	err = check_iov(iov, flags & MSG_TRUNC ? 0 : count);
	if (err)
		return set_result(&call, err, result);
	call.at = aw_cursor_begin(iov, count);
	if (flags & MSG_OOB || call.at.left == 0) {
		n = flags & MSG_OOB ? receive_urgent(&call) : receive_nothing(&call);
		return !is_elsewhere(&call, n) && set_result(&call, n, result);
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
	if (call.at.left > 0 && n == (ssize_t)call.done && is_whole(&call) && has_moved(&call))
		n = continue_bridged(&call, false);
	return !is_elsewhere(&call, n) && set_result(&call, n, result);
}

static ssize_t send_once(struct framed_call *call)
{
	struct aw_slot *slot = call->slot;
	struct iovec window[WINDOW_MAX];
	size_t covered;
	int count = aw_cursor_pieces(&call->at, call->at.left, window, WINDOW_MAX, &covered);
	struct aw_half half;
	ssize_t n;

	call->stuck = false;
	n = -(call->kept ? aw_half_enter(&half, slot, &slot->tx_lock, call->fd)
			 : aw_half_enter_for(&half, slot, &slot->tx_lock, call->fd));
	if (n)
		return n;
	n = aw_record_send(&slot->record, call->fd, window, count,
			   call->flags & (covered < call->at.left ? MSG_MORE : SEND_FLAGS));
	if (__builtin_expect(aw_slot_owes(slot), 0))
		call->stuck = !aw_slot_flush_later(slot, call->fd) && (n > 0 || n == -EAGAIN);
	n = note_strike(call, &half, SO_SNDTIMEO, n);
	aw_half_leave(&half);
	return n;
}

/* Sends what TCP takes without waiting. Returns a number of bytes or a negative errno. */
static ssize_t send_now(struct framed_call *call)
{
	ssize_t n;

	do {
		n = send_once(call);
		count_bytes(call, n);
	} while (n > 0 && call->at.left > 0);
	return n;
}

/* Returns whether the call goes on with the record: where the program's fd is a pair by now, the bytes go through that. */
static bool is_still_record(struct framed_call *call)
{
	if (atomic_load(&call->slot->proxy) && aw_framed_slot(call->fd) != call->slot &&
	    is_paired(call))
		return false;
	return is_still_ours(call);
}

/* Returns whether a call that may wait does so after result n. */
static bool is_to_send(const struct framed_call *call, ssize_t n)
{
	return call->at.left > 0 ? n == -EAGAIN : call->stuck;
}

static ssize_t send_waiting(struct framed_call *call)
{
	struct _pthread_cleanup_buffer left;
	ssize_t n;

	aw_slot_begin_wait(call->slot);
	call->ino = aw_arena_ino(call->slot);
	aw_left_push(&left, leave_wait, call->slot);
	do {
		n = await_until_end(call, POLLOUT, SO_SNDTIMEO);
		if (n)
			break;
		n = is_still_record(call) ? send_now(call) : -EBADF;
	} while (is_to_send(call, n));
	aw_left_pop(&left, 0);
	aw_slot_leave_wait(call->slot);
	return n;
}

static ssize_t send_bytes(struct framed_call *call)
{
	ssize_t n = send_now(call);

	if (is_to_send(call, n) && may_wait(call))
		n = send_waiting(call);
	/* The program may not call again before its peer has answered the whole. */
	if (call->stuck && aw_framed_slot(call->number) == call->slot)
		(void)aw_framed_bridge(call->number);
	if (call->done == 0)
		return n;
	if (n < 0)
		aw_slot_note_failure(call->slot, n);
	return (ssize_t)call->done;
}

bool aw_framed_transmit(int fd, const struct iovec *iov, int count, int flags, ssize_t *result)
{
	struct framed_call call = call_begin(fd, flags);
	ssize_t n;

	if (!call.slot)
		return false;
	n = check_iov(iov, count);
	if (n)
		return set_result(&call, n, result);
	call.at = aw_cursor_begin(iov, count);
	if (call.at.left == 0)
		return false; /* the kernel returns 0, or an error if the connection has ended */
	n = send_bytes(&call);
	if (n == -EPIPE)
		n = aw_slot_take_failure(call.slot, n);
	if (call.done && call.at.left > 0 && has_moved(&call))
		n = continue_bridged(&call, true);
	if (is_elsewhere(&call, n))
		return false;
	if (n == -EPIPE && !(flags & MSG_NOSIGNAL))
		raise(SIGPIPE);
	return set_result(&call, n, result);
}
