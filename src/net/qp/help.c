// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The guests' handles stand in slots that helpers read without a lock; a QP that is gone is not found by its handle.
#include "net/qp/help.h"

#include "net/qp/lend.h"
#include "net/qp/uqp_sock.h"
#include "ring/lock.h"

#include <pthread.h>
#include <sched.h>
#include <unistd.h>

/* Turns of helpers between two events of a QP from which on helpers can have it. */
#define TURNS_MIN 16
/* A guest is given back after so many turns in vain: about a millisecond. */
#define VAIN_TURNS_MAX 2048

static struct aw_hands helpers;
static _Atomic uint32_t guests[AW_HELP_GUESTS_MAX]; /* handle + 1, or 0 */
static _Atomic bool has_few_cpus;

/* Where the process has more CPUs than a set holds, the call fails. */
void aw_help_attach(void)
{
	cpu_set_t cpus;
	bool few = sched_getaffinity(getpid(), sizeof(cpus), &cpus) == 0 &&
		   CPU_COUNT(&cpus) <= AW_HELP_CPUS_MAX;

	atomic_store_explicit(&has_few_cpus, few, memory_order_relaxed);
}

struct aw_hands *aw_help_hands(void)
{
	return &helpers;
}

void aw_help_forget(struct aw_uqp *qp)
{
	qp->helps_seen = atomic_load_explicit(&helpers.turns, memory_order_relaxed);
}

static bool take_slot(uint32_t handle)
{
	for (int i = 0; i < AW_HELP_GUESTS_MAX; i++) {
		uint32_t none = 0;

		if (atomic_compare_exchange_strong(&guests[i], &none, handle + 1))
			return true;
	}
	return false;
}

bool aw_help_take(struct aw_uqp *qp)
{
	uint32_t now = atomic_load_explicit(&helpers.turns, memory_order_relaxed);
	uint32_t since = now - qp->helps_seen;

	qp->helps_seen = now;
	if (since < TURNS_MIN || !take_slot(qp->handle))
		return false;
	qp->guest = true;
	qp->helps_vain = 0;
	return true;
}

void aw_help_leave(struct aw_uqp *qp)
{
	if (!qp->guest)
		return;
	qp->guest = false;
	for (int i = 0; i < AW_HELP_GUESTS_MAX; i++)
		if (guests[i] == qp->handle + 1)
			guests[i] = 0;
}

bool aw_help_is_vain(const struct aw_uqp *qp)
{
	return qp->guest && qp->helps_vain >= VAIN_TURNS_MAX;
}

/* A QP that is served by another thread at the moment needs no help. */
static bool serve(struct aw_uqp *qp)
{
	if (aw_trylock(&qp->lock) != 0)
		return false;
	if (qp->guest && qp->fd >= 0) {
		uint64_t before = qp->core.rx_pos + qp->core.sent_pos;

		aw_uqp_serve(qp);
		qp->helps_vain = qp->core.rx_pos + qp->core.sent_pos == before ? qp->helps_vain + 1
									       : 0;
		if (aw_help_is_vain(qp))
			aw_lend_look_again();
	}
	bool full = qp->tx_blocked;

	aw_uqp_unlock(qp);
	return full;
}

bool aw_help_give(void)
{
	bool full = false;

	if (!atomic_load_explicit(&has_few_cpus, memory_order_relaxed))
		return false;
	atomic_fetch_add_explicit(&helpers.turns, 1, memory_order_relaxed);
	for (int i = 0; i < AW_HELP_GUESTS_MAX; i++) {
		uint32_t guest = atomic_load_explicit(&guests[i], memory_order_relaxed);
		struct aw_uqp *qp = guest ? aw_uqp_at(guest - 1) : NULL;

		if (!qp)
			continue;
		full |= serve(qp);
		aw_uqp_put(qp);
	}
	return full;
}
