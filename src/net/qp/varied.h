// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A QP of a device that varies (ANYWARP_VARY, docs/vary.md). It has tables of its own: the functions that the core calls and
// the carriers, which hold back what they place; and verbs end its posts by aw_uqp_send_end_late. All are chosen where the
// QP and its stream are made, so a device that does not vary executes nothing of this.
//
// A turn that receives copies payloads and places them late: before a completion, a Read of this memory, an atomic or a
// change of a window, and at the turn's end. Of each span the last byte is placed first, then the rest of all of them in
// any order. RFC 5040 5.5 lets nobody look at a Write before a later Send is delivered. Spans that overlap keep their
// order, as InfiniBand has it. An acknowledgement (core/ack.h) leaves behind the turn, and so behind what it is for.
#ifndef NET_VARIED_H
#define NET_VARIED_H

#include "base/rng.h"
#include "core/ops.h"
#include "net/qp/uqp.h"

#include <stddef.h>
#include <stdint.h>

#define AW_VARIED_SPANS_MAX 32 /* held back by a QP */
#define AW_VARIED_CUTS 4 /* pieces of a span without its last byte */
#define AW_VARIED_PIECES_MAX (AW_VARIED_SPANS_MAX * (AW_VARIED_CUTS + 1))

/* Of the span with that number in the order of arrival. */
struct aw_varied_piece {
	uint32_t span;
	size_t from, len;
};

/* For aw_uqp_create: *varied becomes NULL where the device does not vary. 0 or ENOMEM. */
int aw_varied_create(struct aw_varied **varied);
void aw_varied_destroy(struct aw_varied *varied);

/* The QP's tables: those of a QP that does not vary where varied is NULL. */
const struct aw_ops *aw_varied_ops(const struct aw_uqp *qp);
const struct aw_carrier *aw_varied_carrier(const struct aw_uqp *qp);

/* The time for which posts wait that this call has made, unless the program polls before. Some are sent at once. */
uint64_t aw_varied_hold_ns(struct aw_uqp *qp) AW_REQUIRES(qp->lock);

/*
 * The order in which spans of these lengths, none of them 0, are placed: the last byte of each, then all others. Writes at
 * most AW_VARIED_PIECES_MAX pieces and returns their number. Pure.
 */
uint32_t aw_varied_cut(struct aw_rng *rng, const size_t *lens, uint32_t count,
		       struct aw_varied_piece *pieces);

#endif
