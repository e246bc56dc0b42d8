// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The order in which a device that varies places what has come.
#include "net/qp/varied.h"

#include "../lib/uqp_pair.h"
#include "core/qp.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define SEEDS 500
#define LEN_MAX 200
#define WRITTEN 5000 /* bytes */
#define ROUNDS 60

/* The lengths of some spans, 1 among them. */
static uint32_t draw_lens(struct aw_rng *rng, size_t lens[AW_VARIED_SPANS_MAX])
{
	uint32_t count = 1 + (uint32_t)aw_rng_below(rng, AW_VARIED_SPANS_MAX);

	for (uint32_t i = 0; i < count; i++)
		lens[i] = aw_rng_one_in(rng, 4) ? 1 : 1 + aw_rng_below(rng, LEN_MAX);
	return count;
}

static void aw_varied_cut__places_each_byte_once(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		struct aw_rng rng = aw_rng_stream(seed, 0);
		struct aw_varied_piece pieces[AW_VARIED_PIECES_MAX];
		uint8_t placed[AW_VARIED_SPANS_MAX][LEN_MAX] = { 0 };
		size_t lens[AW_VARIED_SPANS_MAX], all = 0, sum = 0;
		uint32_t count = draw_lens(&rng, lens);
		uint32_t n = aw_varied_cut(&rng, lens, count, pieces);

		assert_in_range(n, count, AW_VARIED_PIECES_MAX);
		for (uint32_t i = 0; i < n; i++) {
			assert_true(pieces[i].len > 0);
			assert_true(pieces[i].from + pieces[i].len <= lens[pieces[i].span]);
			for (size_t at = 0; at < pieces[i].len; at++)
				assert_int_equal(placed[pieces[i].span][pieces[i].from + at]++, 0);
			sum += pieces[i].len;
		}
		for (uint32_t i = 0; i < count; i++)
			all += lens[i];
		assert_int_equal(sum, all);
	}
}

static void aw_varied_cut__last_bytes_first(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		struct aw_rng rng = aw_rng_stream(seed, 1);
		struct aw_varied_piece pieces[AW_VARIED_PIECES_MAX];
		size_t lens[AW_VARIED_SPANS_MAX];
		uint32_t count = draw_lens(&rng, lens);

		(void)aw_varied_cut(&rng, lens, count, pieces);
		for (uint32_t i = 0; i < count; i++) {
			assert_int_equal(pieces[i].len, 1);
			assert_int_equal(pieces[i].from, lens[pieces[i].span] - 1);
		}
	}
}

/* As many spans as there may be, each of a length that is cut as often as it may be. */
static void aw_varied_cut__most_pieces(void **state)
{
	struct aw_varied_piece pieces[AW_VARIED_PIECES_MAX];
	size_t lens[AW_VARIED_SPANS_MAX];

	(void)state;
	for (uint32_t i = 0; i < AW_VARIED_SPANS_MAX; i++)
		lens[i] = 1u << 30;
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		struct aw_rng rng = aw_rng_stream(seed, 2);
		uint32_t n = aw_varied_cut(&rng, lens, AW_VARIED_SPANS_MAX, pieces);

		assert_true(n <= AW_VARIED_PIECES_MAX);
		assert_true(n > AW_VARIED_SPANS_MAX);
	}
}

static void aw_varied_cut__a_seed_replays(void **state)
{
	struct aw_varied_piece a[AW_VARIED_PIECES_MAX], b[AW_VARIED_PIECES_MAX];
	const size_t lens[] = { 100, 1, 5000, 64 };
	int different = 0;

	(void)state;
	memset(a, 0, sizeof(a));
	memset(b, 0, sizeof(b));
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		struct aw_rng one = aw_rng_stream(seed, 0), two = one,
			      other = aw_rng_stream(seed, 1);
		uint32_t n = aw_varied_cut(&one, lens, 4, a);

		assert_int_equal(aw_varied_cut(&two, lens, 4, b), n);
		for (uint32_t i = 0; i < n; i++)
			assert_true(a[i].span == b[i].span && a[i].from == b[i].from &&
				    a[i].len == b[i].len);
		uint32_t m = aw_varied_cut(&other, lens, 4, b);

		different += m != n || a[n - 1].from != b[m - 1].from;
	}
	assert_true(different > SEEDS / 2);
}

/* What the QP's own function for a completion leaves in memory, by the time at which the program may see the completion. */
static struct {
	const struct aw_ops *ops;
	const uint8_t *written, *source;
	int completions, wrong;
} look;

static void complete_and_look(void *ctx, enum aw_queue queue, const struct aw_cqe *cqe)
{
	look.ops->complete(ctx, queue, cqe);
	look.completions++;
	look.wrong += memcmp(look.written, look.source, WRITTEN) != 0;
}

/* The turn goes on behind the completion, and another thread may see it before the turn's end. */
static void complete__behind_all_that_came_before(void **state)
{
	struct pair *p = *state;
	struct aw_ops ops;

	pair_stop_progress();
	aw_lock(&p->b.qp->lock);
	ops = *p->b.qp->core.ops;
	ops.complete = complete_and_look;
	look.ops = p->b.qp->core.ops;
	look.written = p->b.buf;
	look.source = p->a.buf;
	p->b.qp->core.ops = &ops;
	aw_unlock(&p->b.qp->lock);
	for (uint8_t round = 1; round < ROUNDS; round++) {
		const struct aw_sge sge = end_sge(&p->b, BUF_OCTETS / 2, WRITTEN);

		memset(p->a.buf, round, WRITTEN);
		assert_int_equal(aw_uqp_recv(p->b.qp, 1, &sge, 1), 0);
		end_post(&p->a, AW_OP_WRITE, &p->b, WRITTEN);
		end_post(&p->a, AW_OP_SEND, &p->b, 1);
		while (look.completions < round)
			uqp_poll(p->b.qp);
		(void)end_wait_cqe(&p->a);
		(void)end_wait_cqe(&p->a);
	}
	assert_int_equal(look.wrong, 0);
	aw_lock(&p->b.qp->lock);
	p->b.qp->core.ops = look.ops;
	aw_unlock(&p->b.qp->lock);
}

static void aw_varied_ops__of_a_device_that_varies(void **state)
{
	struct pair *p = *state;

	assert_non_null(p->a.qp->varied);
	assert_ptr_equal(p->a.qp->core.ops, aw_varied_ops(p->a.qp));
	assert_ptr_equal(p->a.qp->in, aw_varied_carrier(p->a.qp));
	assert_ptr_equal(p->a.qp->out, aw_varied_carrier(p->a.qp));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(aw_varied_cut__places_each_byte_once),
		cmocka_unit_test(aw_varied_cut__last_bytes_first),
		cmocka_unit_test(aw_varied_cut__most_pieces),
		cmocka_unit_test(aw_varied_cut__a_seed_replays),
		cmocka_unit_test_setup_teardown(aw_varied_ops__of_a_device_that_varies, pair_setup,
						pair_teardown),
		cmocka_unit_test_setup_teardown(complete__behind_all_that_came_before, pair_setup,
						pair_teardown_stopped),
	};

	setenv("ANYWARP_VARY", "3", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
