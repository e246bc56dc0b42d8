// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "check/model/registered.h"

#include "check/model/qp.h"
#include "check/report/report.h"

#include <inttypes.h>
#include <stddef.h>

#define REMOTE (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of the tree */
static struct aw_span_tree mrs;
static atomic_uint count;

static struct aw_mr_shadow *mr_of(struct aw_memory_span *span)
{
	return (struct aw_mr_shadow *)((char *)span - offsetof(struct aw_mr_shadow, span));
}

void aw_registered_add(struct aw_mr_shadow *mr)
{
	if (!(mr->access & REMOTE) || !mr->is_readable ||
	    !aw_report_wants(AW_RULE_REGISTERED_FREED))
		return;
	mr->span = (struct aw_memory_span){ .start = mr->memory,
					    .end = mr->memory + (mr->end - mr->start) };
	pthread_mutex_lock(&lock);
	aw_span_insert(&mrs, &mr->span);
	mr->is_registered = true;
	atomic_fetch_add(&count, 1);
	pthread_mutex_unlock(&lock);
}

void aw_registered_remove(struct aw_mr_shadow *mr)
{
	pthread_mutex_lock(&lock);
	if (mr->is_registered) {
		aw_span_remove(&mrs, &mr->span);
		mr->is_registered = false;
		atomic_fetch_sub(&count, 1);
	}
	pthread_mutex_unlock(&lock);
}

bool aw_registered_is_any(void)
{
	return atomic_load_explicit(&count, memory_order_relaxed) != 0;
}

/* A QP of the PD; with a reference, or NULL. */
struct reacher {
	const void *pd;
	struct aw_qp_shadow *qps[16]; /* more are not asked */
	unsigned count;
};

static void reacher_find(struct aw_object *object, void *arg)
{
	struct reacher *reacher = arg;
	struct aw_qp_shadow *qp = (struct aw_qp_shadow *)object;

	if (object->kind != AW_KIND_QP || qp->pd != reacher->pd ||
	    reacher->count == sizeof(reacher->qps) / sizeof(reacher->qps[0]))
		return;
	atomic_fetch_add(&object->refs, 1);
	reacher->qps[reacher->count++] = qp;
}

/* A connected QP by which a peer can reach an MR of the PD: its number; 0: there is none. */
static uint32_t connected_find(const void *pd)
{
	struct reacher reacher = { .pd = pd };
	uint32_t number = 0;

	aw_object_each(reacher_find, &reacher);
	for (unsigned i = 0; i < reacher.count; i++) {
		const enum ibv_qp_state state = number ? IBV_QPS_RESET
						       : aw_qp_state(reacher.qps[i]);

		if (state == IBV_QPS_RTR || state == IBV_QPS_RTS)
			number = reacher.qps[i]->object.number;
		aw_object_put(&reacher.qps[i]->object);
	}
	return number;
}

void aw_registered_given_up(const char *what, uint64_t start, uint64_t end)
{
	char name[AW_OBJECT_NAME_MAX];
	struct aw_memory_span *span;
	struct aw_mr_shadow *mr = NULL;
	uint32_t qp;

	pthread_mutex_lock(&lock);
	span = aw_span_overlapping(&mrs, start, end);
	if (span) {
		mr = mr_of(span);
		atomic_fetch_add(&mr->object.refs, 1);
	}
	pthread_mutex_unlock(&lock);
	if (!mr)
		return;
	qp = connected_find(mr->pd);
	if (qp) {
		aw_object_name(&mr->object, name);
		aw_registered_remove(mr);
		aw_report(&(struct aw_report){ .rule = AW_RULE_REGISTERED_FREED,
					       .object = name,
					       .earlier = { { "the MR was registered here",
							      &mr->object.made } } },
			  "memory at 0x%" PRIx64 " to 0x%" PRIx64
			  " is %s, but the %s still covers 0x%" PRIx64 " to 0x%" PRIx64
			  ", and the peer of QP 0x%x can reach it",
			  start, end, what, name, mr->memory, mr->memory + (mr->end - mr->start),
			  qp);
	}
	aw_object_put(&mr->object);
}

void aw_registered_forget(void)
{
	pthread_mutex_init(&lock, NULL);
	mrs.root = NULL;
	atomic_store(&count, 0);
}
