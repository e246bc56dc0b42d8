// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Type 2 memory windows in the simulated programs: bound by one end over a part of an MR, used by
// its peer, ended by that one's Send with Invalidate, or unused by its owner's local invalidate.
#include "world.h"

#include <string.h>

bool windows_make_bind(struct end *end, struct wr *wr)
{
	struct rng *rng = &end->world->rng;
	bool writes = rng_percent(rng, 50);
	struct region *parent = memory_pick(end->host, writes ? ROLE_WRITE : ROLE_SOURCE);
	struct region *window = parent ? memory_add_window(end->host) : NULL;
	uint64_t off;

	if (!window)
		return false;
	off = rng_below(rng, parent->mr.len / 2);
	window->parent = parent;
	window->user = end->peer;
	window->mr.access = writes ? AW_ACCESS_REMOTE_WRITE : AW_ACCESS_REMOTE_READ;
	window->mr.iova = parent->mr.iova + off;
	window->mr.len = rng_range(rng, 1, parent->mr.len - off);
	window->mr.pd = &end->host->pd;
	wr->op = AW_OP_BIND_MW;
	wr->touches = window;
	wr->stag = window->mr.stag;
	wr->inv = parent->mr.stag;
	wr->to = window->mr.iova;
	wr->operand[0] = window->mr.len;
	wr->operand[1] = (uint64_t)(window - end->host->region);
	return true;
}

static struct wr *binder(const struct end *end, const struct region *window)
{
	for (uint32_t i = 0; i < end->wr_count; i++)
		if (end->wr[i]->op == AW_OP_BIND_MW && end->wr[i]->touches == window)
			return end->wr[i];
	return NULL;
}

enum aw_wc_status windows_bind(struct end *end, const struct aw_swqe *wqe)
{
	struct region *window = &end->host->region[wqe->swap % REGIONS_MAX];
	struct wr *wr = binder(end, window);

	if (!wr || wr->index != (uint32_t)wqe->wr_id || wqe->stag != wr->stag ||
	    wqe->access != window->mr.access || wqe->to != wr->to ||
	    wqe->compare_add != wr->operand[0] || wqe->inv_or_imm != wr->inv) {
		world_fail(end->world, "%c: a bind that nobody posted", end->name);
		return AW_WC_MW_BIND_ERR;
	}
	if (wr->bad == BAD_BIND)
		return AW_WC_MW_BIND_ERR;
	wr->executed++;
	window->mr.host = memory_at(window->parent, window->mr.iova - window->parent->mr.iova);
	window->mr.window = true;
	window->mr.qp = &end->qp;
	window->live = true;
	TRACE(end, "window %08llx is bound", window->mr.stag);
	return AW_WC_SUCCESS;
}

/* Which windows of a host a program may choose from. */
struct choice {
	struct end *user;
	bool others; /* any user but that one */
	uint32_t access; /* any of these */
	bool live;
	bool used, unused;
};

static bool suits(const struct region *region, const struct choice *choice)
{
	return region->role == ROLE_WINDOW && region->mr.qp && region->live == choice->live &&
	       (!region->named || !choice->live) &&
	       (region->user == choice->user) != choice->others &&
	       region->mr.access & choice->access && (region->used ? choice->used : choice->unused);
}

static struct region *choose(struct host *host, const struct choice *choice)
{
	unsigned int start = (unsigned int)rng_below(&host->world->rng, host->region_count);

	for (unsigned int i = 0; i < host->region_count; i++) {
		struct region *region = &host->region[(start + i) % host->region_count];

		if (suits(region, choice))
			return region;
	}
	return NULL;
}

struct region *windows_pick_used(struct end *end)
{
	const struct choice choice = {
		.user = end, .access = AW_ACCESS_REMOTE, .live = true, .used = true
	};

	return choose(end->peer->host, &choice);
}

struct region *windows_pick_unused(struct end *end)
{
	const struct choice choice = {
		.user = end->peer, .access = AW_ACCESS_REMOTE, .live = true, .unused = true
	};

	return choose(end->host, &choice);
}

static bool make_write(struct end *end, struct wr *wr, struct region *window, size_t off)
{
	size_t at = window->mr.iova - window->parent->mr.iova + off;

	wr->op = AW_OP_WRITE;
	if (!(end->peer->grants & AW_ACCESS_REMOTE_WRITE) ||
	    !memory_claim_at(window->parent, at, wr->len, wr->sink))
		return false;
	wr->sink_count = 1;
	return true;
}

static bool make_read(struct end *end, struct wr *wr, struct region *window, size_t off)
{
	size_t at = window->mr.iova - window->parent->mr.iova + off;

	wr->op = AW_OP_READ;
	if (!(end->peer->grants & AW_ACCESS_REMOTE_READ) || !end->qp.stream.ord)
		return false;
	wr->sink_count = lists_sink(end, ROLE_READ, wr->len, wr->sink);
	if (wr->sink_count == UINT32_MAX)
		return false;
	memcpy(wr->data, memory_shadow_at(window->parent, at), wr->len);
	return true;
}

bool windows_make_access(struct end *end, struct wr *wr)
{
	const struct choice choice = {
		.user = end, .access = AW_ACCESS_REMOTE, .live = true, .used = true, .unused = true
	};
	struct region *window = choose(end->peer->host, &choice);
	uint32_t max = end->world->plan.len_max;
	size_t off;

	if (!window || !window->parent->live)
		return false;
	wr->len = traffic_len(end, window->mr.len < max ? (uint32_t)window->mr.len : max);
	off = rng_range(&end->world->rng, 0, window->mr.len - wr->len);
	wr->stag = window->mr.stag;
	wr->to = window->mr.iova + off;
	window->used = true;
	return window->mr.access & AW_ACCESS_REMOTE_WRITE ? make_write(end, wr, window, off)
							  : make_read(end, wr, window, off);
}

bool windows_spoil(struct end *end, struct wr *wr)
{
	const struct choice choice = {
		.user = end,
		.others = wr->bad == BAD_WINDOW_QP,
		.access = wr->bad == BAD_WINDOW_RIGHT ? AW_ACCESS_REMOTE_READ : AW_ACCESS_REMOTE,
		.live = wr->bad != BAD_WINDOW_STALE,
		.used = true,
		.unused = wr->bad == BAD_WINDOW_QP,
	};
	struct region *window = wr->len ? choose(end->peer->host, &choice) : NULL;

	if (!window)
		return false;
	window->named = true; /* it stays as it is */
	wr->stag = window->mr.stag;
	wr->to = window->mr.iova;
	return true;
}
