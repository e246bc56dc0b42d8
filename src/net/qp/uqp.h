// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A QP in user space: the core's machine, its lock, and the TCP socket under it. Posts transmit
// inline; pollers and the progress thread receive. Set-up gives it a socket (aw_uqp_attach); the
// stream's end takes it away again.
//
// A QP refers to the roce persona and to datagrams only through struct aw_uqp_kind, whose
// functions run at a QP's birth, for its number and at its end, never for a message; verbs chooses
// between stream and datagram as it posts. CQs and windows refer to a QP by the part of it that
// they declare themselves (struct aw_cq_user, struct aw_mw_user).
#ifndef NET_UQP_H
#define NET_UQP_H

#include "base/thread_safety.h"
#include "core/ending.h"
#include "core/liveness.h"
#include "core/qp.h"
#include "core/rnr_wait.h"
#include "net/base/fork.h"
#include "net/cq/counter.h"
#include "net/cq/cq.h"
#include "net/cq/srq.h"
#include "net/cq/xrc.h"
#include "net/mr/mw.h"
#include "net/progress/watch.h"
#include "net/qp/deferral_state.h"
#include "net/qp/host_ring.h"
#include "net/qp/move_state.h"
#include "net/qp/send_buffer.h"
#include "net/qp/serving_state.h"
#include "net/stat/stat.h"
#include "ring/lock.h"

#include <pthread.h>
#include <stdbool.h>
#include <sys/queue.h>

#define AW_QP_MAX (1u << 17)
/* QP numbers 0 and 1 have a meaning of their own on other transports, so none is near them. */
#define AW_QPN_FIRST 16

/*
 * The events that an owner (verbs, rdma_cm) gets: one call at a time, each event at most once a
 * stream. The calling thread holds no lock except, when a poller found the event, the qps_lock of
 * its CQ.
 */
enum aw_uqp_event {
	AW_UQP_READY = 1, /* the peer's first FPDU has arrived */
	AW_UQP_CLOSED =
		2, /* the stream is ending or over: FIN, reset, Terminate, or our close done */
	AW_UQP_FATAL = 4, /* the stream ended in an error other than the two below */
	AW_UQP_LAST_WQE = 8, /* the QP takes no more receives of its SRQ */
	/* the stream ended because the peer accessed memory that it may not */
	AW_UQP_ACCESS_ERR = 16,
	AW_UQP_REQ_ERR = 32, /* the stream ended because the peer sent what cannot be carried out */
	AW_UQP_DRAINED = 64, /* after aw_uqp_halt: the send WRs that were begun are complete */
	AW_UQP_DELIVERED =
		128, /* after aw_uqp_disconnect: the peer has ended its direction, too, or is silent */
	AW_UQP_BEGUN = 256, /* the first message of the peer's program has arrived */
};

typedef void aw_uqp_fn(void *arg, uint32_t events);

struct aw_uqp;

/*
 * The functions by which a kind of QP differs from the plain one, whose number is made of its
 * handle and whose streams rdma_cm makes. net/roce/rc.h and net/ud/ud.h have such kinds. None of
 * the functions is called for a message.
 */
struct aw_uqp_kind {
	/* Called before any other thread can find the QP. 0, or an errno. */
	int (*create)(struct aw_uqp *qp);
	/* Gives the QP its number, by which peers reach it. 0, or an errno. */
	int (*open)(struct aw_uqp *qp);
	/* Called before the QP ends, with no lock held: no peer reaches it any more. */
	void (*close)(struct aw_uqp *qp);
	/* Called when no other thread can find the QP any more. */
	void (*destroy)(struct aw_uqp *qp);
	/*
	 * With the QP lock, for a QP with by_rc that has no stream, or none to send on: it may have lost
	 * the stream, or have posts that wait for one.
	 */
	void (*follow)(struct aw_uqp *qp);
};

struct aw_uqp_attr {
	struct aw_cq *send_cq;
	struct aw_cq *recv_cq;
	struct aw_srq *srq; /* or NULL */
	const void *pd;
	const struct aw_mem_source *memory; /* of the queues; NULL: the heap */
	uint32_t send_wr_max, recv_wr_max; /* 0 to AW_WR_MAX */
	uint32_t send_sge_max, recv_sge_max; /* 0 to AW_SGE_MAX */
	uint32_t inline_max; /* 0 to AW_INLINE_MAX */
	bool sig_all;
	const struct aw_uqp_kind *kind; /* NULL: a plain RC QP */
	bool uc; /* an Unreliable Connection: ibv_modify_qp alone connects it */
	/* XRC: a target's CQs are its domain's (net/cq/feed.h), and pd is xrcd; an initiator's recv_cq is its send_cq */
	enum aw_xrc xrc;
	struct aw_xrcd *xrcd; /* of a target */
	struct aw_xrc_done *xrc_done; /* of a target: empty; guarded by its lock */
	uint32_t ud_mtu; /* of a UD QP (net/ud/ud.h): bytes of a message at most; 0: an RC QP */
};

struct aw_stage;
struct aw_ud;
struct aw_batch;
struct aw_capture;
struct aw_rc;
struct aw_uqp_watch;
struct aw_varied;
struct aw_carrier;
struct aw_host_ring;
struct aw_tls;

/* The epoll set that the pipe of the bells is in. */
enum aw_bell_set {
	AW_BELL_NOWHERE,
	AW_BELL_ENGINE, /* the progress thread's */
	AW_BELL_CHANNEL, /* that of the channel whose waiters serve the QP */
};

struct aw_uqp {
	/* fixed after create */
	uint32_t qpn; /* 24 bits, never 0 or 1 */
	uint32_t handle;
	struct aw_uqp_attr attr;
	struct aw_mem mem;
	struct aw_rc *rc; /* roce persona: makes the QP's connections; or NULL */
	struct aw_ud *ud; /* NULL: an RC QP */
	struct aw_varied *varied; /* NULL: its device does not vary (net/qp/varied.h) */
	union aw_stat_row *stat; /* its statistics, or NULL; written under the lock */

	struct aw_mw_user of_mw;

	/* Guards all that follows, but for what says otherwise. The thread that has it moves bytes. */
	struct aw_latch lock;
	struct aw_qp core;
	struct aw_rq rq;

	struct aw_counters counters;

	/* The threads that serve the QP (net/qp/serving.h), and the sends that wait for their calls. */
	struct aw_serving serving;
	struct aw_deferral deferral;

	/*
	 * The stream: its socket, how bytes move in each direction, and what they wait for. uqp_sock.c gives it and takes it
	 * away; the carriers, uqp_rx.c and uqp_tx.c move bytes.
	 */
	struct {
		bool attached; /* the QP has or had a socket since the last reset */
		int fd; /* -1: none */
		/* aw_fork_generation() when attached; also read without the lock */
		_Atomic uint32_t generation;
		struct aw_uqp_watch
			*watch; /* of fd, on the heap: it may outlive the QP by a moment */
		uint32_t listens_for; /* epoll events to wait for now, in every set that fd is in */
		const struct aw_carrier *in, *out; /* of its directions (net/qp/carrier.h) */
		struct aw_tls *tls; /* the session over fd, or NULL */
		struct aw_host_ring *ring; /* the memory shared with the peer, or NULL */
		struct aw_move move; /* into it */
		struct aw_uqp_watch
			*bell_watch; /* as watch, of the pipe that wakes this end, or NULL */
		enum aw_bell_set bell_set;
		void *reads; /* IRQ and ORQ, with the depths of the stream */
		struct aw_stage *stage; /* bytes of a half-received FPDU, or NULL */
		struct aw_batch *batch; /* bytes that the socket has not taken yet, or NULL */
		/* of the stream (net/qp/capture.h), or NULL: it was never captured */
		struct aw_capture *capture;
		struct aw_send_buffer send_buffer; /* of fd */
		uint64_t looked_pos; /* position at which TCP was last asked about its path */
		bool settled; /* all that follows the stream's state does so, and the stream was steady (uqp_sock.c) */
		bool tx_blocked; /* the socket took less than it was given */
		bool starved; /* memory for a buffer was out; a deadline brings the next try */
		bool retry_due; /* that deadline runs, or the one of net/qp/rnr.h */
		bool starving_told; /* logged already */
		/* the write-back that an answer waits for (net/mem/writeback.h), or 0 */
		uint64_t written_back;
		bool replied; /* in net/qp/replied.c's list; guarded by its lock, as is the entry */
		TAILQ_ENTRY(aw_uqp) replied_entry;
	};

	/* A message that waits for a receive (net/qp/rnr.h). */
	struct {
		struct aw_rnr_wait rnr_wait;
		uint32_t rnr_ms; /* how long it may wait; 0: for ever */
		bool rnr_told; /* logged already: no more can be kept behind it (core/stash.h) */
	};

	/* A peer that may be lost (net/qp/lost.c). */
	struct {
		uint64_t
			quiet_pos; /* position up to which the peer's TCP is known to have the stream */
		struct aw_liveness liveness;
	};

	/* The end of the stream (uqp_sock.c). */
	struct {
		struct aw_ending ending; /* the watch may have an earlier deadline, for a turn */
		bool reset_seen; /* the socket is dead: close, do not linger */
		bool leaves; /* by_rc: the program ends the QP, and is not told of what else ends the stream */
		bool tells_delivered; /* AW_UQP_DELIVERED is raised once the stream's socket is closed */
		/* then: that socket's number (net/progress/linger.h); 0: it is the QP's, or closed */
		uint32_t lingers;
	};

	/* The roce persona (net/roce/rc.c), which makes the streams of a QP with by_rc. */
	struct {
		bool by_rc; /* ibv_modify_qp named its peer */
		bool peer_keeps; /* the peer of the next stream agreed on core/stash.h */
		bool touched; /* either end has begun a message on the stream */
		bool lost; /* the stream has ended, and the program is not notified */
		/* the stream has ended, but a message of it waits for a receive; nothing is sent any more */
		bool peer_gone;
		bool recall_due; /* the stream ended unused, or is one of UC, and rc's clock is set for it */
		uint32_t
			drops_told; /* UC: messages of the peer that were dropped when that was last logged */
		bool posts_drop; /* UC: what finds no stream counts as sent (net/roce/rc.h) */
		uint64_t fail_ns; /* posts that have no stream by then fail; 0: never */
		uint32_t retry_ms; /* how long a post may wait for a stream; 0: for ever */
		uint32_t peer_qpn; /* as ibv_modify_qp named it */
	};

	/* XRC target: the SRQ that the message is for which is being received (net/cq/xrc.h), or NULL */
	struct aw_xrc_srq *xrc_srq;

	/* The events of its owners (uqp.c, uqp_events.c). The listeners run without the lock, one thread at a time. */
	struct {
		uint32_t events_due, events_told;
		bool drain_asked; /* AW_UQP_DRAINED is raised once the halted send queue is drained */
		bool delivering; /* listeners run now */
		struct aw_latch_cond delivered;
		aw_uqp_fn *listener[2]; /* enum aw_uqp_owner */
		void *listener_arg[2];
	};

	struct aw_cq_user of_cq;
};

/*
 * In the child of a fork: true when the QP's stream is the parent's, or the QP never had one. Then every epoll set that the
 * socket is in is the parent's, too. The caller needs no lock: a thread that only the parent has may hold that of such a QP
 * for ever. Relaxed: only the number matters.
 */
static inline bool aw_uqp_is_inherited(const struct aw_uqp *qp)
{
	return atomic_load_explicit(&qp->generation, memory_order_relaxed) != aw_fork_generation();
}

/* True when ibv_modify_qp connects the QP, and it has nobody to send to. */
static inline bool aw_uqp_is_cut_off(const struct aw_uqp *qp) AW_REQUIRES(qp->lock)
{
	return qp->by_rc && (qp->fd < 0 || qp->peer_gone);
}

/* True when a CQ of the QP has lost a completion, which ends the QP. */
static inline bool aw_uqp_has_overflowed(const struct aw_uqp *qp)
{
	return qp->attr.send_cq->overflowed || qp->attr.recv_cq->overflowed;
}

/* True when a CQ of the QP is armed. */
static inline bool aw_uqp_is_armed(const struct aw_uqp *qp)
{
	return qp->attr.send_cq->armed != AW_ARM_NONE || qp->attr.recv_cq->armed != AW_ARM_NONE;
}

enum aw_uqp_owner {
	AW_UQP_VERBS,
	AW_UQP_CM,
};

/*
 * 0, or EINVAL (a limit), ENOMEM. The caller holds an engine reference for the QP's life.
 */
int aw_uqp_create(const struct aw_uqp_attr *attr, struct aw_uqp **qp);

/* Ends the stream (bytes that TCP holds are still sent), drops the QP's CQEs, frees the QP. */
void aw_uqp_destroy(struct aw_uqp *qp) AW_EXCLUDES(qp->lock);

/*
 * Sets the receiver of events; fn NULL: none. Returns when no delivery runs, so it must not be
 * called from one. Events that were raised before are delivered at once, by the calling thread.
 */
void aw_uqp_listen(struct aw_uqp *qp, enum aw_uqp_owner owner, aw_uqp_fn *fn, void *arg)
	AW_EXCLUDES(qp->lock);

/* The QP with this handle, which is not freed until aw_uqp_put; NULL when there is none. */
struct aw_uqp *aw_uqp_at(uint32_t handle);
void aw_uqp_put(struct aw_uqp *qp);

/* The socket that a QP is attached to. */
struct aw_uqp_socket {
	int fd; /* connected, non-blocking */
	/*
	 * NULL, or sends what the peer waits for before it begins the stream. It is called under
	 * the QP lock when the progress thread already watches fd: the thread then cannot receive
	 * later connections of that peer before it has received the begin of this stream. 0, or an
	 * errno, after which the QP is as before.
	 */
	int (*start)(void *arg, int fd);
	void *arg;
	const struct sockaddr_storage *peer; /* NULL: asked of fd */
	bool watched; /* fd is in the progress thread's epoll set (aw_watch_pass_fd) */
	struct aw_tls *tls; /* its session, which the QP owns on success, too; or NULL */
	const struct aw_tls_identity *identity; /* the session's peer; or NULL */
	uint32_t segment_size; /* that aw_uqp_ready_socket gave; 0: it is called for fd */
};

/*
 * Readies a connected socket for the QP that takes it, and returns TCP's segment size. An initiator has time for that while the peer
 * answers.
 */
uint32_t aw_uqp_ready_socket(int fd);

/*
 * Attaches the QP to a socket whose start-up is done, but for what start sends. stream's emss is
 * filled in here. The QP owns fd on success. 0, or EINVAL (already attached, or in error),
 * ENOMEM, aw_watch_add's error, or start's.
 */
int aw_uqp_attach_to(struct aw_uqp *qp, const struct aw_uqp_socket *to, struct aw_stream *stream)
	AW_EXCLUDES(qp->lock);

static inline int aw_uqp_attach(struct aw_uqp *qp, int fd, struct aw_stream *stream)
	AW_EXCLUDES(qp->lock)
{
	return aw_uqp_attach_to(qp, &(struct aw_uqp_socket){ .fd = fd }, stream);
}

/*
 * close: a graceful close. abort: with a flush (modify to ERR). reset: back to IDLE (modify to
 * RESET).
 */
void aw_uqp_close(struct aw_uqp *qp) AW_EXCLUDES(qp->lock);
void aw_uqp_abort(struct aw_uqp *qp) AW_EXCLUDES(qp->lock);

/*
 * As close and then abort. AW_UQP_DELIVERED follows, which says that the process may end without a reset of what TCP has still to
 * deliver.
 */
void aw_uqp_disconnect(struct aw_uqp *qp) AW_EXCLUDES(qp->lock);
void aw_uqp_reset(struct aw_uqp *qp) AW_EXCLUDES(qp->lock);

/*
 * halts: WRs that are not begun wait, until a call with false. tells: AW_UQP_DRAINED is raised once
 * those that were begun are complete.
 */
void aw_uqp_halt(struct aw_uqp *qp, bool halts, bool tells) AW_EXCLUDES(qp->lock);

/* The peer cannot be reached: the oldest posted WR fails with status, all others are flushed. */
void aw_uqp_give_up(struct aw_uqp *qp, enum aw_wc_status status) AW_EXCLUDES(qp->lock);

/* UC: the peer is not there: until a stream begins, posts count as sent. */
void aw_uqp_drop_posts(struct aw_uqp *qp) AW_EXCLUDES(qp->lock);

enum aw_qp_state aw_uqp_state(struct aw_uqp *qp) AW_EXCLUDES(qp->lock);

/*
 * Called after aw_mr_remove of a region of pd. When this returns no QP reads [start, start + len)
 * any more, not even for bytes that wait for the socket.
 */
void aw_uqp_unlend(const void *pd, const void *start, size_t len);

/*
 * Posting sends: begin takes the lock; the caller fills the slot that aw_uqp_send_slot returns
 * (NULL: the queue is full) and commits it, any number of times; end transmits, unless the posts
 * are held, and releases the lock. Commit is optional: a WR that proved invalid is not committed.
 * ahead: slots that are filled and not committed yet.
 */
void aw_uqp_send_begin(struct aw_uqp *qp) AW_ACQUIRE(qp->lock);
struct aw_swqe *aw_uqp_send_slot(struct aw_uqp *qp) AW_REQUIRES(qp->lock);
struct aw_swqe *aw_uqp_send_slot_ahead(struct aw_uqp *qp, uint32_t ahead) AW_REQUIRES(qp->lock);
void aw_uqp_send_commit(struct aw_uqp *qp) AW_REQUIRES(qp->lock);
void aw_uqp_send_end(struct aw_uqp *qp) AW_RELEASE(qp->lock);
/* In its place on a device that varies: the posts are held for longer. */
void aw_uqp_send_end_late(struct aw_uqp *qp) AW_RELEASE(qp->lock);

/*
 * 0, ENOMEM (full), EINVAL (too many SGEs, or the QP uses an SRQ). In ERROR the receive is flushed
 * at once.
 */
int aw_uqp_recv(struct aw_uqp *qp, uint64_t wr_id, const struct aw_sge *sge, uint32_t count)
	AW_EXCLUDES(qp->lock);

/* For net/ud/ud.c: delivers the events that are due, and releases the lock. */
void aw_uqp_unlock(struct aw_uqp *qp) AW_RELEASE(qp->lock);

/*
 * For net/qp/uqp_progress.c: the progress thread listens to the socket again, and the
 * waiters of a channel do not. 0 or ENOMEM, ENOSPC.
 */
int aw_uqp_listen_again(struct aw_uqp *qp) AW_REQUIRES(qp->lock);

#endif
