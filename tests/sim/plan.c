// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What a seed has in store: how large, how many, and which faults. About a third of all seeds is
// without any fault but fragmentation and stalls, so that nothing may go wrong there. Generation 1
// of the worlds has RFC 5040's operations, generation 2 all; in generation 3 messages are held for want of
// a receive, in generation 4 some of them without those behind them; in generation 5 some streams go through TLS. What is new draws nothing in the old.
#include "world.h"

#define FUZZED_LEN_MAX 4000

static uint32_t draw_len_max(struct rng *rng)
{
	uint64_t draw = rng_below(rng, 100);

	if (draw < 60)
		return (uint32_t)rng_range(rng, 64, 5000);
	if (draw < 90)
		return (uint32_t)rng_range(rng, 5000, 40000);
	return (uint32_t)rng_range(rng, 66000, 200000);
}

static void draw_faults(struct plan *plan, struct rng *rng)
{
	switch (rng_below(rng, 15)) {
	case 0:
	case 9:
	case 10:
		plan->bad = true;
		break;
	case 1:
		plan->dereg = true;
		break;
	case 2:
		plan->flip = true;
		break;
	case 3:
		plan->cut_fin = rng_percent(rng, 50);
		plan->cut_rst = !plan->cut_fin;
		break;
	case 4:
	case 5:
		plan->hostile = true;
		break;
	case 6:
		plan->close = true;
		break;
	case 7:
		plan->abort = true;
		break;
	case 8:
		plan->bad = rng_percent(rng, 50);
		plan->close = rng_percent(rng, 50);
		plan->flip = rng_percent(rng, 50);
		plan->dereg = rng_percent(rng, 30);
		break;
	default:
		break;
	}
}

static void plan_wire(struct conn *conn, struct end *end, struct rng *rng)
{
	const struct plan *plan = &conn->world->plan;
	uint64_t within = rng_percent(rng, 50) ? 400 : 4 * (uint64_t)plan->len_max + 400;

	if (plan->flip) {
		end->flip_after = rng_below(rng, within);
		end->out.flip_with = (uint8_t)rng_range(rng, 1, 255);
	}
	if (plan->cut_fin || plan->cut_rst) {
		end->cut_after = rng_below(rng, within);
		end->out.cut_rst = plan->cut_rst;
	}
}

static void plan_end(struct conn *conn, struct end *end, struct rng *rng)
{
	const struct plan *plan = &conn->world->plan;

	end->budget = (uint32_t)rng_range(rng, 1, rng_percent(rng, 50) ? 12 : 60);
	end->close_at = end->abort_at = UINT32_MAX;
	end->flip_after = end->cut_after = UINT64_MAX;
	if (plan->close && rng_percent(rng, 60))
		end->close_at = (uint32_t)rng_below(rng, end->budget);
	if (plan->abort && rng_percent(rng, 60))
		end->abort_at = (uint32_t)rng_below(rng, end->budget);
}

static void plan_conn(struct world *w, struct conn *conn)
{
	struct plan *plan = &w->plan;
	struct end *faulty = &conn->end[rng_below(&w->rng, 2)];

	conn->hostile = plan->hostile;
	conn->hostility = (unsigned int)rng_range(&w->rng, 1, rng_percent(&w->rng, 50) ? 10 : 60);
	if (plan->hostile && rng_percent(&w->rng, 50))
		conn->surgery = (enum surgery)rng_range(
			&w->rng, 1, (plan->extended ? SURGERY_COUNT : SURGERY_FIRST_COUNT) - 1);
	conn->untrusted = plan->hostile;
	conn->faulty = plan->flip || plan->cut_fin || plan->cut_rst;
	/* What its programs do wrong, or when they end it, spoils no other connection. */
	conn->expect_clean = !(conn->faulty || plan->hostile || plan->dereg || plan->timeout);
	for (int i = 0; i < 2; i++) {
		plan_end(conn, &conn->end[i], &w->rng);
		conn->expect_clean &= conn->end[i].close_at == UINT32_MAX &&
				      conn->end[i].abort_at == UINT32_MAX;
		node_init(&conn->end[i]);
	}
	plan_wire(conn, faulty, &w->rng);
}

void plan_draw(struct world *w)
{
	struct rng *rng = &w->rng;

	w->plan = (struct plan){ .len_max = draw_len_max(rng), .conns = 1 };
	/* A fuzzer gains more from many small worlds. */
	if (rng->octets && w->plan.len_max > FUZZED_LEN_MAX)
		w->plan.len_max = FUZZED_LEN_MAX;
	draw_faults(&w->plan, rng);
	if (!w->plan.hostile && !w->plan.flip && rng_percent(rng, 40))
		w->plan.conns = (unsigned int)rng_range(rng, 2, CONNS_MAX);
	w->plan.post_percent = (unsigned int)rng_range(rng, 5, 60);
	w->plan.extended = w->generation > 1 && rng_percent(rng, 75);
	if (w->generation > 1 && rng_percent(rng, 8)) {
		w->plan.timeout = (uint32_t)rng_range(rng, 20, 1500);
		w->plan.close |= rng_percent(rng, 60);
	}
	if (w->generation > 2 && rng_percent(rng, 40))
		w->plan.hold_percent = (unsigned int)rng_range(rng, 1, 90);
	if (w->generation > 3 && w->plan.hold_percent) {
		w->plan.keeps = rng_percent(rng, 75);
		w->plan.scarce_percent = rng_percent(rng, 30) ? (unsigned int)rng_range(rng, 1, 100)
							      : 0;
	}
	w->plan.placement = w->generation > 3 && w->plan.extended && rng_percent(rng, 60);
	w->plan.records = w->generation > 4 && rng_percent(rng, 35);
}

void plan_conns(struct world *w)
{
	for (unsigned int i = 0; i < w->plan.conns; i++)
		plan_conn(w, &w->conn[i]);
}
