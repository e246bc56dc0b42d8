// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A QP in user space: the core's machine, its lock, and the TCP socket under it. Posts transmit
// inline; pollers and the progress thread receive. Set-up gives it a socket (aw_uqp_attach); the
// stream's end takes it away again.
#ifndef NET_UQP_H
#define NET_UQP_H

#include "core/qp.h"
#include "net/cq.h"
#include "net/hold.h"
#include "net/host_ring.h"
#include "net/mw.h"
#include "net/note.h"
#include "net/ride.h"
#include "net/srq.h"
#include "net/watch.h"

#include <pthread.h>
#include <stdbool.h>
#include <sys/queue.h>

#define AW_QP_MAX (1u << 17)

/*
 * What an owner (verbs, rdma_cm) hears: one call at a time, each event at most once a stream. No
 * lock is held but, where a poller found out, the qps_lock of its CQ.
 */
enum aw_uqp_event {
	AW_UQP_READY = 1, /* the first FPDU of the peer arrived */
	AW_UQP_CLOSED =
		2, /* the stream is ending or over: FIN, reset, Terminate, or our close done */
	AW_UQP_FATAL = 4, /* it ended in an error, but for the two causes that follow */
	AW_UQP_LAST_WQE = 8, /* SRQ: no receive of the SRQ is taken by this QP any more */
	AW_UQP_ACCESS_ERR = 16, /* it ended since the peer went for memory that it may not */
	AW_UQP_REQ_ERR = 32, /* it ended since the peer sent what cannot be carried out */
	AW_UQP_DRAINED = 64, /* aw_uqp_halt asked: what was begun of the send queue is done */
};

typedef void aw_uqp_fn(void *arg, uint32_t events);

struct aw_uqp_attr {
	struct aw_cq *send_cq;
	struct aw_cq *recv_cq;
	struct aw_srq *srq; /* or NULL */
	const void *pd;
	const struct aw_mem_source *memory; /* of its queues; or NULL */
	uint32_t send_wr_max, recv_wr_max; /* 0 to AW_WR_MAX */
	uint32_t send_sge_max, recv_sge_max; /* 0 to AW_SGE_MAX */
	uint32_t inline_max; /* 0 to AW_INLINE_MAX */
	bool sig_all;
	uint32_t ud_mtu; /* of a UD QP (net/ud.h): octets a message; 0: an RC one */
};

struct aw_stage;
struct aw_ud;
struct aw_batch;
struct aw_rc;
struct aw_uqp_watch;
struct aw_carrier;
struct aw_host_ring;

struct aw_uqp {
	/* fixed after create */
	uint32_t qpn; /* 24 bits, never 0 or 1 */
	uint32_t handle;
	struct aw_uqp_attr attr;
	struct aw_mem mem;
	struct aw_rc *rc; /* roce persona: whom it connects to by itself; or NULL */
	struct aw_ud *ud; /* NULL: an RC QP */

	uint32_t cq_slot[2]; /* where in send_cq's and recv_cq's qps; guarded by their qps_lock */
	struct aw_mw_list windows; /* of type 2 that it bound; guarded by mw.c's lock */

	pthread_mutex_t lock; /* guards what follows */
	struct aw_qp core;
	struct aw_rq rq;
	void *reads; /* IRQ and ORQ, as long as the stream's depths ask */
	bool attached; /* a socket is or was there since the last reset */
	int fd; /* -1: none */
	const struct aw_carrier *carrier; /* of the stream's bytes (net/carrier.h) */
	struct aw_host_ring *ring; /* its memory in common with the peer, or NULL */
	uint8_t verdict
		[AW_HOST_VERDICT_LEN]; /* responder: whether the peer took it, as far as it came */
	uint32_t verdict_len;
	struct aw_uqp_watch *watch; /* of fd, on the heap: it may outlive the QP by a moment */
	_Atomic uint32_t
		generation; /* aw_engine_generation() when attached; also read without the lock */
	uint32_t listens_for; /* epoll events that matter now, for every set that fd is in */
	bool lent; /* left to others: the progress thread listens for nothing */
	struct aw_channel *lent_to; /* to who sleeps there; NULL: to pollers, or not lent */
	uint32_t polls_seen; /* pollers' turns at the last event (net/lend.c) */
	TAILQ_ENTRY(aw_uqp) lent_entry; /* guarded by lend.c's lock */
	struct aw_hold hold;
	struct aw_ride ride;
	bool out_of_reach; /* a CQ's epoll set did not take fd: not to be left to pollers */
	bool by_rc; /* ibv_modify_qp named its peer: rc makes its streams */
	bool touched; /* by_rc: a message was begun on the stream, here or there */
	bool lost; /* by_rc: the stream ended, of which the program has heard nothing yet */
	bool drain_asked; /* who halted the send queue wants to hear that it is drained */
	uint64_t fail_ns; /* by_rc: without a stream until then, what is posted fails; 0: never */
	uint32_t retry_ms; /* by_rc: how long a post may wait; 0: for ever */
	bool reset_seen; /* the socket is dead: close, do not linger */
	bool ending; /* a close or Terminate has begun, and its deadline runs */
	bool fin_sent;
	bool tx_blocked; /* the socket took less than it was given */
	bool starved; /* no buffer was to be had: a deadline says when to try again */
	bool retry_due; /* that deadline runs, or the one of net/rnr.h */
	bool starving_told; /* the log knows */
	uint64_t rnr_pos; /* of the stream, where a message found no receive (net/rnr.h) */
	uint64_t rnr_since_ns; /* and since when it waits for one */
	uint32_t rnr_ms; /* and how long it may; 0: for ever */
	uint64_t
		quiet_pos; /* of the stream, up to where the peer's TCP is known to have all (net/lost.h) */
	uint64_t unanswered_ns; /* and since when it owes an answer; 0: not at all */
	uint64_t emss_pos; /* of the stream, where TCP's segment size was asked last */
	struct aw_stage *stage; /* octets of a half-received FPDU, or NULL */
	struct aw_note *note; /* of who cares what a kill would leave, or NULL */
	struct aw_batch *batch; /* octets that the socket did not take yet, or NULL */
	uint32_t events_due, events_told;
	bool delivering; /* listeners run now */
	pthread_cond_t delivered;
	aw_uqp_fn *listener[2]; /* enum aw_uqp_owner */
	void *listener_arg[2];
	_Atomic uint32_t unpolled; /* send CQEs in the CQ: they hold their SQ slots */
};

enum aw_uqp_owner {
	AW_UQP_VERBS,
	AW_UQP_CM,
};

/*
 * 0, or EINVAL (a limit), ENOMEM. The caller holds an engine reference for the QP's life.
 */
int aw_uqp_create(const struct aw_uqp_attr *attr, struct aw_uqp **qp);

/* Ends the stream (octets that TCP holds still go out), forgets its CQEs, frees it. */
void aw_uqp_destroy(struct aw_uqp *qp);

/*
 * Who hears of events; fn NULL to stop. Returns only when a delivery under way has ended, so it
 * must not be called from one. Events that are already due come at once, in the caller.
 */
void aw_uqp_listen(struct aw_uqp *qp, enum aw_uqp_owner owner, aw_uqp_fn *fn, void *arg);

/*
 * The QP with this number, held until aw_uqp_put; NULL when there is none. For rdma_cm, where a
 * program gives only the number.
 */
struct aw_uqp *aw_uqp_get(uint32_t qpn);
void aw_uqp_put(struct aw_uqp *qp);

/*
 * Gives a connected, non-blocking socket whose start-up is done; from here fd is the QP's.
 * stream's emss is filled in here. ring: memory in common, if the two ends have agreed on it: on success the QP's. 0, or EINVAL (already attached, in error), ENOMEM.
 */
int aw_uqp_attach_host(struct aw_uqp *qp, int fd, struct aw_stream *stream,
		       struct aw_host_ring *ring);

static inline int aw_uqp_attach(struct aw_uqp *qp, int fd, struct aw_stream *stream)
{
	return aw_uqp_attach_host(qp, fd, stream, NULL);
}

/* Graceful close; abort with flush (modify to ERR); back to IDLE (modify to RESET). */
void aw_uqp_close(struct aw_uqp *qp);
void aw_uqp_abort(struct aw_uqp *qp);
void aw_uqp_reset(struct aw_uqp *qp);

/*
 * The connection goes on in another process: the socket is closed here, without a word, and nobody hears
 * of it. All that is left to do is to destroy or reset the QP. others: all of
 * this process but those that keeps keeps.
 */
void aw_uqp_forget(struct aw_uqp *qp);
void aw_uqp_forget_others(bool (*keeps)(struct aw_uqp *qp));

/*
 * Lets WRs that were not begun yet wait, or go on; tells: with AW_UQP_DRAINED once those that were begun are
 * done.
 */
void aw_uqp_halt(struct aw_uqp *qp, bool halts, bool tells);

/* Nobody is there: the oldest WR posted fails with status, all else is flushed. */
void aw_uqp_give_up(struct aw_uqp *qp, enum aw_wc_status status);

enum aw_qp_state aw_uqp_state(struct aw_uqp *qp);

/*
 * After aw_mr_remove of a region of pd: when this returns no QP reads [start, start + len) any more,
 * not even for octets that wait for the socket.
 */
void aw_uqp_unlend(const void *pd, const void *start, size_t len);

/*
 * Posting sends: begin takes the lock; fill the slot that aw_uqp_send_slot gives (NULL: queue
 * full) and commit it, any number of times; end transmits, unless the posts are held, and gives the
 * lock back. Commit is optional (a WR that proved invalid is simply not committed). ahead: slots that
 * are filled and not committed yet.
 */
void aw_uqp_send_begin(struct aw_uqp *qp);
struct aw_swqe *aw_uqp_send_slot(struct aw_uqp *qp);
struct aw_swqe *aw_uqp_send_slot_ahead(struct aw_uqp *qp, uint32_t ahead);
void aw_uqp_send_commit(struct aw_uqp *qp);
void aw_uqp_send_end(struct aw_uqp *qp);

/* 0, ENOMEM (full), EINVAL (too many SGEs, or the QP uses an SRQ). In ERROR it flushes at once. */
int aw_uqp_recv(struct aw_uqp *qp, uint64_t wr_id, const struct aw_sge *sge, uint32_t count);

/*
 * One round of inline progress: receive, then transmit what became due. True while the socket is full;
 * false also where another thread has the lock.
 */
bool aw_uqp_progress(struct aw_uqp *qp);

/* The same for a QP whose stream goes through memory, and which has news; other QPs are left alone. True where it was served. */
bool aw_uqp_progress_memory(struct aw_uqp *qp, bool *full);

/* For net/ud.c: gives the lock back, and tells of events that are due. */
void aw_uqp_unlock(struct aw_uqp *qp);

/* For net/cq.c: puts the socket, if any, into a CQ's epoll set. */
void aw_uqp_join_epoll(struct aw_uqp *qp, int epfd);

/* For net/lend.c, with the QP lock: the progress thread listens to the socket again, and nobody who
 * sleeps on a channel does. 0 or ENOMEM, ENOSPC. */
int aw_uqp_listen_again(struct aw_uqp *qp);

#endif
