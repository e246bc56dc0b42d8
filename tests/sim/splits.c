// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Every octet of the fixed exchange as the place of a cut, a stall, a FIN, an RST, a changed octet.
// Cut or stalled, the result is the script's; struck, it is what stood right before that octet.
#include "splits.h"

#include "exchange.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	LENGTH_OCTETS = 6, /* a marker and the length field: the beginning of an FPDU */
	FAILURES_MAX = 5,
};

/* What the reader of a direction held once it had read that many octets. */
struct moment {
	unsigned int recvs; /* completed */
	uint64_t hash; /* of its memory but the cells, which change as responses go out */
	size_t boundary; /* the last FPDU or start-up frame ended here */
};

static struct exchange x;
static struct outcome fresh[2], expected[2];
static struct moment moment[2][EXCHANGE_STREAM + 1]; /* by the writer's index */
static uint8_t whole[2][EXCHANGE_STREAM];
static size_t whole_len[2], whole_base[2];
static unsigned long runs, failures;
static size_t stride; /* from one struck octet to the next */

static const char *const fault_names[] = {
	[FAULT_NONE] = "none",	     [FAULT_DRIBBLE] = "dribble", [FAULT_CUT] = "cut",
	[FAULT_RECORDS] = "records", [FAULT_STALL] = "stall",	  [FAULT_FIN] = "fin",
	[FAULT_RST] = "rst",	     [FAULT_FLIP] = "flip",
};

static void fail(const struct party *party, const char *what)
{
	const struct exchange_terms *t = &x.terms;

	if (failures++ >= FAILURES_MAX)
		return;
	printf("%s: markers %d%d crc %d rtr %d emss %u script %d waits %d%d, %s at %zu and %zd of %c: %s\n",
	       party ? (party->index ? "responder" : "initiator") : "both", t->markers[0],
	       t->markers[1], t->crc, t->rtr, t->emss, t->script, t->waits, t->scarce,
	       fault_names[x.fault.kind], x.fault.at[0], (ssize_t)x.fault.at[1], "ab"[x.fault.from],
	       what);
	if (party)
		printf("  state %d error %05x peer's %05x\n", party->qp.state, party->qp.error,
		       party->qp.peer_error);
}

static void run(struct exchange_fault fault)
{
	x.fault = fault;
	runs++;
	exchange_run(&x);
	if (x.wrong)
		fail(NULL, x.wrong);
	for (int i = 0; i < 2; i++)
		if (x.party[i].held || x.party[i].stashed)
			fail(&x.party[i], "MRs or pieces of a stash are still held");
}

static uint64_t get_word(const uint8_t *mem)
{
	uint64_t word;

	memcpy(&word, mem, sizeof(word));
	return word;
}

static uint64_t hash(const uint8_t *mem)
{
	uint64_t h = 0xcbf29ce484222325u;

	for (size_t i = 0; i < exchange_zone(ZONE_CELLS); i += sizeof(uint64_t)) {
		h = (h ^ get_word(mem + i)) * 0x100000001b3u;
		h ^= h >> 29;
	}
	return h;
}

static void note_moment(struct party *reader)
{
	struct moment *row = moment[1 - reader->index];
	size_t at = reader->peer->delivered;

	row[at] = row[at - 1];
	if (reader->staged)
		return;
	row[at] = (struct moment){
		.recvs = reader->outcome.queue[AW_RQ].count,
		.hash = hash(reader->outcome.mem),
		.boundary = at,
	};
}

static void check_log(const struct party *party, enum aw_queue queue)
{
	const struct log *log = &party->outcome.queue[queue];
	const struct log *due = &expected[party->index].queue[queue];

	if (log->count != due->count ||
	    memcmp(log->cqe, due->cqe, log->count * sizeof(log->cqe[0])) != 0)
		fail(party, queue == AW_SQ ? "other send completions" : "other receives");
}

/* Nothing but the octets' timing changed: the script's result, and the same octets given out. */
static void check_unharmed(bool same_octets)
{
	for (int i = 0; i < 2; i++) {
		const struct party *party = &x.party[i];

		check_log(party, AW_SQ);
		check_log(party, AW_RQ);
		if (memcmp(party->outcome.mem, expected[i].mem, EXCHANGE_MEM) != 0)
			fail(party, "other octets in memory");
		if (party->outcome.atomics != expected[i].atomics ||
		    party->outcome.binds != expected[i].binds ||
		    party->outcome.flushes != expected[i].flushes)
			fail(party, "not every atomic and bind once");
		if (memcmp(party->outcome.invalid, expected[i].invalid, STAGS) != 0)
			fail(party, "other STags are valid");
		if (party->qp.error || party->qp.peer_error || x.timed_out)
			fail(party, "not closed well");
		if (same_octets && (party->written != whole_len[i] ||
				    memcmp(party->out, whole[i], whole_len[i]) != 0))
			fail(party, "other octets were given out");
	}
}

static void check_sq_struck(const struct party *party)
{
	const struct log *log = &party->outcome.queue[AW_SQ];
	unsigned int items = exchange_items(&x.terms), at = 0;
	bool failed = false;

	for (unsigned int i = 0; i < items && party->streaming; i++) {
		const struct item *item = exchange_item(party, i);
		const struct aw_cqe *cqe = &log->cqe[at];

		if (at == log->count || cqe->wr_id != i) {
			if (failed || item->flags & AW_WR_SIGNALED)
				fail(party, "a WR has no completion in its turn");
			continue;
		}
		at++;
		if (failed && cqe->status == AW_WC_SUCCESS)
			fail(party, "a success behind a failure");
		failed |= cqe->status != AW_WC_SUCCESS;
	}
	if (at != log->count)
		fail(party, "completions that no WR asked for");
}

static void check_rq_struck(const struct party *party, bool trusted)
{
	const struct log *log = &party->outcome.queue[AW_RQ];
	const struct log *due = &expected[party->index].queue[AW_RQ];
	bool failed = false;

	if (log->count != due->count)
		fail(party, "not every receive completed once");
	for (unsigned int i = 0; i < log->count; i++) {
		const struct aw_cqe *cqe = &log->cqe[i];

		if (failed && cqe->status == AW_WC_SUCCESS)
			fail(party, "a receive behind a flushed one");
		failed |= cqe->status != AW_WC_SUCCESS;
		if (cqe->wr_id != i ||
		    (trusted && !failed && memcmp(cqe, &due->cqe[i], sizeof(*cqe)) != 0))
			fail(party, "a receive is not the script's");
	}
}

static bool is_old_or_new(const uint8_t *mem, const uint8_t *old, const uint8_t *new, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (mem[i] != old[i] && mem[i] != new[i])
			return false;
	return true;
}

/*
 * Old or new, octet by octet; where octets were changed unseen, only outside of the MRs. A word that is old or new as a
 * whole, as nearly all are, is not looked at by its octets.
 */
static void check_mem_struck(const struct party *party, bool trusted)
{
	const uint8_t *mem = party->outcome.mem;
	const uint8_t *old = fresh[party->index].mem, *new = expected[party->index].mem;
	const size_t word = sizeof(uint64_t);
	bool strange = false;

	for (size_t i = 0; i < EXCHANGE_MEM && trusted; i += word)
		if (get_word(mem + i) != get_word(old + i) &&
		    get_word(mem + i) != get_word(new + i))
			strange |= !is_old_or_new(mem + i, old + i, new + i, word);
	for (size_t zone = 0; zone <= ZONES; zone++) {
		size_t red = exchange_zone(zone) - EXCHANGE_RED;

		strange |= memcmp(mem + red, old + red, EXCHANGE_RED) != 0;
	}
	if (strange)
		fail(party, "an octet is neither old nor new");
}

static void check_struck(bool trusted)
{
	for (int i = 0; i < 2; i++) {
		check_sq_struck(&x.party[i]);
		check_rq_struck(&x.party[i], trusted);
		check_mem_struck(&x.party[i], trusted);
	}
}

static unsigned int recvs_good(const struct party *party)
{
	const struct log *log = &party->outcome.queue[AW_RQ];
	unsigned int n = 0;

	while (n < log->count && log->cqe[n].status == AW_WC_SUCCESS)
		n++;
	return n;
}

static const struct moment *struck_moment(void)
{
	return &moment[x.fault.from][x.fault.at[0]];
}

/* Of the struck direction's reader: what was whole before is there, and nothing behind it. */
static void check_reader(void)
{
	const struct party *reader = x.party[x.fault.from].peer;

	if (recvs_good(reader) != struck_moment()->recvs)
		fail(reader, "not the receives that were whole before");
	if (hash(reader->outcome.mem) != struck_moment()->hash)
		fail(reader, "not the octets that were whole before");
}

static bool in_startup(void)
{
	return x.fault.at[0] < whole_base[x.fault.from];
}

static void check_severed(void)
{
	const struct party *reader = x.party[x.fault.from].peer;
	bool between = struck_moment()->boundary == x.fault.at[0];
	enum aw_error due = x.fault.kind == FAULT_FIN && between ? AW_OK : AW_E_MPA_CLOSED;

	check_struck(true);
	check_reader();
	if (x.timed_out)
		fail(reader, "not over by itself");
	if (!in_startup() && reader->qp.error != due)
		fail(reader, "another error is due");
}

/* A responder that never had a valid FPDU may not transmit its Terminate (RFC 5044 7.1.2). */
static bool is_muted(const struct party *reader)
{
	return reader->index == 1 && struck_moment()->boundary == whole_base[0];
}

/* RFC 5044 6 and 8: what the CRC does not vouch for is an error, and the peer hears which. */
static void check_flipped(void)
{
	const struct party *reader = x.party[x.fault.from].peer;
	bool in_length = x.fault.at[0] - struck_moment()->boundary < LENGTH_OCTETS;
	enum aw_error error = reader->qp.error;

	check_struck(true);
	if (in_startup())
		return;
	check_reader();
	if (x.timed_out && !in_length)
		fail(reader, "not over by itself");
	if (error != AW_E_MPA_CRC && !(in_length && error == AW_E_MPA_CLOSED))
		fail(reader, "another error is due");
	if (error == AW_E_MPA_CRC && !is_muted(reader) && reader->peer->qp.peer_error != error)
		fail(reader, "the peer heard of another error");
}

/* Where a row of runs begins: each row has other octets, so that with a stride, too, all kinds of them are struck. */
static size_t first_octet(void)
{
	return runs % stride;
}

/* The uncut run, once whole and once octet by octet, with what it came to after each. */
static void take_reference(void)
{
	for (int i = 0; i < 2; i++) {
		x.party[i] = (struct party){ .exchange = &x, .index = (unsigned int)i };
		x.party[i].peer = &x.party[1 - i];
	}
	for (int i = 0; i < 2; i++) {
		exchange_expect(&x.party[i], &expected[i]);
		exchange_lay_out(&x.party[i]);
		fresh[i] = x.party[i].outcome;
		moment[1 - i][0] = (struct moment){ .hash = hash(fresh[i].mem) };
	}
	run((struct exchange_fault){ .kind = FAULT_NONE });
	check_unharmed(false);
	for (int i = 0; i < 2; i++) {
		whole_len[i] = x.party[i].written;
		whole_base[i] = x.party[i].stream_base;
		memcpy(whole[i], x.party[i].out, whole_len[i]);
	}
	x.each_octet = note_moment;
	run((struct exchange_fault){ .kind = FAULT_DRIBBLE });
	x.each_octet = NULL;
	check_unharmed(!x.terms.waits);
}

static void each_octet(enum fault kind, void (*check)(void))
{
	for (unsigned int from = 0; from < 2; from++)
		for (size_t at = first_octet(); at < whole_len[from] && failures < FAILURES_MAX;
		     at += stride) {
			run((struct exchange_fault){
				.kind = kind,
				.from = from,
				.at = { at, SIZE_MAX },
				.flip_with = (uint8_t)(1u << at % 8),
			});
			check();
		}
}

static void each_pair(void)
{
	for (unsigned int from = 0; from < 2; from++)
		for (size_t first = first_octet(); first < whole_len[from]; first += stride)
			for (size_t at = first + 1 + first_octet(); at < whole_len[from];
			     at += stride) {
				run((struct exchange_fault){
					.kind = FAULT_CUT, .from = from, .at = { first, at } });
				check_unharmed(!x.terms.waits);
			}
}

/* Where messages wait, answers overtake more or fewer requests by when those come. */
static void check_cut(void)
{
	check_unharmed(!x.terms.waits);
}

static void check_stalled(void)
{
	check_unharmed(false);
}

static void check_garbled(void)
{
	check_struck(false);
}

/* waits: of struct exchange_terms; 2: with scarce memory as well. */
static void each_terms_waiting(enum script script, unsigned int step, unsigned int waits,
			       void (*check)(void))
{
	static const uint8_t rtr[] = { 0, MPA_RTR_SEND, MPA_RTR_WRITE, MPA_RTR_READ };

	for (unsigned int i = 0; i < 32; i += step) {
		x.terms = (struct exchange_terms){
			.markers = { i & 1, i & 2 },
			.crc = !(i & 4),
			.rtr = rtr[i >> 3],
			.script = script,
			.emss = i & 1 ? 300 : 1448,
			.waits = waits > 0,
			.scarce = waits > 1,
		};
		take_reference();
		check();
	}
}

static void each_terms(enum script script, unsigned int step, void (*check)(void))
{
	each_terms_waiting(script, step, 0, check);
}

static bool report(const char *what)
{
	printf("%s: runs %lu  failures %lu  octets %zu and %zu\n", what, runs, failures,
	       whole_len[0], whole_len[1]);
	return failures == 0;
}

static void cut_all(void)
{
	each_octet(FAULT_CUT, check_cut);
}

static void stall_all(void)
{
	each_octet(FAULT_STALL, check_stalled);
}

/* Records of each length, of which the first is cut anywhere. */
static void records_all(void)
{
	for (size_t len = 1 + first_octet(); len < whole_len[0] && failures < FAILURES_MAX;
	     len += stride) {
		run((struct exchange_fault){ .kind = FAULT_RECORDS,
					     .at = { 1 + runs * 40503 % len, len } });
		check_cut();
	}
}

static void sever_all(void)
{
	each_octet(FAULT_FIN, check_severed);
	each_octet(FAULT_RST, check_severed);
}

static void flip_all(void)
{
	each_octet(FAULT_FLIP, x.terms.crc ? check_flipped : check_garbled);
}

bool splits_run(size_t every)
{
	stride = every;
	each_terms(SCRIPT_FULL, 1, cut_all);
	each_terms(SCRIPT_EXTENDED, 1, cut_all);
	each_terms(SCRIPT_FULL, 5, stall_all);
	each_terms(SCRIPT_EXTENDED, 5, stall_all);
	each_terms(SCRIPT_FULL, 3, records_all);
	each_terms(SCRIPT_EXTENDED, 3, records_all);
	each_terms(SCRIPT_BRIEF, 7, each_pair);
	for (unsigned int waits = 1; waits <= 2; waits++) {
		each_terms_waiting(SCRIPT_FULL, 5, waits, cut_all);
		each_terms_waiting(SCRIPT_EXTENDED, 7, waits, cut_all);
		each_terms_waiting(SCRIPT_FULL, 11, waits, stall_all);
		each_terms_waiting(SCRIPT_EXTENDED, 13, waits, stall_all);
	}
	return report("splits");
}

bool severs_run(size_t every)
{
	stride = every;
	each_terms(SCRIPT_FULL, 3, sever_all);
	each_terms(SCRIPT_EXTENDED, 5, sever_all);
	return report("severs");
}

bool flips_run(size_t every)
{
	stride = every;
	each_terms(SCRIPT_FULL, 3, flip_all);
	each_terms(SCRIPT_EXTENDED, 5, flip_all);
	return report("flips");
}
