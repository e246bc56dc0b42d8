// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Header and trailer of a sockets stream's FPDU.
#include "record/fpdu.h"

#include "crc/crc.h"
#include "wire/crc32c.h"
#include "wire/octets.h"
#include "wire/rdmap.h"

#include <string.h>

static void put_head(uint8_t *head, enum rdmap_opcode op, size_t payload, uint32_t msn)
{
	const struct ddp_hdr ddp = {
		.last = true,
		.ulp_ctrl = rdmap_ctrl(op),
		.qn = DDP_QN_SEND,
		.msn = msn,
	};

	put_be16(head, (uint16_t)(DDP_UNTAGGED_LEN + payload));
	ddp_put(&ddp, head + FPDU_LEN_FIELD);
}

void aw_fpdu_put_head(uint8_t head[AW_FPDU_HEAD], size_t payload, uint32_t msn)
{
	put_head(head, RDMAP_SEND, payload, msn);
}

void aw_fpdu_put_urgent_head(uint8_t head[AW_FPDU_HEAD], uint32_t msn)
{
	put_head(head, RDMAP_SEND_SE, 1, msn);
}

bool aw_fpdu_is_urgent(const uint8_t head[AW_FPDU_HEAD])
{
	struct ddp_hdr ddp;

	return get_be16(head) == DDP_UNTAGGED_LEN + 1 &&
	       ddp_get(head + FPDU_LEN_FIELD, DDP_UNTAGGED_LEN + 1, &ddp) == AW_OK && !ddp.tagged &&
	       ddp.ulp_ctrl == rdmap_ctrl(RDMAP_SEND_SE);
}

static uint32_t crc_of(const uint8_t *bytes, size_t len)
{
	return crc32c_final(aw_crc32c(CRC32C_INIT, bytes, len));
}

/* crc is folded over header and payload. */
static size_t put_end(uint8_t *fpdu, size_t payload, uint32_t crc)
{
	size_t end = AW_FPDU_HEAD + payload, pad = fpdu_pad(DDP_UNTAGGED_LEN + payload);

	memset(fpdu + end, 0, pad);
	put_le32(fpdu + end + pad, crc32c_final(aw_crc32c(crc, fpdu + end, pad)));
	return end + pad + FPDU_CRC_LEN;
}

size_t aw_fpdu_put_trailer(uint8_t *fpdu, size_t payload)
{
	return put_end(fpdu, payload, aw_crc32c(CRC32C_INIT, fpdu, AW_FPDU_HEAD + payload));
}

size_t aw_fpdu_put(uint8_t *fpdu, struct aw_cursor *from, size_t payload, uint32_t msn)
{
	uint32_t crc;

	aw_fpdu_put_head(fpdu, payload, msn);
	crc = aw_crc32c(CRC32C_INIT, fpdu, AW_FPDU_HEAD);
	for (size_t done = 0, covered; done < payload; done += covered) {
		struct iovec piece = { 0 };

		aw_cursor_pieces(from, payload - done, &piece, 1, &covered);
		crc = aw_crc32c_copy(crc, fpdu + AW_FPDU_HEAD + done, piece.iov_base, covered);
		aw_cursor_skip(from, covered);
	}
	return put_end(fpdu, payload, crc);
}

bool aw_fpdu_is_right(const uint8_t *fpdu, size_t payload)
{
	size_t len = aw_fpdu_len(payload) - FPDU_CRC_LEN;

	return get_le32(fpdu + len) == crc_of(fpdu, len);
}

bool aw_fpdu_payload(const uint8_t head[FPDU_LEN_FIELD], size_t *payload)
{
	size_t ulpdu = get_be16(head);

	if (ulpdu <= DDP_UNTAGGED_LEN || ulpdu > DDP_UNTAGGED_LEN + AW_FPDU_PAYLOAD_MAX)
		return false;
	*payload = ulpdu - DDP_UNTAGGED_LEN;
	return true;
}

/* RFC 5041 7.1 and RFC 5040 5.1. */
enum aw_error aw_fpdu_judge(const uint8_t head[AW_FPDU_HEAD], uint32_t msn)
{
	struct ddp_hdr ddp;
	enum rdmap_opcode op;
	enum aw_error error = ddp_get(head + FPDU_LEN_FIELD, get_be16(head), &ddp);

	if (!error)
		error = rdmap_ctrl_get(ddp.ulp_ctrl, ddp.tagged, ddp.qn, &op);
	if (error)
		return error;
	if (ddp.tagged)
		return AW_E_DDP_TAGGED_STAG;
	if (op == RDMAP_TERMINATE)
		return AW_E_MPA_CLOSED;
	if (op != RDMAP_SEND && op != RDMAP_SEND_SE)
		return AW_E_RDMAP_OPCODE;
	if (ddp.msn != msn)
		return AW_E_DDP_MSN_RANGE;
	return ddp.mo != 0 || !ddp.last ? AW_E_DDP_MO : AW_OK;
}
