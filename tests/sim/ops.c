// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The core's way out, as the simulator supplies it. Every call is held against what the core
// promises: octets move only within MRs it holds, and STags are looked up, never remembered.
#include "world.h"

#include "crc/crc.h"

#include <stdlib.h>
#include <string.h>

static const struct aw_mr *get(void *ctx, uint32_t stag)
{
	struct end *end = ctx;
	struct region *region = memory_find(end->host, stag);

	if (!region || !region->live)
		return NULL;
	region->refs++;
	if (region->parent)
		region->parent->refs++;
	return &region->mr;
}

static void put(void *ctx, const struct aw_mr *mr)
{
	struct end *end = ctx;
	struct region *region = (struct region *)(uintptr_t)mr; /* mr is its first member */

	if (region->refs == 0)
		world_fail(end->world, "%c: an MR was put that was not held", end->name);
	else
		region->refs--;
	if (region->parent)
		region->parent->refs--;
}

static void check_within(struct end *end, const uint8_t *p, size_t len, const char *what)
{
	for (unsigned int i = 0; i < end->host->region_count; i++) {
		const struct region *region = &end->host->region[i];
		const uint8_t *first = memory_at(region, 0);

		if (region->role == ROLE_WINDOW)
			continue;
		if (p >= first && p <= first + region->mr.len) {
			if (!region->refs || len > (size_t)(first + region->mr.len - p))
				world_fail(end->world, "%c: %s of %zu octets outside a held MR",
					   end->name, what, len);
			return;
		}
	}
	if (len)
		world_fail(end->world, "%c: %s of %zu octets in no MR", end->name, what, len);
}

static bool place(void *ctx, const struct aw_mr *mr, uint8_t *dst, const uint8_t *src, size_t len)
{
	(void)mr;
	check_within(ctx, dst, len, "placement");
	memcpy(dst, src, len);
	return true;
}

static bool gather(void *ctx, const struct aw_mr *mr, uint8_t *dst, const uint8_t *src, size_t len,
		   uint32_t *crc)
{
	(void)mr;
	check_within(ctx, src, len, "gathering");
	if (crc)
		*crc = aw_crc32c_copy(*crc, dst, src, len);
	else
		memcpy(dst, src, len);
	return true;
}

static enum aw_error invalidate(void *ctx, uint32_t stag, bool by_peer)
{
	struct end *end = ctx;
	struct region *region = memory_find(end->host, stag);

	(void)by_peer;
	if (!region || !region->live)
		return AW_E_RDMAP_STAG;
	if (region->mr.pd != &end->host->pd)
		return AW_E_RDMAP_NOT_ASSOCIATED;
	if (region->role != ROLE_SPARE && region->role != ROLE_WINDOW)
		return AW_E_RDMAP_CANNOT_INVALIDATE;
	if (region->role == ROLE_WINDOW && region->mr.qp != &end->qp)
		return AW_E_RDMAP_NOT_ASSOCIATED;
	TRACE(end, "STag %08llx is invalidated", stag);
	region->live = false;
	if (end->conn->untrusted && region->role != ROLE_WINDOW)
		memcpy(memory_shadow_at(region, 0), memory_at(region, 0), region->mr.len);
	return AW_OK;
}

static bool atomic(void *ctx, const struct aw_mr *mr, uint8_t *at,
		   const struct rdmap_atomic_req *req, uint64_t *before)
{
	(void)mr;
	check_within(ctx, at, sizeof(uint64_t), "atomic");
	*before = extensions_execute(ctx, at, req);
	return true;
}

static enum aw_written write_back(void *ctx, const struct aw_mr *mr, uint8_t *at, size_t len,
				  bool persistent)
{
	(void)mr;
	check_within(ctx, at, len, "write-back");
	return extensions_write_back(ctx, at, len, persistent);
}

static enum aw_wc_status bind_window(void *ctx, const struct aw_swqe *wqe)
{
	return windows_bind(ctx, wqe);
}

/* The program posts it later, though no later than the driver gives up. */
static bool refuses(struct end *end)
{
	struct world *w = end->world;

	if (!end->qp.rnr_holds || end->qp.flushed || end->refused >= REFUSALS_MAX ||
	    !rng_percent(&w->rng, w->plan.hold_percent))
		return false;
	end->refused++;
	TRACE(end, "has no receive yet, %llu times", end->refused);
	return true;
}

static bool recv_take(void *ctx, struct aw_rwqe *rwqe)
{
	struct end *end = ctx;
	struct aw_rq *rq = end->host->use_srq ? &end->host->srq : &end->rq;

	if (refuses(end))
		return false;
	end->refused = 0;

	if (end->host->use_srq && end->qp.state == AW_QP_ERROR)
		world_fail(end->world, "%c: an ERROR QP takes receives from the SRQ", end->name);
	if (!aw_rq_take(rq, rwqe))
		return false;
	check_taken(end, rwqe);
	return true;
}

static void complete(void *ctx, enum aw_queue queue, const struct aw_cqe *cqe)
{
	struct end *end = ctx;

	end->world->events++;
	TRACE(end, "completes %llx with status %llu len %llu", cqe->wr_id, cqe->status,
	      cqe->byte_len);
	if (queue == AW_SQ)
		check_sq_cqe(end, cqe);
	else
		check_rq_cqe(end, cqe);
}

static void *stash_get(void *ctx, size_t len)
{
	struct end *end = ctx;
	struct world *w = end->world;

	if (!end->qp.keeps)
		world_fail(w, "%c: keeps what was not agreed on", end->name);
	if (w->plan.scarce_percent && rng_percent(&w->rng, w->plan.scarce_percent))
		return NULL;
	end->stashed += len;
	return malloc(len);
}

static void stash_put(void *ctx, void *memory, size_t len)
{
	struct end *end = ctx;

	end->stashed -= len;
	free(memory);
}

const struct aw_ops node_ops = {
	.mr_get = get,
	.mr_put = put,
	.place = place,
	.gather = gather,
	.invalidate = invalidate,
	.bind = bind_window,
	.atomic = atomic,
	.write_back = write_back,
	.recv_take = recv_take,
	.complete = complete,
	.stash_get = stash_get,
	.stash_put = stash_put,
	.crc32c = aw_crc32c,
};
