// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The stream under a QP: its TCP socket, what waits to be sent, what was half received.
//
// Callbacks of the socket receive, in softirq or in whatever thread releases the socket's lock. Doorbells
// transmit, and one worker does both where they cannot; the worker alone ends the stream.
#ifndef KMOD_STREAM_H
#define KMOD_STREAM_H

#include "kmod/stream_sock.h"

#include <linux/timer.h>
#include <linux/types.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

struct awk_batch;
struct awk_conn;
struct awk_packed;
struct awk_qp;
struct awk_stage;
struct aw_stream;

/* In struct awk_qp. Zeroed memory before awk_stream_init. */
struct awk_stream {
	/* fixed after init, each safe by itself */
	struct work_struct work;
	struct timer_list timer; /* queues work */
	wait_queue_head_t over; /* sock and conn became NULL */
	unsigned long flags; /* AWK_STREAM_ROOM and the like, by set_bit */

	/* guarded by the QP's lock */
	struct socket *
		sock; /* NULL: none. Whoever set tx_busy, and the worker, may use it without the lock */
	struct awk_conn *conn; /* from its claim until iw_cm heard of the end; a reference */
	bool rx_waits; /* a message waits for a receive; also read without the lock */
	struct awk_stage *stage; /* octets of a half-received FPDU, or NULL */
	struct awk_packed *packed; /* or in this, when it comes slowly */
	u64 stage_pos; /* of the stream, where the FPDU in the stage begins */
	unsigned long stage_since; /* jiffies: and since when it is there */
	struct awk_batch *
		batch; /* octets on their way to the socket; while tx_busy that thread's, or NULL */
	bool tx_busy; /* a thread transmits */
	bool tx_again; /* what became due meanwhile is its to see */
	bool tx_blocked; /* the socket took less than it was given */
	bool starved; /* no memory for a buffer; the timer says when to try again */
	bool broken; /* the socket failed in transmission: what it received is read, then it is the end */
	bool ending; /* a close or a Terminate has begun; deadline holds */
	bool fin_sent;
	bool lost; /* reset: there is no one to linger for */
	unsigned long deadline; /* jiffies */
	u64 rnr_pos; /* of the stream, where a message found no receive */
	unsigned long rnr_since; /* jiffies: and since when it waits for one */
	u64 emss_pos; /* of the stream, where TCP's segment size was asked last */
	bool looking; /* stream_lost.c: octets may be under way, and look_at holds */
	unsigned long look_at; /* jiffies */
	unsigned long
		unanswered; /* jiffies: since when the peer's TCP owes an answer; 0: not at all */

	struct awk_sock_saved saved; /* the worker's, and of attach before it */
};

enum awk_stream_flag {
	AWK_STREAM_ROOM, /* the socket has had room since the last send began */
};

/* At create_qp, before anybody can find the QP. */
void awk_stream_init(struct awk_qp *qp);

/*
 * Something may be due: drain the rings, transmit, and look at what state the core came to (CLOSING: FIN
 * when all is out; TERMINATE: likewise, then the end; ERROR: the socket is given up, and iw_cm hears of
 * it). Works without a socket too: the rings are drained, so that posts flush in ERROR.
 * kick: any context, any lock: never sleeps, leaves it to a worker. push: process context without locks:
 * does it at once as far as nobody else is at it.
 */
void awk_stream_kick(struct awk_qp *qp);
void awk_stream_push(struct awk_qp *qp);

/* Receives were posted: any context, any lock. A kick where one is waited for, or the QP flushes them. */
void awk_stream_recv_posted(struct awk_qp *qp);

/*
 * At destroy_qp and modify to RESET, process context: ends the stream at once (what TCP holds still goes out).
 * When this returns, the core is in ERROR, there is neither socket nor connection any more, and iw_cm has had its
 * CLOSE. What iw_cm itself holds are references of the QP, with which it may still modify the QP.
 */
void awk_stream_end_wait(struct awk_qp *qp);

/* At destroy_qp, behind that and when nobody has a reference: the worker will not touch the QP again. */
void awk_stream_destroy(struct awk_qp *qp);

/*
 * For cm: a connection's start-up is under way for this QP, which has no other and is IDLE. 0 or -EINVAL.
 * The claim holds a reference of conn until it is given back, behind iw_cm's last event.
 */
int awk_stream_claim(struct awk_qp *qp, struct awk_conn *conn);
void awk_stream_unclaim(struct awk_qp *qp);

/*
 * For cm: the stream begins on a connected socket that has no callbacks; on 0 it is the stream's. conn
 * hears of its end by awk_conn_stream_ended. Fills in stream's emss and stag_seed. 0 or -EINVAL.
 */
int awk_stream_attach(struct awk_qp *qp, struct socket *sock, struct aw_stream *stream);

/* The module's: workqueues. */
int awk_stream_init_module(void);
void awk_stream_exit_module(void);

/* Of streams, connections and sockets that linger. */
extern struct workqueue_struct *awk_wq;

#endif
