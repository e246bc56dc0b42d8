// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// An XRC domain: the SRQs that a peer may name by number in its messages to any target QP of the domain. A
// target QP holds an SRQ from a message's first byte to its completion, while the program may destroy it: then the
// message goes on into MRs that still are there, and its completion is dropped. One lock for all
// domains, taken after QP locks and before those of SRQs and CQs, guards what is not fixed.
#ifndef NET_XRC_H
#define NET_XRC_H

#include "net/cq/cq.h"
#include "net/cq/srq.h"

#define AW_XRC_BUCKETS 64

/* An SRQ as its domain knows it. */
struct aw_xrc_srq {
	/* fixed after join */
	uint32_t number;
	const void *pd;
	struct aw_cq *cq;

	struct aw_cq_user of_cq; /* its completions in cq go when it leaves */
	struct aw_srq *srq; /* NULL: destroyed */
	uint32_t refs; /* the SRQ itself, and messages that are being received */
	struct aw_xrc_srq *next; /* of its bucket */
};

#define AW_XRC_DONE_MAX 16

/*
 * Completions of a target QP that its CQs get when the thread that serves it has sent what is due: as on InfiniBand the initiator
 * has the acknowledgement of a message before it can have an answer, which comes by another connection.
 */
struct aw_xrc_done {
	uint32_t count;
	bool settling; /* a thread sees to it that they come in order, and flushes them when it has (net/qp/uqp.c) */
	struct {
		struct aw_xrc_srq *srq; /* held */
		struct aw_cq_entry entry;
	} at[AW_XRC_DONE_MAX];
};

/* A PD that SRQs of the domain are of. */
struct aw_xrc_pd {
	const void *pd;
	uint32_t srqs;
};

struct aw_xrcd {
	struct aw_cq
		targets; /* the CQ of all target QPs of the domain, which feeds those of its SRQs */
	struct aw_xrc_srq *bucket[AW_XRC_BUCKETS]; /* by number */
	struct aw_xrc_pd *pds;
	uint32_t pds_count, pds_room;
};

/* Begins without SRQs. 0 or ENOMEM. fini: neither an SRQ nor a target QP is in it any more. */
int aw_xrcd_init(struct aw_xrcd *xrcd) AW_MUST_USE;
void aw_xrcd_fini(struct aw_xrcd *xrcd);

/* number: one that no SRQ in any domain has. Completions go to cq, which outlives the SRQ. 0 or ENOMEM. */
int aw_xrc_join(struct aw_xrcd *xrcd, uint32_t number, struct aw_srq *srq, struct aw_cq *cq,
		struct aw_xrc_srq **joined);
/* From now on nothing is received by the SRQ, and cq has no completion of it. */
void aw_xrc_leave(struct aw_xrcd *xrcd, struct aw_xrc_srq *srq);

/*
 * Takes a receive of the SRQ with that number, which is then held. AW_OK; AW_E_DDP_NO_BUFFER, and nothing is held;
 * AW_E_DDP_QN: there is no such SRQ; AW_E_LOCAL_CATASTROPHIC: its CQ has lost a completion.
 */
enum aw_error aw_xrc_take(struct aw_xrcd *xrcd, uint32_t number, struct aw_rwqe *recv,
			  struct aw_xrc_srq **held) AW_MUST_USE;
/* Adds the completion of a receive to the SRQ's CQ; entry->user is filled in. The SRQ stays held. */
void aw_xrc_complete(struct aw_xrc_srq *held, const struct aw_cq_entry *entry);
void aw_xrc_put(struct aw_xrc_srq *held);
/* Completes and puts the oldest ones, or all where there are fewer. */
void aw_xrc_flush(struct aw_xrc_done *done, uint32_t count);

/* True when an SRQ of the domain is of that PD. */
bool aw_xrc_has_pd(const struct aw_xrcd *xrcd, const void *pd);

#endif
