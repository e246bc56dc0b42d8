// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The spans that a turn holds back, and the tables of a QP that varies.
#include "net/qp/varied.h"

#include "base/clock.h"
#include "net/base/vary_env.h"
#include "net/mem/guard.h"
#include "net/mem/mapping.h"
#include "net/mr/mrtab.h"
#include "net/qp/carrier.h"
#include "net/qp/uqp_io.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#define HELD_BYTES (512u * 1024)
#define PAUSE_NS_MAX 100000 /* between last bytes and the rest */
#define HOLD_SHORT_NS 200000 /* of posts: most wait no longer */
#define HOLD_LONG_NS 3000000 /* and none does */

struct span {
	const struct aw_mr *mr; /* held */
	uint8_t *dst;
	const uint8_t *src; /* in copy */
	size_t len;
};

/* Guarded by the QP's lock. */
struct aw_varied {
	struct aw_rng rng;
	bool in_turn;
	uint8_t *copy; /* HELD_BYTES, or NULL: nothing was held yet */
	size_t used;
	uint32_t count;
	struct span spans[AW_VARIED_SPANS_MAX];
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct aw_ops varied_ops;
static struct aw_carrier varied_tcp, varied_tls, varied_host;

static void shuffle_pieces(struct aw_rng *rng, struct aw_varied_piece *pieces, uint32_t count)
{
	for (uint32_t i = count; i > 1; i--) {
		uint32_t other = (uint32_t)aw_rng_below(rng, i);
		struct aw_varied_piece piece = pieces[i - 1];

		pieces[i - 1] = pieces[other];
		pieces[other] = piece;
	}
}

uint32_t aw_varied_cut(struct aw_rng *rng, const size_t *lens, uint32_t count,
		       struct aw_varied_piece *pieces)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < count; i++)
		pieces[n++] = (struct aw_varied_piece){ i, lens[i] - 1, 1 };
	shuffle_pieces(rng, pieces, n);
	for (uint32_t i = 0; i < count; i++) {
		size_t from = 0, end = lens[i] - 1;

		for (uint32_t cut = 1; from < end; cut++) {
			size_t left = end - from;
			size_t len = cut < AW_VARIED_CUTS ? 1 + aw_rng_below(rng, left) : left;

			pieces[n++] = (struct aw_varied_piece){ i, from, len };
			from += len;
		}
	}
	shuffle_pieces(rng, pieces + count, n - count);
	return n;
}

/* Under the QP's lock, where a sleep would be a cancellation point. */
static void pause_between(struct aw_rng *rng)
{
	int64_t until_ns;

	if (aw_rng_one_in(rng, 2))
		return;
	until_ns = aw_now_ns();
	if (aw_rng_one_in(rng, 2))
		until_ns += (int64_t)aw_rng_below(rng, PAUSE_NS_MAX);
	do {
		sched_yield();
	} while (aw_now_ns() < until_ns);
}

/* False when the memory of one of them is gone. */
static bool place_spans(struct aw_rng *rng, const struct span *spans, uint32_t count)
{
	struct aw_varied_piece pieces[AW_VARIED_PIECES_MAX];
	size_t lens[AW_VARIED_SPANS_MAX];
	bool placed = true;
	uint32_t n;

	for (uint32_t i = 0; i < count; i++)
		lens[i] = spans[i].len;
	n = aw_varied_cut(rng, lens, count, pieces);
	for (uint32_t i = 0; i < n; i++) {
		const struct span *span = &spans[pieces[i].span];

		if (i == count)
			pause_between(rng);
		placed &= aw_guard_place(span->dst + pieces[i].from, span->src + pieces[i].from,
					 pieces[i].len);
	}
	return placed;
}

/* Each span could be written when it was held, so memory that is gone now was given up by the program. */
static void place_held(struct aw_varied *v)
{
	if (v->count == 0)
		return;
	(void)place_spans(&v->rng, v->spans, v->count);
	for (uint32_t i = 0; i < v->count; i++)
		aw_mr_put(v->spans[i].mr);
	v->count = 0;
	v->used = 0;
}

static bool overlaps(const struct aw_varied *v, const uint8_t *dst, size_t len)
{
	for (uint32_t i = 0; i < v->count; i++) {
		const struct span *span = &v->spans[i];

		if (dst < span->dst + span->len && span->dst < dst + len)
			return true;
	}
	return false;
}

/* True when these bytes may be held. Each span holds its region, so that a deregistration waits for the turn's end. */
static bool may_hold(struct aw_varied *v, const struct aw_mr *mr, uint8_t *dst, size_t len)
{
	if (!v->in_turn || len > HELD_BYTES || !aw_mapping_can_tell())
		return false;
	if (!v->copy)
		v->copy = malloc(HELD_BYTES);
	if (!v->copy || !aw_mapping_reach(dst, len, true))
		return false;
	const struct aw_mr *again = aw_mr_get(mr->stag);

	if (again && again != mr)
		aw_mr_put(again);
	return again == mr;
}

static bool place(void *ctx, const struct aw_mr *mr, uint8_t *dst, const uint8_t *src, size_t len)
{
	struct aw_varied *v = ((struct aw_uqp *)ctx)->varied;

	if (len == 0)
		return true;
	if (v->count == AW_VARIED_SPANS_MAX || len > HELD_BYTES - v->used || overlaps(v, dst, len))
		place_held(v);
	if (!may_hold(v, mr, dst, len)) {
		const struct span span = { mr, dst, src, len };

		place_held(v);
		return place_spans(&v->rng, &span, 1);
	}
	memcpy(v->copy + v->used, src, len);
	v->spans[v->count++] = (struct span){ mr, dst, v->copy + v->used, len };
	v->used += len;
	return true;
}

static void place_held_of(void *ctx)
{
	place_held(((struct aw_uqp *)ctx)->varied);
}

static bool gather(void *ctx, const struct aw_mr *mr, uint8_t *dst, const uint8_t *src, size_t len,
		   uint32_t *crc)
{
	place_held_of(ctx);
	return aw_uqp_ops.gather(ctx, mr, dst, src, len, crc);
}

static enum aw_error invalidate(void *ctx, uint32_t stag, bool by_peer)
{
	place_held_of(ctx);
	return aw_uqp_ops.invalidate(ctx, stag, by_peer);
}

static enum aw_wc_status bind(void *ctx, const struct aw_swqe *wqe)
{
	place_held_of(ctx);
	return aw_uqp_ops.bind(ctx, wqe);
}

static bool atomic(void *ctx, const struct aw_mr *mr, uint8_t *at,
		   const struct rdmap_atomic_req *req, uint64_t *before)
{
	place_held_of(ctx);
	return aw_uqp_ops.atomic(ctx, mr, at, req, before);
}

static enum aw_written write_back(void *ctx, const struct aw_mr *mr, uint8_t *at, size_t len,
				  bool persistent)
{
	place_held_of(ctx);
	return aw_uqp_ops.write_back(ctx, mr, at, len, persistent);
}

static void complete(void *ctx, enum aw_queue queue, const struct aw_cqe *cqe)
{
	place_held_of(ctx);
	aw_uqp_ops.complete(ctx, queue, cqe);
}

/* A turn over TCP may end in one through memory. */
static void take_turn(struct aw_uqp *qp, const struct aw_carrier *carrier, bool polled)
	AW_REQUIRES(qp->lock)
{
	bool outer = qp->varied->in_turn;

	qp->varied->in_turn = true;
	carrier->receive(qp, polled);
	place_held(qp->varied);
	qp->varied->in_turn = outer;
}

static void receive_tcp(struct aw_uqp *qp, bool polled) AW_REQUIRES(qp->lock)
{
	take_turn(qp, &aw_carrier_tcp, polled);
}

static void receive_tls(struct aw_uqp *qp, bool polled) AW_REQUIRES(qp->lock)
{
	take_turn(qp, &aw_carrier_tls, polled);
}

static void receive_host(struct aw_uqp *qp, bool polled) AW_REQUIRES(qp->lock)
{
	take_turn(qp, &aw_carrier_host, polled);
}

static void make_tables(void)
{
	varied_ops = aw_uqp_ops;
	varied_ops.place = place;
	varied_ops.gather = gather;
	varied_ops.invalidate = invalidate;
	varied_ops.bind = bind;
	varied_ops.atomic = atomic;
	varied_ops.write_back = write_back;
	varied_ops.complete = complete;
	varied_host = aw_carrier_host;
	varied_host.receive = receive_host;
	varied_tcp = aw_carrier_tcp;
	varied_tcp.receive = receive_tcp;
	varied_tcp.moved = &varied_host;
	varied_tls = aw_carrier_tls;
	varied_tls.receive = receive_tls;
	varied_tls.moved = &varied_host;
}

int aw_varied_create(struct aw_varied **varied)
{
	*varied = NULL;
	if (!aw_vary_env_is_on())
		return 0;
	pthread_once(&once, make_tables);
	*varied = calloc(1, sizeof(**varied));
	if (!*varied)
		return ENOMEM;
	(*varied)->rng = aw_vary_env_stream();
	return 0;
}

void aw_varied_destroy(struct aw_varied *varied)
{
	if (varied)
		free(varied->copy);
	free(varied);
}

const struct aw_ops *aw_varied_ops(const struct aw_uqp *qp)
{
	return qp->varied ? &varied_ops : &aw_uqp_ops;
}

const struct aw_carrier *aw_varied_carrier(const struct aw_uqp *qp)
{
	if (qp->tls)
		return qp->varied ? &varied_tls : &aw_carrier_tls;
	return qp->varied ? &varied_tcp : &aw_carrier_tcp;
}

uint64_t aw_varied_hold_ns(struct aw_uqp *qp)
{
	struct aw_rng *rng = &qp->varied->rng;

	switch (aw_rng_below(rng, 4)) {
	case 0:
		return 0;
	case 1:
		return 1 + aw_rng_below(rng, HOLD_LONG_NS);
	default:
		return 1 + aw_rng_below(rng, HOLD_SHORT_NS);
	}
}
