// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Messages as RFC 5040 and RFC 5041 have them: every segment an end gives out is the next piece of
// its next WR, of the Read Response that is due, or its one Terminate.
#include "watch.h"

#include "world.h"

#include <string.h>

/* A segment's header, read at the offsets of RFC 5041 4.2 and 4.3. */
struct segment {
	bool tagged, last;
	bool announces; /* the bit of RFC 5040's reserved ones that docs/extensions.md uses */
	unsigned int opcode;
	uint32_t stag, inv, qn, msn, mo;
	uint64_t to;
	const uint8_t *payload;
	size_t len;
};

static uint32_t be32(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static uint64_t be64(const uint8_t *p)
{
	return (uint64_t)be32(p) << 32 | be32(p + 4);
}

static bool segment_read(const uint8_t *p, size_t len, struct segment *seg)
{
	if (len < 2 || (p[0] & 0x3f) != 1 || (p[1] & 0xe0) != 0x40)
		return false;
	*seg = (struct segment){ .tagged = p[0] & 0x80,
				 .last = p[0] & 0x40,
				 .announces = p[1] & 0x10,
				 .opcode = p[1] & 15 };
	if (len < (seg->tagged ? 14u : 18u))
		return false;
	if (seg->tagged) {
		seg->stag = be32(p + 2);
		seg->to = be64(p + 6);
	} else {
		seg->inv = be32(p + 2);
		seg->qn = be32(p + 6);
		seg->msn = be32(p + 10);
		seg->mo = be32(p + 14);
	}
	seg->payload = p + (seg->tagged ? 14 : 18);
	seg->len = len - (seg->tagged ? 14 : 18);
	return true;
}

static void wrong(struct end *end, const char *what, const struct segment *seg)
{
	world_fail(end->world, "%c: %s: opcode %u last %d msn %u mo %u len %zu (WR %u offset %u)",
		   end->name, what, seg->opcode, seg->last, seg->msn, seg->mo, seg->len,
		   end->watch.next_wr, end->watch.off);
}

/* Octets of end's inbound stream that its QP has consumed. */
static uint64_t consumed(const struct end *end)
{
	return end->in->read - end->stage_len - end->watch.in_base;
}

uint32_t watch_reads_outstanding(struct end *end)
{
	struct watch *watch = &end->watch;

	while (watch->read_head != watch->read_next &&
	       watch->read[watch->read_head % WATCH_READS].end_pos <= consumed(end))
		watch->read_head++;
	return watch->read_tail - watch->read_head;
}

static void add_read(struct end *end, const struct segment *seg, struct wr *wr)
{
	struct watch *watch = &end->watch;
	bool read = seg->opcode == 1;
	uint32_t id = be32(seg->payload + (read ? 0 : 4));

	if (!end->conn->untrusted && wr && watch_reads_outstanding(end) >= end->qp.stream.ord)
		wrong(end, "ORD exceeded", seg);
	for (uint32_t i = watch->read_head; i != watch->read_tail; i++)
		if (watch->read[i % WATCH_READS].sink_stag == id)
			wrong(end, "two Reads have one sink STag", seg);
	if (watch->read_tail - watch->read_head == WATCH_READS)
		watch->read_head++;
	watch->read[watch->read_tail++ % WATCH_READS] = (struct watch_read){
		.wr = wr,
		.answer = seg->opcode + 1,
		.sink_stag = id,
		.sink_to = read ? be64(seg->payload + 4) : 0,
		.size = read ? be32(seg->payload + 12) : 0,
	};
}

static void on_rtr(struct end *end, const struct segment *seg)
{
	static const uint8_t rtr_of[] = {
		[0] = MPA_RTR_WRITE, [1] = MPA_RTR_READ, [3] = MPA_RTR_SEND
	};

	if (seg->opcode > 3 || rtr_of[seg->opcode] != end->qp.stream.rtr || !seg->last)
		wrong(end, "not the RTR agreed on", seg);
	else if (seg->opcode == 1 && (seg->len != 28 || be32(seg->payload + 12) != 0))
		wrong(end, "RTR Read of a length", seg);
	else if (seg->opcode != 1 && seg->len)
		wrong(end, "RTR of a length", seg);
	else if (seg->opcode == 1)
		add_read(end, seg, NULL);
}

/* The opcode of RFC 5040 figure 4, RFC 7306 figure 1 that a WR has on the wire. */
static unsigned int opcode_of(const struct wr *wr)
{
	bool solicited = wr->flags & AW_WR_SOLICITED;

	if (is_write(wr->op))
		return 0;
	if (wr->op == AW_OP_READ)
		return 1;
	if (aw_op_is_atomic(wr->op) || wr->op == AW_OP_ATOMIC_WRITE)
		return 10;
	if (wr->op == AW_OP_FLUSH)
		return 12;
	if (wr->op == AW_OP_SEND || wr->op == AW_OP_SEND_IMM)
		return solicited ? 5 : 3;
	return solicited ? 6 : 4;
}

static void check_read_request(struct end *end, const struct segment *seg, struct wr *wr)
{
	if (seg->len != 28 || !seg->last || seg->mo || be32(seg->payload + 12) != wr->len)
		wrong(end, "bad Read Request", seg);
	else if (wr->len &&
		 (be32(seg->payload + 16) != wr->stag || be64(seg->payload + 20) != wr->to))
		wrong(end, "Read Request of another source", seg);
	else
		add_read(end, seg, wr);
	wr->emitted = true;
}

/* RFC 7306 5.2.1, without masks: a FetchAdd of one field, a CmpSwap of all bits. */
static void check_atomic_request(struct end *end, const struct segment *seg, struct wr *wr)
{
	bool swap = wr->op == AW_OP_CMP_SWAP;
	const uint8_t *p = seg->payload;

	wr->emitted = true;
	if (seg->len != 52 || !seg->last || seg->mo || be32(p) != (swap ? 2u : 0u) ||
	    be32(p + 8) != wr->stag || be64(p + 12) != wr->to ||
	    be64(p + 20) != wr->operand[swap ? 1 : 0] || be64(p + 28) != (swap ? UINT64_MAX : 0) ||
	    be64(p + 36) != (swap ? wr->operand[0] : 0) || be64(p + 44) != UINT64_MAX)
		wrong(end, "bad Atomic Request", seg);
	else
		add_read(end, seg, wr);
}

/* docs/extensions.md: as the RFC's, with a subcode of its own and the eight octets as they lie. */
static void check_atomic_write(struct end *end, const struct segment *seg, struct wr *wr)
{
	const uint8_t *p = seg->payload;

	wr->emitted = true;
	if (seg->len != 52 || !seg->last || seg->mo || be32(p) != 15 || be32(p + 8) != wr->stag ||
	    be64(p + 12) != wr->to || memcmp(p + 20, wr->data, 8) != 0 || be64(p + 28) ||
	    be64(p + 36) || be64(p + 44) != UINT64_MAX)
		wrong(end, "bad Atomic Write", seg);
	else
		add_read(end, seg, wr);
}

static void check_flush_request(struct end *end, const struct segment *seg, struct wr *wr)
{
	const uint8_t *p = seg->payload;

	wr->emitted = true;
	if (seg->len != 28 || !seg->last || seg->mo ||
	    be32(p) != (wr->inv << 8 | (uint32_t)wr->operand[1]) || be32(p + 8) != wr->stag ||
	    be64(p + 12) != wr->to || be64(p + 20) != wr->operand[0])
		wrong(end, "bad Flush Request", seg);
	else
		add_read(end, seg, wr);
}

/* The Immediate of docs/extensions.md: behind its Write, before its Send. */
static void check_immediate(struct end *end, const struct segment *seg, struct wr *wr)
{
	bool write = wr->op == AW_OP_WRITE_IMM;
	bool solicited = write && wr->flags & AW_WR_SOLICITED;

	if (seg->opcode != (solicited ? 9 : 8) || seg->len != 8 || !seg->last || seg->mo ||
	    be32(seg->payload) != wr->inv ||
	    be32(seg->payload + 4) != (write ? wr->len : UINT32_MAX))
		wrong(end, "bad Immediate", seg);
	end->watch.imm_seen = true;
	wr->emitted = write;
}

static bool immediate_is_due(const struct watch *watch, const struct wr *wr)
{
	return (wr->op == AW_OP_SEND_IMM && !watch->imm_seen) ||
	       (wr->op == AW_OP_WRITE_IMM && watch->off == wr->len);
}

static void check_payload(struct end *end, const struct segment *seg, struct wr *wr)
{
	struct watch *watch = &end->watch;

	if (seg->announces != (wr->op == AW_OP_WRITE_IMM))
		wrong(end, "another Write has an Immediate", seg);
	if (is_write(wr->op) && wr->len &&
	    (seg->stag != wr->stag || seg->to != wr->to + watch->off))
		wrong(end, "Write to another place", seg);
	if (!is_write(wr->op) && seg->mo != watch->off)
		wrong(end, "wrong MO", seg);
	if (wr->op == AW_OP_SEND_INV && seg->inv != wr->inv)
		wrong(end, "wrong STag to invalidate", seg);
	if (seg->len > wr->len - watch->off || seg->last != (watch->off + seg->len == wr->len) ||
	    (!seg->len && wr->len)) {
		wrong(end, "segment does not fit its WR", seg);
		return;
	}
	if (memcmp(seg->payload, wr->data + watch->off, seg->len) != 0)
		wrong(end, "payload differs from what was posted", seg);
	watch->off += (uint32_t)seg->len;
	wr->emitted = seg->last && wr->op != AW_OP_WRITE_IMM;
}

/* This end has heard that the peer is not ready, and nothing else since: behind the peer's end it waits no longer (aw_qp_peer_closed). */
static bool must_hold(const struct end *end)
{
	const struct watch *peer = &end->peer->watch;

	return peer->not_ready && consumed(end) >= peer->rnr_end && !end->qp.peer_closed &&
	       !end->conn->untrusted;
}

static void on_request(struct end *end, const struct segment *seg)
{
	struct watch *watch = &end->watch;
	struct wr *wr;

	if (must_hold(end))
		wrong(end, "a request to a peer that is not ready", seg);

	while (watch->next_wr < end->wr_count && is_local(end->wr[watch->next_wr]->op))
		watch->next_wr++;
	if (watch->next_wr == end->wr_count) {
		wrong(end, "a message that nobody posted", seg);
		return;
	}
	wr = end->wr[watch->next_wr];
	if (!immediate_is_due(watch, wr) && seg->opcode != opcode_of(wr)) {
		wrong(end, "another WR is due", seg);
		return;
	}
	if (watch->off == 0 && !watch->imm_seen && wr->flags & AW_WR_FENCE &&
	    !end->conn->untrusted && watch_reads_outstanding(end))
		wrong(end, "fence passed a Read", seg);
	if (aw_op_is_extension(wr->op) && !end->qp.stream.extensions)
		wrong(end, "RFC 7306 without agreement", seg);
	if (aw_op_is_placement(wr->op) && !end->qp.stream.placement)
		wrong(end, "Atomic Write or Flush without agreement", seg);
	if (wr->op == AW_OP_READ)
		check_read_request(end, seg, wr);
	else if (aw_op_is_atomic(wr->op))
		check_atomic_request(end, seg, wr);
	else if (wr->op == AW_OP_ATOMIC_WRITE)
		check_atomic_write(end, seg, wr);
	else if (wr->op == AW_OP_FLUSH)
		check_flush_request(end, seg, wr);
	else if (immediate_is_due(watch, wr))
		check_immediate(end, seg, wr);
	else
		check_payload(end, seg, wr);
	if (wr->emitted) {
		wr->end_pos = watch->pos;
		watch->next_wr++;
		watch->off = 0;
		watch->imm_seen = false;
	}
}

static void check_atomic_response(struct end *end, const struct segment *seg,
				  const struct watch_read *read)
{
	uint64_t original = 0;

	/* The right to write is none to read. */
	if (read->wr->op != AW_OP_ATOMIC_WRITE)
		memcpy(&original, read->wr->data, sizeof(original));
	if (seg->len != 12 || !seg->last || seg->mo || be32(seg->payload) != read->sink_stag ||
	    be64(seg->payload + 4) != original)
		wrong(end, "bad Atomic Response", seg);
	if (read->wr->executed != 1)
		wrong(end, "Atomic Response without the operation", seg);
}

static void check_flush_response(struct end *end, const struct segment *seg,
				 const struct watch_read *read)
{
	if (seg->len != 4 || !seg->last || seg->mo || be32(seg->payload) != read->sink_stag)
		wrong(end, "bad Flush Response", seg);
	if (read->wr->executed != 1 || end->writes_back)
		wrong(end, "Flush Response before the Flush is done", seg);
}

static void on_response(struct end *end, const struct segment *seg)
{
	struct watch *asker = &end->peer->watch;
	struct watch_read *read = &asker->read[asker->read_next % WATCH_READS];

	if (asker->read_next == asker->read_tail) {
		if (!end->conn->untrusted)
			wrong(end, "a Read Response that nobody asked for", seg);
		return;
	}
	if (end->conn->untrusted) {
		asker->read_next += seg->last;
		return;
	}
	if (read->answer != seg->opcode)
		wrong(end, "a response to another request", seg);
	else if (seg->opcode == 11)
		check_atomic_response(end, seg, read);
	else if (seg->opcode == 13)
		check_flush_response(end, seg, read);
	else if (seg->len > read->size - read->answered ||
		 seg->last != (read->answered + seg->len == read->size) ||
		 (!seg->len && read->size))
		wrong(end, "Read Response of another length", seg);
	else if (read->size &&
		 (seg->stag != read->sink_stag || seg->to != read->sink_to + read->answered))
		wrong(end, "Read Response to another sink", seg);
	else if (read->wr && memcmp(seg->payload, read->wr->data + read->answered, seg->len) != 0)
		wrong(end, "Read Response with other octets", seg);
	read->answered += (uint32_t)seg->len;
	read->end_pos = end->watch.pos;
	asker->read_next += seg->last;
}

static void on_terminate(struct end *end, const struct segment *seg)
{
	if (seg->len < 4 || !seg->last || seg->mo)
		wrong(end, "bad Terminate", seg);
	else
		end->watch.term_error = (uint16_t)(seg->payload[0] << 8 | seg->payload[1]);
	end->watch.terminated = true;
	TRACE(end, "transmits terminate %04llx", end->watch.term_error);
}

static void check_order(struct end *end, const struct segment *seg)
{
	static const uint8_t qn_of[] = { [1] = 1, [7] = 2, [10] = 1, [11] = 3, [12] = 1, [13] = 3 };
	unsigned int qn = seg->opcode <= 13 ? qn_of[seg->opcode] : 4;

	if (end->watch.terminated)
		wrong(end, "FPDU behind the Terminate", seg);
	if (seg->announces && seg->opcode != 0)
		wrong(end, "a reserved bit is set", seg);
	if (seg->tagged != (seg->opcode == 0 || seg->opcode == 2))
		wrong(end, "wrong DDP model", seg);
	else if (!seg->tagged && (seg->qn != qn || seg->msn != end->watch.msn[qn] + 1))
		wrong(end, "wrong QN or MSN", seg);
	else if (!seg->tagged && seg->last)
		end->watch.msn[qn]++;
	if (!end->initiator && !end->conn->untrusted && seg->opcode != 7 &&
	    (end->peer->watch.fpdus == 0 ||
	     consumed(end) + end->qp.rx_held < end->peer->watch.first_end))
		wrong(end, "the responder transmits first", seg);
}

/* True for a message by which an end holds the other's requests back, or no longer: in turns. */
static bool is_rnr(struct end *end, const uint8_t *ulpdu, size_t len)
{
	struct watch *watch = &end->watch;

	if (len != 2 || ulpdu[0] != 0 || (ulpdu[1] != 0x10 && ulpdu[1] != 0x11))
		return false;
	if (!end->qp.keeps || watch->terminated || watch->not_ready == (ulpdu[1] == 0x10))
		world_fail(end->world, "%c: a message 00 %02x out of turn", end->name, ulpdu[1]);
	watch->not_ready = ulpdu[1] == 0x10;
	watch->rnr_end = watch->pos;
	TRACE(end, "says that it is ready: %llu", !watch->not_ready);
	return true;
}

void watch_fpdu(struct end *end, const uint8_t *fpdu, size_t len)
{
	size_t ulpdu = watch_frame(end, fpdu, len);
	struct segment seg;

	if (ulpdu == SIZE_MAX)
		return;
	if (is_rnr(end, end->watch.plain + 2, ulpdu))
		return;
	if (!segment_read(end->watch.plain + 2, ulpdu, &seg)) {
		world_fail(end->world, "%c: a segment header is wrong", end->name);
		return;
	}
	TRACE(end, "transmits opcode %llu len %llu last %llu", seg.opcode, seg.len, seg.last);
	check_order(end, &seg);
	if (seg.opcode == 7)
		on_terminate(end, &seg);
	else if (seg.opcode == 2 || seg.opcode == 11 || seg.opcode == 13)
		on_response(end, &seg);
	else if (end->initiator && end->qp.stream.p2p && end->watch.fpdus == 1)
		on_rtr(end, &seg);
	else
		on_request(end, &seg);
}
