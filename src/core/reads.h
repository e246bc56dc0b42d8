// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The rings of Reads, atomics and Flushes under way: IRQ (the peer's, to be answered) and ORQ (ours), each in request
// order and never longer than what start-up agreed on (RFC 6581 9.1).
#ifndef CORE_READS_H
#define CORE_READS_H

#include "core/qp.h"

static inline bool aw_irq_is_full(const struct aw_qp *qp)
{
	return qp->irq_count >= qp->stream.ird;
}

static inline struct aw_irq_entry *aw_irq_head(const struct aw_qp *qp)
{
	return &qp->irq[qp->irq_head];
}

/* The i-th oldest. */
static inline struct aw_irq_entry *aw_irq_at(const struct aw_qp *qp, uint32_t i)
{
	return &qp->irq[(qp->irq_head + i) % qp->irq_capacity];
}

/* The first free entry; the IRQ is not full. */
struct aw_irq_entry *aw_irq_push(struct aw_qp *qp);
void aw_irq_pop(struct aw_qp *qp);

static inline bool aw_orq_is_full(const struct aw_qp *qp)
{
	return qp->orq_count >= qp->stream.ord;
}

/* The i-th oldest. */
static inline struct aw_orq_entry *aw_orq_at(const struct aw_qp *qp, uint32_t i)
{
	return &qp->orq[(qp->orq_head + i) % qp->orq_capacity];
}

/* True when an answer of this kind is the next that may come. */
static inline bool aw_orq_awaits(const struct aw_qp *qp, enum aw_rdma_request kind)
{
	return qp->orq_count > 0 && aw_orq_at(qp, 0)->kind == kind;
}

struct aw_orq_entry *aw_orq_push(struct aw_qp *qp);
void aw_orq_pop(struct aw_qp *qp);

/* Octets that this Read of ours asked for. */
uint32_t aw_orq_size(const struct aw_qp *qp, const struct aw_orq_entry *entry);

/* The sink STag of the next Read: a different one for each, never 0. */
uint32_t aw_orq_new_stag(struct aw_qp *qp);

#endif
