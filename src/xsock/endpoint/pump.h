// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The pump moves bytes between a line (line.h) and the far end of a socket pair, whose near end is the program's fd. It never loses or
// doubles a byte: each direction has one buffer, and reads only while that is empty. No function waits. The proxy process's bridge (proxy/bridge.h)
// and the engine of the extended calls (ext/ext_pump.c) say when a direction moves; callers run one at a time.
//
// The two directions, out (from the program) and in, change independently:
//
//   state of a direction                           fields           next
//   empty: reads its source                        len is 0         full; the source has ended
//   full: the other side has not taken the buffer  len              empty; refused
//   refused: the other side takes no more          refused          out reads no more; in drops bytes until its source has ended
//   the source has ended, and the buffer is empty  eof              forwarded
//   forwarded: the other side was shut down        eof_forwarded
#ifndef XSOCK_ENDPOINT_PUMP_H
#define XSOCK_ENDPOINT_PUMP_H

#include <stdbool.h>
#include <stdint.h>

#include "xsock/endpoint/line.h"

/* The buffer and the state of one direction. */
struct aw_pump_way {
	uint8_t *bytes;
	size_t at, len;
	bool urgent; /* the buffer holds one byte, which is urgent */
	bool eof; /* the source of this direction has ended */
	bool eof_forwarded; /* the other side was shut down for writing */
	bool refused; /* the other side takes no more bytes */
};

struct aw_pump {
	/* set by the caller */
	int far;
	struct aw_line *line; /* may change between two calls */
	struct linger linger; /* the program's: a time of 0 resets the connection when it closes */
	bool all_in_line; /* urgent bytes are bytes like all others */

	struct aw_pump_way out, in; /* out: from the program; in: to the program */
	uint64_t taken; /* bytes received from the program */
	int error; /* an errno that the connection has ended with, once in has ended; or 0 */
	bool closed_unread; /* the program has closed with bytes unread: TCP resets then */
	bool sent_after_end; /* the line has taken bytes after the peer's stream ended */
	bool has_last_room; /* the program's end takes what is left behind the peer's end */
	bool starved; /* the kernel had no memory for the program's bytes: in is to be tried again */
};

/* Makes the buffers, and has the far end keep urgent bytes in line. Returns 0 or ENOMEM. */
int aw_pump_init(struct aw_pump *pump);
void aw_pump_fini(struct aw_pump *pump);

/*
 * Move bytes, or the end of a stream, once. They return whether anything moved, so that another call may move more. ready: the
 * line's. limit: take at most so many bytes from the program now.
 */
bool aw_pump_out(struct aw_pump *pump, short ready, size_t limit);
bool aw_pump_in(struct aw_pump *pump, short ready);

/* Takes bytes that in holds for the program, for a caller that has other memory for them. Returns how many. */
size_t aw_pump_take(struct aw_pump *pump, void *to, size_t len);
/*
 * A send to the line has failed with that errno: the program's next write fails with EPIPE. EPIPE is no error of the connection's: a
 * peer that reads no more may still send.
 */
void aw_pump_refuse(struct aw_pump *pump, int error);
/*
 * Ends the program's direction if the connection has failed after the peer's stream ended. As with TCP, a read still returns the
 * stream's end, poll(2) reports POLLHUP, and a write fails with EPIPE. A peer that closes in order after that end may not have read what
 * was sent meanwhile: TCP would then have a reset, and an endpoint cannot see the difference.
 */
void aw_pump_note_failed(struct aw_pump *pump, short ready);
/*
 * Returns whether both directions have ended, or the program has closed. After an error that is so once the program has received
 * the bytes that came before the error.
 */
bool aw_pump_is_finished(const struct aw_pump *pump);

/* Returns whether the program has closed; or has shut down writing, behind the peer's end. */
bool aw_pump_is_closed(const struct aw_pump *pump);
/* Returns whether it has closed with a linger of 0; and whether TCP would reset the connection now. */
bool aw_pump_is_aborted(const struct aw_pump *pump);
bool aw_pump_resets(const struct aw_pump *pump);

/*
 * Closes the far end. The pump first receives what the program has written: closing the far end with bytes unread would fail the
 * program's next write with ECONNRESET instead of EPIPE.
 */
void aw_pump_close_far(struct aw_pump *pump);

#endif
