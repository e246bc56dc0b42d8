// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The programs: they keep receives posted and post random WRs, within the credit that their peer's
// receives give them, with lengths that lie where segments, copies and inline data have edges.
#include "world.h"

#include <stdlib.h>
#include <string.h>

#define RECVS_PER_CALL 4

uint32_t traffic_len(struct end *end, uint32_t max)
{
	struct rng *rng = &end->world->rng;
	uint32_t mulpdu = end->qp.mulpdu;
	const uint32_t edges[] = { 0,	 1,    2,	    3,		 4,	      mulpdu - 18,
				   2047, 2048, 2049,	    mulpdu - 14, mulpdu,      mulpdu + 1,
				   511,	 512,  mulpdu - 15, mulpdu - 19, mulpdu - 13, mulpdu - 17,
				   513,	 max,  2 * mulpdu,  64,		 65535,	      65536 };
	uint32_t len;

	if (rng_percent(rng, 50))
		len = edges[rng_below(rng, sizeof(edges) / sizeof(edges[0]))];
	else if (rng_percent(rng, 60))
		len = (uint32_t)rng_below(rng, 256);
	else
		len = (uint32_t)rng_below(rng, (uint64_t)max + 1);
	return len < max ? len : max;
}

static void *grown(void *list, uint32_t *cap, uint32_t count)
{
	if (count < *cap)
		return list;
	*cap = *cap ? *cap * 2 : 32;
	return realloc(list, *cap * sizeof(void *));
}

static struct recv *new_recv(struct end *end, uint32_t len, uint64_t wr_id)
{
	struct recv *recv = calloc(1, sizeof(*recv));

	recv->len = len;
	recv->wr_id = wr_id;
	recv->sink_count = lists_sink(end, ROLE_RECV, len, recv->sink);
	if (recv->sink_count != UINT32_MAX)
		return recv;
	free(recv);
	return NULL;
}

static bool post_recv(struct aw_rq *rq, struct recv *recv)
{
	struct aw_sge sge[AW_SGE_MAX];

	lists_sges(recv->sink, recv->sink_count, sge);
	return aw_rq_post(rq, recv->wr_id, sge, recv->sink_count);
}

static void drop_recv(struct recv *recv)
{
	lists_release(recv->sink, recv->sink_count);
	free(recv);
}

static void post_to_rq(struct end *end)
{
	uint64_t wr_id = (uint64_t)(0x5200 + end->name) << 32 | end->recv_count;
	struct recv *recv = new_recv(end, traffic_len(end, end->world->plan.len_max), wr_id);
	uint32_t before = aw_rq_count(&end->rq);

	if (!recv)
		return;
	if (!post_recv(&end->rq, recv)) {
		if (before < end->rq.capacity)
			world_fail(end->world, "%c: RQ with %u of %u is full", end->name, before,
				   end->rq.capacity);
		drop_recv(recv);
		return;
	}
	end->recv = grown(end->recv, &end->recv_cap, end->recv_count);
	end->recv[end->recv_count++] = recv;
	TRACE(end, "posts receive %llx len %llu", wr_id, recv->len);
	aw_qp_recv_posted(&end->qp);
}

static void post_to_srq(struct end *end)
{
	struct host *host = end->host;
	struct world *w = end->world;
	int h = host == &w->host[1];
	uint64_t wr_id = (uint64_t)(0x5300 + h) << 32 | w->srq_recv_count[h];
	struct recv *recv = new_recv(end, host->srq_recv_len, wr_id);

	if (!recv)
		return;
	if (!post_recv(&host->srq, recv)) {
		drop_recv(recv);
		return;
	}
	w->srq_recv[h] = grown(w->srq_recv[h], &w->srq_recv_cap[h], w->srq_recv_count[h]);
	w->srq_recv[h][w->srq_recv_count[h]++] = recv;
	host->srq_posted++;
	TRACE(end, "posts SRQ receive %llx", wr_id);
}

void traffic_receives(struct end *end)
{
	if (end->host->recv_frozen || end->phase == PHASE_OVER || end->over)
		return;
	for (int i = 0; i < RECVS_PER_CALL; i++) {
		if (end->host->use_srq)
			post_to_srq(end);
		else
			post_to_rq(end);
	}
}

uint32_t traffic_credit(const struct end *end)
{
	const struct end *peer = end->peer;

	if (peer->host->use_srq)
		return peer->host->srq_posted > peer->host->srq_promised ? peer->host->srq_recv_len
									 : UINT32_MAX;
	return end->sends < peer->recv_count ? peer->recv[end->sends]->len : UINT32_MAX;
}

/* With an SRQ a Send that nothing was posted for would take another QP's receive. */
static bool make_misfit(struct end *end, struct wr *wr, uint32_t max)
{
	bool none = wr->bad == BAD_SEND_NO_RECV;

	if (none != (max == UINT32_MAX) || (none && end->peer->host->use_srq))
		return false;
	if (none)
		end->peer->host->recv_frozen = true;
	wr->op = AW_OP_SEND;
	wr->misfit = true;
	wr->len = (none ? 0 : max + 1) + (uint32_t)rng_below(&end->world->rng, 64);
	return true;
}

static bool make_send(struct end *end, struct wr *wr)
{
	uint32_t max = traffic_credit(end);
	struct rng *rng = &end->world->rng;

	if (wr->bad == BAD_SEND_LONG || wr->bad == BAD_SEND_NO_RECV)
		return make_misfit(end, wr, max);
	if (max == UINT32_MAX)
		return false;
	wr->op = AW_OP_SEND;
	wr->len = rng_percent(rng, 30) ? max : traffic_len(end, max);
	if (rng_percent(rng, 30))
		wr->flags |= AW_WR_SOLICITED;
	if (rng_percent(rng, 10))
		wr->touches = memory_pick(end->peer->host, ROLE_SPARE);
	if (end->world->plan.extended && !wr->touches && rng_percent(rng, 10))
		wr->touches = windows_pick_used(end);
	/* A Read through a window must have come back before that ends. */
	if (wr->touches && wr->touches->role == ROLE_WINDOW)
		wr->flags |= AW_WR_FENCE;
	if (wr->touches) {
		wr->op = AW_OP_SEND_INV;
		wr->inv = wr->touches->mr.stag;
	}
	return true;
}

/* Does the peer's QP allow it? Or is it to be wrong in just that? */
static bool granted(const struct end *end, const struct wr *wr, uint32_t access, enum bad bad)
{
	return wr->bad == bad || end->peer->grants & access;
}

static bool make_write(struct end *end, struct wr *wr)
{
	struct region *region = memory_pick(end->peer->host, ROLE_WRITE);

	wr->op = AW_OP_WRITE;
	wr->len = traffic_len(end, end->world->plan.len_max);
	if (!granted(end, wr, AW_ACCESS_REMOTE_WRITE, BAD_QP_WRITE))
		return false;
	if (!region || !memory_claim(region, wr->len, wr->sink))
		return false;
	wr->sink_count = 1;
	wr->stag = region->mr.stag;
	wr->to = region->mr.iova + wr->sink[0].off;
	return true;
}

static bool make_read(struct end *end, struct wr *wr, uint8_t *data)
{
	struct region *region = memory_pick(end->peer->host, ROLE_SOURCE);
	size_t off;

	wr->op = AW_OP_READ;
	wr->len = traffic_len(end, end->world->plan.len_max);
	wr->sink_count = 0;
	if (!granted(end, wr, AW_ACCESS_REMOTE_READ, BAD_QP_READ))
		return false;
	wr->sink_count = lists_sink(end, ROLE_READ, wr->len, wr->sink);
	if (!region || !end->qp.stream.ord || wr->sink_count == UINT32_MAX)
		return false;
	off = rng_range(&end->world->rng, 0, region->mr.len - wr->len);
	wr->stag = region->mr.stag;
	wr->to = region->mr.iova + off;
	memcpy(data, memory_shadow_at(region, off), wr->len);
	return true;
}

/* Two programs never name one STag to be invalidated: the second would fail. */
static bool make_local_inv(struct end *end, struct wr *wr)
{
	struct region *region = memory_pick(end->host, ROLE_SPARE);

	if (end->world->plan.extended && rng_percent(&end->world->rng, 50))
		region = windows_pick_unused(end);
	if (!region)
		return false;
	wr->op = AW_OP_LOCAL_INV;
	wr->stag = region->mr.stag;
	wr->touches = region;
	return true;
}

static bool make_extended(struct end *end, struct wr *wr)
{
	uint64_t draw;

	if (end->qp.stream.placement && !wr->bad && rng_percent(&end->world->rng, 35))
		return extensions_make_placement(end, wr);
	draw = rng_below(&end->world->rng, 100);
	if (draw < 70 || wr->bad == BAD_NOT_AGREED)
		return extensions_make(end, wr);
	if (draw < 80 || wr->bad == BAD_BIND)
		return windows_make_bind(end, wr);
	return windows_make_access(end, wr);
}

static bool make(struct end *end, struct wr *wr, uint8_t *data)
{
	uint64_t draw;

	if (end->world->plan.extended && rng_percent(&end->world->rng, 40))
		return make_extended(end, wr);
	draw = rng_below(&end->world->rng, 100);

	if (draw < 45)
		return make_send(end, wr);
	if (draw < 73)
		return make_write(end, wr);
	if (draw < 98)
		return make_read(end, wr, data);
	return make_local_inv(end, wr);
}

static void draw_flags(struct end *end, struct wr *wr)
{
	struct rng *rng = &end->world->rng;

	if (rng_percent(rng, 60))
		wr->flags |= AW_WR_SIGNALED;
	if (rng_percent(rng, 15))
		wr->flags |= AW_WR_FENCE;
	if ((takes_recv(wr->op) || is_write(wr->op) || wr->op == AW_OP_ATOMIC_WRITE) &&
	    wr->len <= end->mem.inline_max && rng_percent(rng, 50))
		wr->flags |= AW_WR_INLINE;
}

static void fill_payload(struct end *end, struct wr *wr, struct aw_swqe *wqe)
{
	wqe->sge_count = 0;
	if (wr->flags & AW_WR_INLINE) {
		rng_fill(&end->world->rng, wr->data, wr->len);
		memcpy(wqe->data, wr->data, wr->len);
	} else if (brings_octets(wr->op)) {
		wqe->sge_count = (uint8_t)wr->sink_count;
		lists_sges(wr->sink, wr->sink_count, wqe->sge);
	} else if (!is_local(wr->op) && wr->op != AW_OP_FLUSH) {
		wqe->sge_count = (uint8_t)lists_source(end, wr->len, wqe->sge, wr->data);
	}
	bad_make(end, wr, wqe->sge);
}

static void set_wants(struct wr *wr)
{
	uint32_t off = 0;

	for (unsigned int i = 0; i < wr->sink_count; i++) {
		wr->sink[i].want = wr->data + off;
		wr->sink[i].want_len = wr->sink[i].len;
		off += wr->sink[i].len;
	}
}

static void account(struct end *end, struct wr *wr)
{
	wr->before_close = !end->closed && !end->peer->closed;
	if (takes_recv(wr->op)) {
		wr->message = end->sends++;
		if (end->peer->host->use_srq)
			end->peer->host->srq_promised++;
	}
	/* From now on no other WR picks it; it stays an MR that may be invalidated. */
	if (wr->touches && !wr->bad && wr->op != AW_OP_BIND_MW)
		wr->touches->named = true;
	end->wr = grown(end->wr, &end->wr_cap, end->wr_count);
	end->wr[end->wr_count++] = wr;
}

static void commit(struct end *end, struct wr *wr, struct aw_swqe *wqe)
{
	wr->index = end->wr_count;
	draw_flags(end, wr);
	fill_payload(end, wr, wqe);
	set_wants(wr);
	wqe->wr_id = (uint64_t)(0x5100 + end->name) << 32 | wr->index;
	wqe->to = wr->to;
	wqe->stag = wr->stag;
	wqe->inv_or_imm = wr->inv;
	wqe->compare_add = wr->operand[0];
	wqe->swap = wr->operand[1];
	wqe->len = wr->len;
	wqe->op = (uint8_t)wr->op;
	wqe->flags = wr->flags;
	wqe->access = wr->op == AW_OP_BIND_MW ? (uint8_t)wr->touches->mr.access
		      : wr->op == AW_OP_FLUSH ? (uint8_t)wr->inv
					      : 0;
	account(end, wr);
	TRACE(end, "posts WR %llu op %llu len %llu", wr->index, wr->op, wr->len);
	aw_qp_post(&end->qp);
}

bool traffic_post(struct end *end)
{
	struct aw_swqe *wqe;
	struct wr *wr;

	if (end->phase != PHASE_STREAM || !end->budget)
		return false;
	wqe = aw_sq_reserve(&end->qp.sq);
	if (!wqe != (aw_sq_count(&end->qp.sq) == end->mem.sq_capacity))
		world_fail(end->world, "%c: SQ with %u of %u", end->name, aw_sq_count(&end->qp.sq),
			   end->mem.sq_capacity);
	if (!wqe)
		return false;
	wr = calloc(1, sizeof(*wr));
	wr->data = malloc(end->world->plan.len_max + 256);
	wr->bad = bad_draw(end);
	if (!make(end, wr, wr->data)) {
		if (wr->sink_count != UINT32_MAX)
			lists_release(wr->sink, wr->sink_count);
		free(wr->data);
		free(wr);
		return false;
	}
	end->budget--;
	commit(end, wr, wqe);
	return true;
}
