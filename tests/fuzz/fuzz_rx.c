// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A stream of any octets into one QP. The string gives the stream's parameters, what every
// callback answers, what the program posts, then the octets, which the harness makes FPDUs of
// (right length, right CRC), of their octets or field by field, or feeds as they are.
#include "fuzz.h"
#include "message.h"

#include "core/atomic.h"
#include "core/qp.h"
#include "core/rx.h"
#include "core/tx.h"
#include "wire/crc32c.h"
#include "wire/fpdu.h"
#include "wire/octets.h"

#include <string.h>

enum {
	MRS = 8,
	OTHER_PD = 5,
	WINDOW = 6, /* of this QP */
	OTHER_WINDOW = 7, /* of another */
	MR_LEN = 4096,
	SQ_CAPACITY = 16,
	READS = 4,
	SGE_MAX = 4,
	INLINE_MAX = 64,
	STREAM_MAX = 16384,
	IOVS = AW_TX_IOV_MIN,
};

struct harness {
	struct bytes answers;
	struct aw_qp qp;
	struct aw_mr mr[MRS];
	bool granted[MRS];
	uint32_t held;
	bool by_field; /* segments are drawn field by field */
	size_t staged; /* octets fed and not used: a half FPDU, or a message that is held and what follows */
	uint32_t posted, completed; /* WRs: all are signalled */
	uint32_t taken, received;
	size_t stashed; /* octets of the stash's chunks */
	uint8_t pd;
	uint8_t *arena;
	uint8_t *octets; /* those that are staged */
};

static _Alignas(16) uint8_t memory[MRS][MR_LEN];

static const struct aw_mr *mr_get(void *ctx, uint32_t stag)
{
	struct harness *h = ctx;
	uint32_t i = stag & 0xff;

	if (i >= MRS || bytes_u8(&h->answers) == 0xff)
		return NULL;
	h->held++;
	return &h->mr[i];
}

static void mr_put(void *ctx, const struct aw_mr *mr)
{
	struct harness *h = ctx;

	FUZZ_CHECK(h->held > 0 && mr >= h->mr && mr < h->mr + MRS);
	h->held--;
}

static void check_inside(const struct harness *h, const uint8_t *p, size_t len, bool write)
{
	size_t off = (size_t)(p - memory[0]);

	if (len == 0)
		return;
	FUZZ_CHECK(h->held > 0);
	FUZZ_CHECK(p >= memory[0] && off < sizeof(memory));
	FUZZ_CHECK(len <= MR_LEN - off % MR_LEN);
	FUZZ_CHECK(!write || h->granted[off / MR_LEN]);
}

/* Memory goes at any time. */
static bool is_there(void *ctx)
{
	return bytes_u8(&((struct harness *)ctx)->answers) != 0xff;
}

static bool place(void *ctx, const struct aw_mr *mr, uint8_t *dst, const uint8_t *src, size_t len)
{
	(void)mr;
	check_inside(ctx, dst, len, true);
	memcpy(dst, src, len);
	return is_there(ctx);
}

static bool gather(void *ctx, const struct aw_mr *mr, uint8_t *dst, const uint8_t *src, size_t len,
		   uint32_t *crc)
{
	(void)mr;
	check_inside(ctx, src, len, false);
	memcpy(dst, src, len);
	if (crc)
		*crc = crc32c_update(*crc, dst, len);
	return is_there(ctx);
}

static enum aw_error invalidate(void *ctx, uint32_t stag, bool by_peer)
{
	static const enum aw_error answers[] = { AW_OK, AW_E_RDMAP_STAG, AW_E_RDMAP_NOT_ASSOCIATED,
						 AW_E_RDMAP_CANNOT_INVALIDATE };
	struct harness *h = ctx;

	(void)stag;
	(void)by_peer;
	return answers[bytes_u8(&h->answers) % 4];
}

static enum aw_wc_status bind(void *ctx, const struct aw_swqe *wqe)
{
	struct harness *h = ctx;

	(void)wqe;
	return bytes_u8(&h->answers) % 4 ? AW_WC_SUCCESS : AW_WC_MW_BIND_ERR;
}

static bool atomic(void *ctx, const struct aw_mr *mr, uint8_t *at,
		   const struct rdmap_atomic_req *req, uint64_t *before)
{
	(void)mr;
	uint64_t next;

	check_inside(ctx, at, AW_ATOMIC_LEN, true);
	FUZZ_CHECK((uintptr_t)at % AW_ATOMIC_LEN == 0);
	if (!is_there(ctx))
		return false;
	memcpy(before, at, sizeof(*before));
	next = aw_atomic_next(req, *before);
	memcpy(at, &next, sizeof(next));
	return true;
}

/* SGEs over MRs 0 and 1, which may be written locally, or one that no MR stands behind. */
static uint32_t draw_sges(struct bytes *b, struct aw_sge *sge, uint8_t *count)
{
	uint32_t sum = 0;

	*count = bytes_u8(b) % (SGE_MAX + 1);
	for (uint32_t i = 0; i < *count; i++) {
		uint8_t which = bytes_u8(b);
		uint32_t len = bytes_u16(b) % (MR_LEN / 2);

		sge[i] = (struct aw_sge){ bytes_u8(b), len, which < 240 ? which % 2u : which };
		sum += len;
	}
	return sum;
}

static enum aw_written write_back(void *ctx, const struct aw_mr *mr, uint8_t *at, size_t len,
				  bool persistent)
{
	struct harness *h = ctx;

	FUZZ_CHECK(h->held > 0);
	FUZZ_CHECK(at >= mr->host && at + len <= mr->host + mr->len);
	FUZZ_CHECK(!persistent || mr->access & AW_ACCESS_FLUSH_PERSISTENT);
	return persistent ? (enum aw_written)(bytes_u8(&h->answers) % 3) : AW_WRITTEN;
}

static bool recv_take(void *ctx, struct aw_rwqe *recv)
{
	struct harness *h = ctx;
	uint8_t count;

	if (h->taken >= 64 || bytes_u8(&h->answers) % 8 == 7)
		return false;
	recv->wr_id = h->taken++;
	recv->len = draw_sges(&h->answers, recv->sge, &count);
	recv->sge_count = count;
	return true;
}

/* One number in four is no SRQ's. */
static enum aw_error xrc_take(void *ctx, uint32_t srqn, struct aw_rwqe *recv, const void **pd)
{
	struct harness *h = ctx;

	FUZZ_CHECK(h->qp.xrc == AW_XRC_TARGET);
	if (srqn % 4 == 3)
		return AW_E_DDP_QN;
	if (!recv_take(h, recv))
		return AW_E_DDP_NO_BUFFER;
	*pd = &h->pd;
	return AW_OK;
}

static bool xrc_has_pd(void *ctx, const void *pd)
{
	struct harness *h = ctx;

	FUZZ_CHECK(h->qp.xrc == AW_XRC_TARGET);
	return pd == &h->pd;
}

static void complete(void *ctx, enum aw_queue queue, const struct aw_cqe *cqe)
{
	struct harness *h = ctx;

	if (queue == AW_SQ) {
		FUZZ_CHECK(cqe->wr_id == h->completed && h->completed < h->posted);
		h->completed++;
	} else {
		FUZZ_CHECK(cqe->wr_id == h->received && h->received < h->taken);
		h->received++;
	}
}

static void *stash_get(void *ctx, size_t len)
{
	struct harness *h = ctx;
	void *chunk = bytes_u8(&h->answers) % 8 == 7 ? NULL : malloc(len);

	FUZZ_CHECK(h->qp.keeps);
	h->stashed += chunk ? len : 0;
	return chunk;
}

static void stash_put(void *ctx, void *chunk, size_t len)
{
	struct harness *h = ctx;

	FUZZ_CHECK(h->stashed >= len);
	h->stashed -= len;
	free(chunk);
}

static const struct aw_ops ops = {
	.mr_get = mr_get,
	.mr_put = mr_put,
	.place = place,
	.gather = gather,
	.invalidate = invalidate,
	.bind = bind,
	.atomic = atomic,
	.write_back = write_back,
	.recv_take = recv_take,
	.xrc_take = xrc_take,
	.xrc_has_pd = xrc_has_pd,
	.complete = complete,
	.stash_get = stash_get,
	.stash_put = stash_put,
	.crc32c = crc32c_update,
};

static void init_mrs(struct harness *h)
{
	static const uint32_t access[MRS] = {
		AW_ACCESS_LOCAL_WRITE,
		AW_ACCESS_LOCAL_WRITE | AW_ACCESS_REMOTE,
		AW_ACCESS_REMOTE_READ,
		AW_ACCESS_REMOTE_WRITE,
		0,
		~0u,
		AW_ACCESS_REMOTE,
		AW_ACCESS_REMOTE,
	};

	const void *const users[MRS] = { [WINDOW] = &h->qp, [OTHER_WINDOW] = h };

	memset(memory, 0x5a, sizeof(memory));
	for (uint32_t i = 0; i < MRS; i++) {
		bool ours = i != OTHER_PD && i != OTHER_WINDOW;

		h->mr[i] = (struct aw_mr){
			.stag = i,
			.access = access[i],
			.iova = i == 3 ? UINT64_MAX - MR_LEN + 1 : 0,
			.len = MR_LEN,
			.host = memory[i],
			.pd = i != OTHER_PD ? (void *)&h->pd : (void *)h,
			.window = i == WINDOW || i == OTHER_WINDOW,
			.qp = users[i],
		};
		h->granted[i] = ours &&
				(access[i] & (AW_ACCESS_LOCAL_WRITE | AW_ACCESS_REMOTE_WRITE));
	}
}

static void post(struct harness *h, struct bytes *b)
{
	static const enum aw_op kinds[] = { AW_OP_READ,	     AW_OP_SEND,	 AW_OP_WRITE,
					    AW_OP_SEND_INV,  AW_OP_LOCAL_INV,	 AW_OP_CMP_SWAP,
					    AW_OP_FETCH_ADD, AW_OP_WRITE_IMM,	 AW_OP_SEND_IMM,
					    AW_OP_BIND_MW,   AW_OP_ATOMIC_WRITE, AW_OP_FLUSH };
	struct aw_swqe *wqe = aw_sq_reserve(&h->qp.sq);

	if (!wqe)
		return;
	wqe->wr_id = h->posted++;
	wqe->op = (uint8_t)kinds[bytes_u8(b) % 12];
	if (h->qp.unreliable && (wqe->op == AW_OP_READ || aw_op_is_atomic((enum aw_op)wqe->op) ||
				 aw_op_is_placement((enum aw_op)wqe->op)))
		wqe->op = AW_OP_SEND; /* UC has no requests */
	wqe->flags = AW_WR_SIGNALED | (bytes_u8(b) & (AW_WR_FENCE | AW_WR_SOLICITED));
	wqe->stag = bytes_u8(b);
	wqe->to = bytes_u16(b);
	wqe->inv_or_imm = bytes_u8(b);
	wqe->swap = wqe->inv_or_imm;
	wqe->len = draw_sges(b, wqe->sge, &wqe->sge_count);
	/* One that no FetchAdd or CmpSwap can have is refused at once. */
	if ((aw_op_is_atomic((enum aw_op)wqe->op) || wqe->op == AW_OP_ATOMIC_WRITE) &&
	    wqe->sge_count == 1 && wqe->len > 8)
		wqe->len = wqe->sge[0].len = AW_ATOMIC_LEN;
	if (wqe->op == AW_OP_FLUSH) {
		wqe->access = 1 + wqe->stag % RDMAP_FLUSH_TYPES;
		wqe->swap = wqe->stag & 1;
		wqe->compare_add = wqe->len;
		wqe->len = wqe->sge_count = 0;
	}
	aw_qp_post(&h->qp);
}

static void transmit(struct harness *h)
{
	struct aw_iov iov[IOVS];
	struct aw_tx_out out = {
		.arena = h->arena,
		.arena_len = AW_TX_ARENA_MIN,
		.iov = iov,
		.iov_max = IOVS,
	};
	bool idle;
	size_t sum = 0;

	aw_qp_written_back(&h->qp, bytes_u8(&h->answers) % 4 != 0);
	idle = aw_tx_is_idle(&h->qp);

	for (int i = 0; i < 8 && aw_tx_next(&h->qp, &out) == AW_TX_FPDU; i++)
		;
	FUZZ_CHECK(!idle || out.iov_count == 0);
	FUZZ_CHECK(out.iov_count <= IOVS && out.arena_used <= AW_TX_ARENA_MIN);
	for (unsigned int i = 0; i < out.iov_count; i++)
		sum += iov[i].len;
	FUZZ_CHECK(sum == out.octets);
	aw_tx_sent(&h->qp, sum);
	FUZZ_CHECK(h->held == 0);
}

/* The outstanding Read's sink STag, or Request Identifier, in place of a placeholder: a peer knows it. */
static void name_read(struct harness *h, uint8_t *ulpdu, size_t len)
{
	if (len >= 14 && (ulpdu[0] & DDP_CTRL_TAGGED) && get_be32(ulpdu + 2) == 0x61616161 &&
	    h->qp.orq_count)
		put_be32(ulpdu + 2, h->qp.orq[h->qp.orq_head].sink_stag);
	if (len >= DDP_UNTAGGED_LEN + 4 && !(ulpdu[0] & DDP_CTRL_TAGGED) && h->qp.orq_count &&
	    get_be32(ulpdu + DDP_UNTAGGED_LEN) == 0x61616161)
		put_be32(ulpdu + DDP_UNTAGGED_LEN, h->qp.orq[h->qp.orq_head].sink_stag);
}

/* A right FPDU around the ULPDU of len octets at fpdu + 2, behind what is staged; its length. */
static size_t frame(struct harness *h, uint8_t *fpdu, size_t len)
{
	uint8_t *at = h->octets + h->staged;
	size_t plain = fpdu_size(len);
	size_t size = plain;

	put_be16(fpdu, (uint16_t)len);
	memset(fpdu + 2 + len, 0, plain - 2 - len);
	if (h->qp.stream.markers_rx)
		size = fpdu_insert_markers(at, fpdu, plain, (uint32_t)(h->qp.rx_pos + h->staged));
	else
		memcpy(at, fpdu, plain);
	put_le32(at + size - 4, crc32c_final(crc32c_update(CRC32C_INIT, at, size - 4)));
	return size;
}

/* The next FPDU of the string; its length, 0 when that is at an end. */
static size_t next_fpdu(struct harness *h, struct bytes *b)
{
	uint8_t fpdu[4096];
	size_t len;

	if (!b->left)
		return 0;
	if (h->by_field)
		return frame(h, fpdu, message_put(&h->qp, b, fpdu + 2));
	len = bytes_u16(b) % 2048;
	for (size_t i = 0; i < len; i++)
		fpdu[2 + i] = bytes_u8(b);
	name_read(h, fpdu + 2, len);
	return frame(h, fpdu, len);
}

/* As the driver does: true when there was a message of a move. The peer's last one over TCP ends them. */
static bool take_move(struct harness *h)
{
	enum move_kind kind = h->qp.move.kind;

	FUZZ_CHECK(kind == MOVE_MSG_NONE || h->qp.stream.moves);
	h->qp.move.kind = MOVE_MSG_NONE;
	if (kind == MOVE_LAST)
		h->qp.stream.moves = false;
	return kind != MOVE_MSG_NONE;
}

/* Gives the core what is staged, and keeps the rest. */
static void use_once(struct harness *h)
{
	size_t used = aw_rx_octets(&h->qp, h->octets, h->staged);

	FUZZ_CHECK(used <= h->staged && h->held == 0);
	h->staged -= used;
	memmove(h->octets, h->octets + used, h->staged);
	FUZZ_CHECK(h->qp.stash.octets <= AW_STASH_MAX);
	FUZZ_CHECK((h->stashed > 0) == !aw_stash_is_empty(&h->qp.stash));
	/* What is held is whole, and only where the driver asked for it. */
	FUZZ_CHECK(!h->qp.rx_held || h->qp.state >= AW_QP_TERMINATE ||
		   (h->qp.rnr_holds && h->qp.rx_held <= h->staged));
}

static void use(struct harness *h)
{
	do {
		use_once(h);
	} while (take_move(h));
}

/* All of it is used, but for a message that is held and what follows it. */
static void use_whole(struct harness *h)
{
	use(h);
	FUZZ_CHECK(!h->staged || h->qp.rx_held);
}

/* The driver gives up: what is held finds a receive now, or never. */
static void end_hold(struct harness *h)
{
	h->qp.rnr_holds = false;
	aw_rx_stashed(&h->qp);
	use_whole(h);
	FUZZ_CHECK(!h->staged && h->stashed == 0);
}

static void feed_fpdus(struct harness *h, struct bytes *b)
{
	size_t size;

	while (h->staged < STREAM_MAX / 2 && (size = next_fpdu(h, b)) != 0) {
		uint8_t turn = bytes_u8(b);

		h->staged += size;
		/* A held stream is tried again now and then, and what comes is staged meanwhile. */
		if (!h->qp.rx_held || !(turn & 2))
			use_whole(h);
		if (turn & 16)
			aw_rx_stashed(&h->qp);
		if (aw_qp_has_waiting(&h->qp) && (turn & 12) == 12)
			end_hold(h);
		if (turn & 1)
			transmit(h);
		if (h->qp.state == AW_QP_ERROR)
			return;
	}
	end_hold(h);
}

static void feed_raw(struct harness *h, struct bytes *b)
{
	while (b->left && h->staged < STREAM_MAX / 2) {
		size_t n = 1 + bytes_u8(b);

		bytes_take(b, h->octets + h->staged, n);
		h->staged += n;
		use(h);
	}
	h->qp.rnr_holds = false;
	aw_rx_stashed(&h->qp);
	use(h);
	FUZZ_CHECK(h->stashed == 0);
	aw_qp_peer_closed(&h->qp, h->staged);
	FUZZ_CHECK(!h->staged || h->qp.error);
}

/* The stream of a UC QP ends, and another one may come. */
static void lose(struct harness *h)
{
	aw_tx_drop(&h->qp);
	if (h->qp.state != AW_QP_RTS)
		return;
	aw_qp_recall(&h->qp);
	aw_tx_drop(&h->qp);
	FUZZ_CHECK(h->qp.state == AW_QP_ERROR || h->completed == h->posted);
}

/* A target has no send queue, and a PD that no MR has; nothing but an answer may come to an initiator. */
static void begin_xrc(struct harness *h, enum aw_xrc xrc)
{
	h->qp.xrc = xrc;
	h->qp.srq = true;
	if (xrc == AW_XRC_TARGET)
		h->qp.pd = &h->qp;
}

static void run(struct harness *h, struct bytes *b)
{
	uint8_t bits = bytes_u8(b), rights = b->left ? b->p[--b->left] : 0xff;
	uint8_t more = b->left ? b->p[--b->left] : 0;
	struct aw_stream stream = {
		.initiator = bits & 1,
		.crc = bits & 2,
		.markers_tx = bits & 4,
		.markers_rx = bits & 8,
		.p2p = bits & 16,
		.rtr = bits & 1 ? MPA_RTR_WRITE << (bits >> 5 & 1) : 7,
		.ird = 1 + (bits >> 5 & 1) * (READS - 1),
		.ord = 1 + (bits >> 6 & 1) * (READS - 1),
		.emss = 128 + bytes_u16(b),
		.stag_seed = 0xfffffffe,
		.extensions = rights & 1,
		.large_fpdus = rights & 1,
		.placement = (rights & 5) == 5,
		.moves = rights & 128,
	};
	uint8_t head = bytes_u8(b), posts = head % SQ_CAPACITY;

	if (head / SQ_CAPACITY >= 14) {
		begin_xrc(h, head / SQ_CAPACITY == 14 ? AW_XRC_INITIATOR : AW_XRC_TARGET);
		posts = h->qp.xrc == AW_XRC_TARGET ? 0 : posts;
	}
	h->by_field = rights & 16;
	if (!(rights & 2))
		h->qp.remote_access = rights & AW_ACCESS_REMOTE;

	if (h->qp.xrc == AW_XRC_INITIATOR)
		h->qp.remote_access = 0;
	h->qp.unreliable = more & 2 && h->qp.xrc == AW_XRC_NONE;
	h->qp.acks = rights & 64 && !h->qp.unreliable;
	h->qp.keeps = more & 1 && !h->qp.unreliable;
	aw_qp_start(&h->qp, &stream);
	h->qp.rnr_holds = rights & 32;
	for (uint8_t i = 0; i < posts; i++)
		post(h, b);
	transmit(h);
	if (bits & 0x80)
		feed_raw(h, b);
	else
		feed_fpdus(h, b);
	transmit(h);
	for (uint8_t i = 0; i < posts % 4; i++)
		post(h, b);
	if (h->qp.unreliable)
		lose(h);
	aw_qp_abort(&h->qp, AW_OK);
}

static void check_untouched(const struct harness *h)
{
	for (uint32_t i = 0; i < MRS; i++)
		for (uint32_t at = 0; at < MR_LEN && !h->granted[i]; at++)
			FUZZ_CHECK(memory[i][at] == 0x5a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static struct aw_irq_entry irq[READS];
	static struct aw_orq_entry orq[READS];
	struct bytes b = { data, len };
	struct harness h = { 0 };
	struct aw_qp_mem mem = {
		.sq_capacity = SQ_CAPACITY,
		.sge_max = SGE_MAX,
		.inline_max = INLINE_MAX,
		.irq = irq,
		.irq_capacity = READS,
		.orq = orq,
		.orq_capacity = READS,
	};
	size_t answers = bytes_u8(&b);

	h.answers = (struct bytes){ b.p, answers < b.left ? answers : b.left };
	b.p += h.answers.left;
	b.left -= h.answers.left;
	mem.sq = malloc(aw_sq_mem_size(mem.sq_capacity, mem.sge_max, mem.inline_max));
	h.arena = malloc(AW_TX_ARENA_MIN);
	h.octets = malloc(STREAM_MAX);
	init_mrs(&h);
	aw_qp_init(&h.qp, &mem, &ops, &h, &h.pd);
	run(&h, &b);
	FUZZ_CHECK(h.qp.state == AW_QP_ERROR && h.held == 0 && h.stashed == 0);
	FUZZ_CHECK(h.completed == h.posted && h.received == h.taken);
	FUZZ_CHECK(h.qp.xrc != AW_XRC_INITIATOR || h.taken == 0);
	check_untouched(&h);
	free(mem.sq);
	free(h.arena);
	free(h.octets);
	return 0;
}
