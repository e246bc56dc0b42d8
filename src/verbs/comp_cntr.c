// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Completion counters (net/cq/counter.h) as objects of verbs. A QP holds its counters from ibv_qp_attach_comp_cntr to its end.
#include "base/array.h"
#include "net/base/io_now.h"
#include "net/cq/counter.h"
#include "ring/lock.h"
#include "verbs/context.h"
#include "verbs/fail.h"
#include "verbs/limits.h"
#include "verbs/newer.h"
#include "verbs/qp.h"
#include "verbs/sized.h"

#include <errno.h>
#include <stdlib.h>

/* A peer's Writes and Reads are not counted: they end in no WR of this end. */
#define OPS_SUPPORTED ((uint32_t)VB_COUNT_SEND | VB_COUNT_RECV | VB_COUNT_READ | VB_COUNT_WRITE)

struct vb_comp_cntr {
	/* struct ibv_comp_cntr of newer headers */
	struct {
		struct ibv_context *context;
		uint32_t handle;
	} ibv;
	struct aw_counter aw;
	_Atomic uint32_t users; /* QPs, once for each operation */
};

static struct vb_limit counters = { .max = VB_COUNTER_MAX };

/* Under names of our own, because newer headers declare them with their own structs. */
int counter_caps(struct ibv_context *context, struct vb_comp_cntr_caps *caps,
		 size_t caps_size) __asm__("_ibv_query_comp_cntr_caps");
struct vb_comp_cntr *counter_create(struct ibv_context *context,
				    const struct vb_comp_cntr_init_attr *attr) //
	__asm__("ibv_create_comp_cntr");
int counter_destroy(struct vb_comp_cntr *counter) __asm__("ibv_destroy_comp_cntr");
int counter_set(struct vb_comp_cntr *counter, uint64_t value) __asm__("ibv_set_comp_cntr");
int counter_set_err(struct vb_comp_cntr *counter, uint64_t value) __asm__("ibv_set_err_comp_cntr");
int counter_inc(struct vb_comp_cntr *counter, uint64_t amount) __asm__("ibv_inc_comp_cntr");
int counter_inc_err(struct vb_comp_cntr *counter, uint64_t amount) __asm__("ibv_inc_err_comp_cntr");
int counter_read(struct vb_comp_cntr *counter, uint64_t *value) __asm__("ibv_read_comp_cntr");
int counter_read_err(struct vb_comp_cntr *counter,
		     uint64_t *value) __asm__("ibv_read_err_comp_cntr");
int counter_attach(struct ibv_qp *qp, struct vb_comp_cntr *counter,
		   const struct vb_comp_cntr_attach_attr *attr) //
	__asm__("ibv_qp_attach_comp_cntr");

int counter_caps(struct ibv_context *context, struct vb_comp_cntr_caps *caps, size_t caps_size)
{
	const struct vb_comp_cntr_caps now = {
		.max_value = UINT64_MAX,
		.max_counters = VB_COUNTER_MAX,
		.supported_qp_attach_ops = OPS_SUPPORTED,
	};

	(void)context;
	vb_sized_write(caps, caps_size, &now, sizeof(now));
	return 0;
}

static int init_check(const struct vb_comp_cntr_init_attr *attr)
{
	if (attr->comp_mask || attr->flags)
		return EOPNOTSUPP;
	return attr->type == VB_COMP_CNTR_WRS || attr->type == VB_COMP_CNTR_BYTES ? 0 : EOPNOTSUPP;
}

struct vb_comp_cntr *counter_create(struct ibv_context *context,
				    const struct vb_comp_cntr_init_attr *attr)
{
	AW_UNCANCELLED int cancel = aw_cancel_disable();
	static _Atomic uint32_t handles;
	struct vb_comp_cntr *counter = NULL;
	int err = init_check(attr);

	if (!err && !vb_limit_take(&counters))
		err = ENOMEM;
	if (!err) {
		counter = calloc(1, sizeof(*counter));
		if (!counter) {
			vb_limit_give(&counters);
			err = ENOMEM;
		}
	}
	if (err) {
		errno = err;
		return NULL;
	}
	counter->ibv.context = context;
	counter->ibv.handle = atomic_fetch_add_explicit(&handles, 1, memory_order_relaxed);
	counter->aw.bytes = attr->type == VB_COMP_CNTR_BYTES;
	vb_context_get(context);
	return counter;
}

/* EBUSY while a QP counts in it. */
int counter_destroy(struct vb_comp_cntr *counter)
{
	AW_UNCANCELLED int cancel = aw_cancel_disable();
	struct ibv_context *context = counter->ibv.context;

	/* Acquire pairs with the release in vb_qp_counters_leave: that QP adds no more. */
	if (atomic_load_explicit(&counter->users, memory_order_acquire))
		return vb_fail(EBUSY);
	free(counter);
	vb_limit_give(&counters);
	vb_context_put(context);
	return 0;
}

int counter_set(struct vb_comp_cntr *counter, uint64_t value)
{
	atomic_store_explicit(&counter->aw.good, value, memory_order_relaxed);
	return 0;
}

int counter_set_err(struct vb_comp_cntr *counter, uint64_t value)
{
	atomic_store_explicit(&counter->aw.bad, value, memory_order_relaxed);
	return 0;
}

int counter_inc(struct vb_comp_cntr *counter, uint64_t amount)
{
	atomic_fetch_add_explicit(&counter->aw.good, amount, memory_order_relaxed);
	return 0;
}

int counter_inc_err(struct vb_comp_cntr *counter, uint64_t amount)
{
	atomic_fetch_add_explicit(&counter->aw.bad, amount, memory_order_relaxed);
	return 0;
}

int counter_read(struct vb_comp_cntr *counter, uint64_t *value)
{
	*value = atomic_load_explicit(&counter->aw.good, memory_order_relaxed);
	return 0;
}

int counter_read_err(struct vb_comp_cntr *counter, uint64_t *value)
{
	*value = atomic_load_explicit(&counter->aw.bad, memory_order_relaxed);
	return 0;
}

static const struct {
	uint32_t op;
	enum aw_counted counted;
} ops[] = {
	{ VB_COUNT_SEND, AW_COUNTED_SEND },
	{ VB_COUNT_RECV, AW_COUNTED_RECV },
	{ VB_COUNT_READ, AW_COUNTED_READ },
	{ VB_COUNT_WRITE, AW_COUNTED_WRITE },
};

/* EBUSY: another counter has one of these. Then none is attached. */
static int attach(struct vb_qp *qp, struct vb_comp_cntr *counter, uint32_t mask)
	AW_REQUIRES(qp->uqp->lock)
{
	for (size_t i = 0; i < ARRAY_LEN(ops); i++)
		if (mask & ops[i].op && qp->counters[ops[i].counted])
			return EBUSY;
	for (size_t i = 0; i < ARRAY_LEN(ops); i++) {
		if (!(mask & ops[i].op))
			continue;
		qp->counters[ops[i].counted] = counter;
		qp->uqp->counters.of[ops[i].counted] = &counter->aw;
		atomic_fetch_add_explicit(&counter->users, 1, memory_order_relaxed);
	}
	qp->uqp->core.tells_each = aw_counters_any(&qp->uqp->counters);
	return 0;
}

int counter_attach(struct ibv_qp *ibv, struct vb_comp_cntr *counter,
		   const struct vb_comp_cntr_attach_attr *attr)
{
	AW_UNCANCELLED int cancel = aw_cancel_disable();
	struct vb_qp *qp = vb_qp_of(ibv);
	enum ibv_qp_state state = vb_qp_state(qp);
	int err;

	if (attr->comp_mask || attr->op_mask & ~OPS_SUPPORTED)
		return vb_fail(EOPNOTSUPP);
	if (!attr->op_mask || counter->ibv.context != ibv->context ||
	    (state != IBV_QPS_RESET && state != IBV_QPS_INIT))
		return vb_fail(EINVAL);
	aw_lock(&qp->uqp->lock);
	err = attach(qp, counter, attr->op_mask);
	aw_unlock(&qp->uqp->lock);
	return vb_fail(err);
}

void vb_qp_counters_leave(struct vb_qp *qp)
{
	for (int i = 0; i < AW_COUNTED; i++)
		if (qp->counters[i])
			atomic_fetch_sub_explicit(&qp->counters[i]->users, 1, memory_order_release);
}
