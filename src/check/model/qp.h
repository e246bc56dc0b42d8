// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The shadows of QPs and SRQs: their queues of work requests, and what was seen of a QP.
#ifndef CHECK_MODEL_QP_H
#define CHECK_MODEL_QP_H

#include "check/model/queue.h"
#include "check/model/verbs.h"

struct aw_srq_shadow {
	struct aw_object object;
	struct ibv_srq *srq;
	const void *pd;
	const void *cq; /* of an SRQ of XRC, whose completions come there; else NULL */
	struct ibv_srq_attr attr;
	atomic_uint qps; /* that take their receives here */
	pthread_mutex_t lock; /* guards the queue; before the lock of the spans */
	struct aw_wr_queue queue;
};

struct aw_wr_batch;

/* A call that was seen, with its thread and stack. */
struct aw_call_seen {
	bool is_set;
	pthread_t thread;
	struct aw_stack stack;
};

struct aw_qp_shadow {
	struct aw_object object;
	struct ibv_qp *qp;
	enum ibv_qp_type type;
	const void *pd; /* that of a parent domain: the PD below it */
	const void *send_cq, *recv_cq;
	struct aw_object *send_cq_shadow; /* a reference, or NULL */
	struct aw_object *td; /* the thread domain of its parent domain, a reference, or NULL */
	struct aw_object *srq; /* a reference, or NULL */
	struct ibv_qp_cap cap;
	bool is_all_signaled;
	bool has_flush; /* created for ibv_wr_flush, whose slot Debian 12's struct ibv_qp_ex lacks */
	void (*flush)(void); /* its own function for that, which a hook replaced */
	struct ibv_qp_ex
		extended; /* its own functions, which the hooks replaced; all 0 before ibv_qp_to_qp_ex */
	struct aw_wr_batch *batch; /* from ibv_wr_start to ibv_wr_complete, or NULL */
	pthread_mutex_t lock; /* guards what follows; before the lock of the spans */
	struct aw_wr_queue sends, recvs;
	uint8_t port; /* of the move to INIT; 0: not seen */
	enum ibv_qp_state
		state; /* as far as the program's own calls tell; aw_qp_state asks the device */
	uint8_t rd_atomic; /* the ORD that was agreed, where has_rd_atomic */
	bool has_rd_atomic;
	struct aw_call_seen failed; /* the first completion with an error */
	enum ibv_wc_status failure;
	struct aw_call_seen accepted; /* the last post of which the device accepted a part */
	const void *accepted_first; /* its first WR */
	uint64_t accepted_wr_id;
	struct aw_remote
		refused; /* the peer's refusal, of the last such completion, and its post */
	struct aw_stack refused_posted;
	unsigned
		answered; /* the oldest sends, before the last receive that the program polled: the peer may have answered them */
	struct aw_call_seen
		passive; /* the accept of its connection, until the first receive completes; see aw_qp_accepted */
	bool is_full; /* a post found no room, and no completion of a send was polled since */
};

struct aw_qp_shadow *aw_qp_get(const struct ibv_qp *qp);
struct aw_srq_shadow *aw_srq_get(const struct ibv_srq *srq);
/* Make a shadow and put it into the table. cap: as the library returned it. cq: as in struct aw_srq_shadow. */
void aw_qp_add(struct ibv_qp *qp, const struct ibv_qp_init_attr *attr);
void aw_srq_add(struct ibv_srq *srq, const struct ibv_srq_attr *attr, const struct ibv_cq *cq);

void aw_seen_set(struct aw_call_seen *seen);

/* The state by ibv_query_qp; where that fails, the one that is known. */
enum ibv_qp_state aw_qp_state(struct aw_qp_shadow *qp);

/*
 * The QP is about to become the passive end of a connection, on an adapter that sends nothing there before it has received (RFC
 * 5044 7.1.2): an earlier send is told. The second takes that back where the accept failed.
 */
void aw_qp_accepted(struct aw_qp_shadow *qp);
void aw_qp_accept_failed(struct aw_qp_shadow *qp);

/* Tells what the destruction of the QP breaks; and forgets its WRs, as a reset does. */
void aw_qp_end(struct aw_qp_shadow *qp);
void aw_qp_reset(struct aw_qp_shadow *qp);
void aw_srq_end(struct aw_srq_shadow *srq);

/* True where a WR is under way that can complete into the CQ as the QPs now stand. */
bool aw_cq_awaits(const struct ibv_cq *cq);

/*
 * The program has polled the completion from the CQ: its WR is no longer under way, and the rules about its memory are told.
 * Poisons what is undefined where the status is an error.
 */
void aw_cq_completed(const struct ibv_cq *cq, struct ibv_wc *wc);

#endif
