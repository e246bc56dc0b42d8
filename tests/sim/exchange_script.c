// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What the two programs of the fixed exchange post, where it lies, and what must come of it.
#include "exchange.h"

#include <string.h>

#define S AW_WR_SIGNALED
#define SE (AW_WR_SIGNALED | AW_WR_SOLICITED)
#define FENCE (AW_WR_SIGNALED | AW_WR_FENCE)
#define ADD 0x8123456789abcdef
#define SWAP 0xfedcba9876543210
#define NO_CELL 1 /* what no cell holds: they are 0 nowhere */
#define FLUSHED 100 /* octets */
#define SLACK 3 /* octets by which a receive is longer than its Send */

/* Segments of one FPDU and of many; 2100 octets are lent to the wire, fewer copied. */
static const struct item full_script[] = {
	{ AW_OP_WRITE, 0, S },	     { AW_OP_SEND, 5, S },
	{ AW_OP_READ, 300, S },	     { AW_OP_WRITE, 1, S },
	{ AW_OP_SEND, 0, SE },	     { AW_OP_WRITE, 700, 0 },
	{ AW_OP_READ, 0, S },	     { AW_OP_SEND_INV, 20, S },
	{ AW_OP_READ, 7, 0 },	     { AW_OP_SEND, 2100, S },
	{ AW_OP_LOCAL_INV, 0, S },   { AW_OP_READ, 1, FENCE },
	{ AW_OP_SEND_INV, 400, SE }, { AW_OP_WRITE, 31, S | AW_WR_INLINE },
	{ AW_OP_SEND, 13, FENCE },   { AW_OP_READ, 600, S },
};
static const struct item extended_script[] = {
	{ AW_OP_SEND_IMM, 40, S },
	{ AW_OP_FETCH_ADD, 8, S },
	{ AW_OP_WRITE_IMM, 500, SE },
	{ AW_OP_READ, 90, 0 },
	{ AW_OP_CMP_SWAP, 8, FENCE },
	{ AW_OP_ATOMIC_WRITE, 8, S },
	{ AW_OP_WRITE_IMM, 0, S },
	{ AW_OP_BIND_MW, 0, S },
	{ AW_OP_FETCH_ADD, 8, 0 },
	{ AW_OP_SEND_IMM, 700, SE },
	{ AW_OP_FLUSH, 0, S },
	{ AW_OP_CMP_SWAP, 8, S },
	{ AW_OP_ATOMIC_WRITE, 8, S | AW_WR_INLINE },
	{ AW_OP_WRITE_IMM, 20, S | AW_WR_INLINE },
	{ AW_OP_SEND, 9, S },
};
static const struct item brief_script[] = {
	{ AW_OP_WRITE, 5, S },
	{ AW_OP_SEND, 0, SE },
	{ AW_OP_READ, 6, S },
	{ AW_OP_SEND_INV, 3, S },
};

#define ITEMS(list)                                    \
	{                                              \
		list, sizeof(list) / sizeof((list)[0]) \
	}
static const struct {
	const struct item *items;
	unsigned int count;
} scripts[] = {
	[SCRIPT_FULL] = ITEMS(full_script),
	[SCRIPT_BRIEF] = ITEMS(brief_script),
	[SCRIPT_EXTENDED] = ITEMS(extended_script),
};

unsigned int exchange_items(const struct exchange_terms *terms)
{
	return scripts[terms->script].count;
}

/* The responder begins in the middle, so that the two directions differ. */
const struct item *exchange_item(const struct party *party, unsigned int i)
{
	const struct exchange_terms *terms = &party->exchange->terms;
	unsigned int count = exchange_items(terms);

	return &scripts[terms->script].items[(i + party->index * count / 2) % count];
}

size_t exchange_zone(enum zone zone)
{
	return EXCHANGE_RED + (size_t)zone * (EXCHANGE_ZONE + EXCHANGE_RED);
}

/* Where an item's octets are within each zone. */
static size_t place_of(const struct party *party, const struct item *item)
{
	const struct item *before = scripts[party->exchange->terms.script].items;
	size_t at = 0;

	for (; before < item; before++)
		at += (before->len + SLACK + 7) & ~7u;
	return at;
}

static uint32_t stag_of(enum zone zone)
{
	return EXCHANGE_STAG + zone;
}

static enum zone invalidated_by(const struct item *item)
{
	if (item->op == AW_OP_LOCAL_INV)
		return ZONE_OWN;
	return item->flags & AW_WR_SOLICITED ? ZONE_SPARE_SE : ZONE_SPARE;
}

/* Into the memory of who posts it. */
static bool brings_octets(const struct item *item)
{
	return item->op == AW_OP_READ || aw_op_is_atomic(item->op);
}

static bool has_imm(const struct item *item)
{
	return item->op == AW_OP_SEND_IMM || item->op == AW_OP_WRITE_IMM;
}

static uint32_t imm_of(const struct item *item)
{
	return 0xa1b2c3d4 + item->len;
}

static bool takes_recv(const struct item *item)
{
	return item->op == AW_OP_SEND || item->op == AW_OP_SEND_INV || item->op == AW_OP_SEND_IMM ||
	       item->op == AW_OP_WRITE_IMM;
}

static void fill(uint8_t *mem, unsigned int index)
{
	static uint8_t fresh[2][EXCHANGE_MEM];
	uint32_t state = 12345 + index;

	for (size_t i = 0; !fresh[index][0] && i < EXCHANGE_MEM; i++) {
		state = state * 1664525 + 1013904223;
		fresh[index][EXCHANGE_MEM - 1 - i] = (uint8_t)(state >> 24) | 1;
	}
	memcpy(mem, fresh[index], EXCHANGE_MEM);
}

void exchange_lay_out(struct party *party)
{
	static const uint32_t access[STAGS] = {
		[ZONE_SOURCE] = AW_ACCESS_REMOTE_READ,
		[ZONE_TARGET] = AW_ACCESS_LOCAL_WRITE | AW_ACCESS_REMOTE_WRITE |
				AW_ACCESS_FLUSH_GLOBAL,
		[ZONE_SINK] = AW_ACCESS_LOCAL_WRITE,
		[ZONE_RECV] = AW_ACCESS_LOCAL_WRITE,
		[ZONE_CELLS] = AW_ACCESS_REMOTE_ATOMIC | AW_ACCESS_REMOTE_WRITE,
	};

	fill(party->outcome.mem, party->index);
	for (unsigned int i = 0; i < STAGS; i++)
		party->mr[i] = (struct aw_mr){
			.stag = EXCHANGE_STAG + i,
			.access = access[i],
			.len = i < ZONES ? EXCHANGE_ZONE : 0,
			.host = party->outcome.mem + (i < ZONES ? exchange_zone(i) : 0),
			.pd = party->exchange,
		};
}

/* Two SGEs over len octets of a zone. */
static void cut_in_two(struct aw_sge *sge, enum zone zone, size_t at, uint32_t len)
{
	sge[0] = (struct aw_sge){ at, len / 3, stag_of(zone) };
	sge[1] = (struct aw_sge){ at + len / 3, len - len / 3, stag_of(zone) };
}

static enum zone target_of(const struct item *item)
{
	if (item->op == AW_OP_LOCAL_INV)
		return ZONE_OWN;
	if (aw_op_is_atomic(item->op) || item->op == AW_OP_ATOMIC_WRITE)
		return ZONE_CELLS;
	return item->op == AW_OP_READ ? ZONE_SOURCE : ZONE_TARGET;
}

/* One CmpSwap finds what it compares with, one does not. */
static bool swaps(const struct item *item)
{
	return item->op == AW_OP_CMP_SWAP && item->flags & AW_WR_FENCE;
}

/* What a cell of the other party holds before anything moved. */
static uint64_t fresh_cell(const struct party *party, size_t at)
{
	uint8_t theirs[EXCHANGE_MEM];
	uint64_t cell;

	fill(theirs, 1 - party->index);
	memcpy(&cell, theirs + exchange_zone(ZONE_CELLS) + at, sizeof(cell));
	return cell;
}

static void post(struct party *party, unsigned int i)
{
	const struct item *item = exchange_item(party, i);
	size_t at = place_of(party, item);
	struct aw_swqe *wqe = aw_sq_reserve(&party->qp.sq);

	wqe->wr_id = i;
	wqe->op = (uint8_t)item->op;
	wqe->flags = item->flags;
	wqe->len = item->len;
	wqe->to = at;
	wqe->stag = stag_of(target_of(item));
	wqe->inv_or_imm = has_imm(item) ? imm_of(item) : stag_of(invalidated_by(item));
	wqe->compare_add = item->op == AW_OP_FETCH_ADD ? ADD : NO_CELL;
	wqe->swap = SWAP;
	if (swaps(item))
		wqe->compare_add = fresh_cell(party, at);
	if (item->op == AW_OP_FLUSH) {
		wqe->access = RDMAP_FLUSH_GLOBAL;
		wqe->compare_add = FLUSHED;
		wqe->swap = RDMAP_FLUSH_RANGE;
	}
	wqe->sge_count = 2;
	if (item->flags & AW_WR_INLINE) {
		wqe->sge_count = 0;
		memcpy(wqe->data, party->outcome.mem + exchange_zone(ZONE_SOURCE) + at, item->len);
	} else {
		cut_in_two(wqe->sge, brings_octets(item) ? ZONE_SINK : ZONE_SOURCE, at, item->len);
	}
	aw_qp_post(&party->qp);
}

void exchange_post(struct party *party)
{
	for (unsigned int i = 0; i < exchange_items(&party->exchange->terms); i++)
		post(party, i);
}

bool exchange_recv(const struct party *party, unsigned int n, struct aw_rwqe *recv)
{
	for (unsigned int i = 0, sends = 0; i < exchange_items(&party->exchange->terms); i++) {
		const struct item *item = exchange_item(party->peer, i);

		if (!takes_recv(item) || sends++ < n)
			continue;
		recv->wr_id = n;
		recv->len = item->len + SLACK;
		recv->sge_count = 2;
		cut_in_two(recv->sge, ZONE_RECV, place_of(party, item), recv->len);
		return true;
	}
	return false;
}

/* RFC 7306 5.1, as far as the script goes; and the Atomic Write. */
uint64_t exchange_atomic(const struct rdmap_atomic_req *req, uint64_t old)
{
	uint8_t octets[8];
	uint64_t value;

	if (req->op == RDMAP_FETCH_ADD)
		return old + req->add_swap_data;
	if (req->op == RDMAP_ATOMIC_WRITE) {
		for (int i = 0; i < 8; i++)
			octets[i] = (uint8_t)(req->add_swap_data >> (56 - 8 * i));
		memcpy(&value, octets, sizeof(value));
		return value;
	}
	return old == req->compare_data ? req->add_swap_data : old;
}

static void log_add(struct log *log, struct aw_cqe cqe)
{
	log->cqe[log->count++] = cqe;
}

/* What an item does at the end that posts it. */
static void expect_own(const struct party *party, unsigned int i, struct outcome *expected,
		       const uint8_t *theirs)
{
	const struct item *item = exchange_item(party, i);
	size_t at = place_of(party, item);
	uint32_t len = brings_octets(item) ? item->len : 0;
	enum zone source = item->op == AW_OP_READ ? ZONE_SOURCE : ZONE_CELLS;

	memcpy(expected->mem + exchange_zone(ZONE_SINK) + at, theirs + exchange_zone(source) + at,
	       len);
	expected->binds += item->op == AW_OP_BIND_MW;
	if (item->op == AW_OP_LOCAL_INV)
		expected->invalid[ZONE_OWN] = true;
	if (item->flags & AW_WR_SIGNALED)
		log_add(&expected->queue[AW_SQ],
			(struct aw_cqe){ .wr_id = i, .op = item->op, .byte_len = len });
}

static void expect_atomic(const struct item *item, uint8_t *at, struct outcome *expected)
{
	uint64_t old, next;

	memcpy(&old, at, sizeof(old));
	next = item->op == AW_OP_FETCH_ADD ? old + ADD : swaps(item) ? SWAP : old;
	memcpy(at, &next, sizeof(next));
	expected->atomics++;
}

/* What an item does at the other end. */
static void expect_theirs(const struct party *party, unsigned int i, struct outcome *expected,
			  const uint8_t *theirs)
{
	const struct item *item = exchange_item(party->peer, i);
	size_t at = place_of(party, item);
	bool inv = item->op == AW_OP_SEND_INV;
	struct log *log = &expected->queue[AW_RQ];

	if (aw_op_is_atomic(item->op))
		expect_atomic(item, expected->mem + exchange_zone(ZONE_CELLS) + at, expected);
	if (item->op == AW_OP_ATOMIC_WRITE) {
		memcpy(expected->mem + exchange_zone(ZONE_CELLS) + at,
		       theirs + exchange_zone(ZONE_SOURCE) + at, item->len);
		expected->atomics++;
	}
	expected->flushes += item->op == AW_OP_FLUSH;
	if (item->op == AW_OP_WRITE || item->op == AW_OP_WRITE_IMM)
		memcpy(expected->mem + exchange_zone(ZONE_TARGET) + at,
		       theirs + exchange_zone(ZONE_SOURCE) + at, item->len);
	if (!takes_recv(item))
		return;
	if (item->op != AW_OP_WRITE_IMM)
		memcpy(expected->mem + exchange_zone(ZONE_RECV) + at,
		       theirs + exchange_zone(ZONE_SOURCE) + at, item->len);
	if (inv)
		expected->invalid[invalidated_by(item)] = true;
	log_add(log,
		(struct aw_cqe){
			.wr_id = log->count,
			.op = item->op,
			.byte_len = item->len,
			.inv_or_imm = has_imm(item) ? imm_of(item)
				      : inv	    ? stag_of(invalidated_by(item))
						    : 0,
			.flags = (inv ? AW_WC_WITH_INV : 0) | (has_imm(item) ? AW_WC_WITH_IMM : 0) |
				 (item->flags & AW_WR_SOLICITED ? AW_WC_SOLICITED : 0),
		});
}

void exchange_expect(const struct party *party, struct outcome *expected)
{
	uint8_t theirs[EXCHANGE_MEM];

	memset(expected, 0, sizeof(*expected));
	fill(expected->mem, party->index);
	fill(theirs, 1 - party->index);
	for (unsigned int i = 0; i < exchange_items(&party->exchange->terms); i++) {
		expect_own(party, i, expected, theirs);
		expect_theirs(party, i, expected, theirs);
	}
}
