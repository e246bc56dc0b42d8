// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The inside of a conn, shared by its API (conn.c) and its states (conn_machine.c).
//
// state          end      meaning                                     next
// WAITING        active   an earlier connection to the peer goes      CONNECTING
//                         first, for 256 ms at most
// CONNECTING     active   TCP's handshake is under way                SENDING, REFUSED,
//                                                                     SECURING
// REFUSED        active   nobody listened; a pause of 1 to 64 ms,     CONNECTING
//                         127 ms in all
// SECURING       active   TLS's handshake, within 10 s: before the    SENDING
//                         first Request where TLS is required
// SENDING        active   the socket has not taken all of the         AWAIT_REPLY
//                         Request
// AWAIT_REPLY    active   the Reply is due within 10 s (see below),   READY; SECURING where the
//                         10 s more with each wait of the peer        peer takes the offer of TLS
// READY          active   the peer accepted; the QP may take the      OVER
//                         socket
// AWAIT_FIRST    passive  where TLS is required or offered: the       AWAIT_HELLO,
//                         first byte tells TLS from MPA; within 10 s  AWAIT_REQUEST
// AWAIT_HELLO    passive  TLS's handshake, within 10 s                AWAIT_REQUEST
// AWAIT_REQUEST  passive  the Request is due within 10 s (see below)  DECIDING; AWAIT_HELLO where
//                                                                     it offers TLS
// DECIDING       passive  the program has the Request; no deadline,   OVER
//                         but a wait for the peer every 5 s
// OVER           both     failed, rejected, answered, or taken by
//                         the QP
//
// Every state but REFUSED and READY also goes to OVER by a failure. On a socket that the program
// supplied, the 10 s begin with the peer's first byte. Over loopback TCP's handshake is over when
// connect returns, so the Request leaves in the caller's thread. Start-up events are queued within
// a handler and reported when it has returned (aw_watch_after), because the program that they wake
// wants the locks that the handler holds.
#ifndef NET_CONN_MACHINE_H
#define NET_CONN_MACHINE_H

#include "base/thread_safety.h"
#include "core/turn.h"
#include "net/conn/conn.h"
#include "net/conn/frame.h"
#include "net/tls/tls.h"
#include "wire/error.h"

enum aw_conn_state {
	AW_CONN_WAITING, /* initiator: another conn to the peer connects first (net/conn/order.h) */
	AW_CONN_CONNECTING, /* initiator: TCP's handshake is under way */
	AW_CONN_REFUSED, /* initiator: nobody listened; a pause before the next try */
	AW_CONN_SECURING, /* initiator: TLS's handshake is under way */
	AW_CONN_SENDING, /* initiator: the socket has not taken all of the Request */
	AW_CONN_AWAIT_REPLY,
	AW_CONN_AWAIT_FIRST, /* responder: TLS or MPA */
	AW_CONN_AWAIT_HELLO, /* responder: TLS's handshake is under way */
	AW_CONN_AWAIT_REQUEST,
	AW_CONN_DECIDING, /* responder: the program has the Request */
	AW_CONN_READY, /* initiator: accepted; the QP may have the socket */
	AW_CONN_OVER, /* failed, rejected, answered or attached */
};

struct aw_conn {
	struct aw_watch watch; /* first: the watch is the conn, and its release frees it */
	/* fixed after create, but for what local no longer offers once TLS has begun behind a Request */
	struct aw_mpa_local local;
	uint32_t generation;
	struct aw_tls_want want;
	bool plain_end, again; /* initiator: see struct aw_conn_ask */
	bool from_known; /* info.local is what the socket is bound to */

	aw_mutex lock; /* guards what follows; no event runs under it */
	enum aw_conn_state state;
	bool destroyed;
	uint32_t refusals;
	uint32_t waits; /* that were sent or received */
	struct aw_turn turn; /* guarded by net/conn/order.c's lock */
	int fd; /* -1: given away or closed */
	struct aw_tls *tls; /* of fd, until a QP has both; or NULL */
	uint32_t
		segment_size; /* of aw_uqp_ready_socket, once the Request is sent on a socket of the library's; else 0 */
	bool started_tls; /* behind a Request, which counts for nothing: the next one is within TLS */
	struct aw_frame_buf in; /* the peer's frame; info.result.pd points into it */
	struct aw_frame_buf out;
	int early_errno; /* CONNECTING: TCP's error, as the caller's thread was told: the progress thread reports it */
	struct aw_conn_info info; /* written before the event that reports it */
	bool due; /* due_event is not delivered yet */
	enum aw_conn_event due_event;
	bool telling; /* an event runs on the progress thread */
	pthread_cond_t told;
	aw_conn_fn *fn; /* NULL: a due event waits */
	void *arg;
};

/* The watch's handler. */
void aw_conn_on_watch(struct aw_watch *w, uint32_t events);

/* Called once, after connect: sends the Request if TCP's handshake is over. The watch waits for what comes next. */
void aw_conn_send_early(struct aw_conn *conn) AW_REQUIRES(conn->lock);

/*
 * The events that the progress thread waits for in each state, and whether the deadline runs. A socket that is about
 * to pass to a QP keeps the events that it has: bytes behind the peer's frame are rare.
 */
struct aw_conn_wait {
	uint32_t events;
	bool deadline;
};

extern const struct aw_conn_wait aw_conn_waits[];

/* Changes the state alone. */
void aw_conn_enter(struct aw_conn *conn, enum aw_conn_state next) AW_REQUIRES(conn->lock);

/* Changes the state, and the events that the progress thread waits for. */
void aw_conn_set_state(struct aw_conn *conn, enum aw_conn_state next) AW_REQUIRES(conn->lock);

/* Asks the socket for info.local, unless that is known. */
void aw_conn_learn_local(struct aw_conn *conn);

/* Takes the socket out of the conn and its watch; -1 when it has none. */
int aw_conn_take_fd(struct aw_conn *conn) AW_REQUIRES(conn->lock);

/* Takes the socket, which stays in the progress thread's epoll set if *watched: for its QP. */
int aw_conn_pass_fd(struct aw_conn *conn, bool *watched) AW_REQUIRES(conn->lock);

/* Sends a FIN, even where the child of a fork holds the socket too, and closes the socket. */
void aw_conn_close_fd(int fd);

/* Sends a Terminate as the stream's first FPDU, through the session if there is one, then closes the socket. */
void aw_conn_terminate_fd(int fd, struct aw_tls *tls, enum aw_error error, bool markers);

#endif
