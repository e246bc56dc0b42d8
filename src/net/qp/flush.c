// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Looks up what waits, and has its QP send it.
#include "net/qp/flush.h"

#include "base/clock.h"
#include "net/progress/engine.h"
#include "net/qp/deferral.h"
#include "net/qp/uqp_sock.h"
#include "ring/lock.h"
#include "ring/table.h"

#include <pthread.h>

#define LOOKS_MAX 1024 /* per tick, so that other work has its turn */

static pthread_once_t registered = PTHREAD_ONCE_INIT;

/* most: the number of QPs whose posts wait now. Other threads may go on posting meanwhile. */
static void flush(const struct aw_cq *cq, uint32_t most)
{
	uint32_t handle;

	for (; most > 0 && (handle = aw_deferral_find(cq, UINT64_MAX)) != AW_TABLE_NONE; most--)
		aw_uqp_on_flush(handle);
}

void aw_flush_polled_late(struct aw_cq *cq)
{
	if (atomic_load_explicit(&cq->burst, memory_order_relaxed)) {
		atomic_store_explicit(&cq->burst, false, memory_order_relaxed);
		atomic_store_explicit(&cq->polled_ns, aw_now_ns(), memory_order_relaxed);
	}
	flush(cq, atomic_load(&cq->posts_waiting));
}

void aw_flush_armed(struct aw_cq *cq)
{
	flush(cq, atomic_load(&cq->posts_waiting));
	if (atomic_load(&cq->acks_waiting) == 0)
		return;
	aw_lock(&cq->qps_lock);
	for (uint32_t i = 0; i < cq->qps_count; i++)
		aw_uqp_on_flush(cq->qps[i]->handle);
	aw_unlock(&cq->qps_lock);
}

void aw_flush_posts(void)
{
	flush(NULL, aw_deferral_count());
}

/*
 * exit(3) runs this in any thread, with any lock held, and the sockets end next. Other threads go on meanwhile: without
 * a lock a QP may be destroyed, so only its handle is used.
 */
__attribute__((destructor)) static void flush_at_exit(void)
{
	uint32_t handle;

	for (uint32_t most = aw_deferral_count(); most > 0; most--)
		if (aw_deferral_try_find(&handle) && handle != AW_TABLE_NONE)
			aw_uqp_on_exit(handle);
	for (handle = 0; aw_deferral_any_ack() && handle < AW_QP_MAX; handle++)
		aw_uqp_on_exit(handle);
}

static uint64_t look_for_late(uint64_t now_ns)
{
	uint32_t handle;

	for (int i = 0; i < LOOKS_MAX; i++) {
		handle = aw_deferral_find(NULL, now_ns - AW_LATE_NS);
		if (handle == AW_TABLE_NONE)
			break;
		aw_uqp_on_late(handle);
	}
	return aw_deferral_looked() ? aw_now_ns() + AW_LATE_LOOK_NS : 0;
}

static void set_tick(void)
{
	aw_engine_set_tick(AW_TICK_LATE, look_for_late);
}

void aw_flush_begin(void)
{
	pthread_once(&registered, set_tick);
}
