// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A program that writes whatever it likes, whenever it likes, into the rings that it maps: also between two reads of
// the kernel module's. Every entry is copied once, what is used is that copy, an invalid one is refused, and no call
// takes more than a ring holds.
#include "fuzz.h"

#include "kclock.h"
#include "ring_scene.h"

enum {
	SQ_A,
	SQ_B,
	RQ_A,
	SRQ,
	CQ_A,
	CQ_B,
	RINGS
};

struct ring {
	u8 *mem;
	size_t len; /* of all entries */
	size_t entry;
	size_t tail; /* octets behind them */
	u32 count;
	_Alignas(8) u8 copy[128]; /* the entry that was read last */
	size_t filled;
	u32 copies; /* since the last call into the module began */
};

static struct ring rings[RINGS];
static struct bytes *script;
static bool hostile; /* the program is at work beside the module */
static struct siw_sqe sqes[64]; /* what was copied out of the send queue that drains */

static struct ring *ring_of(const volatile void *at)
{
	for (int i = 0; i < RINGS; i++) {
		u8 *from = rings[i].mem;

		if ((const u8 *)at >= from && (const u8 *)at < from + rings[i].len + rings[i].tail)
			return &rings[i];
	}
	return NULL;
}

static void ring_scribble(struct ring *ring, size_t at)
{
	ring->mem[at % (ring->len + ring->tail)] = bytes_u8(script);
}

static void ring_refill(struct ring *ring)
{
	for (size_t at = 8; at < ring->len; at += ring->entry)
		ring->mem[at] |= SIW_WQE_VALID;
}

static void program_act(struct ring *ring, size_t at)
{
	u8 what = bytes_u8(script);

	if (what & 1)
		ring_scribble(ring, at + (what >> 4) - 8 + ring->len);
	else if (what & 2)
		ring_scribble(&rings[(what >> 2) % RINGS], bytes_u16(script));
	else if (what & 4)
		ring_refill(ring);
}

static void note_copy(struct ring *ring, size_t at, size_t len)
{
	size_t inside = at % ring->entry;

	if (inside == 0) {
		FUZZ_CHECK(ring->filled % ring->entry == 0);
		ring->filled = 0;
		ring->copies++;
	}
	FUZZ_CHECK(inside == ring->filled); /* in order, and nothing twice */
	memcpy(ring->copy + inside, ring->mem + at, len);
	ring->filled += len;
	if (ring->filled == ring->entry && ring->entry == sizeof(sqes[0]) && ring->copies <= 64)
		memcpy(&sqes[ring->copies - 1], ring->copy, sizeof(sqes[0]));
}

/* Of an entry the flags may be looked at before; of a completion only those are, and whether it is armed. */
static bool is_flags(const struct ring *ring, size_t at, size_t len)
{
	if (at >= ring->len)
		return at == ring->len && len == 4;
	return at % ring->entry == 8 && len == (ring->entry == sizeof(struct siw_cqe) ? 1 : 2);
}

static void on_read(const volatile void *from, size_t len)
{
	static bool inside;
	struct ring *ring = ring_of(from);
	size_t at;

	if (!ring || inside)
		return;
	inside = true;
	at = (const u8 *)from - ring->mem;
	if (!is_flags(ring, at, len)) {
		FUZZ_CHECK(ring->entry != sizeof(struct siw_cqe));
		note_copy(ring, at, len);
	}
	if (hostile && script->left > 0)
		program_act(ring, at);
	inside = false;
}

/* With a compiler that tells: beside the one copy no instruction reads an entry. */
static void on_load(const volatile void *from, size_t len)
{
	struct ring *ring = ring_of(from);

	FUZZ_CHECK(!ring || is_flags(ring, (const u8 *)from - ring->mem, len));
}

static void ring_add(int which, const struct awk_ring *ring, size_t entry, size_t tail)
{
	rings[which] = (struct ring){
		.mem = ring->mem,
		.len = ring->count * entry,
		.entry = entry,
		.tail = tail,
		.count = ring->count,
	};
}

static void rings_find(struct ring_scene *scene)
{
	struct ring_end *a = &scene->ends[0], *b = &scene->ends[1];

	ring_add(SQ_A, &a->qp->sq, sizeof(struct siw_sqe), 0);
	ring_add(SQ_B, &b->qp->sq, sizeof(struct siw_sqe), 0);
	ring_add(RQ_A, &a->qp->recvs.ring, sizeof(struct siw_rqe), 0);
	ring_add(SRQ, &scene->srq->recvs.ring, sizeof(struct siw_rqe), 0);
	ring_add(CQ_A, &a->cq->ring, sizeof(struct siw_cqe), sizeof(struct siw_cq_ctrl));
	ring_add(CQ_B, &b->cq->ring, sizeof(struct siw_cqe), sizeof(struct siw_cq_ctrl));
	kshim_on_read = on_read;
	kshim_on_load = on_load;
}

static void copies_forget(void)
{
	for (int i = 0; i < RINGS; i++)
		rings[i].copies = 0;
}

static void sge_draw(struct siw_sge *sge, u32 stag)
{
	*sge = (struct siw_sge){
		.laddr = SCENE_BASE + bytes_u16(script) % (SCENE_PAGES << PAGE_SHIFT),
		.length = bytes_u8(script) & 1 ? bytes_u8(script) : bytes_u16(script) % 5000,
		.lkey = stag,
	};
}

/* A request as a decent program would write it, more or less. */
static void sqe_draw(struct siw_sqe *sqe, u32 stag)
{
	static const u8 decent[] = { SIW_OP_WRITE, SIW_OP_READ, SIW_OP_SEND,
				     SIW_OP_SEND_REMOTE_INV };
	u8 how = bytes_u8(script);

	sqe->id = bytes_u8(script);
	sqe->opcode = how & 1 ? decent[how >> 1 & 3] : bytes_u8(script) % 16;
	sqe->num_sge = how & 8 ? how >> 6 : bytes_u8(script);
	sqe->rkey = stag;
	sqe->raddr = SCENE_BASE + bytes_u16(script) % (SCENE_PAGES << PAGE_SHIFT);
	for (int i = 0; i < 3; i++)
		sge_draw(&sqe->sge[i], stag);
	if (how & 0x20)
		sqe->sge[0].length = bytes_u8(script) % 100;
	sqe->flags = SIW_WQE_VALID | (how & 0x10 ? SIW_WQE_INLINE : 0) | SIW_WQE_SIGNALLED;
}

static void rqe_draw(struct siw_rqe *rqe, u32 stag)
{
	rqe->id = bytes_u8(script);
	rqe->num_sge = bytes_u8(script) % 9;
	for (int i = 0; i < 3; i++)
		sge_draw(&rqe->sge[i], stag);
	rqe->flags = SIW_WQE_VALID;
}

static void program_post(struct ring_scene *scene)
{
	struct ring *ring = &rings[bytes_u8(script) % CQ_A];
	u8 *at = ring->mem + bytes_u8(script) % ring->count * ring->entry;

	if (ring->entry == sizeof(struct siw_sqe))
		sqe_draw((struct siw_sqe *)at, scene->stag);
	else
		rqe_draw((struct siw_rqe *)at, scene->stag);
}

static bool op_of(u8 opcode, u8 *op)
{
	switch (opcode) {
	case SIW_OP_WRITE:
		*op = AW_OP_WRITE;
		return true;
	case SIW_OP_READ:
		*op = AW_OP_READ;
		return true;
	case SIW_OP_SEND:
		*op = AW_OP_SEND;
		return true;
	case SIW_OP_SEND_REMOTE_INV:
		*op = AW_OP_SEND_INV;
		return true;
	default:
		return false;
	}
}

static bool is_valid(const struct siw_sqe *sqe, u64 *len)
{
	u8 op;

	*len = 0;
	if (!op_of(sqe->opcode, &op))
		return false;
	if (sqe->flags & SIW_WQE_INLINE) {
		*len = sqe->num_sge ? sqe->sge[0].length : 0;
		return op != AW_OP_READ && sqe->num_sge <= 1 && *len <= 80;
	}
	for (int i = 0; i < sqe->num_sge && i < 6; i++)
		*len += sqe->sge[i].length;
	return sqe->num_sge <= 6 && *len <= 1u << 31;
}

/* What the core got is what was copied, or a request that it refuses. */
static void check_wqe(const struct siw_sqe *sqe, const struct aw_swqe *wqe)
{
	bool in_place = sqe->flags & SIW_WQE_INLINE;
	const struct aw_sge *sge = wqe->sge;
	u8 op = AW_OP_CMP_SWAP;
	u64 len;

	FUZZ_CHECK(wqe->wr_id == sqe->id);
	if (!is_valid(sqe, &len)) {
		FUZZ_CHECK(wqe->op == AW_OP_CMP_SWAP && wqe->len == 0 && wqe->sge_count == 0);
		FUZZ_CHECK(wqe->flags == AW_WR_SIGNALED);
		return;
	}
	op_of(sqe->opcode, &op);
	FUZZ_CHECK(wqe->op == op && wqe->len == len && wqe->to == sqe->raddr &&
		   wqe->stag == sqe->rkey);
	FUZZ_CHECK(!(wqe->flags & AW_WR_INLINE) == !in_place);
	FUZZ_CHECK(wqe->sge_count == (in_place ? 0 : sqe->num_sge));
	if (in_place)
		FUZZ_CHECK(memcmp(wqe->data, &sqe->sge[1], len) == 0);
	for (u32 i = 0; i < wqe->sge_count; i++)
		FUZZ_CHECK(sge[i].addr == sqe->sge[i].laddr && sge[i].len == sqe->sge[i].length &&
			   sge[i].lkey == sqe->sge[i].lkey);
}

static void check_drain(struct awk_qp *qp, int which)
{
	u32 get = qp->sq_get, tail = qp->core.sq.tail;

	awk_qp_lock(qp);
	awk_qp_drain(qp);
	FUZZ_CHECK(qp->sq_get - get == rings[which].copies && rings[which].copies <= qp->sq.count);
	FUZZ_CHECK(qp->core.sq.tail - tail == rings[which].copies);
	for (u32 i = 0; i < rings[which].copies; i++)
		check_wqe(&sqes[i], aw_sq_at(&qp->core.sq, tail + i));
	awk_qp_unlock(qp);
}

static void check_recv(struct ring *ring, bool taken, const struct aw_rwqe *recv)
{
	const struct siw_rqe *rqe = (const struct siw_rqe *)ring->copy;
	u64 len = 0;

	FUZZ_CHECK(taken == (ring->copies == 1));
	if (!taken)
		return;
	FUZZ_CHECK(recv->wr_id == rqe->id &&
		   recv->sge_count == (rqe->num_sge <= 6 ? rqe->num_sge : 0));
	for (u32 i = 0; i < recv->sge_count; i++) {
		FUZZ_CHECK(recv->sge[i].addr == rqe->sge[i].laddr &&
			   recv->sge[i].lkey == rqe->sge[i].lkey);
		FUZZ_CHECK(recv->sge[i].len == rqe->sge[i].length);
		len += recv->sge[i].len;
	}
	FUZZ_CHECK(recv->len == min_t(u64, len, U32_MAX));
}

static void module_take(struct ring_scene *scene, bool shared)
{
	struct aw_rwqe recv;
	bool due;

	if (shared)
		check_recv(&rings[SRQ], awk_srq_take(scene->srq, &recv, &due), &recv);
	else
		check_recv(&rings[RQ_A], awk_recvs_take(&scene->ends[0].qp->recvs, &recv), &recv);
}

static void srq_ask(struct ring_scene *scene)
{
	struct ib_srq_attr attr = { .srq_limit = bytes_u8(script) };

	awk_srq_modify(&scene->srq->base, &attr, IB_SRQ_LIMIT, NULL);
}

static void qp_modify(struct awk_qp *qp, enum ib_qp_state to)
{
	struct ib_qp_attr attr = { .qp_state = to };

	awk_qp_modify(&qp->base, &attr, IB_QP_STATE, NULL);
}

/* No call takes more of a ring than it holds, however fast it is filled; the shared one is not flushed. */
static void check_bounds(struct ring_scene *scene)
{
	for (int i = 0; i < CQ_A; i++)
		FUZZ_CHECK(rings[i].copies <= 4 * rings[i].count + 4);
	for (int i = 0; i < 2; i++)
		FUZZ_CHECK(scene->ends[i].overflows <= 1);
}

static void module_call(struct ring_scene *scene, u8 what)
{
	unsigned int end = what >> 7;
	struct awk_qp *qp = scene->ends[end].qp;

	copies_forget();
	hostile = what & 0x40;
	switch (what % 8) {
	case 0:
	case 1:
		check_drain(qp, SQ_A + end);
		break;
	case 2:
		ring_scene_transmit(scene, end, 4);
		break;
	case 3:
		ring_scene_deliver(scene, end);
		break;
	case 4:
		module_take(scene, end);
		break;
	case 5:
		awk_qp_post_send(&qp->base, NULL, NULL);
		break;
	case 6:
		kshim_work_run(0);
		break;
	case 7:
		awk_cq_req_notify(&scene->ends[end].cq->base, IB_CQ_NEXT_COMP);
		break;
	}
	hostile = false;
	check_bounds(scene);
}

static void act(struct ring_scene *scene)
{
	u8 what = bytes_u8(script);

	if (what < 0x60)
		program_post(scene);
	else if (what < 0x68)
		srq_ask(scene);
	else if (what < 0x6a)
		qp_modify(scene->ends[what & 1].qp, IB_QPS_ERR);
	else if (what < 0x70)
		ring_scribble(&rings[what % RINGS], bytes_u16(script));
	else
		module_call(scene, bytes_u8(script));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct bytes b = { data, len };
	struct ring_scene *scene = ring_scene_create(1 + bytes_u8(&b) % 16, 1 + bytes_u8(&b) % 32);

	script = &b;
	rings_find(scene);
	for (int i = 0; i < 400 && b.left > 0; i++)
		act(scene);
	hostile = false;
	kshim_on_read = NULL;
	kshim_on_load = NULL;
	ring_scene_destroy(scene);
	return 0;
}
