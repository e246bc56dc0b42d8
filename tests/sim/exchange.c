// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Two drivers in lock step: each gives out all that is due, then each takes all that came, until
// nothing moves; then one closes. By the rules that core/qp.h sets a driver.
#include "exchange.h"

#include "core/rx.h"
#include "core/tx.h"

#include <stdlib.h>
#include <string.h>

/* Present only under the address sanitizer. */
void __asan_poison_memory_region(void const volatile *p, size_t len) __attribute__((weak));
void __asan_unpoison_memory_region(void const volatile *p, size_t len) __attribute__((weak));

enum {
	PD_LEN = 7,
	ROUNDS_MAX = 1000,
};

static void party_init(struct exchange *x, unsigned int i)
{
	struct party *party = &x->party[i];
	struct aw_qp_mem mem = {
		.sq = party->sq_mem,
		.sq_capacity = ITEMS_MAX,
		.sge_max = 2,
		.inline_max = 32,
		.irq = party->irq,
		.irq_capacity = EXCHANGE_READS,
		.orq = party->orq,
		.orq_capacity = EXCHANGE_READS,
	};

	party->exchange = x;
	party->index = i;
	party->peer = &x->party[1 - i];
	party->held = party->received = party->asked = 0;
	party->stashed = 0;
	party->has_receive = false;
	party->streaming = party->over = party->fin_seen = party->fin = false;
	party->written = party->delivered = party->stream_base = party->staged = 0;
	memset(&party->outcome, 0, sizeof(party->outcome));
	party->ending = (struct aw_ending){ 0 };
	exchange_lay_out(party);
	aw_qp_init(&party->qp, &mem, &exchange_ops, party, x);
	party->local = (struct aw_mpa_local){
		.revision = 2,
		.markers = x->terms.markers[i],
		.crc = x->terms.crc,
		.p2p = i == 0 && x->terms.rtr,
		.rtr = x->terms.rtr,
		.ird = EXCHANGE_READS,
		.ord = EXCHANGE_READS,
		.extensions = x->terms.script == SCRIPT_EXTENDED,
		.placement = x->terms.script == SCRIPT_EXTENDED,
	};
}

static void end_party(struct party *party, enum aw_error why)
{
	aw_qp_abort(&party->qp, why);
	party->over = true;
	party->fin = true;
}

static void start(struct party *party)
{
	struct aw_stream stream = aw_stream_agreed(&party->result, party->index == 0);

	stream.emss = party->exchange->terms.emss;
	stream.stag_seed = 77;
	party->streaming = true;
	party->stream_base = party->written;
	party->qp.keeps = party->qp.rnr_holds = party->exchange->terms.waits;
	aw_qp_start(&party->qp, &stream);
	exchange_post(party);
}

static void on_frame(struct party *party, const struct mpa_frame *frame)
{
	static const uint8_t pd[PD_LEN] = "replies";
	enum aw_setup setup = party->index == 0
				      ? aw_mpa_on_reply(&party->local, frame, &party->result)
				      : aw_mpa_on_request(&party->local, frame, &party->result);

	if (setup != AW_SETUP_OK || party->result.rejected) {
		end_party(party, AW_OK);
		return;
	}
	if (party->index == 1)
		party->written =
			aw_mpa_reply(&party->local, &party->result, false, pd, PD_LEN, party->out);
	start(party);
}

static void drop(struct party *party, size_t used)
{
	party->staged -= used;
	memmove(party->stage, party->stage + used, party->staged);
}

static void feed_setup(struct party *party)
{
	struct mpa_frame frame;
	size_t used = 0;
	enum mpa_parse parse = mpa_parse(party->stage, party->staged, &frame, &used);

	if (parse == MPA_PARSE_MORE)
		return;
	if (parse == MPA_PARSE_OK)
		on_frame(party, &frame);
	else
		end_party(party, AW_OK);
	drop(party, parse == MPA_PARSE_OK ? used : party->staged);
}

static void feed(struct party *party)
{
	size_t used;

	if (!party->streaming) {
		feed_setup(party);
		return;
	}
	if (__asan_poison_memory_region)
		__asan_poison_memory_region(party->stage + party->staged,
					    sizeof(party->stage) - party->staged);
	/* One of the two takes what it can where it lies. */
	used = party->index ? aw_rx_lent(&party->qp, party->stage, party->staged) : 0;
	used += aw_rx_octets(&party->qp, party->stage + used, party->staged - used);
	if (__asan_unpoison_memory_region)
		__asan_unpoison_memory_region(party->stage, sizeof(party->stage));
	drop(party, used);
}

/* TLS gives a record's octets at once, or none of them. */
static size_t record_end(const struct party *from)
{
	const size_t *at = from->exchange->fault.at;
	size_t end = at[0];

	if (from->delivered >= end)
		end += ((from->delivered - end) / at[1] + 1) * at[1];
	return end < from->written ? end : from->written;
}

/* The stream position at which the octets of from end, or stop for now. */
static size_t limit(const struct party *from)
{
	const struct exchange *x = from->exchange;
	const struct exchange_fault *fault = &x->fault;
	bool struck = fault->from == from->index;

	if (fault->kind == FAULT_RECORDS)
		return record_end(from);
	if (fault->kind == FAULT_DRIBBLE)
		return from->delivered + 1 < from->written ? from->delivered + 1 : from->written;
	for (int i = 0; struck && i < 2 && fault->kind != FAULT_FLIP; i++)
		if (fault->kind != FAULT_NONE && fault->at[i] < from->written &&
		    (fault->at[i] > from->delivered ||
		     (fault->at[i] == from->delivered && fault->kind > FAULT_CUT && !x->still)))
			return fault->at[i];
	return from->written;
}

static void flip(struct party *reader, size_t at, size_t len)
{
	const struct exchange_fault *fault = &reader->exchange->fault;

	if (fault->kind == FAULT_FLIP && fault->from != reader->index && fault->at[0] >= at &&
	    fault->at[0] - at < len)
		reader->stage[reader->staged + fault->at[0] - at] ^= fault->flip_with;
}

static bool read_once(struct party *party)
{
	struct party *from = party->peer;
	size_t at = from->delivered, len = limit(from) - at;

	if (len == 0 || party->over || (party->streaming && party->qp.rx_held))
		return false;
	memcpy(party->stage + party->staged, from->out + at, len);
	flip(party, at, len);
	party->staged += len;
	from->delivered += len;
	feed(party);
	if (party->exchange->fault.kind == FAULT_DRIBBLE && party->exchange->each_octet)
		party->exchange->each_octet(party);
	return true;
}

/* Has the stream that party reads been ended on the way? */
static bool is_severed(const struct party *party)
{
	const struct exchange *x = party->exchange;

	return (x->fault.kind == FAULT_FIN || x->fault.kind == FAULT_RST) &&
	       x->fault.from != party->index && party->peer->delivered == x->fault.at[0];
}

static bool read_end(struct party *party)
{
	bool severed = is_severed(party);

	if (severed && party->exchange->fault.kind == FAULT_RST)
		party->exchange->reset = true;
	if (party->over || party->fin_seen)
		return false;
	if (party->exchange->reset) {
		end_party(party, AW_E_MPA_CLOSED);
		return true;
	}
	if (!severed && (!party->peer->fin || party->peer->delivered < party->peer->written))
		return false;
	/* As a driver, which finds the end again once nothing waits. */
	if (party->streaming && aw_qp_has_waiting(&party->qp))
		return false;
	party->fin_seen = true;
	if (party->streaming)
		aw_qp_peer_closed(&party->qp, party->staged);
	else
		end_party(party, AW_E_MPA_CLOSED);
	return true;
}

static void follow(struct party *party)
{
	if (party->over || !party->streaming)
		return;
	if (aw_ending_follow(&party->ending, &party->qp, true, 0) & AW_ENDING_FIN)
		party->fin = true;
	if (party->qp.state == AW_QP_ERROR)
		end_party(party, party->qp.error);
}

static bool receive(struct party *party)
{
	bool moved = false;

	while (read_once(party))
		moved = true;
	moved |= read_end(party);
	follow(party);
	return moved;
}

static bool transmit(struct party *party)
{
	static uint8_t arena[2 * AW_TX_ARENA_MIN];
	struct aw_iov iov[4 * AW_TX_IOV_MIN];
	struct aw_tx_out out = {
		.arena = arena,
		.arena_len = sizeof(arena),
		.iov = iov,
		.iov_max = 4 * AW_TX_IOV_MIN,
	};

	if (party->over || !party->streaming)
		return false;
	while (aw_tx_next(&party->qp, &out) == AW_TX_FPDU)
		;
	for (unsigned int i = 0; i < out.iov_count; i++) {
		memcpy(party->out + party->written, iov[i].base, iov[i].len);
		party->written += iov[i].len;
	}
	if (out.octets)
		aw_tx_sent(&party->qp, out.octets);
	follow(party);
	return out.octets != 0;
}

/* All is still: a message that waits finds its receive. */
static bool give_receive(struct party *party)
{
	if (party->over || !party->streaming || !aw_qp_has_waiting(&party->qp))
		return false;
	party->has_receive = true;
	aw_rx_stashed(&party->qp);
	feed(party);
	follow(party);
	return true;
}

/* Until nothing moves, and what a stall held back has come too. */
static void settle(struct exchange *x)
{
	for (int rounds = 0; rounds < ROUNDS_MAX; rounds++) {
		bool moved = false;

		for (int i = 0; i < 2; i++)
			moved |= transmit(&x->party[i]);
		for (int i = 0; i < 2; i++)
			moved |= receive(&x->party[i]);
		for (int i = 0; i < 2 && !moved; i++)
			moved |= give_receive(&x->party[i]);
		if (!moved && (x->still || x->fault.kind != FAULT_STALL))
			return;
		x->still |= !moved;
	}
	x->wrong = "no end of progress";
}

void exchange_run(struct exchange *x)
{
	static const uint8_t pd[PD_LEN] = "request";
	struct party *first = &x->party[0];

	x->still = x->reset = x->timed_out = false;
	x->wrong = NULL;
	for (unsigned int i = 0; i < 2; i++)
		party_init(x, i);
	first->written = aw_mpa_request(&first->local, pd, PD_LEN, first->out);
	settle(x);
	if (!first->over && first->streaming)
		aw_qp_close(&first->qp);
	settle(x);
	for (int i = 0; i < 2; i++) {
		x->timed_out |= !x->party[i].over;
		if (!x->party[i].over)
			end_party(&x->party[i], AW_E_MPA_CLOSED);
	}
}
