// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The ops and buffers of core_pair.h.
#include "core_pair.h"

#include "core/atomic.h"
#include "wire/fpdu.h"
#include "wire/octets.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

const char core_other_pd;

const uint8_t core_siw_send[40] = {
	0x00, 0x22, 0x41, 0x43, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x56, 0x09, 0x3c, 0x0e, 0x93, 0x70,
	0xf5, 0x55, 0x89, 0x00, 0x00, 0x00, 0x00, 0x40, 0x22, 0xe6, 0x22, 0x25,
};

const uint8_t core_data[65535] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, [65500] = 10 };

/* The memory of both ends is always there. */
static bool op_reach(void *ctx, const struct aw_mr *mr, uint8_t *at, size_t len, bool write)
{
	(void)ctx;
	(void)mr;
	(void)at;
	(void)len;
	(void)write;
	return true;
}

static const struct aw_mr *op_mr_get(void *ctx, uint32_t stag)
{
	struct core_end *end = ctx;

	for (unsigned int i = 0; i < CORE_MRS; i++) {
		if (end->mr[i].pd && end->mr[i].stag == stag) {
			end->held++;
			return &end->mr[i];
		}
	}
	return NULL;
}

static void op_mr_put(void *ctx, const struct aw_mr *mr)
{
	struct core_end *end = ctx;

	assert_non_null(mr);
	assert_true(end->held > 0);
	end->held--;
}

static bool is_gone(const struct core_end *end, const uint8_t *at, size_t len)
{
	return end->gone >= at && end->gone < at + len;
}

/* The region that the core says it is, and these octets within it. */
static bool is_of(const struct core_end *end, const struct aw_mr *mr, const uint8_t *at, size_t len)
{
	bool known = false;

	for (unsigned int i = 0; i < CORE_MRS; i++)
		known |= mr == &end->mr[i];
	return known && at >= mr->host && at + len <= mr->host + mr->len;
}

static bool op_place(void *ctx, const struct aw_mr *mr, uint8_t *dst, const uint8_t *src,
		     size_t len)
{
	struct core_end *end = ctx;

	assert_true(end->held > 0);
	assert_true(is_of(end, mr, dst, len));
	if (is_gone(end, dst, len))
		return false;
	end->placed++;
	memcpy(dst, src, len);
	return true;
}

static bool op_gather(void *ctx, const struct aw_mr *mr, uint8_t *dst, const uint8_t *src,
		      size_t len, uint32_t *crc)
{
	struct core_end *end = ctx;

	assert_true(end->held > 0);
	assert_true(is_of(end, mr, src, len));
	memcpy(dst, src, len);
	if (crc)
		*crc = crc32c_update(*crc, dst, len);
	return !is_gone(end, src, len);
}

static enum aw_error op_invalidate(void *ctx, uint32_t stag, bool by_peer)
{
	struct core_end *end = ctx;

	for (unsigned int i = 0; i < CORE_MRS; i++) {
		if (!end->mr[i].pd || end->mr[i].stag != stag)
			continue;
		if (end->mr[i].pd != end)
			return AW_E_RDMAP_NOT_ASSOCIATED;
		if (stag == CORE_STAG)
			return AW_E_RDMAP_CANNOT_INVALIDATE;
		end->mr[i].pd = NULL;
		end->invalidated = stag;
		end->invalidated_by_peer = by_peer;
		return AW_OK;
	}
	return AW_E_RDMAP_STAG;
}

static enum aw_wc_status op_bind(void *ctx, const struct aw_swqe *wqe)
{
	struct core_end *end = ctx;

	assert_int_equal(end->held, 0); /* whoever binds may wait for those who hold */
	end->binds++;
	end->bound = *wqe;
	return end->bind_status;
}

static bool op_atomic(void *ctx, const struct aw_mr *mr, uint8_t *at,
		      const struct rdmap_atomic_req *req, uint64_t *before)
{
	struct core_end *end = ctx;
	uint64_t next;

	assert_true(end->held > 0);
	assert_true(is_of(end, mr, at, AW_ATOMIC_LEN));
	if (is_gone(end, at, AW_ATOMIC_LEN))
		return false;
	memcpy(before, at, sizeof(*before));
	next = aw_atomic_next(req, *before);
	memcpy(at, &next, sizeof(next));
	end->executed++;
	return true;
}

static enum aw_written op_write_back(void *ctx, const struct aw_mr *mr, uint8_t *at, size_t len,
				     bool persistent)
{
	struct core_end *end = ctx;

	assert_true(end->held > 0);
	assert_true(is_of(end, mr, at, len));
	end->write_backs++;
	end->write_back.at = (uint32_t)(at - end->mem);
	end->write_back.len = (uint32_t)len;
	end->write_back.persistent = persistent;
	return end->written;
}

static bool op_recv_take(void *ctx, struct aw_rwqe *recv)
{
	struct core_end *end = ctx;

	return aw_rq_take(&end->rq, recv);
}

/* The XRC domain of a target has one SRQ, of the PD that all MRs have. */
static enum aw_error op_xrc_take(void *ctx, uint32_t srqn, struct aw_rwqe *recv, const void **pd)
{
	struct core_end *end = ctx;

	if (srqn != end->srqn)
		return AW_E_DDP_QN;
	if (!aw_rq_take(&end->rq, recv))
		return AW_E_DDP_NO_BUFFER;
	*pd = end;
	return AW_OK;
}

static bool op_xrc_has_pd(void *ctx, const void *pd)
{
	return pd == ctx;
}

static void op_complete(void *ctx, enum aw_queue queue, const struct aw_cqe *cqe)
{
	struct core_end *end = ctx;

	assert_true(end->logged < CORE_CQES);
	end->log[end->logged++] = (struct core_cqe){ queue, *cqe };
}

static void *op_stash_get(void *ctx, size_t len)
{
	struct core_end *end = ctx;
	void *memory = end->stash_none ? NULL : malloc(len);

	end->stashed += memory ? len : 0;
	return memory;
}

static void op_stash_put(void *ctx, void *memory, size_t len)
{
	struct core_end *end = ctx;

	assert_true(end->stashed >= len);
	end->stashed -= len;
	free(memory);
}

static const struct aw_ops ops = {
	.mr_get = op_mr_get,
	.reach = op_reach,
	.mr_put = op_mr_put,
	.place = op_place,
	.gather = op_gather,
	.invalidate = op_invalidate,
	.bind = op_bind,
	.atomic = op_atomic,
	.write_back = op_write_back,
	.recv_take = op_recv_take,
	.xrc_take = op_xrc_take,
	.xrc_has_pd = op_xrc_has_pd,
	.complete = op_complete,
	.stash_get = op_stash_get,
	.stash_put = op_stash_put,
	.crc32c = crc32c_update,
};

struct aw_stream core_stream(bool initiator, uint32_t emss)
{
	return (struct aw_stream){
		.initiator = initiator,
		.crc = true,
		.ird = CORE_READS,
		.ord = CORE_READS,
		.emss = emss,
		.stag_seed = 0x7000,
	};
}

static void end_init(struct core_end *end, const struct aw_stream *stream)
{
	struct aw_qp_mem mem = {
		.sq = end->sq_mem,
		.sq_capacity = CORE_SQ,
		.sge_max = AW_SGE_MAX,
		.inline_max = AW_INLINE_MAX,
		.irq = end->irq,
		.irq_capacity = CORE_READS,
		.orq = end->orq,
		.orq_capacity = CORE_READS,
	};

	assert_true(aw_sq_mem_size(CORE_SQ, AW_SGE_MAX, AW_INLINE_MAX) <= sizeof(end->sq_mem));
	assert_true(aw_rq_mem_size(CORE_RQ, AW_SGE_MAX) <= sizeof(end->rq_mem));
	memset(end->arena, 0xee, sizeof(end->arena));
	aw_rq_init(&end->rq, end->rq_mem, CORE_RQ, AW_SGE_MAX);
	aw_qp_init(&end->qp, &mem, &ops, end, end);
	core_mr_add(end, CORE_STAG, ~0u, 0, CORE_MEM);
	if (stream)
		aw_qp_start(&end->qp, stream);
}

struct core_end *core_end_create(const struct aw_stream *stream)
{
	struct core_end *end = calloc(1, sizeof(*end));

	assert_non_null(end);
	end_init(end, stream);
	return end;
}

struct core_end *core_responder(void)
{
	struct aw_stream stream = core_stream(false, 1448);

	return core_end_create(&stream);
}

struct core_end *core_initiator(uint32_t emss)
{
	struct aw_stream stream = core_stream(true, emss);

	return core_end_create(&stream);
}

struct core_pair *core_pair_create(const struct aw_stream *a, const struct aw_stream *b)
{
	struct core_pair *pair = calloc(1, sizeof(*pair));

	assert_non_null(pair);
	end_init(&pair->a, a);
	end_init(&pair->b, b);
	return pair;
}

struct core_pair *core_pair_ready(uint32_t emss)
{
	struct aw_stream a = core_stream(true, emss), b = core_stream(false, emss);
	struct core_pair *pair = core_pair_create(&a, &b);

	pair->b.qp.peer_ready = true;
	return pair;
}

static void end_fini(struct core_end *end)
{
	assert_int_equal(end->held, 0);
	aw_stash_drop(&end->qp);
	assert_int_equal(end->stashed, 0);
}

void core_end_destroy(struct core_end *end)
{
	end_fini(end);
	free(end);
}

void core_pair_destroy(struct core_pair *pair)
{
	end_fini(&pair->a);
	end_fini(&pair->b);
	free(pair);
}

struct aw_mr *core_mr_add(struct core_end *end, uint32_t stag, uint32_t access, uint32_t at,
			  uint32_t len)
{
	unsigned int i = 0;

	while (end->mr[i].pd)
		assert_true(++i < CORE_MRS);
	end->mr[i] = (struct aw_mr){
		.stag = stag,
		.access = access,
		.iova = CORE_IOVA + at,
		.len = len,
		.host = end->mem + at,
		.pd = end,
	};
	return &end->mr[i];
}

struct aw_swqe *core_wr(struct core_end *end, enum aw_op op, uint32_t at, uint32_t len)
{
	struct aw_swqe *wqe = aw_sq_reserve(&end->qp.sq);

	if (!wqe)
		return NULL;
	*wqe = (struct aw_swqe){
		.wr_id = op,
		.op = (uint8_t)op,
		.flags = AW_WR_SIGNALED,
		.len = len,
		.stag = CORE_STAG,
		.to = CORE_IOVA,
		.sge_count = 1,
	};
	wqe->sge[0] = (struct aw_sge){ CORE_IOVA + at, len, CORE_STAG };
	return wqe;
}

void core_post(struct core_end *end, enum aw_op op, uint32_t at, uint32_t len, uint32_t to)
{
	struct aw_swqe *wqe = core_wr(end, op, at, len);

	assert_non_null(wqe);
	wqe->to = CORE_IOVA + to;
	aw_qp_post(&end->qp);
}

void core_recv(struct core_end *end, uint64_t wr_id, uint32_t at, uint32_t len)
{
	struct aw_sge sge = { CORE_IOVA + at, len, CORE_STAG };

	assert_true(aw_rq_post(&end->rq, wr_id, &sge, 1));
	aw_qp_recv_posted(&end->qp);
}

bool core_tx_one(struct core_end *end)
{
	struct aw_tx_out out = {
		.arena = end->arena,
		.arena_len = sizeof(end->arena),
		.iov = end->iov,
		.iov_max = sizeof(end->iov) / sizeof(end->iov[0]),
	};
	bool idle = aw_tx_is_idle(&end->qp);
	enum aw_tx tx = aw_tx_next(&end->qp, &out);
	size_t octets = 0;

	assert_int_not_equal(tx, AW_TX_FULL);
	assert_true(!idle || tx == AW_TX_NONE);
	if (tx == AW_TX_NONE) {
		assert_int_equal(out.octets, 0);
		return false;
	}
	for (unsigned int i = 0; i < out.iov_count; i++) {
		assert_true(end->wire_len + out.iov[i].len <= CORE_WIRE);
		memcpy(end->wire + end->wire_len, out.iov[i].base, out.iov[i].len);
		end->wire_len += out.iov[i].len;
		octets += out.iov[i].len;
	}
	assert_int_equal(octets, out.octets);
	aw_tx_sent(&end->qp, octets);
	return true;
}

void core_tx(struct core_end *end)
{
	while (core_tx_one(end))
		continue;
}

void core_deliver(struct core_end *from, struct core_end *to)
{
	size_t used = aw_rx_octets(&to->qp, from->wire, from->wire_len);

	assert_int_equal(used, from->wire_len);
	from->wire_len = 0;
}

void core_pump(struct core_pair *pair)
{
	do {
		core_tx(&pair->a);
		core_tx(&pair->b);
		if (pair->a.wire_len == 0 && pair->b.wire_len == 0)
			return;
		core_deliver(&pair->a, &pair->b);
		core_deliver(&pair->b, &pair->a);
	} while (true);
}

const struct core_cqe *core_cqe(struct core_end *end)
{
	return end->read < end->logged ? &end->log[end->read++] : NULL;
}

void core_expect_sq(struct core_end *end, enum aw_op op, enum aw_wc_status status)
{
	const struct core_cqe *c = core_cqe(end);

	assert_non_null(c);
	assert_int_equal(c->queue, AW_SQ);
	assert_int_equal(c->cqe.wr_id, op);
	assert_int_equal(c->cqe.op, op);
	assert_int_equal(c->cqe.status, status);
}

struct ddp_hdr core_untagged(enum rdmap_opcode op, uint32_t qn, uint32_t msn, uint32_t mo)
{
	return (struct ddp_hdr){
		.last = true,
		.ulp_ctrl = rdmap_ctrl(op),
		.qn = qn,
		.msn = msn,
		.mo = mo,
	};
}

struct ddp_hdr core_tagged(enum rdmap_opcode op, uint32_t stag, uint64_t to)
{
	return (struct ddp_hdr){
		.tagged = true,
		.last = true,
		.ulp_ctrl = rdmap_ctrl(op),
		.stag = stag,
		.to = to,
	};
}

enum aw_error core_ulpdu(struct core_end *end, const struct ddp_hdr *hdr, size_t len)
{
	uint8_t *p = malloc(DDP_UNTAGGED_LEN + len);
	size_t at;
	enum aw_error err;

	assert_non_null(p);
	at = ddp_put(hdr, p);
	memcpy(p + at, core_data, len);
	err = aw_rx_ulpdu(&end->qp, p, at + len);
	free(p);
	return err;
}

size_t core_fpdu(uint8_t *p, const struct ddp_hdr *hdr, const void *payload, size_t len)
{
	size_t ulpdu = ddp_hdr_len(hdr->tagged) + len;
	size_t size = fpdu_size(ulpdu);

	memset(p, 0, size);
	put_be16(p, (uint16_t)ulpdu);
	ddp_put(hdr, p + 2);
	if (len > 0)
		memcpy(p + 2 + ddp_hdr_len(hdr->tagged), payload, len);
	put_le32(p + size - 4, crc32c_final(crc32c_update(CRC32C_INIT, p, size - 4)));
	return size;
}

void core_inject(struct core_end *end, const struct ddp_hdr *hdr, const void *payload, size_t len)
{
	uint8_t *fpdu = malloc(FPDU_MAX);
	size_t size;

	assert_non_null(fpdu);
	size = core_fpdu(fpdu, hdr, payload, len);
	assert_int_equal(aw_rx_octets(&end->qp, fpdu, size), size);
	free(fpdu);
}

const uint8_t *core_peek(const struct core_end *end, struct ddp_hdr *hdr, size_t *len)
{
	size_t ulpdu;

	assert_true(end->wire_len >= 2);
	ulpdu = get_be16(end->wire);
	assert_true(end->wire_len >= fpdu_size(ulpdu));
	assert_int_equal(ddp_get(end->wire + 2, ulpdu, hdr), AW_OK);
	*len = ulpdu - ddp_hdr_len(hdr->tagged);
	return end->wire + 2 + ddp_hdr_len(hdr->tagged);
}

struct core_pair *core_pair_acking(uint32_t ord)
{
	struct aw_stream a = core_stream(true, 1448), b = core_stream(false, 1448);
	struct core_pair *pair = core_pair_create(NULL, NULL);

	a.ord = ord;
	a.extensions = b.extensions = true;
	pair->a.qp.acks = pair->b.qp.acks = true;
	aw_qp_start(&pair->a.qp, &a);
	aw_qp_start(&pair->b.qp, &b);
	pair->b.qp.peer_ready = true;
	return pair;
}
