// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The world's life: made by its seed, run in random turns, then driven on fairly until nothing
// moves, closed, and checked.
#include "world.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	DRAIN_TURN = 1 << 20, /* octets */
	DRAIN_PIPE = 1 << 18,
	DRAIN_ROUNDS_MAX = 5000,
	SLEEP_STEPS_MAX = 300,
};

void world_fail(struct world *w, const char *format, ...)
{
	va_list args;

	if (w->failed)
		return;
	w->failed = true;
	va_start(args, format);
	vsnprintf(w->why, sizeof(w->why), format, args);
	va_end(args);
}

static void host_init(struct world *w, struct host *host)
{
	uint32_t capacity = (uint32_t)rng_range(&w->rng, 1, 64);

	host->world = w;
	memory_init(host);
	host->use_srq = rng_percent(&w->rng, 30);
	host->srq_recv_len = (uint32_t)rng_range(&w->rng, 1, w->plan.len_max / 4 + 1);
	if (!host->use_srq)
		return;
	host->srq_mem = malloc(aw_rq_mem_size(capacity, AW_SGE_MAX));
	aw_rq_init(&host->srq, host->srq_mem, capacity, AW_SGE_MAX);
}

static void conn_wire_up(struct world *w, struct conn *conn, unsigned int number)
{
	conn->world = w;
	for (unsigned int i = 0; i < 2; i++) {
		struct end *end = &conn->end[i];

		end->world = w;
		end->conn = conn;
		end->initiator = i == 0;
		end->peer = &conn->end[1 - i];
		end->in = &end->peer->out;
		end->host = &w->host[i];
		end->name = (char)("aAbBcC"[number * 2 + i]);
	}
}

void world_init(struct world *w, struct rng rng, unsigned int generation, uint32_t steps_max,
		bool verbose)
{
	memset(w, 0, sizeof(*w));
	w->rng = rng;
	w->generation = generation;
	w->steps_max = steps_max;
	w->trace.verbose = verbose;
	plan_draw(w);
	for (int h = 0; h < 2; h++)
		host_init(w, &w->host[h]);
	for (unsigned int i = 0; i < w->plan.conns; i++)
		conn_wire_up(w, &w->conn[i], i);
	plan_conns(w);
	for (unsigned int i = 0; i < w->plan.conns; i++)
		for (int e = 0; e < 2; e++)
			setup_init(&w->conn[i].end[e]);
}

static void program_close(struct end *end)
{
	TRACE(end, "closes");
	end->closed = true;
	aw_qp_close(&end->qp);
}

static void program_abort(struct end *end)
{
	TRACE(end, "aborts");
	end->aborted = true;
	end->conn->torn = true;
	end->out.rst = true;
	node_abort(end, AW_OK);
}

/* One turn of a program. */
static bool program(struct end *end)
{
	if (end->phase != PHASE_STREAM)
		return false;
	if (!end->closed && end->budget <= end->close_at && end->close_at != UINT32_MAX)
		program_close(end);
	if (!end->aborted && end->budget <= end->abort_at && end->abort_at != UINT32_MAX)
		program_abort(end);
	return traffic_post(end);
}

static void maybe_dereg(struct world *w)
{
	struct region *region;

	if (!w->plan.dereg || !rng_percent(&w->rng, 1))
		return;
	region = memory_pick(&w->host[rng_below(&w->rng, 2)],
			     (enum role)rng_below(&w->rng, ROLE_SPARE));
	if (!region || w->dereg_done)
		return;
	TRACE(&w->conn[0].end[0], "MR %08llx is deregistered", region->mr.stag);
	w->dereg_done = true;
	region->live = false;
}

static struct end *draw_end(struct world *w)
{
	return &w->conn[rng_below(&w->rng, w->plan.conns)].end[rng_below(&w->rng, 2)];
}

static void turn(struct world *w)
{
	struct end *end = draw_end(w);
	struct rng *rng = &w->rng;
	uint64_t draw = rng_below(rng, 100);

	node_tick(end);
	if (end->asleep_until > w->step)
		return;
	if (rng_below(rng, 1000) < 2)
		end->asleep_until = w->step + (uint32_t)rng_below(rng, SLEEP_STEPS_MAX);
	if (draw < w->plan.post_percent)
		program(end);
	else if (draw < 70)
		node_transmit(end, rng_range(rng, 1, end->write_max));
	else if (draw < 95)
		node_receive(end, rng_range(rng, 1, end->read_max));
	else
		traffic_receives(end);
	maybe_dereg(w);
}

/* One fair round over all ends; false when nothing moved. */
static bool round_of_all(struct world *w)
{
	bool moved = false;

	for (unsigned int i = 0; i < w->plan.conns; i++) {
		for (int e = 0; e < 2; e++) {
			struct end *end = &w->conn[i].end[e];

			w->step++;
			traffic_receives(end);
			moved |= program(end);
			moved |= node_transmit(end, DRAIN_TURN);
			moved |= node_receive(end, DRAIN_TURN);
		}
	}
	return moved;
}

/* Fragmentation ends here too, so that the rounds needed have a bound. */
static void widen_pipes(struct world *w)
{
	for (unsigned int i = 0; i < w->plan.conns; i++)
		for (int e = 0; e < 2; e++)
			pipe_widen(&w->conn[i].end[e].out, DRAIN_PIPE);
}

static void drain(struct world *w)
{
	widen_pipes(w);
	for (int rounds = 0; round_of_all(w) && !w->failed; rounds++) {
		if (rounds == DRAIN_ROUNDS_MAX) {
			world_fail(w, "no end of progress");
			return;
		}
	}
}

static void close_all(struct world *w)
{
	for (unsigned int i = 0; i < w->plan.conns; i++) {
		struct conn *conn = &w->conn[i];
		uint64_t who = rng_range(&w->rng, 1, 3);

		for (int e = 0; e < 2; e++)
			if (who & 1u << e && conn->end[e].phase == PHASE_STREAM)
				program_close(&conn->end[e]);
	}
}

/* A responder that closes with WRs posted waits, in vain, for leave to transmit them. */
static bool waits_for_first(const struct conn *conn)
{
	return check_muted(&conn->end[1]) && !conn->end[0].closed;
}

/*
 * Once faults have stopped a connection ends by itself: but where a peer's octets are at fault, so
 * that one end may wait for more of them.
 */
static bool must_end(const struct conn *conn)
{
	return !conn->hostile && !conn->world->plan.flip && !waits_for_first(conn);
}

/* What is not over when nothing moves any more: a driver's timer ends it. */
static void run_timers(struct world *w)
{
	for (unsigned int i = 0; i < w->plan.conns; i++) {
		for (int e = 0; e < 2; e++) {
			struct end *end = &w->conn[i].end[e];

			if (end->over)
				continue;
			if (must_end(end->conn))
				world_fail(w, "%c: state %d is not over when all is still",
					   end->name, end->qp.state);
			TRACE(end, "timer ends it in state %llu", end->qp.state);
			node_abort(end, AW_OK);
		}
	}
}

bool world_run(struct world *w)
{
	for (w->step = 0; w->step < w->steps_max && !w->failed; w->step++)
		turn(w);
	drain(w);
	for (unsigned int i = 0; i < w->plan.conns; i++)
		check_live(&w->conn[i]);
	close_all(w);
	drain(w);
	run_timers(w);
	for (unsigned int i = 0; i < w->plan.conns; i++)
		check_over(&w->conn[i]);
	memory_check(w);
	w->events += w->step;
	return !w->failed;
}

static void end_fini(struct end *end)
{
	for (uint32_t i = 0; i < end->wr_count; i++) {
		free(end->wr[i]->data);
		free(end->wr[i]);
	}
	for (uint32_t i = 0; i < end->recv_count; i++)
		free(end->recv[i]);
	free(end->wr);
	free(end->recv);
	free(end->order);
	node_fini(end);
}

void world_fini(struct world *w)
{
	for (unsigned int i = 0; i < w->plan.conns; i++)
		for (int e = 0; e < 2; e++)
			end_fini(&w->conn[i].end[e]);
	for (int h = 0; h < 2; h++) {
		for (uint32_t i = 0; i < w->srq_recv_count[h]; i++)
			free(w->srq_recv[h][i]);
		free(w->srq_recv[h]);
		free(w->host[h].srq_mem);
		memory_fini(&w->host[h]);
	}
}
