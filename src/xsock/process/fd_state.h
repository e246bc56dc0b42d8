// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The states of a sockets program's fd, and the arrows between them.
//
// A socket has a state, which all its fds of the process share: aw_fdtab_set_state alone changes it, and asserts the arrow. A number
// shows the state of its socket. A number without a socket is NONE, CANDIDATE (the table adds the socket when something has to be
// noted about it), INTERNAL or LEAVING; aw_fdtab_store_state asserts that.
//
//   NONE -> CANDIDATE     socket(2)
//   NONE -> LISTENER      listen(2): the fd's socket is a new one
//   NONE -> PENDING       accept(2) in mode `on`, or for extended calls; after an exec, with a record that has not begun
//   NONE -> BRIDGED       accept(2) in mode `auto`, where it has taken an offer; a pair that came by exec or SCM_RIGHTS
//   NONE -> CONNECTING    a socket that connects has come by an exec
//   NONE -> FRAMED        a record has come by an exec
//   CANDIDATE -> CONNECTING         connect(2)
//   CANDIDATE -> PENDING            IWARP_MODE on a connected socket, as from the two states below
//   CANDIDATE -> STARTING           connect(2) has an offer (`auto`), or the socket becomes extended, as from the two states below
//   LISTENER -> PENDING, STARTING   the same of a socket that has been shut down, and connected
//   CONNECTING -> CANDIDATE         the connect has failed
//   CONNECTING -> PENDING           IWARP_MODE; or the peer is refused: `error` is the next read's or write's
//   CONNECTING -> STARTING          the first I/O
//   PENDING -> PENDING              IWARP_MODE once more; or the peer is refused, as in CONNECTING
//   PENDING -> STARTING             the first I/O
//   STARTING -> BRIDGED, FRAMED     MPA start-up is over, or the offer was taken; FRAMED, too, where the proxy has not taken a record
//   STARTING -> PENDING             with `error`: the call that failed could not return it, so the next one does
//   STARTING -> CANDIDATE           nobody has taken the offer
//   FRAMED -> STARTING              a record is handed over to the proxy process
//   every state of a socket -> NONE  plain TCP from here on, or a connection that this process has no longer (aw_fdtab_drop)
#ifndef XSOCK_PROCESS_FD_STATE_H
#define XSOCK_PROCESS_FD_STATE_H

#include <stdbool.h>
#include <stdint.h>

/*
 * From CONNECTING on the socket is undecided: a wrapper calls aw_first_io (preload/first_io.h) before libc's function.
 */
enum aw_fd_state {
	AW_FD_NONE, /* the library does nothing with the fd */
	AW_FD_CANDIDATE, /* a stream socket that does not listen: not connected yet, or plain TCP since its connect */
	AW_FD_LISTENER,
	AW_FD_BRIDGED, /* one end of a pair; the other: the proxy process's or, if extended, libanywarp-xsock.so's */
	AW_FD_INTERNAL, /* the fd is the library's own, and hidden from the program */
	AW_FD_FRAMED, /* the fd is the TCP socket, with a record beside it */
	AW_FD_CONNECTING, /* connect is under way, or done and the program has not looked */
	AW_FD_PENDING, /* connected, and still TCP: MPA starts at the first I/O */
	AW_FD_STARTING, /* a thread runs MPA start-up on the socket, or bridges it */
	AW_FD_LEAVING, /* a thread gives the number another file, or closes it (struct aw_change) */
};
#define AW_FD_STATES (AW_FD_LEAVING + 1)

/* Returns whether a socket may go from one state to another; from NONE: whether it may begin so. */
static inline bool aw_fd_state_leads_to(enum aw_fd_state from, enum aw_fd_state to)
{
#define TO(state) (1u << AW_FD_##state)
	static const uint16_t arrows[AW_FD_STATES] = {
		[AW_FD_NONE] = TO(CANDIDATE) | TO(LISTENER) | TO(BRIDGED) | TO(FRAMED) |
			       TO(CONNECTING) | TO(PENDING),
		[AW_FD_CANDIDATE] = TO(NONE) | TO(CONNECTING) | TO(PENDING) | TO(STARTING),
		[AW_FD_LISTENER] = TO(NONE) | TO(PENDING) | TO(STARTING),
		[AW_FD_BRIDGED] = TO(NONE),
		[AW_FD_INTERNAL] = 0,
		[AW_FD_FRAMED] = TO(NONE) | TO(STARTING),
		[AW_FD_CONNECTING] = TO(NONE) | TO(CANDIDATE) | TO(PENDING) | TO(STARTING),
		[AW_FD_PENDING] = TO(NONE) | TO(PENDING) | TO(STARTING),
		[AW_FD_STARTING] = TO(NONE) | TO(CANDIDATE) | TO(BRIDGED) | TO(FRAMED) |
				   TO(PENDING),
		[AW_FD_LEAVING] = 0,
	};
#undef TO

	return arrows[from] >> to & 1;
}

/* Returns whether a number without a socket may be in that state. */
static inline bool aw_fd_state_is_numbers(enum aw_fd_state state)
{
	return state == AW_FD_NONE || state == AW_FD_CANDIDATE || state == AW_FD_INTERNAL ||
	       state == AW_FD_LEAVING;
}

#endif
