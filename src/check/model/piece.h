// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The memory of a work request's SGEs while it is under way; see queue.h for what is done to it.
#ifndef CHECK_MODEL_PIECE_H
#define CHECK_MODEL_PIECE_H

#include "check/model/queue.h"

/* Takes over the SGE's memory, and tells overlap. The WR's stack is set, and its owner's context has the MR. */
void aw_piece_begin(struct aw_wr *wr, struct aw_piece *piece, const struct ibv_sge *sge,
		    bool is_sink);

uint64_t aw_pieces_sum(const struct aw_wr *wr);

/* How a WR ends. */
enum aw_wr_end {
	AW_WR_SUCCEEDED, /* source-changed and sink-written are told */
	AW_WR_FAILED, /* its sinks stay marked undefined, whatever they hold */
	AW_WR_WITHDRAWN, /* no completion says what became of it: a receive's sinks are marked as before, a Read's defined */
};

/* Gives the memory back. filled: the bytes that the message put into sinks. */
void aw_pieces_end(struct aw_wr *wr, uint64_t filled, enum aw_wr_end end);

#endif
