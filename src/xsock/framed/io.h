// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A read or write of a FRAMED fd (receive.c, send.c), and what both need. A thread that waits does
// so in a system call on the fd, without a lock: the kernel's rules for time-outs, signals and
// O_NONBLOCK hold. A thread holds a half's lock only while it moves bytes.
#ifndef XSOCK_FRAMED_IO_H
#define XSOCK_FRAMED_IO_H

#include <errno.h>

#include "record/cursor.h"
#include "xsock/framed/framed.h"
#include "xsock/framed/slot.h"

#define AW_IO_WINDOW 32 /* iovecs in one call of the record */

/* A call of the program's on a FRAMED fd. */
struct aw_io {
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

static inline struct aw_io aw_io_begin(int fd, int flags)
{
	return (struct aw_io){
		.fd = fd,
		.number = fd,
		.flags = flags,
		.slot = aw_framed_slot(fd),
		.saved_errno = errno,
	};
}

static inline void aw_io_count(struct aw_io *call, ssize_t n)
{
	if (n <= 0)
		return;
	call->done += (size_t)n;
	aw_cursor_skip(&call->at, (size_t)n);
}

/* Finds the call's next buffers. Returns how many; *covered: their bytes. */
int aw_io_window(const struct aw_io *call, struct iovec window[AW_IO_WINDOW], size_t *covered);
/* Returns whether the call may wait, by its flags and its fd. */
bool aw_io_may_wait(struct aw_io *call);
/*
 * Returns -EINTR where the call, which is to wait after result n, is interrupted by a signal that came while the shield was up, as
 * the kernel's call would be; else n. timeout: the option with the socket's time-out.
 */
ssize_t aw_io_note_strike(struct aw_io *call, int timeout, ssize_t n);
/* Returns whether another thread has made a pair of the program's fd. */
bool aw_io_is_paired(const struct aw_io *call);
/* So, while the call goes on with the copy that was kept for it. */
bool aw_io_is_bridged(const struct aw_io *call);
/*
 * Called when the slot's waiting threads count this one: returns whether the call may sleep on call->fd. A thread that changes the
 * number from then on keeps a copy for it.
 */
bool aw_io_may_sleep(struct aw_io *call);
/*
 * Returns whether the call, which has waited for events, may go on: call->fd is still the connection's, or a copy was kept. The
 * number fd may be another file's by now.
 */
bool aw_io_is_still_ours(struct aw_io *call, short events);
/*
 * Sets the end of the call's waits where it has none yet: a socket's time-out holds for all waits of a call together. timeout: the
 * option with it.
 */
void aw_io_set_end(struct aw_io *call, int timeout);
/* Waits for events, until the end of the call's waits at most. Returns 0 or a negative errno; -EAGAIN: the end has come. */
ssize_t aw_io_await(struct aw_io *call, short events, int timeout);
/* Returns whether the fd has been bridged or closed, by another thread or unseen. */
bool aw_io_has_moved(const struct aw_io *call);
/*
 * Moves the rest of a call, part of which went through the record, through the pair that another thread
 * has made of the fd.
 */
ssize_t aw_io_continue(struct aw_io *call, bool sends);
/* Returns whether result n says that the fd is not the connection's any more: then libc's call is the program's. */
bool aw_io_is_elsewhere(const struct aw_io *call, ssize_t n);
/* Sets *result and errno as the program gets them, for result n. Returns true. */
bool aw_io_set_result(const struct aw_io *call, ssize_t n, ssize_t *result);
/* Checks the arguments as the kernel does. Returns 0 or a negative errno. */
int aw_io_check(const struct iovec *iov, int count);

#endif
