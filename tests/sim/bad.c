// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// WRs that are wrong in one way, and the error that each must end the stream with
// (RFC 5040 7, RFC 5041 7).
#include "world.h"

#include <stdlib.h>

static const struct {
	enum aw_op op;
	enum aw_error error; /* AW_OK: found locally, the RFCs name no one error */
} kinds[] = {
	[BAD_WRITE_STAG] = { AW_OP_WRITE, AW_E_DDP_TAGGED_STAG },
	[BAD_WRITE_BOUNDS] = { AW_OP_WRITE, AW_E_DDP_TAGGED_BOUNDS },
	[BAD_WRITE_RIGHT] = { AW_OP_WRITE, AW_E_RDMAP_ACCESS },
	[BAD_WRITE_PD] = { AW_OP_WRITE, AW_E_DDP_TAGGED_NOT_ASSOCIATED },
	[BAD_WRITE_WRAP] = { AW_OP_WRITE, AW_E_DDP_TAGGED_TO_WRAP },
	[BAD_READ_STAG] = { AW_OP_READ, AW_E_RDMAP_STAG },
	[BAD_READ_BOUNDS] = { AW_OP_READ, AW_E_RDMAP_BOUNDS },
	[BAD_READ_RIGHT] = { AW_OP_READ, AW_E_RDMAP_ACCESS },
	[BAD_READ_PD] = { AW_OP_READ, AW_E_RDMAP_NOT_ASSOCIATED },
	[BAD_SEND_LONG] = { AW_OP_SEND, AW_E_DDP_TOO_LONG },
	[BAD_SEND_NO_RECV] = { AW_OP_SEND, AW_E_DDP_NO_BUFFER },
	[BAD_INV_STAG] = { AW_OP_SEND, AW_E_RDMAP_STAG },
	[BAD_INV_SOURCE] = { AW_OP_SEND, AW_E_RDMAP_CANNOT_INVALIDATE },
	[BAD_LKEY] = { AW_OP_WRITE, AW_OK },
	[BAD_LOCAL_INV] = { AW_OP_LOCAL_INV, AW_OK },
	[BAD_QP_WRITE] = { AW_OP_WRITE, AW_E_RDMAP_ACCESS },
	[BAD_QP_READ] = { AW_OP_READ, AW_E_RDMAP_ACCESS },
	[BAD_WINDOW_RIGHT] = { AW_OP_WRITE, AW_E_RDMAP_ACCESS },
	[BAD_WINDOW_STALE] = { AW_OP_WRITE, AW_E_DDP_TAGGED_STAG },
	[BAD_WINDOW_QP] = { AW_OP_WRITE, AW_E_DDP_TAGGED_NOT_ASSOCIATED },
	[BAD_BIND] = { AW_OP_BIND_MW, AW_OK },
	[BAD_ATOMIC_STAG] = { AW_OP_FETCH_ADD, AW_E_RDMAP_STAG },
	[BAD_ATOMIC_BOUNDS] = { AW_OP_FETCH_ADD, AW_E_RDMAP_BOUNDS },
	[BAD_ATOMIC_RIGHT] = { AW_OP_FETCH_ADD, AW_E_RDMAP_ACCESS },
	[BAD_ATOMIC_PD] = { AW_OP_FETCH_ADD, AW_E_RDMAP_NOT_ASSOCIATED },
	[BAD_ATOMIC_ALIGN] = { AW_OP_FETCH_ADD, AW_E_RDMAP_STREAM_CATASTROPHIC },
	[BAD_NOT_AGREED] = { AW_OP_FETCH_ADD, AW_OK },
	[BAD_COUNT] = { AW_OP_WRITE, AW_OK },
};

enum aw_error bad_error(enum bad bad)
{
	return kinds[bad].error;
}

/* One WR of a connection, once half of the traffic is through. */
enum bad bad_draw(struct end *end)
{
	struct rng *rng = &end->world->rng;

	if (!end->world->plan.bad || end->conn->bad || !end->wr_count || rng_percent(rng, 80))
		return BAD_NOT;
	return (enum bad)rng_range(rng, BAD_NOT + 1,
				   (end->world->plan.extended ? BAD_COUNT : BAD_FIRST_COUNT) - 1);
}

static uint32_t unknown_stag(struct host *host)
{
	uint32_t stag;

	do
		stag = (uint32_t)rng_next(&host->world->rng);
	while (memory_find(host, stag));
	return stag;
}

static void aim(struct wr *wr, const struct region *region, uint64_t off)
{
	wr->stag = region->mr.stag;
	wr->to = region->mr.iova + off;
}

/* Octets that surely are in the first segment, so that nothing of a bad Write may be placed. */
static uint32_t first_octets(const struct wr *wr)
{
	return wr->len < 64 ? wr->len : 64;
}

static bool spoil_target(struct end *end, struct wr *wr)
{
	struct host *there = end->peer->host;
	const struct region *target = memory_find(there, wr->stag);

	if (wr->len < 4)
		return false;
	if (wr->bad == BAD_WRITE_STAG || wr->bad == BAD_READ_STAG)
		wr->stag = unknown_stag(there);
	else if (wr->bad == BAD_WRITE_BOUNDS || wr->bad == BAD_READ_BOUNDS)
		aim(wr, target, target->mr.len - first_octets(wr) + 1);
	else if (wr->bad == BAD_WRITE_RIGHT || wr->bad == BAD_READ_RIGHT)
		aim(wr, memory_pick(there, ROLE_RECV), 0);
	else if (wr->bad == BAD_WRITE_PD || wr->bad == BAD_READ_PD)
		aim(wr, memory_pick(there, ROLE_FOREIGN), 0);
	else if (wr->bad == BAD_WRITE_WRAP)
		wr->to = UINT64_MAX - first_octets(wr) / 2;
	return true;
}

static bool spoil_atomic(struct end *end, struct wr *wr)
{
	struct host *there = end->peer->host;
	const struct region *target = memory_find(there, wr->stag);

	if (!target)
		return false;
	if (wr->bad == BAD_ATOMIC_STAG)
		wr->stag = unknown_stag(there);
	else if (wr->bad == BAD_ATOMIC_BOUNDS)
		aim(wr, target, (target->mr.len + 7) / 8 * 8);
	else if (wr->bad == BAD_ATOMIC_RIGHT)
		aim(wr, memory_pick(there, ROLE_RECV), 0);
	else if (wr->bad == BAD_ATOMIC_PD)
		aim(wr, memory_pick(there, ROLE_FOREIGN), 0);
	else
		wr->to += rng_range(&end->world->rng, 1, 7);
	return true;
}

static bool spoil(struct end *end, struct wr *wr, struct aw_sge *sge)
{
	struct region *source = memory_pick(end->peer->host, ROLE_SOURCE);

	if (wr->bad == BAD_LKEY) {
		if (!wr->len || wr->flags & AW_WR_INLINE)
			return false;
		for (unsigned int i = 0; i < AW_SGE_MAX && !sge->len; i++)
			sge++;
		sge->lkey = unknown_stag(end->host);
		return true;
	}
	if (wr->bad == BAD_LOCAL_INV) {
		wr->stag = unknown_stag(end->host);
		return true;
	}
	if (wr->bad == BAD_QP_WRITE || wr->bad == BAD_QP_READ)
		return wr->len &&
		       !(end->peer->grants & (wr->bad == BAD_QP_WRITE ? AW_ACCESS_REMOTE_WRITE
								      : AW_ACCESS_REMOTE_READ));
	if (wr->bad == BAD_WINDOW_RIGHT || wr->bad == BAD_WINDOW_STALE || wr->bad == BAD_WINDOW_QP)
		return windows_spoil(end, wr);
	if (wr->bad == BAD_BIND)
		return true;
	if (wr->bad == BAD_NOT_AGREED)
		return !end->qp.stream.extensions;
	if (wr->op == AW_OP_FETCH_ADD)
		return spoil_atomic(end, wr);
	if (wr->op == AW_OP_WRITE || wr->op == AW_OP_READ)
		return spoil_target(end, wr);
	if (wr->bad == BAD_SEND_LONG || wr->bad == BAD_SEND_NO_RECV)
		return wr->misfit;
	wr->op = AW_OP_SEND_INV;
	wr->inv = wr->bad == BAD_INV_STAG ? unknown_stag(end->peer->host) : source->mr.stag;
	return true;
}

void bad_make(struct end *end, struct wr *wr, struct aw_sge *sge)
{
	bool fits = wr->op == kinds[wr->bad].op;

	if (wr->bad && fits && spoil(end, wr, sge)) {
		TRACE(end, "the next WR is wrong in way %llu", wr->bad);
		end->conn->bad = wr->bad;
		end->conn->bad_poster = end;
		end->conn->expect_clean = false;
	} else {
		wr->bad = BAD_NOT;
	}
}
