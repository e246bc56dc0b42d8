// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The shadows of contexts, PDs, MRs, channels, CQs and SRQs. Fixed members are set before the shadow is in the table.
#ifndef CHECK_MODEL_VERBS_H
#define CHECK_MODEL_VERBS_H

#include "check/model/object.h"
#include "check/model/span.h"
#include "check/vary/vary.h"

#include <infiniband/verbs.h>
#include <pthread.h>

struct aw_context_shadow {
	struct aw_object object;
	struct ibv_context_ops ops; /* the device's own, which the hooks replaced */
	struct verbs_context extended; /* likewise; all 0 where the device has none */
	struct ibv_device_attr attr;
};

struct aw_pd_shadow {
	struct aw_object object;
	const void *parent; /* of a parent domain: the PD that it was made from; else itself */
	const void *td; /* the thread domain of a parent domain, or NULL */
};

struct aw_td_shadow {
	struct aw_object object;
	pthread_mutex_t lock; /* guards what follows */
	unsigned users; /* threads in a call that its promise is about */
	struct aw_stack used; /* the last such call */
};

struct aw_mr_shadow {
	struct aw_object object;
	uint64_t start,
		end; /* the addresses that a WR may name; from 0 for IBV_ACCESS_ZERO_BASED */
	uint64_t memory; /* the address in this process of start */
	uint32_t rkey;
	const void *pd;
	unsigned access;
	bool is_readable; /* this process can read it: it is no device's memory */
	struct aw_memory_span span; /* model/registered.c's, as is_registered */
	bool is_registered;
};

struct aw_cq_shadow {
	struct aw_object object;
	struct ibv_cq *cq;
	int cqe;
	const void *channel; /* or NULL */
	struct ibv_cq_ex
		extended; /* its own functions, which the hooks replaced; all 0 in a plain CQ */
	pthread_mutex_t lock; /* guards what follows */
	unsigned events_unacked;
	unsigned events_spurious; /* of these, the ones that the library knows nothing of */
	struct aw_vary_cq vary;
	uint32_t vary_left; /* completions that the poll by ibv_start_poll may still give */
	struct aw_stack event_got; /* the last event */
	bool arm_needs_poll; /* when it was armed, WRs were under way whose completions an arm does not tell */
	struct aw_stack armed;
	pthread_t armed_by;
	_Atomic pthread_t
		poller; /* the thread that polled it last; at first the one that made it */
	atomic_uint sends_due; /* signaled sends under way */
	atomic_bool is_overrun, overrun_due, overrun_unacked; /* hook/overrun.c's */
	uint64_t room_promised; /* max_send_wr and max_recv_wr of its QPs */
};

/* With the ops of the device, which the caller may replace from then on. NULL: memory is out. The table keeps it. */
struct aw_context_shadow *aw_context_add(struct ibv_context *context,
					 const struct ibv_device_attr *attr);
struct aw_context_shadow *aw_context_get(const struct ibv_context *context);
struct aw_pd_shadow *aw_pd_get(const struct ibv_pd *pd);
struct aw_cq_shadow *aw_cq_get(const struct ibv_cq *cq);

/* Make a shadow and put it into the table; the caller does not get a reference. Nothing is done where memory is out. */
void aw_pd_add(const struct ibv_pd *pd, const struct ibv_pd *parent, const struct ibv_td *td);
void aw_td_add(const struct ibv_td *td);
void aw_mr_shadow_add(const struct ibv_mr *mr, uint64_t iova, unsigned access, bool is_memory);
void aw_cq_add(struct ibv_cq *cq, const struct ibv_comp_channel *channel);
/* A call that the promise of a thread domain is about; tells two threads in such calls at once. td: NULL, or an aw_td. */
void aw_td_enter(struct aw_object *td);
void aw_td_leave(struct aw_object *td);
/* Those without anything of their own: an MW, AH, event channel, rdma_cm_id. */
void aw_plain_add(enum aw_kind kind, const void *handle, const struct ibv_context *context);

#endif
