// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// One violation, done once to an otherwise honest stream, and the one error that RFC 5040, 5041 or
// 5044 names for it: the victim must find exactly that, and say so in its Terminate.
#include "world.h"

#include "wire/octets.h"

#include <string.h>

enum {
	ULPDU = 2,
	TAGGED = 14,
	UNTAGGED = 18,
	READ_RESPONSE = 2,
	IMMEDIATE = 8,
	IMMEDIATE_SE = 9,
	ATOMIC_REQUEST = 10,
	ATOMIC_RESPONSE = 11,
};

struct cut {
	uint8_t *p; /* the ULPDU */
	size_t len;
	bool tagged;
	unsigned int opcode;
	uint32_t dice;
};

static bool spoil_untagged(struct cut *cut, enum surgery kind)
{
	size_t at = kind == SURGERY_QN ? 6 : kind == SURGERY_MSN ? 10 : 14;

	if (cut->tagged)
		return false;
	put_be32(cut->p + at, kind == SURGERY_QN ? 3 + cut->dice % 1000
						 : get_be32(cut->p + at) + 1 + cut->dice % 1000);
	return true;
}

static bool spoil_control(struct cut *cut, enum surgery kind)
{
	if (kind == SURGERY_DDP_VERSION)
		cut->p[0] ^= (uint8_t)(1 + cut->dice % 3);
	else if (kind == SURGERY_RDMAP_VERSION)
		cut->p[1] ^= (uint8_t)((1 + cut->dice % 3) << 6);
	else if (cut->opcode >= 12)
		return false; /* it would stay as it is */
	else
		cut->p[1] |= 0x0c;
	return true;
}

static bool spoil_response(struct cut *cut, enum surgery kind)
{
	if (cut->opcode != READ_RESPONSE || cut->len == TAGGED)
		return false;
	if (kind == SURGERY_RESPONSE_STAG)
		put_be32(cut->p + 2, get_be32(cut->p + 2) + 1 + cut->dice % 5);
	else if (kind == SURGERY_RESPONSE_TO)
		put_be64(cut->p + 6, get_be64(cut->p + 6) + 1 + cut->dice % 5000);
	else if (cut->p[0] & 0x40 && cut->len < 60000)
		cut->len += 1 + cut->dice % 100;
	else
		return false;
	return true;
}

/* RFC 7306 8, and docs/extensions.md for the Immediate. */
static bool spoil_extension(struct cut *cut, enum surgery kind)
{
	uint8_t *payload = cut->p + UNTAGGED;
	bool imm = cut->opcode == IMMEDIATE || cut->opcode == IMMEDIATE_SE;

	if (kind == SURGERY_IMM_LENGTH && imm && get_be32(payload + 4) != UINT32_MAX)
		put_be32(payload + 4, get_be32(payload + 4) + 1 + cut->dice % 100);
	else if (kind == SURGERY_ATOMIC_OP && cut->opcode == ATOMIC_REQUEST &&
		 get_be32(payload) < 4)
		put_be32(payload, get_be32(payload) + 1 + 2 * (cut->dice % 6));
	else if (kind == SURGERY_ATOMIC_SHORT && cut->opcode == ATOMIC_REQUEST)
		cut->len -= 1 + cut->dice % 20;
	else if (kind == SURGERY_ATOMIC_ID && cut->opcode == ATOMIC_RESPONSE)
		put_be32(payload, get_be32(payload) + 1 + cut->dice % 1000);
	else
		return false;
	return true;
}

static bool spoil(struct cut *cut, enum surgery kind)
{
	switch (kind) {
	case SURGERY_NONE:
	case SURGERY_CRC:
	case SURGERY_MARKER:
	case SURGERY_COUNT:
		return false;
	case SURGERY_QN:
	case SURGERY_MSN:
	case SURGERY_MO:
		return spoil_untagged(cut, kind);
	case SURGERY_DDP_VERSION:
	case SURGERY_RDMAP_VERSION:
	case SURGERY_OPCODE:
		return spoil_control(cut, kind);
	case SURGERY_RESPONSE_STAG:
	case SURGERY_RESPONSE_TO:
	case SURGERY_RESPONSE_LONG:
		return spoil_response(cut, kind);
	case SURGERY_IMM_LENGTH:
	case SURGERY_ATOMIC_OP:
	case SURGERY_ATOMIC_SHORT:
	case SURGERY_ATOMIC_ID:
		return spoil_extension(cut, kind);
	}
	return false;
}

static enum aw_error error_of(enum surgery kind, bool tagged)
{
	static const enum aw_error errors[SURGERY_COUNT] = {
		[SURGERY_QN] = AW_E_DDP_QN,
		[SURGERY_MSN] = AW_E_DDP_MSN_RANGE,
		[SURGERY_MO] = AW_E_DDP_MO,
		[SURGERY_RDMAP_VERSION] = AW_E_RDMAP_VERSION,
		[SURGERY_OPCODE] = AW_E_RDMAP_OPCODE,
		[SURGERY_RESPONSE_STAG] = AW_E_DDP_TAGGED_STAG,
		[SURGERY_RESPONSE_TO] = AW_E_DDP_TAGGED_BOUNDS,
		[SURGERY_RESPONSE_LONG] = AW_E_DDP_TAGGED_BOUNDS,
		[SURGERY_CRC] = AW_E_MPA_CRC,
		[SURGERY_MARKER] = AW_E_MPA_MARKER,
		[SURGERY_IMM_LENGTH] = AW_E_RDMAP_OP_UNSPECIFIED,
		[SURGERY_ATOMIC_OP] = AW_E_RDMAP_OPCODE,
		[SURGERY_ATOMIC_SHORT] = AW_E_RDMAP_OP_UNSPECIFIED,
		[SURGERY_ATOMIC_ID] = AW_E_RDMAP_OP_UNSPECIFIED,
	};

	if (kind == SURGERY_DDP_VERSION)
		return tagged ? AW_E_DDP_TAGGED_VERSION : AW_E_DDP_UNTAGGED_VERSION;
	return errors[kind];
}

/* The wire position of the FPDU's first octet: the watch has counted it already. */
static bool spoil_marker(struct end *end, uint8_t *fpdu, size_t len)
{
	uint64_t pos = end->watch.pos - len;
	size_t marker = (size_t)(-pos & 511);

	if (!end->qp.stream.markers_tx || marker + 4 > len)
		return false;
	fpdu[marker + 2 + rng_below(&end->world->rng, 2)] ^= 0x10;
	put_le32(fpdu + len - 4, watch_crc32c(fpdu, len - 4));
	return true;
}

static size_t spoil_ulpdu(struct end *end, uint8_t *fpdu, size_t len, enum surgery kind)
{
	struct cut cut = {
		.p = fpdu + ULPDU,
		.len = get_be16(fpdu),
		.tagged = fpdu[ULPDU] & 0x80,
		.opcode = fpdu[ULPDU + 1] & 15,
		.dice = (uint32_t)rng_next(&end->world->rng),
	};

	if (end->qp.stream.markers_tx || !spoil(&cut, kind))
		return 0;
	(void)len;
	return hostile_seal(end, fpdu, cut.len);
}

size_t surgery_apply(struct end *end, uint8_t *fpdu, size_t len)
{
	struct conn *conn = end->conn;
	bool tagged = fpdu[ULPDU] & 0x80;
	size_t done = 0;

	/* What is no segment has no fields to change. */
	if (conn->surgery_error || get_be16(fpdu) == 2 || rng_percent(&end->world->rng, 50))
		return len;
	if (conn->surgery == SURGERY_CRC && end->qp.stream.crc) {
		fpdu[rng_range(&end->world->rng, len - 4, len - 1)] ^= 0x20;
		done = len;
	} else if (conn->surgery == SURGERY_MARKER) {
		done = spoil_marker(end, fpdu, len) ? len : 0;
	} else if (conn->surgery != SURGERY_CRC) {
		done = spoil_ulpdu(end, fpdu, len, conn->surgery);
	}
	if (!done)
		return len;
	conn->surgery_error = error_of(conn->surgery, tagged);
	conn->surgery_pos = end->out.written + done;
	conn->torn = true;
	TRACE(end, "surgery of kind %llu: error %05llx is due", conn->surgery, conn->surgery_error);
	return done;
}

void surgery_check(struct conn *conn)
{
	struct end *victim = &conn->end[0];

	/* A driver out of time or patience says nothing more, and hears nothing. */
	if (!conn->surgery_error || victim->in->read < conn->surgery_pos || victim->aborted ||
	    victim->timed_out || victim->peer->timed_out)
		return;
	if (victim->qp.error != conn->surgery_error || !victim->watch.terminated ||
	    victim->watch.term_error != (conn->surgery_error & 0xffff))
		world_fail(conn->world, "%c: surgery %d: found %05x, said %04x, due was %05x",
			   victim->name, conn->surgery, victim->qp.error, victim->watch.term_error,
			   conn->surgery_error);
}
