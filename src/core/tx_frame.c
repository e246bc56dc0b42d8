// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// FPDUs (RFC 5044 4): all in the arena when the payload is small or must not be lent, or when there are
// CRCs or markers; else head and tail in the arena and the payload where it lies.
#include "core/tx_frame.h"

#include "core/promise.h"
#include "core/tx_parts.h"
#include "wire/crc32c.h"
#include "wire/fpdu.h"
#include "wire/octets.h"
#include "wire/rnr.h"

#include <string.h>

/* With markers an FPDU is built first without them, behind its place in the arena. */
#define MARKED_EMSS_MAX 32768
/* Octets of an FPDU that are still at hand once they are written: three calls for its CRC would take longer. */
#define FOLD_AT_ONCE_MAX 512
#define FPDU_TAIL_MAX (4 + FPDU_CRC_LEN) /* the pad is up to three octets */
_Static_assert(2 * MARKED_EMSS_MAX <= AW_TX_ARENA_MIN, "room for both forms of an FPDU");
_Static_assert(FPDU_MAX <= AW_TX_ARENA_MIN, "room for the largest FPDU");
_Static_assert(FPDU_LEN_FIELD + DDP_TAGGED_LEN + FPDU_CRC_LEN >= FPDU_TAIL_MAX,
	       "as has the shortest");

/*
 * The longest FPDU that may be sent, less what is not a whole number of segments: TCP bundles whole segments, and an FPDU that
 * ends in the next bundle is taken later.
 */
static uint32_t whole_segments(uint32_t emss)
{
	const uint32_t most = (uint32_t)fpdu_size(FPDU_MULPDU_MAX);

	return emss > 0 && emss < most ? most - most % emss : most;
}

uint32_t aw_tx_mulpdu(const struct aw_stream *stream)
{
	uint32_t emss = stream->emss;

	/* RFC 5044 3 asks for FPDUs of a segment because of receivers that place out of order; this peer does not. */
	if (stream->large_fpdus && !stream->markers_tx)
		return (uint32_t)fpdu_mulpdu(
			stream->fpdu_max ? stream->fpdu_max : whole_segments(emss), false);
	if (stream->markers_tx && emss > MARKED_EMSS_MAX)
		emss = MARKED_EMSS_MAX;
	return (uint32_t)fpdu_mulpdu(emss, stream->markers_tx);
}

static size_t ulpdu_len(const struct aw_tx_seg *seg)
{
	return ddp_hdr_len(seg->hdr.tagged) + seg->len;
}

static uint8_t *arena_end(const struct aw_tx_out *out)
{
	return out->arena + out->arena_used;
}

static bool has_room(const struct aw_tx_out *out, size_t arena, unsigned int iovs)
{
	return out->arena_len - out->arena_used >= arena && out->iov_max - out->iov_count >= iovs;
}

static void add_iov(struct aw_tx_out *out, uint8_t *p, size_t len)
{
	out->iov[out->iov_count++] = (struct aw_iov){ p, len };
	out->octets += len;
}

/* Adds the next len octets of the arena, to the last iovec if that ends where they begin. */
static inline void add_arena(struct aw_tx_out *out, size_t len)
{
	uint8_t *p = arena_end(out);
	struct aw_iov *before = out->iov_count ? &out->iov[out->iov_count - 1] : NULL;

	out->arena_used += len;
	if (before && (uint8_t *)before->base + before->len == p) {
		before->len += len;
		out->octets += len;
		return;
	}
	add_iov(out, p, len);
}

static inline size_t put_head(const struct aw_tx_seg *seg, uint8_t *p)
{
	put_be16(p, (uint16_t)ulpdu_len(seg));
	return FPDU_LEN_FIELD + ddp_put(&seg->hdr, p + FPDU_LEN_FIELD);
}

static uint32_t fold(const struct aw_qp *qp, uint32_t crc, const void *p, size_t len)
{
	return aw_stream_crc_out(&qp->stream) ? qp->ops->crc32c(crc, p, len) : crc;
}

/* The CRC field; zero when CRCs are off. */
static void put_crc(const struct aw_qp *qp, uint32_t crc, uint8_t *p)
{
	put_le32(p, aw_stream_crc_out(&qp->stream) ? crc32c_final(crc) : 0);
}

/*
 * Zeros the pad and the CRC field of an FPDU of size octets: they end it, and are no longer than this. The octets before the pad
 * are written behind this call.
 */
static void put_tail(uint8_t *p, size_t size)
{
	memset(p + size - FPDU_TAIL_MAX, 0, FPDU_TAIL_MAX);
}

/* Writes the whole FPDU of size octets without markers, its CRC field as zero. False when the payload's memory is unmapped. */
static inline bool put_plain(const struct aw_qp *qp, const struct aw_tx_seg *seg, uint8_t *p,
			     size_t size)
{
	put_tail(p, size);
	return aw_spans_gather(qp, &seg->payload, p + put_head(seg, p), NULL);
}

/* Likewise, and folds what it writes into crc. */
static bool put_folding(const struct aw_qp *qp, const struct aw_tx_seg *seg, uint8_t *p,
			size_t size, uint32_t *crc)
{
	size_t pad = fpdu_pad(ulpdu_len(seg));
	size_t at;

	put_tail(p, size);
	at = put_head(seg, p);
	*crc = qp->ops->crc32c(*crc, p, at);
	if (!aw_spans_gather(qp, &seg->payload, p + at, crc))
		return false;
	*crc = qp->ops->crc32c(*crc, p + at + seg->len, pad);
	return true;
}

/* A short FPDU is written first, and its CRC is one call more; a long one is not read again. */
static inline bool put_with_crc(const struct aw_qp *qp, const struct aw_tx_seg *seg, uint8_t *p,
				size_t size)
{
	uint32_t crc = CRC32C_INIT;
	bool is_short = size <= FOLD_AT_ONCE_MAX;

	if (!(is_short ? put_plain(qp, seg, p, size) : put_folding(qp, seg, p, size, &crc)))
		return false;
	if (is_short)
		crc = qp->ops->crc32c(crc, p, size - FPDU_CRC_LEN);
	put_le32(p + size - FPDU_CRC_LEN, crc32c_final(crc));
	return true;
}

static enum aw_tx frame_copied(const struct aw_qp *qp, struct aw_tx_out *out,
			       const struct aw_tx_seg *seg)
{
	size_t size = fpdu_size(ulpdu_len(seg));
	uint8_t *p = arena_end(out);

	if (!has_room(out, size, 1))
		return AW_TX_FULL;
	if (!(aw_stream_crc_out(&qp->stream) ? put_with_crc(qp, seg, p, size)
					     : put_plain(qp, seg, p, size)))
		return AW_TX_GONE;
	add_arena(out, size);
	return AW_TX_FPDU;
}

static enum aw_tx frame_marked(const struct aw_qp *qp, struct aw_tx_out *out,
			       const struct aw_tx_seg *seg)
{
	uint32_t pos = (uint32_t)qp->tx_pos;
	size_t plain = fpdu_size(ulpdu_len(seg));
	size_t size = fpdu_marked_size(pos, plain);
	uint8_t *p = arena_end(out);

	if (!has_room(out, size + plain, 1))
		return AW_TX_FULL;
	/* The CRC is of the markers, too. */
	if (!put_plain(qp, seg, p + size, plain))
		return AW_TX_GONE;
	fpdu_insert_markers(p, p + size, plain, pos);
	put_crc(qp, fold(qp, CRC32C_INIT, p, size - FPDU_CRC_LEN), p + size - FPDU_CRC_LEN);
	add_arena(out, size);
	return AW_TX_FPDU;
}

/* Only without a CRC, which would have to cover the octets as TCP copies them later. */
static enum aw_tx frame_lent(struct aw_tx_out *out, const struct aw_tx_seg *seg)
{
	size_t head = FPDU_LEN_FIELD + ddp_hdr_len(seg->hdr.tagged);
	size_t pad = fpdu_pad(ulpdu_len(seg));
	uint8_t *p = arena_end(out);

	if (!has_room(out, head + pad + FPDU_CRC_LEN, seg->payload.count + 2))
		return AW_TX_FULL;
	put_head(seg, p);
	add_arena(out, head);
	for (unsigned int i = 0; i < seg->payload.count; i++) {
		const struct aw_span *span = &seg->payload.at[i];

		add_iov(out, span->p, span->len);
	}
	memset(arena_end(out), 0, pad + FPDU_CRC_LEN);
	add_arena(out, pad + FPDU_CRC_LEN);
	return AW_TX_FPDU;
}

/* A null MR has no octets that TCP could read. */
static bool has_null(const struct aw_spans *spans)
{
	for (unsigned int i = 0; i < spans->count; i++)
		if (spans->at[i].mr && spans->at[i].mr->null)
			return true;
	return false;
}

static bool has_payload(const struct aw_tx_seg *seg)
{
	return seg->hdr.tagged || seg->hdr.qn == DDP_QN_SEND;
}

enum aw_tx aw_tx_frame(struct aw_qp *qp, struct aw_tx_out *out, const struct aw_tx_seg *seg)
{
	size_t before = out->octets;
	enum aw_tx tx;

	AW_PROMISE(ulpdu_len(seg) <= qp->mulpdu);
	if (qp->stream.markers_tx)
		tx = frame_marked(qp, out, seg);
	else if (aw_stream_crc_out(&qp->stream) || qp->copies || seg->copy ||
		 seg->len <= AW_TX_COPY_MAX || has_null(&seg->payload))
		tx = frame_copied(qp, out, seg);
	else
		tx = frame_lent(out, seg);
	qp->tx_pos += out->octets - before;
	if (tx == AW_TX_FPDU && qp->count)
		aw_count_segment(&qp->count->out, seg->hdr.last, has_payload(seg) ? seg->len : 0);
	return tx;
}

enum aw_tx aw_tx_octets(struct aw_qp *qp, struct aw_tx_out *out, const struct ddp_hdr *hdr,
			const uint8_t *octets, uint32_t len)
{
	struct aw_tx_seg seg; /* long, for the sake of its SGEs: what is not used is not written */

	seg.hdr = *hdr;
	seg.len = len;
	seg.copy = true;
	aw_spans_own(&seg.payload, octets, len);
	return aw_tx_frame(qp, out, &seg);
}

/* An FPDU whose ULPDU is no DDP segment. */
static enum aw_tx frame_octets(struct aw_qp *qp, struct aw_tx_out *out, const uint8_t *ulpdu,
			       size_t len)
{
	bool marked = qp->stream.markers_tx;
	uint32_t pos = (uint32_t)qp->tx_pos;
	size_t plain = fpdu_size(len);
	size_t size = marked ? fpdu_marked_size(pos, plain) : plain;
	uint8_t *p = arena_end(out), *q = marked ? p + size : p;

	if (!has_room(out, marked ? size + plain : size, 1))
		return AW_TX_FULL;
	put_be16(q, (uint16_t)len);
	memcpy(q + FPDU_LEN_FIELD, ulpdu, len);
	memset(q + FPDU_LEN_FIELD + len, 0, fpdu_pad(len) + FPDU_CRC_LEN);
	if (marked)
		fpdu_insert_markers(p, q, plain, pos);
	put_crc(qp, fold(qp, CRC32C_INIT, p, size - FPDU_CRC_LEN), p + size - FPDU_CRC_LEN);
	add_arena(out, size);
	qp->tx_pos += size;
	return AW_TX_FPDU;
}

void aw_tx_move(struct aw_qp *qp, struct aw_tx_out *out, const struct move_msg *msg)
{
	uint8_t ulpdu[MOVE_HDR_LEN + MOVE_DATA_MAX];
	size_t len = move_put(msg, ulpdu);
	enum aw_tx tx;

	AW_PROMISE(!qp->stream.markers_tx);
	tx = frame_octets(qp, out, ulpdu, len);
	AW_PROMISE(tx == AW_TX_FPDU);
}

enum aw_tx aw_tx_rnr(struct aw_qp *qp, struct aw_tx_out *out)
{
	uint8_t ulpdu[RNR_LEN];
	enum aw_tx tx;

	rnr_put(qp->not_ready ? RNR_NOT_READY : RNR_READY, ulpdu);
	tx = frame_octets(qp, out, ulpdu, sizeof(ulpdu));
	if (tx == AW_TX_FPDU)
		qp->not_ready_told = qp->not_ready;
	return tx;
}
