// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// IRQ and ORQ. The arrays are the driver's; only head and count move.
#include "core/reads.h"

#include "core/promise.h"

struct aw_irq_entry *aw_irq_push(struct aw_qp *qp)
{
	uint32_t at = (qp->irq_head + qp->irq_count) % qp->irq_capacity;

	AW_PROMISE(!aw_irq_is_full(qp));
	qp->irq_count++;
	return &qp->irq[at];
}

void aw_irq_pop(struct aw_qp *qp)
{
	AW_PROMISE(qp->irq_count > 0);
	qp->irq_head = (qp->irq_head + 1) % qp->irq_capacity;
	qp->irq_count--;
}

struct aw_orq_entry *aw_orq_push(struct aw_qp *qp)
{
	AW_PROMISE(!aw_orq_is_full(qp));
	qp->asked_pos = qp->tx_pos;
	return aw_orq_at(qp, qp->orq_count++);
}

void aw_orq_pop(struct aw_qp *qp)
{
	AW_PROMISE(qp->orq_count > 0);
	qp->orq_head = (qp->orq_head + 1) % qp->orq_capacity;
	qp->orq_count--;
}

uint32_t aw_orq_size(const struct aw_qp *qp, const struct aw_orq_entry *entry)
{
	return entry->rtr ? 0 : aw_sq_at(&qp->sq, entry->sq_index)->len;
}

uint32_t aw_orq_new_stag(struct aw_qp *qp)
{
	uint32_t stag = qp->next_sink_stag++;

	return stag != 0 ? stag : qp->next_sink_stag++;
}
