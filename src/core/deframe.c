// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// From the octet stream to ULPDUs: length, CRC, markers, in this order (RFC 5044 4, 6, 8). No octet
// is kept here; a half FPDU stays with the driver.
#include "core/machine.h"
#include "core/promise.h"
#include "core/rx.h"
#include "wire/crc32c.h"
#include "wire/fpdu.h"
#include "wire/octets.h"
#include "wire/term.h"

#include <string.h>

/* Of lent octets an FPDU up to AW_RX_HEAD_MAX is copied as a whole. A longer message without payload is too long. */
_Static_assert(FPDU_LEN_FIELD + DDP_UNTAGGED_LEN + TERM_MAX + FPDU_CRC_LEN + 3 <= AW_RX_HEAD_MAX,
	       "the longest message that is no payload");
_Static_assert(RDMAP_ATOMIC_REQ_LEN <= TERM_MAX && RDMAP_READ_REQ_LEN <= TERM_MAX, "likewise");

/* Octets before the length field of the FPDU that starts at the next octet. */
static size_t len_at(const struct aw_qp *qp)
{
	return qp->stream.markers_rx ? fpdu_len_at((uint32_t)qp->rx_pos) : 0;
}

/* Octets on the wire of the FPDU at buf; 0 when not even its length is there. */
static size_t wire_size(const struct aw_qp *qp, const uint8_t *buf, size_t len)
{
	return fpdu_wire_size(buf, len, (uint32_t)qp->rx_pos, qp->stream.markers_rx);
}

static bool crc_is_right(const struct aw_qp *qp, const uint8_t *buf, size_t size)
{
	uint32_t crc = qp->ops->crc32c(CRC32C_INIT, buf, size - FPDU_CRC_LEN);

	return crc32c_final(crc) == get_le32(buf + size - FPDU_CRC_LEN);
}

/*
 * False when the octets are no valid FPDU. A framing error has no DDP header to report (RFC 5040
 * figure 10).
 */
static bool verify(struct aw_qp *qp, uint8_t *buf, size_t size)
{
	int markers_are_bad = 0;

	if (aw_stream_crc_in(&qp->stream) && !crc_is_right(qp, buf, size)) {
		aw_qp_terminate(qp, AW_E_MPA_CRC);
		return false;
	}
	if (qp->stream.markers_rx)
		fpdu_remove_markers(buf, size, (uint32_t)qp->rx_pos, &markers_are_bad);
	if (markers_are_bad)
		aw_qp_terminate(qp, AW_E_MPA_MARKER);
	return !markers_are_bad;
}

/* Takes a ULPDU, or keeps it. False when it has to wait where it is. */
static bool take_ulpdu(struct aw_qp *qp, const uint8_t *ulpdu, size_t len)
{
	if (aw_rx_ulpdu(qp, ulpdu, len) != AW_E_DDP_NO_BUFFER || !aw_machine_runs(qp))
		return true;
	return qp->keeps && aw_stash_push(qp, ulpdu, len);
}

/* Takes one FPDU of size octets. False when it has to wait; it is verified only once. */
static bool take_fpdu(struct aw_qp *qp, uint8_t *buf, size_t size)
{
	if (qp->rx_held == 0 && !verify(qp, buf, size))
		return true;
	qp->rx_held = 0;
	if (!take_ulpdu(qp, buf + FPDU_LEN_FIELD, get_be16(buf))) {
		qp->rx_held = size;
		return false;
	}
	qp->rx_pos += size;
	return true;
}

size_t aw_rx_octets(struct aw_qp *qp, uint8_t *buf, size_t len)
{
	size_t used = 0;

	while (aw_machine_runs(qp)) {
		size_t size = qp->rx_held ? qp->rx_held : wire_size(qp, buf + used, len - used);

		if (size == 0 || size > len - used || !take_fpdu(qp, buf + used, size))
			return used;
		used += size;
		if (qp->move.kind != MOVE_MSG_NONE)
			return used;
	}
	return len;
}

size_t aw_rx_wanted(const struct aw_qp *qp, const uint8_t *buf, size_t len)
{
	size_t size = wire_size(qp, buf, len);

	return size ? size : len_at(qp) + FPDU_LEN_FIELD;
}

/* True when the FPDU, of this size, is done with: it was taken, or ended the stream. Of head a copy, which src may be as well. */
static bool take_head(struct aw_qp *qp, const uint8_t *head, const uint8_t *src, size_t size,
		      bool crc_is_wrong)
{
	if (crc_is_wrong)
		aw_qp_terminate(qp, AW_E_MPA_CRC);
	else if (aw_rx_ulpdu_lent(qp, head + FPDU_LEN_FIELD, src + FPDU_LEN_FIELD,
				  get_be16(head)) == AW_E_DDP_NO_BUFFER &&
		 aw_machine_runs(qp))
		return false;
	qp->rx_pos += size;
	return true;
}

/* Takes the FPDU at buf. Returns its octets, or 0 when it was not taken. */
static size_t take_lent(struct aw_qp *qp, const uint8_t *buf, size_t len)
{
	uint8_t head[AW_RX_HEAD_MAX];
	size_t copied = len < sizeof(head) ? len : sizeof(head);
	bool crc_is_wrong;
	size_t size;

	if (len < FPDU_LEN_FIELD)
		return 0;
	memcpy(head, buf, copied);
	size = fpdu_size(get_be16(head));
	if (size > len)
		return 0;
	if (size <= copied)
		buf = head;
	crc_is_wrong = aw_stream_crc_in(&qp->stream) && !crc_is_right(qp, buf, size);
	return take_head(qp, head, buf, size, crc_is_wrong) ? size : 0;
}

size_t aw_rx_lent(struct aw_qp *qp, const uint8_t *buf, size_t len)
{
	size_t used = 0;

	if (qp->stream.markers_rx || aw_qp_has_waiting(qp))
		return 0;
	while (aw_machine_runs(qp)) {
		size_t n = take_lent(qp, buf + used, len - used);

		if (n == 0)
			return used;
		used += n;
	}
	return len;
}

size_t aw_rx_scattered(struct aw_qp *qp, const struct aw_rx_scattered *fpdu)
{
	bool crc_is_wrong = aw_stream_crc_in(&qp->stream) &&
			    crc32c_final(fpdu->crc) != fpdu->crc_field;

	AW_PROMISE(fpdu->size > AW_RX_HEAD_MAX && fpdu->size == fpdu_size(get_be16(fpdu->head)));
	if (qp->stream.markers_rx || aw_qp_has_waiting(qp))
		return 0;
	if (aw_machine_runs(qp) && !take_head(qp, fpdu->head, fpdu->src, fpdu->size, crc_is_wrong))
		return 0;
	return fpdu->size;
}
