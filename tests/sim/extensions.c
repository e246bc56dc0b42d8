// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// RFC 7306 in the simulated programs: immediates within the peer's receives, atomics on a few cells
// that all connections contend for. An atomic is executed once, in the order posted, and brings
// what the model says stood there. Atomic Writes go to the same cells; a Flush is executed once, too,
// when all Writes before it are placed.
#include "world.h"

#include "core/atomic.h"

#include <string.h>

#define CELLS 4
#define CELL 8 /* octets */

static bool make_send_imm(struct end *end, struct wr *wr)
{
	uint32_t max = traffic_credit(end);

	if (max == UINT32_MAX)
		return false;
	wr->op = AW_OP_SEND_IMM;
	wr->len = rng_percent(&end->world->rng, 30) ? max : traffic_len(end, max);
	return true;
}

/* It takes a receive, of whatever length. */
static bool make_write_imm(struct end *end, struct wr *wr)
{
	struct region *region = memory_pick(end->peer->host, ROLE_WRITE);

	wr->op = AW_OP_WRITE_IMM;
	wr->len = traffic_len(end, end->world->plan.len_max);
	if (traffic_credit(end) == UINT32_MAX || !(end->peer->grants & AW_ACCESS_REMOTE_WRITE) ||
	    !region || !memory_claim(region, wr->len, wr->sink))
		return false;
	wr->sink_count = 1;
	wr->stag = region->mr.stag;
	wr->to = region->mr.iova + wr->sink[0].off;
	return true;
}

static void draw_operands(struct end *end, struct wr *wr, const uint8_t *cell)
{
	struct rng *rng = &end->world->rng;

	wr->operand[0] = rng_percent(rng, 50) ? rng_next(rng) : rng_below(rng, 10);
	wr->operand[1] = rng_next(rng);
	/* Mostly what stands there now, so that some swap. */
	if (wr->op == AW_OP_CMP_SWAP && rng_percent(rng, 80))
		memcpy(&wr->operand[0], cell, CELL);
}

static bool make_atomic(struct end *end, struct wr *wr, enum aw_op op)
{
	struct region *region = memory_pick(end->peer->host, ROLE_ATOMIC);
	size_t off = CELL * rng_below(&end->world->rng, CELLS);

	if (!region || !end->qp.stream.ord || !(end->peer->grants & AW_ACCESS_REMOTE_ATOMIC))
		return false;
	wr->op = op;
	wr->len = CELL;
	wr->stag = region->mr.stag;
	wr->to = region->mr.iova + off;
	draw_operands(end, wr, memory_shadow_at(region, off));
	wr->sink_count = lists_sink(end, ROLE_READ, CELL, wr->sink);
	return wr->sink_count != UINT32_MAX;
}

bool extensions_make(struct end *end, struct wr *wr)
{
	struct rng *rng = &end->world->rng;
	uint64_t draw = wr->bad >= BAD_ATOMIC_STAG ? 99 : rng_below(rng, 100);

	if (!end->qp.stream.extensions && wr->bad != BAD_NOT_AGREED)
		return false;
	if (draw < 50) {
		wr->inv = (uint32_t)rng_next(rng);
		wr->flags |= rng_percent(rng, 30) ? AW_WR_SOLICITED : 0;
		return draw < 25 ? make_send_imm(end, wr) : make_write_imm(end, wr);
	}
	return make_atomic(end, wr, draw < 75 ? AW_OP_CMP_SWAP : AW_OP_FETCH_ADD);
}

static bool make_atomic_write(struct end *end, struct wr *wr)
{
	struct region *region = memory_pick(end->peer->host, ROLE_ATOMIC);

	if (!region || !(region->mr.access & end->peer->grants & AW_ACCESS_REMOTE_WRITE))
		return false;
	wr->op = AW_OP_ATOMIC_WRITE;
	wr->len = CELL;
	wr->stag = region->mr.stag;
	wr->to = region->mr.iova + CELL * rng_below(&end->world->rng, CELLS);
	return true;
}

static bool make_flush(struct end *end, struct wr *wr)
{
	struct rng *rng = &end->world->rng;
	struct region *region =
		memory_pick(end->peer->host, rng_percent(rng, 50) ? ROLE_WRITE : ROLE_ATOMIC);
	size_t off;

	if (!region || (end->peer->grants & AW_ACCESS_FLUSH) != AW_ACCESS_FLUSH)
		return false;
	off = rng_range(rng, 0, region->mr.len);
	wr->op = AW_OP_FLUSH;
	wr->inv = (uint32_t)rng_range(rng, 1, RDMAP_FLUSH_TYPES);
	wr->stag = region->mr.stag;
	wr->to = region->mr.iova + off;
	wr->operand[0] = rng_range(rng, 0, region->mr.len - off);
	wr->operand[1] = rng_percent(rng, 30) ? RDMAP_FLUSH_MR : RDMAP_FLUSH_RANGE;
	return true;
}

bool extensions_make_placement(struct end *end, struct wr *wr)
{
	if (!end->qp.stream.ord)
		return false;
	return rng_percent(&end->world->rng, 60) ? make_atomic_write(end, wr) : make_flush(end, wr);
}

static bool is_atomic(enum aw_op op)
{
	return aw_op_is_atomic(op) || op == AW_OP_ATOMIC_WRITE;
}

/* The peer's atomic number n. */
static struct wr *atomic_of(const struct end *peer, uint32_t n)
{
	for (uint32_t i = 0; i < peer->wr_count; i++)
		if (is_atomic(peer->wr[i]->op) && n-- == 0)
			return peer->wr[i];
	return NULL;
}

static struct wr *flush_of(const struct end *peer, uint32_t n)
{
	for (uint32_t i = 0; i < peer->wr_count; i++)
		if (peer->wr[i]->op == AW_OP_FLUSH && n-- == 0)
			return peer->wr[i];
	return NULL;
}

static uint64_t model(const struct wr *wr, uint64_t old)
{
	uint64_t octets;

	if (wr->op == AW_OP_ATOMIC_WRITE) {
		memcpy(&octets, wr->data, CELL);
		return octets;
	}
	if (wr->op == AW_OP_FETCH_ADD)
		return old + wr->operand[0];
	return old == wr->operand[0] ? wr->operand[1] : old;
}

/* What the next atomic of an honest peer makes of old. */
static uint64_t honest(struct end *end, const struct rdmap_atomic_req *req, uint64_t old)
{
	struct wr *wr = atomic_of(end->peer, end->atomics++);

	if (!wr || !wr->emitted || wr->bad || wr->stag != req->stag || wr->to != req->to) {
		world_fail(end->world, "%c: an atomic that is not its peer's next", end->name);
		return old;
	}
	wr->executed++;
	if (wr->op != AW_OP_ATOMIC_WRITE)
		memcpy(wr->data, &old, CELL);
	TRACE(end, "executes atomic WR %llu on %llx", wr->index, old);
	return model(wr, old);
}

static uint8_t *shadow_of(struct end *end, const uint8_t *at, uint32_t right)
{
	for (unsigned int i = 0; i < end->host->region_count; i++) {
		struct region *region = &end->host->region[i];

		if (region->role == ROLE_WINDOW || at < memory_at(region, 0) ||
		    at >= memory_at(region, region->mr.len))
			continue;
		if (!(region->mr.access & end->grants & right) || (uintptr_t)at % CELL)
			world_fail(end->world, "%c: an atomic where none may be", end->name);
		return memory_shadow_at(region, (size_t)(at - memory_at(region, 0)));
	}
	return NULL;
}

uint64_t extensions_execute(struct end *end, uint8_t *at, const struct rdmap_atomic_req *req)
{
	uint8_t *shadow = shadow_of(end, at,
				    req->op == RDMAP_ATOMIC_WRITE ? AW_ACCESS_REMOTE_WRITE
								  : AW_ACCESS_REMOTE_ATOMIC);
	uint64_t old, next;

	memcpy(&old, at, CELL);
	if (!shadow || memcmp(shadow, at, CELL) != 0) {
		world_fail(end->world, "%c: an atomic's cell is not as it was left", end->name);
		return old;
	}
	next = end->conn->untrusted ? aw_atomic_next(req, old) : honest(end, req, old);
	memcpy(at, &next, CELL);
	memcpy(shadow, &next, CELL);
	return old;
}

/* The octets that the WR names there. */
static bool is_of_flush(const struct wr *wr, const struct region *region, const uint8_t *at,
			size_t len)
{
	if (wr->operand[1] == RDMAP_FLUSH_MR)
		return at == memory_at(region, 0) && len == region->mr.len;
	return at == memory_at(region, (size_t)(wr->to - region->mr.iova)) && len == wr->operand[0];
}

enum aw_written extensions_write_back(struct end *end, const uint8_t *at, size_t len,
				      bool persistent)
{
	struct wr *wr = flush_of(end->peer, end->flushes++);
	struct region *region = wr ? memory_find(end->host, wr->stag) : NULL;

	if (end->writes_back)
		world_fail(end->world, "%c: two Flushes at once", end->name);
	if (!end->conn->untrusted) {
		if (!region || !wr->emitted || !is_of_flush(wr, region, at, len) ||
		    persistent != !!(wr->inv & RDMAP_FLUSH_PERSISTENT)) {
			world_fail(end->world, "%c: a Flush that is not its peer's next",
				   end->name);
			return AW_UNWRITTEN;
		}
		check_writes_placed(end, wr);
		wr->executed++;
	}
	if (!persistent || rng_percent(&end->world->rng, 30))
		return AW_WRITTEN;
	end->writes_back = true;
	return AW_WRITING;
}

bool extensions_written_back(struct end *end)
{
	if (!end->writes_back)
		return false;
	if (rng_percent(&end->world->rng, 50)) {
		end->writes_back = false;
		aw_qp_written_back(&end->qp, true);
	}
	return true;
}
