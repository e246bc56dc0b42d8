// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A TCP connection in MPA start-up, as initiator or responder, and from then on what iw_cm knows of a
// stream. One worker runs all of its steps and tells all of its events, in their order.
#ifndef KMOD_CM_CONN_H
#define KMOD_CM_CONN_H

#include "core/startup.h"
#include "kmod/cm_frame.h"
#include "kmod/stream_sock.h"

#include <linux/kref.h>
#include <linux/timer.h>
#include <linux/workqueue.h>
#include <rdma/iw_cm.h>

/* From TCP up to the frame being whole; also for TCP's own connect. */
#define AWK_STARTUP_MS 10000
/* How long a program may take to answer a Request: no fewer than user space's peers would wait. */
#define AWK_DECIDE_MS 120000
/* A refused connection is tried again, after pauses of 1, 2, 4 ... ms: 127 ms in all. */
#define AWK_REFUSALS_MAX 7

struct awk_device;
struct awk_listener;
struct awk_qp;

enum awk_conn_state {
	AWK_CONN_CONNECTING, /* initiator: TCP's handshake is under way */
	AWK_CONN_REFUSED, /* initiator: nobody listened; a pause before the next try */
	AWK_CONN_SENDING, /* initiator: the socket has not taken all of the Request */
	AWK_CONN_AWAIT_REPLY,
	AWK_CONN_AWAIT_REQUEST,
	AWK_CONN_DECIDING, /* responder: the program has the Request; whoever moves it on owns it */
	AWK_CONN_ANSWERING, /* a thread that connects, accepts or rejects owns it */
	AWK_CONN_RUNNING, /* the stream has the socket */
	AWK_CONN_OVER, /* failed, rejected or answered in vain; iw_cm may have to hear of it */
	AWK_CONN_DONE, /* and has */
};

/* By set_bit, any thread. */
enum awk_conn_flag {
	AWK_CONN_ABANDONED, /* nobody wants it any more: start-up is to end */
	AWK_CONN_GONE, /* the peer sends no more */
	AWK_CONN_LEAVES, /* the stream is ending */
	AWK_CONN_ENDED, /* the stream is over */
};

/* Events that were told, or are not to be: the worker's. */
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
	u32 handle; /* what iw_cm knows a Request by */
	unsigned long flags;
	struct list_head entry; /* of all: cm_table.c */
	enum awk_conn_state state; /* DECIDING and ANSWERING: by cmpxchg; else the worker's */

	/* the worker's; in ANSWERING that thread's */
	struct aw_mpa_local local;
	struct aw_mpa_result result; /* pd is in in */
	struct awk_frame_buf in;
	struct awk_frame_buf out;
	struct sockaddr_storage near, far;
	struct socket *sock;
	struct awk_sock_saved saved;
	bool listens; /* the socket's callbacks are the conn's */
	unsigned long deadline; /* jiffies, in the states that have one */
	unsigned int refusals;
	int err; /* OVER: negative */
	bool heard; /* result is the peer's word */
	u8 told; /* enum awk_conn_told */
	struct awk_qp *qp; /* a reference, and the claim of its stream; or NULL */
	struct iw_cm_id *cm_id; /* a reference; NULL: a Request not yet accepted */
	struct awk_listener *listener; /* half-open, or telling; a reference */
	struct list_head half_open; /* guarded by the listener's lock */
	unsigned long since; /* jiffies: and since when */
};

/* cm_conn.c. One reference is the connection's own, until its end was told. NULL: memory. */
struct awk_conn *awk_conn_create(bool initiator);
void awk_conn_get(struct awk_conn *c);
void awk_conn_put(struct awk_conn *c);
/* The work is to run. Any context. */
void awk_conn_kick(struct awk_conn *c);
/* The conn's callbacks onto its socket, and off it. */
void awk_conn_listen(struct awk_conn *c);
void awk_conn_deafen(struct awk_conn *c);
/* Takes the socket out of the conn, without its callbacks; NULL when it has none. */
struct socket *awk_conn_take_sock(struct awk_conn *c);
/* The deadline of this state. */
void awk_conn_set_deadline(struct awk_conn *c, u32 ms);
/* Start-up may end; a stream's end is the QP's matter. Any context. */
void awk_conn_abandon(struct awk_conn *c);
/* The stream, each any number of times. Any context. */
void awk_conn_stream_leaves(struct awk_conn *c);
void awk_conn_stream_ended(struct awk_conn *c);
/* The worker's last act, or that of its creator before the work ever ran. */
void awk_conn_finish(struct awk_conn *c);

/* cm_table.c */
int awk_conn_enlist(struct awk_conn *c);
void awk_conn_delist(struct awk_conn *c);
/* A reference; NULL: it is over. */
struct awk_conn *awk_conn_find(u32 handle);

/*
 * cm_open.c: a socket of net on its way to c->far, from c->near where that says something. On 0 the worker owns
 * the connection, and is to be kicked. Negative: there is no socket's callback yet.
 */
int awk_conn_open(struct awk_conn *c, struct net *net, int tos);
/* The same again, with revision 1. */
int awk_conn_open_plain(struct awk_conn *c);
/* 0 connected, -EINPROGRESS, or TCP's error. */
int awk_conn_try_tcp(struct awk_conn *c);

/* cm_machine.c: the worker's turn. */
void awk_conn_step(struct awk_conn *c);
/* Only the owner: to OVER, for this reason; the socket is closed. */
void awk_conn_fail(struct awk_conn *c, int err);
/* Moves it out of DECIDING; false: someone else did. */
bool awk_conn_claim(struct awk_conn *c, enum awk_conn_state next);
/* The socket becomes the QP's stream's; on an error it is let be, without callbacks. */
int awk_conn_attach(struct awk_conn *c);
/* A Terminate as the stream's first FPDU, behind which the socket closes. */
void awk_conn_terminate(struct awk_conn *c, enum aw_error error, bool markers);

/* cm_tell.c: the worker tells iw_cm what is due, and ends what is over. */
void awk_conn_tell(struct awk_conn *c);

#endif
