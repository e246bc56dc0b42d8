// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The ring under one lock. An overflow raises CQ_ERR and fails the QPs, whose settle looks for it.
#include "net/cq/cq.h"

#include "base/clock.h"
#include "net/base/fork.h"
#include "net/cq/moderation.h"
#include "net/cq/sets.h"
#include "ring/lock.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

static _Atomic uint32_t numbers; /* CQs made */
static _Thread_local struct aw_cq_pushes pushes __attribute__((tls_model("initial-exec")));
static _Thread_local struct aw_cq_taker *taking __attribute__((tls_model("initial-exec")));

/* For other processes to read (net/stat/stat.h). */
static void publish(struct aw_cq *cq) AW_REQUIRES(cq->lock)
{
	if (cq->stat)
		aw_stat_set(&cq->stat->cq.ready, cq->tail - cq->head);
}

int aw_cq_init(struct aw_cq *cq, uint32_t capacity, struct aw_channel *channel, void *object)
{
	if (capacity == 0 || capacity > AW_CQE_MAX)
		return EINVAL;
	*cq = (struct aw_cq){ .channel = channel,
			      .capacity = capacity,
			      .epfd = -1,
			      .generation = aw_fork_generation() };
	cq->number = atomic_fetch_add_explicit(&numbers, 1, memory_order_relaxed);

	int err = aw_mem_get(&cq->mem, NULL, AW_MEM_CQ, capacity * sizeof(*cq->ring));
	if (err)
		return err;
	cq->ring = cq->mem.at;
	aw_source_init(&cq->event, object, 0);
	aw_source_init(&cq->async_error, object, 0);
	aw_latch_init(&cq->lock);
	aw_latch_init(&cq->qps_lock);
	cq->stat = aw_stat_take(AW_STAT_CQ, cq->number);
	if (cq->stat) {
		aw_stat_set(&cq->stat->cq.capacity, cq->capacity);
		aw_stat_set(&cq->stat->cq.channel, cq->channel != NULL);
	}
	return 0;
}

void aw_cq_fini(struct aw_cq *cq)
{
	assert(cq->qps_count == 0);
	aw_moderation_end(cq);
	if (cq->channel)
		aw_channel_forget(cq->channel, &cq->event);
	if (cq->async)
		aw_channel_forget(cq->async, &cq->async_error);
	aw_sets_close(AW_SETS_CQ, cq->epfd);
	aw_stat_give(cq->stat);
	free(cq->qps);
	free(cq->socks);
	assert(cq->feeds_count == 0 || cq->generation != aw_fork_generation());
	free(cq->feeds);
	aw_mem_put(&cq->mem);
	aw_latch_fini(&cq->qps_lock);
	aw_latch_fini(&cq->lock);
}

void aw_cq_renew_locks(struct aw_cq *cq)
{
	aw_latch_init(&cq->lock);
	aw_latch_init(&cq->qps_lock);
}

/* Indices are below twice the capacity (wrap). */
static struct aw_cq_entry *entry_at(const struct aw_cq *cq, uint32_t index) AW_REQUIRES(cq->lock)
{
	return &cq->ring[index < cq->capacity ? index : index - cq->capacity];
}

int aw_cq_keep_in(struct aw_cq *cq, const struct aw_mem_source *source)
{
	cq->memory = source;
	return source ? aw_cq_resize(cq, cq->capacity) : 0;
}

/* Exchanges the ring's memory for mem; false when more CQEs are waiting than would fit. */
static bool move_ring(struct aw_cq *cq, struct aw_mem *mem, uint32_t capacity) AW_REQUIRES(cq->lock)
{
	struct aw_cq_entry *ring = mem->at;
	uint32_t count = cq->tail - cq->head;
	struct aw_mem old = cq->mem;

	if (count > capacity)
		return false;
	for (uint32_t i = 0; i < count; i++)
		ring[i] = *entry_at(cq, cq->head + i);
	cq->mem = *mem;
	cq->ring = ring;
	cq->capacity = capacity;
	cq->head = 0;
	cq->tail = count;
	*mem = old;
	return true;
}

int aw_cq_resize(struct aw_cq *cq, uint32_t capacity)
{
	struct aw_mem mem;
	bool moved;
	int err;

	if (capacity == 0 || capacity > AW_CQE_MAX)
		return EINVAL;
	err = aw_mem_get(&mem, cq->memory, AW_MEM_CQ, capacity * sizeof(*cq->ring));
	if (err)
		return err;
	aw_lock(&cq->lock);
	moved = move_ring(cq, &mem, capacity);
	if (moved && cq->stat)
		aw_stat_set(&cq->stat->cq.capacity, capacity);
	aw_unlock(&cq->lock);
	/* mem now is the memory that the ring does not use. It is freed with no lock held. */
	aw_mem_put(&mem);
	return moved ? 0 : EINVAL;
}

/* Indices wrap where the ring does, whatever the capacity. */
static void wrap(struct aw_cq *cq) AW_REQUIRES(cq->lock)
{
	if (cq->head < cq->capacity)
		return;
	cq->head -= cq->capacity;
	cq->tail -= cq->capacity;
}

/* Only a thread with the lock of its send CQ changes the number of the user's CQEs there. */
static void change_unpolled(struct aw_cq *cq, struct aw_cq_user *user, uint32_t change)
	AW_REQUIRES(cq->lock)
{
	uint32_t unpolled = atomic_load_explicit(&user->unpolled, memory_order_relaxed);

	(void)cq;
	atomic_store_explicit(&user->unpolled, unpolled + change, memory_order_relaxed);
}

/* The entry's SQ slot is free again. */
static void give_slot(struct aw_cq *cq, const struct aw_cq_entry *entry) AW_REQUIRES(cq->lock)
{
	change_unpolled(cq, entry->user, -1u);
}

int aw_cq_take_ready(struct aw_cq *cq, struct aw_cq_entry *out, int max)
{
	uint32_t received = 0;
	int n = 0;

	aw_lock(&cq->lock);
	while (n < max && cq->head != cq->tail) {
		out[n] = *entry_at(cq, cq->head++);
		if (out[n].queue == AW_SQ)
			give_slot(cq, &out[n]);
		else
			received = 1;
		n++;
	}
	if (received)
		aw_activity_count(&cq->pollers.takes, 1);
	wrap(cq);
	publish(cq);
	atomic_store_explicit(&cq->ready, cq->tail - cq->head, memory_order_relaxed);
	aw_unlock(&cq->lock);
	return n;
}

static void overflow(struct aw_cq *cq) AW_RELEASE(cq->lock)
{
	bool first = !cq->overflowed;

	cq->overflowed = true;
	if (cq->stat)
		aw_stat_set(&cq->stat->cq.overflowed, 1);
	aw_unlock(&cq->lock);
	if (first && cq->async)
		aw_channel_raise(cq->async, &cq->async_error);
}

/* The program has promised that a CQE which it has not read when the CQ is full may be lost. */
static void drop_oldest(struct aw_cq *cq) AW_REQUIRES(cq->lock)
{
	const struct aw_cq_entry *oldest = entry_at(cq, cq->head++);

	if (oldest->queue == AW_SQ)
		give_slot(cq, oldest);
	wrap(cq);
}

/*
 * Volatile: field by field, as the core has written them just before. A wider load would wait until the stores have left for the
 * cache.
 */
static void fill_entry(struct aw_cq_entry *at, const volatile struct aw_cqe *cqe,
		       const struct aw_cq_from *from)
{
	at->cqe.wr_id = cqe->wr_id;
	at->cqe.status = cqe->status;
	at->cqe.op = cqe->op;
	at->cqe.byte_len = cqe->byte_len;
	at->cqe.inv_or_imm = cqe->inv_or_imm;
	at->cqe.flags = cqe->flags;
	at->cqe.vendor_err = cqe->vendor_err;
	at->cqe.src_qpn = cqe->src_qpn;
	at->cqe.sl = cqe->sl;
	at->user = from->user;
	at->qpn = from->qpn;
	at->queue = from->queue;
}

/* The stamp is read under the lock, so that stamps have the order of the CQEs. */
static void write_entry(struct aw_cq *cq, const struct aw_cqe *cqe, const struct aw_cq_from *from)
	AW_REQUIRES(cq->lock)
{
	struct aw_cq_entry *at = entry_at(cq, cq->tail++);

	fill_entry(at, cqe, from);
	at->stamp_ns = cq->stamped ? (uint64_t)aw_clock_ns(cq->stamp_clock) : 0;
	if (from->queue == AW_SQ)
		change_unpolled(cq, from->user, 1);
	/*
	 * Pairs with the acquire in aw_cq_take(): a thread that sees the count takes the lock and finds
	 * the CQE.
	 */
	atomic_store_explicit(&cq->ready, cq->tail - cq->head, memory_order_release);
	cq->cqes++;
	publish(cq);
	if (cq->stat)
		aw_stat_set64(&cq->stat->cq.cqes, cq->cqes);
}

/*
 * True when the CQE is an event, now; the CQ is not armed any more. A thread arms without the lock (aw_cq_set_arm). Both change
 * the same word, one after the other: the second sees what the first has done, so that this one finds the CQ armed, or that
 * thread finds the CQE. A CQ without a channel has no thread to wake.
 */
static bool take_arming(struct aw_cq *cq, const struct aw_cqe *cqe) AW_REQUIRES(cq->lock)
{
	int armed = cq->channel ? atomic_fetch_add(&cq->armed, 0) : cq->armed;
	bool raise = armed == AW_ARM_NEXT ||
		     (armed == AW_ARM_SOLICITED && (cqe->flags & AW_WC_SOLICITED));

	if (raise && cq->moderation && aw_moderation_holds(cq))
		return false;
	if (raise)
		cq->armed = AW_ARM_NONE;
	return raise;
}

void aw_cq_taker_begin(struct aw_cq *cq, struct aw_cq_taker *taker)
{
	taker->cq = cq;
	taker->taken = 0;
	taker->received = false;
	taking = taker;
}

int aw_cq_taker_end(struct aw_cq *cq, struct aw_cq_taker *taker)
{
	taking = NULL;
	if (taker->taken == 0)
		return 0;
	if (taker->received)
		aw_activity_count(&cq->pollers.takes, 1);
	cq->direct += (uint32_t)taker->taken;
	if (cq->stat)
		aw_stat_set64(&cq->stat->cq.direct, cq->direct);
	return taker->taken;
}

/*
 * False: it goes into the ring. Relaxed: a CQE of the same QP that another thread has pushed came before, under the QP's lock, so that
 * this one is behind it; a thread that arms the CQ meanwhile comes behind the CQE, which this thread has taken.
 */
static bool hand_over(struct aw_cq *cq, const struct aw_cqe *cqe, const struct aw_cq_from *from)
{
	struct aw_cq_taker *taker = taking;

	if (!taker || taker->cq != cq || taker->taken == taker->max || cq->stamped ||
	    atomic_load_explicit(&cq->ready, memory_order_relaxed) != 0 ||
	    atomic_load_explicit(&cq->armed, memory_order_relaxed) != AW_ARM_NONE)
		return false;
	fill_entry(&taker->out[taker->taken++], cqe, from);
	taker->received |= from->queue != AW_SQ;
	pushes.cqes++;
	return true;
}

void aw_cq_push(struct aw_cq *cq, const struct aw_cqe *cqe, const struct aw_cq_from *from)
{
	if (hand_over(cq, cqe, from))
		return;
	aw_lock(&cq->lock);
	if (cq->tail - cq->head == cq->capacity) {
		if (!cq->overwrites) {
			overflow(cq);
			return;
		}
		drop_oldest(cq);
	}
	write_entry(cq, cqe, from);
	bool raise = take_arming(cq, cqe) && cq->channel;

	aw_unlock(&cq->lock);
	pushes.cqes++;
	pushes.events += raise;
	if (raise)
		aw_channel_raise(cq->channel, &cq->event);
}

struct aw_cq_pushes aw_cq_pushes_of_thread(void)
{
	return pushes;
}

bool aw_cq_wake(struct aw_cq *cq)
{
	if (!cq->channel)
		return false;
	aw_lock(&cq->lock);
	bool armed = atomic_exchange(&cq->armed, AW_ARM_NONE) != AW_ARM_NONE;

	if (armed && cq->moderation)
		aw_moderation_drop(cq);
	aw_unlock(&cq->lock);
	if (armed)
		aw_channel_raise(cq->channel, &cq->event);
	return armed;
}

void aw_cq_forget(struct aw_cq *cq, const struct aw_cq_user *user)
{
	aw_lock(&cq->lock);
	uint32_t kept = cq->head;

	for (uint32_t i = cq->head; i != cq->tail; i++)
		if (entry_at(cq, i)->user != user)
			*entry_at(cq, kept++) = *entry_at(cq, i);
	cq->tail = kept;
	publish(cq);
	atomic_store_explicit(&cq->ready, cq->tail - cq->head, memory_order_relaxed);
	aw_unlock(&cq->lock);
}

void aw_cq_set_arm(struct aw_cq *cq, enum aw_arm arm)
{
	int before = atomic_load_explicit(&cq->armed, memory_order_relaxed);

	/* Also where nothing changes: the word orders this thread behind the CQEs that it finds next. */
	while (!atomic_compare_exchange_weak(&cq->armed, &before,
					     before > (int)arm ? before : (int)arm))
		;
}
