// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A driver as net/ is one, on virtual pipes: stages octets, batches FPDUs, sends as much as the
// pipe takes, and closes by the rules that core/qp.h sets a driver.
#include "world.h"

#include "core/rx.h"
#include "wire/fpdu.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* Present only under the address sanitizer. */
void __asan_poison_memory_region(void const volatile *p, size_t len) __attribute__((weak));
void __asan_unpoison_memory_region(void const volatile *p, size_t len) __attribute__((weak));

enum {
	CANARY_LEN = 64,
	HOSTILE_PIPE = 1 << 22, /* many batches: what is given out is never cut */
	MS_NS = 1000000,
	RECORD_MAX = 16384, /* RFC 8446 5.1 */
};

static void mem_init(struct end *end)
{
	struct rng *rng = &end->world->rng;
	struct aw_qp_mem *mem = &end->mem;
	size_t sq_len;

	mem->sq_capacity = (uint32_t)rng_range(rng, 1, rng_percent(rng, 30) ? 3 : 40);
	mem->sge_max = rng_percent(rng, 50) ? AW_SGE_MAX : (uint32_t)rng_range(rng, 1, AW_SGE_MAX);
	mem->inline_max = rng_percent(rng, 50) ? AW_INLINE_MAX
					       : (uint32_t)rng_below(rng, AW_INLINE_MAX);
	mem->srq = end->host->use_srq;
	mem->irq_capacity = RD_MAX_SIM;
	mem->orq_capacity = RD_MAX_SIM;
	sq_len = aw_sq_mem_size(mem->sq_capacity, mem->sge_max, mem->inline_max);
	mem->sq = malloc(sq_len);
	memset(mem->sq, CANARY, sq_len);
	mem->irq = calloc(mem->irq_capacity, sizeof(*mem->irq));
	mem->orq = calloc(mem->orq_capacity, sizeof(*mem->orq));
}

static void rq_init(struct end *end)
{
	struct rng *rng = &end->world->rng;
	uint32_t capacity = end->host->use_srq ? 0 : (uint32_t)rng_range(rng, 1, 32);
	size_t len = aw_rq_mem_size(capacity, AW_SGE_MAX);

	end->rq_mem = malloc(len + 1);
	aw_rq_init(&end->rq, end->rq_mem, capacity, AW_SGE_MAX);
}

void node_init(struct end *end)
{
	struct rng *rng = &end->world->rng;

	mem_init(end);
	rq_init(end);
	aw_qp_init(&end->qp, &end->mem, &node_ops, end, &end->host->pd);
	end->qp.sig_all = rng_percent(rng, 20);
	end->grants = AW_ACCESS_REMOTE;
	if (end->world->plan.extended && rng_percent(rng, 15))
		end->grants = (uint32_t)rng_next(rng) & AW_ACCESS_REMOTE;
	end->qp.remote_access = end->grants;
	end->stage_cap = FPDU_MAX + rng_below(rng, rng_percent(rng, 50) ? 1 : 3 * FPDU_MAX);
	end->stage = malloc(end->stage_cap);
	end->arena_len =
		AW_TX_ARENA_MIN + rng_below(rng, rng_percent(rng, 50) ? 1 : AW_TX_ARENA_MIN);
	end->arena = malloc(end->arena_len + CANARY_LEN);
	memset(end->arena + end->arena_len, CANARY, CANARY_LEN);
	end->iov_max = (unsigned int)rng_range(rng, AW_TX_IOV_MIN,
					       rng_percent(rng, 50) ? AW_TX_IOV_MIN : IOV_MAX_SIM);
	pipe_init(&end->out, end->conn->hostile
				     ? HOSTILE_PIPE
				     : rng_range(rng, 1, rng_percent(rng, 30) ? 2000 : 300000));
	if (end->world->plan.records)
		end->out.record_max = rng_range(rng, 1, rng_percent(rng, 30) ? 64 : RECORD_MAX);
	if (end->out.record_max > end->out.cap)
		end->out.record_max = end->out.cap;
	end->read_max = (uint32_t)rng_range(rng, 1, rng_percent(rng, 15) ? 7 : 200000);
	end->write_max = (uint32_t)rng_range(rng, 1, rng_percent(rng, 15) ? 7 : 200000);
}

void node_fini(struct end *end)
{
	if (__asan_unpoison_memory_region)
		__asan_unpoison_memory_region(end->stage, end->stage_cap);
	free(end->mem.sq);
	free(end->mem.irq);
	free(end->mem.orq);
	free(end->rq_mem);
	free(end->stage);
	free(end->arena);
	pipe_fini(&end->out);
}

void node_start(struct end *end)
{
	struct rng *rng = &end->world->rng;
	static const uint32_t emss[] = { 128, 536, 1448, 1460, 8948, 65483, 200000 };
	struct aw_stream stream = {
		.initiator = end->initiator,
		.crc = end->result.crc,
		.markers_tx = end->result.markers_tx,
		.markers_rx = end->result.markers_rx,
		.p2p = end->result.p2p,
		.rtr = end->result.rtr,
		.ird = end->result.ird,
		.ord = end->result.ord,
		.emss = rng_percent(rng, 20) ? (uint32_t)rng_range(rng, 1, 70000)
					     : emss[rng_below(rng, 7)],
		.stag_seed = (uint32_t)rng_next(rng),
		.extensions = end->result.extensions,
		.large_fpdus = end->result.large_fpdus,
		.placement = end->result.placement,
	};

	end->phase = PHASE_STREAM;
	end->watch.in_base = end->in->read - end->stage_len;
	TRACE(end, "stream starts, EMSS %llu ORD %llu CRC %llu", stream.emss, stream.ord,
	      stream.crc);
	if (end->flip_after != UINT64_MAX)
		end->out.flip_at = end->out.written + end->flip_after;
	if (end->cut_after != UINT64_MAX)
		end->out.cut_at = end->out.written + end->cut_after;
	/* Start-up has no CRC, so faults begin behind it; and without one, and without records, a flip is data. */
	end->conn->untrusted |= end->world->plan.flip && !stream.crc && !end->world->plan.records;
	end->qp.keeps = end->world->plan.keeps;
	aw_qp_start(&end->qp, &stream);
	if (end->world->plan.hold_percent > 0)
		aw_rnr_wait_begin(&end->rnr_wait, &end->qp);
}

/* Closes the connection of an end whose QP is in ERROR. */
static void shut(struct end *end)
{
	if (end->over)
		return;
	TRACE(end, "is over, error %05llx, peer's %05llx", end->qp.error, end->qp.peer_error);
	end->over = true;
	if (aw_rq_count(&end->rq))
		world_fail(end->world, "%c: %u receives were not flushed", end->name,
			   aw_rq_count(&end->rq));
	if (end->iov_at < end->iov_count || end->in->len || end->stage_len)
		end->in->rst = true;
	end->out.fin = true;
	if (end->in->rst && rng_percent(&end->world->rng, 50))
		end->out.rst = true;
	end->iov_at = end->iov_count = 0;
}

void node_abort(struct end *end, enum aw_error why)
{
	if (end->phase != PHASE_STREAM)
		end->phase = PHASE_OVER;
	aw_qp_abort(&end->qp, why);
	if (end->qp.state != AW_QP_ERROR)
		world_fail(end->world, "%c: state %d after an abort", end->name, end->qp.state);
	shut(end);
}

static void feed(struct end *end)
{
	size_t used;

	if (end->phase != PHASE_STREAM) {
		setup_receive(end);
		return;
	}
	if (__asan_poison_memory_region)
		__asan_poison_memory_region(end->stage + end->stage_len,
					    end->stage_cap - end->stage_len);
	/* One of the two takes what it can where it lies. */
	used = end->name >= 'a' ? aw_rx_lent(&end->qp, end->stage, end->stage_len) : 0;
	used += aw_rx_octets(&end->qp, end->stage + used, end->stage_len - used);
	if (__asan_unpoison_memory_region)
		__asan_unpoison_memory_region(end->stage, end->stage_cap);
	if (used > end->stage_len) {
		world_fail(end->world, "%c: used %zu of %zu octets", end->name, used,
			   end->stage_len);
		used = end->stage_len;
	}
	end->stage_len -= used;
	memmove(end->stage, end->stage + used, end->stage_len);
	if (end->stage_len >= FPDU_MAX && !end->qp.rx_held)
		world_fail(end->world, "%c: %zu octets and no FPDU", end->name, end->stage_len);
}

static void on_fin(struct end *end)
{
	end->fin_seen = true;
	TRACE(end, "sees FIN with %llu octets left", end->stage_len);
	if (end->phase != PHASE_STREAM) {
		node_abort(end, AW_E_MPA_CLOSED);
		return;
	}
	aw_qp_peer_closed(&end->qp, end->stage_len);
	if (end->stage_len && !end->qp.error)
		world_fail(end->world, "%c: FIN within an FPDU is no error", end->name);
}

static bool is_waiting(const struct end *end)
{
	return end->phase == PHASE_STREAM && aw_qp_has_waiting(&end->qp) &&
	       end->qp.state < AW_QP_TERMINATE;
}

/* The driver tries again until it gives up. One that is closing does not wait. */
static void retry_waiting(struct end *end)
{
	aw_rnr_wait_try(&end->rnr_wait, &end->qp, RETRIES_MAX, ++end->tries * MS_NS);
	aw_rx_stashed(&end->qp);
	feed(end);
	if (end->qp.state == AW_QP_ERROR)
		shut(end);
}

/* The stream is over, and its socket stays until the peer has ended, too: a reset could overtake the Terminate. */
static bool drop_input(struct end *end)
{
	bool did = pipe_drop(end->in);

	end->stage_len = 0;
	if (!end->in->fin)
		return did;
	shut(end);
	return true;
}

/* As a driver whose TLS session has ended: what was opened is with the core, and the rest never comes. */
static void tear(struct end *end)
{
	TRACE(end, "sees its session end with %llu octets left", end->stage_len);
	node_abort(end, AW_E_MPA_CLOSED);
}

/* Takes what has come, or its end. While a message waits the end is left for later. */
static bool take_input(struct end *end, size_t n)
{
	if (n > end->stage_cap - end->stage_len)
		n = end->stage_cap - end->stage_len;
	n = pipe_read(end->in, end->stage + end->stage_len, n);
	end->stage_len += n;
	if (n)
		feed(end);
	else if (pipe_is_torn(end->in))
		tear(end);
	else if (end->in->fin && !end->in->len && !end->fin_seen && !is_waiting(end))
		on_fin(end);
	else
		return false;
	return true;
}

bool node_receive(struct end *end, size_t n)
{
	bool did;

	if (end->over)
		return false;
	if (end->in->rst) {
		TRACE(end, "sees RST");
		node_abort(end, AW_E_MPA_CLOSED);
		return true;
	}
	if (end->lingers)
		return drop_input(end);
	did = is_waiting(end);
	if (did)
		retry_waiting(end);
	/* Where the driver itself has the message, it reads nothing; once it was tried the next turn does. */
	if (!end->over && (!did || (end->world->plan.keeps && !end->qp.rx_held)))
		did |= take_input(end, n);
	if (!end->over && end->phase == PHASE_STREAM && end->qp.state == AW_QP_ERROR)
		shut(end);
	return did;
}

/* Copies what the last aw_tx_next added, which begins at octet from of iovec at. */
static size_t flatten(const struct aw_tx_out *out, unsigned int at, size_t from, uint8_t *dst)
{
	size_t len = 0;

	for (; at < out->iov_count; at++, from = 0) {
		size_t n = out->iov[at].len - from;

		if (len + n > WATCH_FPDU_MAX)
			return SIZE_MAX;
		memcpy(dst + len, (uint8_t *)out->iov[at].base + from, n);
		len += n;
	}
	return len;
}

static void check_out(struct end *end, const struct aw_tx_out *out)
{
	size_t sum = 0;

	for (unsigned int i = 0; i < out->iov_count; i++)
		sum += out->iov[i].len;
	if (sum != out->octets || out->arena_used > out->arena_len || out->iov_count > out->iov_max)
		world_fail(end->world,
			   "%c: batch of %zu octets says %zu, arena %zu of %zu, %u iovecs",
			   end->name, sum, out->octets, out->arena_used, out->arena_len,
			   out->iov_count);
	for (int i = 0; i < CANARY_LEN; i++)
		if (end->arena[end->arena_len + i] != CANARY)
			world_fail(end->world, "%c: octet %d behind the arena changed", end->name,
				   i);
}

/* Hands one FPDU to the watch and, from a hostile end, on as something else. */
static void pass(struct end *end, struct aw_tx_out *out, unsigned int at, size_t from)
{
	static uint8_t fpdu[WATCH_FPDU_MAX];
	size_t len = flatten(out, at, from, fpdu);

	end->world->events++;
	if (len == SIZE_MAX || len == 0) {
		world_fail(end->world, "%c: an FPDU of a wrong size was given out", end->name);
		return;
	}
	watch_fpdu(end, fpdu, len);
	if (end->conn->hostile && !end->initiator) {
		len = hostile_mutate(end, fpdu, len);
		pipe_write(&end->out, fpdu, len);
	}
}

/* Fills a new batch; false when nothing is due. */
static bool batch(struct end *end)
{
	struct aw_tx_out out = {
		.arena = end->arena,
		.arena_len = end->arena_len,
		.iov = end->iov,
		.iov_max = end->iov_max,
	};
	unsigned int fpdus = (unsigned int)rng_range(&end->world->rng, 1, 40);
	enum aw_tx tx = AW_TX_FPDU;
	bool idle = aw_tx_is_idle(&end->qp);

	if (end->world->plan.extended && rng_percent(&end->world->rng, 30))
		fpdus = UINT_MAX; /* until it is full */

	for (unsigned int i = 0; i < fpdus && tx == AW_TX_FPDU; i++) {
		unsigned int at = out.iov_count ? out.iov_count - 1 : 0;
		size_t from = out.iov_count ? out.iov[at].len : 0;

		tx = aw_tx_next(&end->qp, &out);
		check_out(end, &out);
		if (tx == AW_TX_FPDU)
			pass(end, &out, at, from);
		else if (tx == AW_TX_FULL && !out.iov_count)
			world_fail(end->world, "%c: an empty batch is full", end->name);
	}
	if (idle && out.iov_count)
		world_fail(end->world, "%c: an idle QP had something to send", end->name);
	end->iov_count = out.iov_count;
	end->iov_at = 0;
	end->iov_off = 0;
	return out.iov_count != 0;
}

static size_t push_iov(struct end *end, size_t n)
{
	struct aw_iov *iov = &end->iov[end->iov_at];
	size_t part = iov->len - end->iov_off < n ? iov->len - end->iov_off : n;
	size_t took = part;

	/* What a hostile end gives out went in pass(). */
	if (!end->conn->hostile || end->initiator)
		took = pipe_write(&end->out, (uint8_t *)iov->base + end->iov_off, part);
	end->iov_off += took;
	if (end->iov_off == iov->len) {
		end->iov_at++;
		end->iov_off = 0;
	}
	return took;
}

static bool push(struct end *end, size_t n)
{
	size_t sum = 0;

	while (end->iov_at < end->iov_count && sum < n) {
		size_t took = push_iov(end, n - sum);

		if (!took && end->iov[end->iov_at].len != end->iov_off)
			break;
		sum += took;
	}
	end->taken += sum;
	if (sum)
		aw_tx_sent(&end->qp, sum);
	return sum != 0;
}

/* What a driver gives a deadline to (net/conn/conn.c, net/qp/uqp_sock.c). */
static bool is_timed(const struct end *end)
{
	if (end->phase != PHASE_STREAM)
		return end->phase != PHASE_OVER;
	return end->qp.state == AW_QP_CLOSING || end->qp.state == AW_QP_TERMINATE;
}

void node_tick(struct end *end)
{
	uint32_t timeout = end->world->plan.timeout;

	if (end->over || !timeout || !is_timed(end)) {
		end->deadline = 0;
		return;
	}
	if (!end->deadline)
		end->deadline = end->world->step + timeout;
	if (end->world->step < end->deadline)
		return;
	TRACE(end, "time is over in phase %llu state %llu", end->phase, end->qp.state);
	end->conn->torn = true;
	end->timed_out = true;
	end->deadline = 0;
	node_abort(end, end->phase == PHASE_STREAM ? end->qp.error : AW_E_MPA_CLOSED);
}

static bool send_frame(struct end *end)
{
	size_t n =
		pipe_write(&end->out, end->frame + end->frame_off, end->frame_len - end->frame_off);

	end->frame_off += n;
	if (end->frame_off == end->frame_len && n)
		setup_sent(end);
	return n != 0;
}

static bool close_by_rules(struct end *end)
{
	bool is_sent = end->iov_at == end->iov_count;
	enum aw_qp_state before = end->qp.state;
	unsigned int steps;

	if (end->lingers)
		return false;
	if (before == AW_QP_ERROR) {
		shut(end);
		return true;
	}
	steps = aw_ending_follow(&end->ending, &end->qp, is_sent, end->world->step);
	if (steps & AW_ENDING_FIN) {
		TRACE(end, "sends FIN in state %llu", before);
		end->out.fin = true;
	}
	if (end->qp.state == AW_QP_ERROR && before == AW_QP_TERMINATE && !end->fin_seen)
		end->lingers = true;
	else if (end->qp.state == AW_QP_ERROR)
		shut(end);
	return steps & AW_ENDING_FIN || end->over;
}

bool node_transmit(struct end *end, size_t n)
{
	bool did, written;

	if (end->over)
		return false;
	if (end->phase != PHASE_STREAM)
		return end->frame_off < end->frame_len && send_frame(end);
	if (end->conn->hostile && !end->initiator && end->out.len > end->out.cap / 4)
		return false;
	written = extensions_written_back(end);
	if (end->iov_at == end->iov_count && end->qp.state != AW_QP_ERROR)
		batch(end);
	did = push(end, n) || written || end->writes_back;
	return close_by_rules(end) || did;
}
