// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// DDP segments drawn field by field: each field is the one that is due unless the string says
// otherwise, so that a fuzzer need not guess queue numbers, MSNs and sizes before it gets anywhere.
#ifndef FUZZ_MESSAGE_H
#define FUZZ_MESSAGE_H

#include "core/qp.h"
#include "lib/bytes.h"
#include "wire/octets.h"
#include "wire/rnr.h"

#include <string.h>

#define MESSAGE_MAX 2048

/* Two draws of the string decide on a field: mostly it is the one that is due. */
static inline uint32_t message_field(struct bytes *b, uint32_t due)
{
	uint8_t how = bytes_u8(b);

	if (how < 0xe0)
		return due;
	return how < 0xf0 ? due + bytes_u8(b) - 128 : bytes_u16(b);
}

/* An STag of the harness's few MRs, and an offset into it. */
static inline void message_target(struct bytes *b, uint8_t *stag, uint8_t *to)
{
	put_be32(stag, bytes_u8(b) % 9u);
	put_be64(to, bytes_u8(b) & 1 ? bytes_u8(b) * 8u : bytes_u16(b));
}

static inline uint32_t message_oldest(const struct aw_qp *qp)
{
	return qp->orq_count ? qp->orq[qp->orq_head].sink_stag : 1;
}

static inline size_t message_read(struct bytes *b, uint8_t *p)
{
	memset(p, 0, RDMAP_READ_REQ_LEN);
	p[3] = bytes_u8(b);
	put_be32(p + 12, bytes_u8(b) & 1 ? bytes_u8(b) : bytes_u16(b));
	message_target(b, p + 16, p + 20);
	return RDMAP_READ_REQ_LEN;
}

static inline size_t message_atomic(struct bytes *b, uint8_t *p)
{
	bool zeros = bytes_u8(b) & 1;

	put_be32(p, message_field(b, bytes_u8(b) & 2));
	put_be32(p + 4, bytes_u8(b));
	message_target(b, p + 8, p + 12);
	for (size_t i = 20; i < RDMAP_ATOMIC_REQ_LEN; i++)
		p[i] = zeros ? 0 : bytes_u8(b);
	return RDMAP_ATOMIC_REQ_LEN;
}

static inline size_t message_response(const struct aw_qp *qp, struct bytes *b, uint8_t *p)
{
	put_be32(p, message_field(b, message_oldest(qp)));
	put_be64(p + 4, bytes_u16(b));
	return RDMAP_ATOMIC_RESP_LEN;
}

static inline size_t message_flush(struct bytes *b, uint8_t *p)
{
	uint8_t bits = bytes_u8(b);

	put_be32(p, (bits & 7u) << 8 | (bits >> 3 & 1u));
	put_be32(p + 4, bytes_u8(b));
	message_target(b, p + 8, p + 12);
	put_be64(p + 20, message_field(b, bits >> 4));
	return RDMAP_FLUSH_REQ_LEN;
}

static inline size_t message_flushed(const struct aw_qp *qp, struct bytes *b, uint8_t *p)
{
	put_be32(p, message_field(b, message_oldest(qp)));
	return RDMAP_FLUSH_RESP_LEN;
}

static inline size_t message_immediate(const struct aw_qp *qp, struct bytes *b, uint8_t *p)
{
	bool of_send = bytes_u8(b) & 1;

	put_be32(p, bytes_u16(b));
	put_be32(p + 4, message_field(b, of_send ? UINT32_MAX : (uint32_t)qp->rx_imm.write_len));
	return RDMAP_IMM_LEN;
}

static inline size_t message_octets(struct bytes *b, uint8_t *p)
{
	uint8_t size = bytes_u8(b);
	size_t len = size < 0xf0 ? size % 64 : bytes_u16(b) % (MESSAGE_MAX - 64);

	bytes_take(b, p, len);
	return len;
}

static inline size_t message_payload(const struct aw_qp *qp, struct bytes *b, unsigned int opcode,
				     uint8_t *p)
{
	if (bytes_u8(b) >= 0xf0)
		return message_octets(b, p);
	if (opcode == RDMAP_READ_REQ)
		return message_read(b, p);
	if (opcode == RDMAP_ATOMIC_REQ)
		return message_atomic(b, p);
	if (opcode == RDMAP_ATOMIC_RESP)
		return message_response(qp, b, p);
	if (opcode == RDMAP_FLUSH_REQ)
		return message_flush(b, p);
	if (opcode == RDMAP_FLUSH_RESP)
		return message_flushed(qp, b, p);
	if (opcode == RDMAP_IMM || opcode == RDMAP_IMM_SE)
		return message_immediate(qp, b, p);
	return message_octets(b, p);
}

static inline void message_tagged(const struct aw_qp *qp, struct bytes *b, unsigned int opcode,
				  uint8_t *p)
{
	message_target(b, p + 2, p + 6);
	if (opcode != RDMAP_READ_RESP || !qp->orq_count)
		return;
	put_be32(p + 2, message_field(b, message_oldest(qp)));
	put_be64(p + 6, message_field(b, qp->orq[qp->orq_head].received));
}

static inline void message_untagged(const struct aw_qp *qp, struct bytes *b, unsigned int opcode,
				    uint8_t *p)
{
	static const uint8_t qn_of[16] = {
		[1] = 1, [7] = 2, [10] = 1, [11] = 3, [12] = 1, [13] = 3
	};
	uint32_t qn = message_field(b, qn_of[opcode]);

	put_be32(p + 2, bytes_u8(b) % 9u);
	put_be32(p + 6, qn);
	put_be32(p + 10, message_field(b, qp->rx_msn[qn & 3]));
	put_be32(p + 14, message_field(b, qp->rx_send.active && qn == 0 ? qp->rx_send.placed : 0));
}

/* A message of a move, which takes the place of an opcode that there is not. */
static inline size_t message_move(struct bytes *b, uint8_t *p)
{
	struct move_msg msg = { .kind = (enum move_kind)(1 + bytes_u8(b) % MOVE_LAST) };

	bytes_take(b, msg.data, move_data_len(msg.kind));
	return move_put(&msg, p);
}

/* One by which a peer says whether it is ready, likewise. */
static inline size_t message_rnr(struct bytes *b, uint8_t *p)
{
	rnr_put(bytes_u8(b) & 1 ? RNR_NOT_READY : RNR_READY, p);
	return RNR_LEN;
}

/* Writes a ULPDU of at most MESSAGE_MAX octets to p; returns its length. */
static inline size_t message_put(const struct aw_qp *qp, struct bytes *b, uint8_t *p)
{
	uint8_t how = bytes_u8(b);
	unsigned int opcode = how & 15;
	bool tagged = opcode == RDMAP_WRITE || opcode == RDMAP_READ_RESP;
	size_t header = tagged ? DDP_TAGGED_LEN : DDP_UNTAGGED_LEN;

	if (opcode == 15 && (how & 0x40))
		return message_rnr(b, p);
	if (opcode == 15 && qp->stream.moves)
		return message_move(b, p);
	p[0] = (uint8_t)message_field(b, (tagged ? 0x80 : 0) | (how & 0x80 ? 0 : 0x40) | 1);
	p[1] = (uint8_t)message_field(b, 0x40 | opcode);
	if (tagged)
		message_tagged(qp, b, opcode, p);
	else
		message_untagged(qp, b, opcode, p);
	return header + message_payload(qp, b, opcode, p + header);
}

#endif
