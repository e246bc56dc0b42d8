// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A TCP connection in MPA start-up, as initiator or responder, and after that iw_cm's view of a
// stream. One worker runs all of its steps and delivers all of its events, in their order.
//
// state          end      meaning                                     next
// WAITING        active   an earlier connection to the peer goes      CONNECTING
//                         first
// CONNECTING     active   TCP's handshake is under way                SENDING, REFUSED
// REFUSED        active   nobody listened; a pause before the next    CONNECTING
//                         try
// SENDING        active   the socket has not taken all of the         AWAIT_REPLY
//                         Request
// AWAIT_REPLY    active   the Reply is due within 10 s                RUNNING; CONNECTING if the
//                                                                     peer closed without a byte:
//                                                                     once as before, then with
//                                                                     revision 1
// AWAIT_REQUEST  passive  the Request is due within 10 s              DECIDING
// DECIDING       passive  the program has the Request, for 120 s      ANSWERING
// ANSWERING      both     first state; later, a thread accepts or     CONNECTING, WAITING
//                         rejects                                     (active); AWAIT_REQUEST,
//                                                                     RUNNING, OVER (passive)
// RUNNING        both     the stream has the socket                   DONE when the stream is over
// OVER           both     failed or rejected; an event may be due     DONE
// DONE           both     nothing is due
//
// The first seven also go to OVER by a failure, and by their deadline except WAITING and REFUSED.
// The worker makes the moves; in ANSWERING the thread that owns the connection does, which is the
// one that left DECIDING by awk_conn_claim.
#ifndef KMOD_CM_CONN_H
#define KMOD_CM_CONN_H

#include "core/startup.h"
#include "core/turn.h"
#include "kmod/cm_frame.h"
#include "kmod/stream_sock.h"

#include <linux/kref.h>
#include <linux/timer.h>
#include <linux/workqueue.h>
#include <rdma/iw_cm.h>

/* The time from TCP's connection until the frame is whole; also for TCP's own connect. */
#define AWK_STARTUP_MS 10000
/* The time that a program has to answer a Request: no less than user space's peers would wait. */
#define AWK_DECIDE_MS 120000
/* A refused connection is tried again, after pauses of 1, 2, 4 ... ms: 127 ms in all. */
#define AWK_REFUSALS_MAX 7
/* A connection waits no longer for another one to the same peer: pauses are longer, by jiffies and the worker's time. */
#define AWK_WAIT_MS (2u << AWK_REFUSALS_MAX)

struct awk_device;
struct awk_listener;
struct awk_qp;

enum awk_conn_state {
	AWK_CONN_WAITING, /* initiator: another connection to the peer connects first (cm_order.h) */
	AWK_CONN_CONNECTING, /* initiator: TCP's handshake is under way */
	AWK_CONN_REFUSED, /* initiator: nobody listened; a pause before the next try */
	AWK_CONN_SENDING, /* initiator: the socket has not taken all of the Request */
	AWK_CONN_AWAIT_REPLY,
	AWK_CONN_AWAIT_REQUEST,
	/* responder: the program has the Request; the thread that moves it on owns it */
	AWK_CONN_DECIDING,
	AWK_CONN_ANSWERING, /* new, or a program accepts or rejects: that thread owns it */
	AWK_CONN_RUNNING, /* the stream has the socket */
	AWK_CONN_OVER, /* failed, rejected or answered in vain; an event to iw_cm may be due */
	AWK_CONN_DONE, /* over, and no event is due */
};

/* Set by set_bit, by any thread. */
enum awk_conn_flag {
	AWK_CONN_ABANDONED, /* start-up is to end: the connection is not wanted any more */
	AWK_CONN_GONE, /* the peer sends no more */
	AWK_CONN_LEAVES, /* the stream is ending */
	AWK_CONN_ENDED, /* the stream is over */
};

/* Events that were delivered, or will not be; only for the worker. */
enum awk_conn_told {
	AWK_TOLD_REQUEST = 1,
	AWK_TOLD_BEGIN = 2, /* CONNECT_REPLY or ESTABLISHED */
	AWK_TOLD_DISCONNECT = 4,
	AWK_TOLD_CLOSE = 8,
};

struct awk_conn {
	/* fixed after create, each safe by itself */
	struct kref refs;
	struct work_struct work;
	struct timer_list timer; /* queues work */
	bool initiator;
	u32 handle; /* by which iw_cm knows a Request */
	unsigned long flags;
	struct list_head entry; /* of all: cm_table.c */
	/* DECIDING and ANSWERING: left by cmpxchg; else only the worker writes it */
	enum awk_conn_state state;

	/* only for the worker; in ANSWERING for the thread that answers */
	struct aw_mpa_local local;
	struct aw_mpa_result result; /* pd is in in */
	struct awk_frame_buf in;
	struct awk_frame_buf out;
	struct sockaddr_storage near, far;
	struct socket *sock;
	struct awk_sock_saved saved;
	bool listens; /* the socket has the conn's callbacks */
	unsigned long deadline; /* jiffies, in the states that have one */
	unsigned int refusals; /* by TCP, of this socket */
	bool again; /* the socket is the second one, or the third */
	struct aw_turn turn; /* guarded by cm_order.c's lock */
	int err; /* OVER: negative */
	bool heard; /* result is what the peer has sent */
	u8 told; /* enum awk_conn_told */
	struct awk_qp *qp; /* a reference, and the claim of its stream; or NULL */
	struct iw_cm_id *cm_id; /* a reference; NULL: a Request not yet accepted */
	struct awk_listener *listener; /* while half-open, or its event runs; a reference */
	struct list_head half_open; /* guarded by the listener's lock */
	unsigned long since; /* jiffies: since when it is half-open */
};

/*
 * cm_conn.c. One reference is the connection's own, until its end was reported. NULL: memory is
 * out.
 */
struct awk_conn *awk_conn_create(bool initiator);
void awk_conn_get(struct awk_conn *c);
void awk_conn_put(struct awk_conn *c);
/* Queues the work. Any context. */
void awk_conn_kick(struct awk_conn *c);
/* Puts the conn's callbacks onto its socket, and takes them off. */
void awk_conn_listen(struct awk_conn *c);
void awk_conn_deafen(struct awk_conn *c);
/* Takes the socket out of the conn, without its callbacks; NULL when it has none. */
struct socket *awk_conn_take_sock(struct awk_conn *c);
/* Sets the deadline of this state. */
void awk_conn_set_deadline(struct awk_conn *c, u32 ms);
/* Ends start-up; a stream's end is the QP's matter. Any context. */
void awk_conn_abandon(struct awk_conn *c);
/*
 * Called when the stream is ending, and when it has ended, each any number of times. Any context.
 */
void awk_conn_stream_leaves(struct awk_conn *c);
void awk_conn_stream_ended(struct awk_conn *c);
/* The worker's last act, or that of the creator before the work has ever run. */
void awk_conn_finish(struct awk_conn *c);

/* cm_table.c */
int awk_conn_enlist(struct awk_conn *c);
void awk_conn_delist(struct awk_conn *c);
/* Finds a connection, with a reference; NULL: it is over. */
struct awk_conn *awk_conn_find(u32 handle);

/*
 * cm_open.c: connects a socket of net to c->far, from c->near if that is set. On 0 the worker owns
 * the connection, and the caller kicks it. Negative: the socket has no callbacks yet.
 */
int awk_conn_open(struct awk_conn *c, struct net *net, int tos);
/* Opens the connection again; plainly: with a Request of revision 1. */
int awk_conn_open_again(struct awk_conn *c, bool plainly);
/* 0 connected, -EINPROGRESS, or TCP's error. */
int awk_conn_try_tcp(struct awk_conn *c);

/* cm_machine.c: the worker's turn. */
void awk_conn_step(struct awk_conn *c);
/* Called only by the owner: moves the conn to OVER for this reason, and closes the socket. */
void awk_conn_fail(struct awk_conn *c, int err);
/* Moves the conn out of DECIDING; false: another thread did. */
bool awk_conn_claim(struct awk_conn *c, enum awk_conn_state next);
/* Gives the socket to the QP's stream; on an error the conn keeps it, without callbacks. */
int awk_conn_attach(struct awk_conn *c);
/* Sends a Terminate as the stream's first FPDU, then closes the socket. */
void awk_conn_terminate(struct awk_conn *c, enum aw_error error, bool markers);

/*
 * cm_tell.c: the worker delivers iw_cm's events that are due, and ends a connection that is over.
 */
void awk_conn_tell(struct awk_conn *c);

#endif
