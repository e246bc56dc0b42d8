// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The stream under a QP: its TCP socket, the bytes that wait to be sent, the bytes of half an FPDU.
//
// Callbacks of the socket receive, in softirq or in the thread that releases the socket's lock.
// Doorbells transmit, and one worker does both when they cannot; only the worker ends the stream.
//
// An FPDU is verified and placed where it lies, in one piece of an skb (aw_rx_lent) or in several, also of several skbs
// (aw_rx_scattered): one copy. Half an FPDU stays in TCP's queue until the rest is there, for which TCP has to have room.
// Where it has not, and where there are markers or a message waits for its receive, an FPDU goes over a stage, which takes no
// more than that one. An skb's pages may be those of a sender on the same host, which writes to them meanwhile: headers are
// copied and read once, and a payload that changes harms that message alone. Every payload that is sent is copied into a
// batch, one piece of pages; TCP copies a short one, and keeps the pages of a long one until they
// are acknowledged. Under TLS the worker alone receives (rx_tls.c), and every send may sleep. A worker goes on where a budget ends. No lock is held over sendmsg. A callback
// that TCP called before its socket went to another user finds out under sk_callback_lock
// (awk_sock_user).
#ifndef KMOD_STREAM_STREAM_H
#define KMOD_STREAM_STREAM_H

#include "core/ending.h"
#include "core/liveness.h"
#include "core/rnr_wait.h"
#include "kmod/tcp/sock.h"

#include <linux/interrupt.h>
#include <linux/timer.h>
#include <linux/types.h>
#include <linux/wait.h>

struct awk_batch;
struct awk_packed;
struct awk_qp;
struct awk_stage;
struct aw_stream;
struct awk_stream_user;

/* A report to the stream's user. Each may come any number of times. */
enum awk_stream_news {
	AWK_STREAM_REFUSED, /* the QP ended before its stream began */
	AWK_STREAM_ENDING, /* either end is ending the stream */
	AWK_STREAM_ENDED, /* the stream has given its socket up */
};

/* get and put: a reference of the user. get: any context; the others: process context, no lock held. */
struct awk_stream_user_ops {
	void (*get)(struct awk_stream_user *user);
	void (*put)(struct awk_stream_user *user);
	void (*report)(struct awk_stream_user *user, enum awk_stream_news news);
};

/* The connection that a stream belongs to, of which the stream knows no more than this. */
struct awk_stream_user {
	const struct awk_stream_user_ops *ops;
};

/* A QP's, from its create to its destroy. */
struct awk_stream {
	/* fixed after create, each safe by itself */
	struct awk_qp *qp;
	struct timer_list timer; /* kicks the QP */
	struct tasklet_struct answer; /* sends answers, once TCP lets go of the socket */
	wait_queue_head_t over; /* sock and user became NULL */
	unsigned long flags; /* AWK_STREAM_ROOM and the like, by set_bit */
	bool tls; /* the socket, while there is one, is under TLS: set before */

	/* guarded by the socket's lock: bytes of the FPDU whose beginning TCP's queue keeps; 0: it keeps none */
	size_t rx_part;

	/* guarded by the QP's lock */
	/* NULL: none. The thread that set tx_busy, and the worker, may use it without the lock */
	struct socket *sock;
	struct awk_stream_user *user; /* from its claim until iw_cm's last event; a reference */
	bool rx_waits; /* a message waits for a receive; also read without the lock */
	struct awk_stage *stage; /* bytes of a half-received FPDU, or NULL */
	struct awk_packed *packed; /* the same bytes, when the rest comes slowly */
	u64 stage_pos; /* position in the stream where the FPDU in the stage begins */
	unsigned long stage_since; /* jiffies: since when it is there */
	/* bytes on their way to the socket, or NULL; while tx_busy only for that thread */
	struct awk_batch *batch;
	bool tx_busy; /* a thread transmits */
	bool tx_again; /* more has become due meanwhile, which that thread sees to */
	bool tx_blocked; /* the socket took less than it was given */
	bool starved; /* memory for a buffer was out; the timer brings the next try */
	/* a send failed: the stream ends once the bytes that the socket received are read */
	bool broken;
	bool lost; /* reset: the socket does not linger */
	struct aw_ending ending;
	struct aw_rnr_wait rnr_wait; /* of a message that found no receive */
	u64 emss_pos; /* position in the stream at which TCP's segment size was last read */
	bool looking; /* lost.c: bytes may be under way, and look_ns holds */
	u64 look_ns; /* the time of the next look */
	struct aw_liveness liveness;

	struct awk_sock_saved saved; /* only for attach, and then for the worker */
};

enum awk_stream_flag {
	AWK_STREAM_ROOM, /* the socket has had room since the last send began */
	AWK_STREAM_ARRIVED, /* under TLS: the socket may have what was not read yet */
};

/* Called at create_qp, before any look-up can find the QP. 0 or -ENOMEM. */
int awk_stream_create(struct awk_qp *qp);

/*
 * Called when something may be due: drains the rings, transmits, and has the worker act on the core's state
 * (CLOSING: FIN when all is out; TERMINATE: likewise, then the end; ERROR: the socket is given up,
 * and the user is notified). Works without a socket too: the rings are drained, so that posts are
 * flushed in ERROR. Process context without locks; awk_qp_kick leaves the same to the worker.
 */
void awk_stream_push(struct awk_qp *qp);

/*
 * Called when a kernel's WRs were posted: any context, any lock. Transmits if that is short and need not wait, and leaves the
 * rest to the worker.
 */
void awk_stream_posted(struct awk_qp *qp);

/*
 * Called when receives were posted: any context, any lock. Kicks when one is waited for, or the QP
 * flushes them.
 */
void awk_stream_recv_posted(struct awk_qp *qp);

/*
 * At destroy_qp and modify to RESET, process context: ends the stream at once (bytes that TCP holds
 * are still sent). When this returns, the core is in ERROR, there is neither socket nor user
 * any more, and iw_cm has had its CLOSE. iw_cm itself may hold references of the QP, with which it
 * may still modify the QP.
 */
void awk_stream_end_wait(struct awk_qp *qp);

/*
 * At modify to RESET, after awk_stream_end_wait: moves the QP back to IDLE. Another thread may have done so meanwhile, and
 * a stream have begun: then nothing is done.
 */
void awk_stream_reset(struct awk_qp *qp);

/*
 * At destroy_qp, after awk_stream_end_wait and when there is no reference: the worker will not
 * touch the QP again.
 */
void awk_stream_destroy(struct awk_qp *qp);

/*
 * For cm: claims the QP, which is IDLE and has no other connection, for a connection whose start-up
 * is under way. 0 or -EINVAL. The claim holds a reference of user until unclaim, after iw_cm's last
 * event.
 */
int awk_stream_claim(struct awk_qp *qp, struct awk_stream_user *user);
void awk_stream_unclaim(struct awk_qp *qp);

/*
 * For cm: begins the stream on a connected socket that has no callbacks; the stream owns it on 0.
 * Fills in stream's emss and stag_seed. 0 or -EINVAL.
 */
int awk_stream_attach(struct awk_qp *qp, struct socket *sock, struct aw_stream *stream);

/* Called as the module begins and ends: the workqueue and what streams leave behind. */
int awk_stream_init_module(void);
void awk_stream_exit_module(void);

#endif
