// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The helpers of receiving that rx.c shares with the other files.
#ifndef RECORD_RX_H
#define RECORD_RX_H

#include "record/record.h"

/*
 * Checks a whole frame, and opens it where it is. 0: it is right, and the one that was due. Else the program's negative errno; -ENODATA: it
 * is the peer's close_notify.
 */
int aw_rx_check(struct aw_record *record, uint8_t *bytes, const struct aw_frame *frame);

/* Takes the KeyUpdates that come next out of the socket: the program is in front of what is behind them. */
void aw_rx_pass_updates(struct aw_record *record, int fd);

/* True when poll reports event, or for POLLIN anything at all: an end is there to be read. */
bool aw_rx_is_ready(int fd, short event);

/* Returns how many bytes are in the socket; 0 also where that is not known. */
size_t aw_rx_queued(int fd);

/* Calls recvmsg. The bytes, -ENODATA at the end of the stream, or a negative errno. */
ssize_t aw_rx_recvmsg(int fd, struct iovec *iov, size_t count, int flags);
/* The same, without flags, for a record: notes that bytes have left the socket. */
ssize_t aw_rx_take(struct aw_record_rx *rx, int fd, struct iovec *iov, size_t count);
/*
 * Takes a byte that is in the socket. The kernel's first answer is EAGAIN where the byte is at the urgent pointer and a signal
 * waits; the signal's handler then lets the thread go on with signals blocked.
 */
ssize_t aw_rx_take_last(struct aw_record_rx *rx, int fd, void *byte);

#endif
