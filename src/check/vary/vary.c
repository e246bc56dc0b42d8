// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The fate of a CQ's polls and events: decisions alone, each from the CQ's own stream of chance.
#include "check/vary/vary.h"

#define SHUFFLES 3 /* rounds of changes between neighbours */

void aw_vary_cq_init(struct aw_vary_cq *cq, uint64_t seed, uint64_t number)
{
	*cq = (struct aw_vary_cq){ .rng = aw_rng_stream(seed, number) };
}

/* A stretch of polls: at once, late and then all, late and then singly, or singly. */
static void begin_stretch(struct aw_vary_cq *cq)
{
	if (aw_rng_one_in(&cq->rng, 2))
		cq->empties = 1 + (uint32_t)aw_rng_below(&cq->rng, AW_VARY_EMPTY_MAX);
	if (aw_rng_one_in(&cq->rng, 3))
		cq->singles = 1 + (uint32_t)aw_rng_below(&cq->rng, AW_VARY_SINGLES_MAX);
}

/* Behind a stretch the device always gets to answer, so that two stretches of nothing never meet. */
static uint32_t poll_freely(struct aw_vary_cq *cq, uint32_t max)
{
	if (cq->empties > 0) {
		cq->empties--;
		return 0;
	}
	if (cq->singles > 0) {
		cq->singles--;
		return 1;
	}
	begin_stretch(cq);
	return max;
}

/* The event's completion may have been polled before by another thread; then the device's answer is nothing. */
static uint32_t poll_for_event(struct aw_vary_cq *cq, uint32_t max)
{
	cq->state = AW_VARY_FREE;
	cq->empties = cq->singles = 0;
	begin_stretch(cq);
	return aw_rng_one_in(&cq->rng, 3) ? 1 : max;
}

uint32_t aw_vary_poll(struct aw_vary_cq *cq, uint32_t max)
{
	switch (cq->state) {
	case AW_VARY_FREE:
		return poll_freely(cq, max);
	case AW_VARY_ARMED:
		return max;
	case AW_VARY_TOLD:
		return poll_for_event(cq, max);
	}
	return max;
}

void aw_vary_gave(struct aw_vary_cq *cq)
{
	cq->polled = true;
}

/* A receive's opcode has the bit that no send's has. */
static bool are_ordered(const struct ibv_wc *a, const struct ibv_wc *b)
{
	if (a->qp_num != b->qp_num)
		return false;
	if (a->status != IBV_WC_SUCCESS || b->status != IBV_WC_SUCCESS)
		return true;
	return (a->opcode & IBV_WC_RECV) == (b->opcode & IBV_WC_RECV);
}

/* True when a failed completion is among those of the QP. */
static bool has_failed(const struct ibv_wc *wc, uint32_t count, uint32_t qp_num)
{
	for (uint32_t i = 0; i < count; i++)
		if (wc[i].qp_num == qp_num && wc[i].status != IBV_WC_SUCCESS)
			return true;
	return false;
}

void aw_vary_polled(struct aw_vary_cq *cq, struct ibv_wc *wc, uint32_t count)
{
	if (count > 0)
		aw_vary_gave(cq);
	for (uint32_t round = 0; round < SHUFFLES; round++) {
		for (uint32_t i = 1; i < count; i++) {
			struct ibv_wc behind = wc[i];

			if (aw_rng_one_in(&cq->rng, 2) || are_ordered(&wc[i - 1], &behind) ||
			    (wc[i - 1].qp_num == behind.qp_num &&
			     has_failed(wc, count, behind.qp_num)))
				continue;
			wc[i] = wc[i - 1];
			wc[i - 1] = behind;
		}
	}
}

void aw_vary_armed(struct aw_vary_cq *cq, bool solicited_only)
{
	/* As the device's: an arm for any completion stays one. */
	cq->solicited = solicited_only && (cq->state != AW_VARY_ARMED || cq->solicited);
	cq->state = AW_VARY_ARMED;
	cq->polled = false;
	cq->empties = cq->singles = 0;
}

void aw_vary_event(struct aw_vary_cq *cq)
{
	cq->state = AW_VARY_TOLD;
}

bool aw_vary_event_spurious(struct aw_vary_cq *cq)
{
	return cq->state == AW_VARY_ARMED && !cq->solicited && cq->polled &&
	       aw_rng_one_in(&cq->rng, 2);
}
