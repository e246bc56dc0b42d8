// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A TCP connection in MPA start-up, as initiator or responder, and after that iw_cm's view of a
// stream. One worker runs all of its steps and delivers all of its events, in their order. The files of this room,
// each of which calls only those before it:
//
//   addr frame policy   addresses, MPA frames, the module's parameters
//   conn                a connection's life, its state, and the table of all
//   order               whose turn it is to connect to a peer
//   half_open           a listener's connections without a whole Request
//   open secure         the initiator's TCP connection; TLS's handshake, of either end
//   machine reply       what moves a connection on: the worker's steps; a program's accept and reject
//   events worker       iw_cm's events; the worker
//   listen cm           listeners; iw_cm's calls
//
// States. The worker alone moves a connection on, but for one in ANSWERING, which a thread owns: it is new, or that thread
// has taken it out of DECIDING (awk_conn_claim), in order to answer or to end it.
//
//   state          end        meaning                                             next
//   ANSWERING      both       a thread owns it                                    WAITING, CONNECTING (initiator); SECURING,
//                                                                                 AWAIT_REQUEST, RUNNING (responder); OVER; DONE, if
//                                                                                 it never ran
//   WAITING        initiator  an earlier connection to the peer goes first        CONNECTING; OVER
//                             (order.h), for AW_ATTEMPT_WAIT_MS at most
//   CONNECTING     initiator  TCP's handshake is under way                        SECURING or SENDING; REFUSED; OVER
//   REFUSED        initiator  nobody listened: a pause before the next try        CONNECTING; OVER
//   SECURING       both       TLS's handshake is under way (secure.h)             SENDING or AWAIT_REQUEST; OVER
//   SENDING        initiator  the socket has not taken all of the Request         AWAIT_REPLY; OVER
//   AWAIT_REPLY    initiator  the Reply is due within AWK_STARTUP_MS              RUNNING; OVER; CONNECTING, to ask again
//   AWAIT_REQUEST  responder  the Request is due, likewise                        DECIDING; OVER
//   DECIDING       responder  the program has the Request, for AWK_DECIDE_MS      ANSWERING
//   RUNNING        both       the stream has the socket                           DONE, when the stream is over
//   OVER           both       failed, rejected or answered too late: an event     DONE
//                             to iw_cm may be due
//   DONE           both       no event is due any more
#ifndef KMOD_CM_CONN_H
#define KMOD_CM_CONN_H

#include "core/startup.h"
#include "core/turn.h"
#include "kmod/cm/frame.h"
#include "kmod/stream/stream.h"
#include "kmod/tcp/sock.h"
#include "kmod/tcp/tls.h"

#include <linux/kref.h>
#include <linux/timer.h>
#include <linux/workqueue.h>
#include <rdma/iw_cm.h>

/* The time from TCP's connection until the frame is whole; also for TCP's own connect. */
#define AWK_STARTUP_MS 10000
/* The time that a program has to answer a Request: no less than user space's peers would wait. */
#define AWK_DECIDE_MS 120000

struct awk_listener;
struct awk_qp;

enum awk_conn_state {
	AWK_CONN_WAITING,
	AWK_CONN_CONNECTING,
	AWK_CONN_REFUSED,
	AWK_CONN_SECURING,
	AWK_CONN_SENDING,
	AWK_CONN_AWAIT_REPLY,
	AWK_CONN_AWAIT_REQUEST,
	AWK_CONN_DECIDING,
	AWK_CONN_ANSWERING,
	AWK_CONN_RUNNING,
	AWK_CONN_OVER,
	AWK_CONN_DONE,
};

/* Set by set_bit, by any thread. */
enum awk_conn_flag {
	AWK_CONN_ABANDONED, /* start-up is to end: the connection is not wanted any more */
	AWK_CONN_PEER_CLOSED, /* the peer sends no more */
	AWK_CONN_STREAM_ENDING,
	AWK_CONN_STREAM_ENDED,
};

/* Events that were delivered, or will not be; only for the worker. */
enum awk_conn_delivered {
	AWK_DELIVERED_REQUEST = 1,
	AWK_DELIVERED_BEGIN = 2, /* CONNECT_REPLY or ESTABLISHED */
	AWK_DELIVERED_DISCONNECT = 4,
	AWK_DELIVERED_CLOSE = 8,
};

struct awk_conn {
	/* fixed after create, each safe by itself */
	struct kref refs;
	struct awk_stream_user user; /* of the QP's stream */
	struct work_struct work;
	struct timer_list timer; /* queues work */
	bool initiator;
	bool tls; /* TLS has to come before MPA */
	u32 handle; /* by which iw_cm knows a Request */
	unsigned long flags;
	enum awk_conn_state state; /* changed by awk_conn_enter and awk_conn_claim alone */

	/* only for the worker; in ANSWERING for the thread that owns the connection */
	struct aw_mpa_local local;
	struct aw_mpa_result result; /* pd is in in */
	struct awk_frame_buf in;
	struct awk_frame_buf out;
	struct sockaddr_storage local_addr, remote_addr;
	struct socket *sock;
	struct awk_sock_saved saved;
	bool watched; /* the socket has the connection's callbacks */
	unsigned long deadline; /* jiffies, in the states that have one */
	unsigned int refusals; /* by TCP, of this socket */
	bool again; /* the socket is the second one, or the third */
	struct aw_turn turn; /* guarded by order.c's lock */
	struct awk_tls_ask ask; /* a handshake, while asked */
	bool asked;
	bool ask_done; /* guarded by secure.c's lock, as is ask_err */
	int ask_err;
	char tls_name[AWK_TLS_NAME_BYTES]; /* the peer's */
	int err; /* OVER: negative */
	bool has_peer; /* result is what the peer has sent */
	u8 delivered; /* enum awk_conn_delivered */
	struct awk_qp *qp; /* a reference, and the claim of its stream; or NULL */
	struct iw_cm_id *cm_id; /* a reference; NULL: a Request not yet accepted */
	struct awk_listener *listener; /* while half-open, or its event runs; a reference */
	struct list_head half_open; /* guarded by the listener's lock */
	unsigned long since; /* jiffies: since when it is half-open */
};

/*
 * conn.c. A new connection is in ANSWERING, in the table of all, and has one reference, its own, until its end was reported
 * (awk_conn_finish). NULL: memory is out.
 */
struct awk_conn *awk_conn_create(bool initiator, work_func_t work);
void awk_conn_get(struct awk_conn *c);
void awk_conn_put(struct awk_conn *c);
/* Finds a connection, with a reference; NULL: it is over. */
struct awk_conn *awk_conn_find(u32 handle);
/* Ends every start-up, and waits for all connections. No new one begins, and no QP is left. */
void awk_conn_flush(void);
/* Queues the work. Any context. */
void awk_conn_kick(struct awk_conn *c);
/* Called only by the owner. Asserts the arrow. */
void awk_conn_enter(struct awk_conn *c, enum awk_conn_state next);
/* Moves the connection from DECIDING to ANSWERING; false: another thread did. */
bool awk_conn_claim(struct awk_conn *c);
/* Puts the connection's callbacks onto its socket, and takes them off. */
void awk_conn_watch(struct awk_conn *c);
void awk_conn_unwatch(struct awk_conn *c);
/* Takes the socket out of the connection, without its callbacks; NULL when it has none. */
struct socket *awk_conn_take_sock(struct awk_conn *c);
/* Sets the deadline of this state. */
void awk_conn_set_deadline(struct awk_conn *c, u32 ms);
/* Ends start-up; a stream's end is the QP's matter. Any context. */
void awk_conn_abandon(struct awk_conn *c);
/*
 * The worker's last act, or that of the creator before the work has ever run. The connection leaves the table, and its
 * own reference goes.
 */
void awk_conn_finish(struct awk_conn *c);

/*
 * open.c: connects a socket of net to c->remote_addr, from c->local_addr if that is set. On 0 the worker owns
 * the connection, and the caller kicks it. Negative: the socket has no callbacks yet.
 */
int awk_conn_open(struct awk_conn *c, struct net *net, int tos);
/* Opens the connection again; plainly: with a Request of revision 1. */
int awk_conn_open_again(struct awk_conn *c, bool plainly);
/* 0 connected, -EINPROGRESS, or TCP's error. */
int awk_conn_try_tcp(struct awk_conn *c);

/* machine.c: the worker's turn. */
void awk_conn_step(struct awk_conn *c);
/* Called only by the owner: moves the connection to OVER for this reason, and closes the socket. */
void awk_conn_fail(struct awk_conn *c, int err);
/* Gives the socket to the QP's stream; on an error the connection keeps it, without callbacks. */
int awk_conn_attach(struct awk_conn *c);

/*
 * reply.c: the answers to a Request, by the owner. accept: sends the Reply, and begins the stream on qp, whose reference
 * the connection owns from here on. 0, or an error: the connection is over, and iw_cm gets no event.
 */
int awk_conn_accept(struct awk_conn *c, struct iw_cm_id *cm_id, struct awk_qp *qp,
		    const struct iw_cm_conn_param *param);
/*
 * Sends the rejecting Reply, and ends the connection. 0, or -EINVAL: too much private data, and
 * none was sent.
 */
int awk_conn_reject(struct awk_conn *c, const void *pd, size_t pd_len);

/* events.c: the worker delivers iw_cm's events that are due, and finishes a connection that is over. */
void awk_conn_deliver(struct awk_conn *c);

/* worker.c: the work of every connection. */
void awk_conn_work(struct work_struct *work);

#endif
