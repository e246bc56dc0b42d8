// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// MPA start-up: RFC 5044 7.1 and RFC 6581 9, 10. Revision 0 is the RDMA Consortium's, whose DDP
// and RDMAP have other version numbers: a stream of it could only be terminated, so it is refused.
#include "core/startup.h"

#include "core/promise.h"

#include <string.h>

enum {
	REVISION_PLAIN = 1,
	REVISION_ENHANCED = 2,
};

const char *aw_setup_text(enum aw_setup s)
{
	switch (s) {
	case AW_SETUP_OK:
		return "ok";
	case AW_SETUP_WRONG_KIND:
		return "the peer began as the same side (both initiators or both responders)";
	case AW_SETUP_REVISION:
		return "mpa revision not supported";
	case AW_SETUP_SHORT_PD:
		return "private data too short for the enhanced set-up it announces";
	case AW_SETUP_NO_RTR:
		return "no ready-to-receive message that both ends support";
	case AW_SETUP_IRD:
		return "the peer wants more inbound reads than there is room for";
	}
	return "unknown";
}

size_t aw_mpa_pd_max(bool enhanced)
{
	return enhanced ? MPA_PD_MAX - MPA_ENH_LEN : MPA_PD_MAX;
}

/* RFC 6581 10: the enhanced format MUST NOT be used when nothing of it is desired. */
static bool wants_enhanced(const struct aw_mpa_local *local)
{
	bool depths = !local->ird_ord_ulp &&
		      (local->ird != MPA_IRD_ORD_NONE || local->ord != MPA_IRD_ORD_NONE);

	return local->revision >= REVISION_ENHANCED && (local->p2p || depths);
}

/* Writes a frame; enh is NULL for a plain one. */
static size_t build(struct mpa_frame *frame, const struct mpa_enhanced *enh, const void *pd,
		    size_t pd_len, uint8_t *buf)
{
	uint8_t data[MPA_PD_MAX];
	size_t at = 0;

	AW_PROMISE(pd_len <= aw_mpa_pd_max(enh));
	if (enh) {
		frame->flags |= MPA_FLAG_ENHANCED;
		mpa_enhanced_put(enh, data);
		at = MPA_ENH_LEN;
	}
	if (pd_len > 0)
		memcpy(data + at, pd, pd_len);
	frame->pd = data;
	frame->pd_len = (uint16_t)(at + pd_len);
	return mpa_build(frame, buf);
}

static bool offers_placement(const struct aw_mpa_local *local)
{
	return local->placement && local->extensions;
}

/* FPDUs in memory have no markers. */
static bool offers_host(const struct aw_mpa_local *local)
{
	return local->host && local->extensions && !local->markers;
}

static bool takes_waits(const struct aw_mpa_local *local)
{
	return local->waits && offers_placement(local);
}

static bool offers_tls(const struct aw_mpa_local *local)
{
	return local->tls && offers_placement(local);
}

/* An initiator that offers TLS offers the extensions by one bit fewer. */
static uint8_t extensions_offer(const struct aw_mpa_local *local)
{
	return (local->extensions && !offers_tls(local) ? MPA_FLAG_EXT_OFFER : 0) |
	       (offers_placement(local) ? MPA_FLAG_PLACEMENT_OFFER : 0) |
	       (offers_host(local) ? MPA_FLAG_HOST : 0);
}

size_t aw_mpa_request(const struct aw_mpa_local *local, const void *pd, size_t pd_len, uint8_t *buf)
{
	bool enhanced = wants_enhanced(local);
	const struct mpa_enhanced enh = {
		.p2p = local->p2p,
		.rtr = local->p2p ? local->rtr : 0,
		.ird = local->ird_ord_ulp ? MPA_IRD_ORD_NONE : local->ird,
		.ord = local->ird_ord_ulp ? MPA_IRD_ORD_NONE : local->ord,
	};
	struct mpa_frame frame = {
		.kind = MPA_REQUEST,
		.flags =
			(local->markers ? MPA_FLAG_MARKERS : 0) | (local->crc ? MPA_FLAG_CRC : 0) |
			(enhanced ? extensions_offer(local) : 0) |
			(enhanced && local->large_fpdus != AW_LARGE_OFF ? MPA_FLAG_LARGE_FPDUS : 0),
		.revision = enhanced ? REVISION_ENHANCED : REVISION_PLAIN,
	};

	return build(&frame, enhanced ? &enh : NULL, pd, pd_len, buf);
}

static uint16_t min_u16(uint16_t a, uint16_t b)
{
	return a < b ? a : b;
}

/*
 * The part that both sides do with a frame of the right kind; ird and ord as without negotiation.
 */
static enum aw_setup read_frame(const struct aw_mpa_local *local, const struct mpa_frame *frame,
				uint8_t revision_max, struct aw_mpa_result *result)
{
	if (frame->revision < REVISION_PLAIN || frame->revision > revision_max)
		return AW_SETUP_REVISION;
	*result = (struct aw_mpa_result){
		.large_any = local->large_fpdus == AW_LARGE_ANY,
		.revision = frame->revision,
		/* RFC 5044 7.1.1: in revision 1 the bit is reserved, and not checked. */
		.enhanced = frame->revision >= REVISION_ENHANCED &&
			    (frame->flags & MPA_FLAG_ENHANCED),
		/* RFC 5044 7.1.1: on when either end wants them. */
		.crc = local->crc || (frame->flags & MPA_FLAG_CRC),
		.markers_tx = frame->flags & MPA_FLAG_MARKERS,
		.markers_rx = local->markers,
		.ird = local->ird,
		.ord = local->ord,
		.pd = frame->pd,
		.pd_len = frame->pd_len,
	};
	if (!result->enhanced)
		return AW_SETUP_OK;
	if (frame->pd_len < MPA_ENH_LEN)
		return AW_SETUP_SHORT_PD;
	result->pd += MPA_ENH_LEN;
	result->pd_len -= MPA_ENH_LEN;
	return AW_SETUP_OK;
}

/* RFC 6581 9.2: an RTR that both ends support, the cheapest first. 0 when there is none. */
static uint8_t choose_rtr(uint8_t common, uint16_t peer_ird)
{
	if (common & MPA_RTR_WRITE)
		return MPA_RTR_WRITE;
	if ((common & MPA_RTR_READ) && peer_ird > 0)
		return MPA_RTR_READ;
	return common & MPA_RTR_SEND;
}

/* Our Request's flags sent back, as some peers do, have both bits. */
static bool agrees_to_placement(const struct aw_mpa_local *local, const struct mpa_frame *reply)
{
	const uint8_t bits = MPA_FLAG_PLACEMENT_AGREE | MPA_FLAG_EXT_AGREE | MPA_FLAG_REJECT;

	return offers_placement(local) && (reply->flags & bits) == MPA_FLAG_PLACEMENT_AGREE;
}

/*
 * An answer that offers as well is our Request's flags sent back. Those of an offer of TLS have the bit of EXT_AGREE, by which
 * nobody agrees to it.
 */
static bool is_echo(const struct aw_mpa_local *local, const struct mpa_frame *reply)
{
	uint8_t offer = offers_tls(local) ? MPA_FLAG_PLACEMENT_OFFER : MPA_FLAG_EXT_OFFER;

	return reply->flags & offer;
}

static bool agrees(const struct aw_mpa_local *local, const struct mpa_frame *reply)
{
	return agrees_to_placement(local, reply) ||
	       (local->extensions && (reply->flags & MPA_FLAG_EXT_AGREE) &&
		!is_echo(local, reply) && !(reply->flags & MPA_FLAG_REJECT));
}

/* Likewise. */
static bool agrees_to_large(const struct aw_mpa_local *local, const struct mpa_frame *reply)
{
	bool answers = (reply->flags & (MPA_FLAG_EXT_AGREE | MPA_FLAG_ANSWER)) &&
		       !is_echo(local, reply) &&
		       !(reply->flags & (MPA_FLAG_EXT_OFFER | MPA_FLAG_REJECT));

	return local->large_fpdus != AW_LARGE_OFF && (reply->flags & MPA_FLAG_LARGE_FPDUS) &&
	       (answers || agrees_to_placement(local, reply));
}

static uint8_t extensions_answer(const struct aw_mpa_result *result)
{
	return result->placement ? MPA_FLAG_PLACEMENT_AGREE : MPA_FLAG_EXT_AGREE;
}

static uint8_t large_answer(const struct aw_mpa_result *result)
{
	return MPA_FLAG_LARGE_FPDUS | (result->extensions ? 0 : MPA_FLAG_ANSWER);
}

static enum aw_setup negotiate_reply(const struct aw_mpa_local *local,
				     const struct mpa_enhanced *enh, struct aw_mpa_result *result)
{
	result->peer_ird = enh->ird;
	result->peer_ord = enh->ord;
	result->peer_rtr = enh->rtr;
	if (result->rejected)
		return AW_SETUP_OK;
	/* 0x3fff is the largest value: no bound (RFC 6581 9.1). */
	result->ord = min_u16(local->ord, enh->ird);
	result->p2p = local->p2p && enh->p2p;
	if (result->p2p)
		result->rtr = choose_rtr(local->rtr & enh->rtr, enh->ird);
	if (result->p2p && result->rtr == 0)
		return AW_SETUP_NO_RTR;
	/* RFC 6581 9.1: the RTR needs an entry, though the ULP reads nothing. */
	if (result->rtr == MPA_RTR_READ && result->ord == 0)
		result->ord = 1;
	if (enh->ord != MPA_IRD_ORD_NONE && enh->ord > local->ird)
		return AW_SETUP_IRD;
	return AW_SETUP_OK;
}

enum aw_setup aw_mpa_on_reply(const struct aw_mpa_local *local, const struct mpa_frame *reply,
			      struct aw_mpa_result *result)
{
	uint8_t sent = wants_enhanced(local) ? REVISION_ENHANCED : REVISION_PLAIN;
	struct aw_mpa_result got;
	struct mpa_enhanced enh;
	enum aw_setup setup;

	if (reply->kind != MPA_REPLY)
		return AW_SETUP_WRONG_KIND;
	setup = read_frame(local, reply, sent, &got);
	if (setup != AW_SETUP_OK)
		return setup;
	got.rejected = reply->flags & MPA_FLAG_REJECT;
	if (got.enhanced) {
		enh = mpa_enhanced_get(reply->pd);
		got.extensions = agrees(local, reply);
		got.placement = agrees_to_placement(local, reply);
		got.host = got.extensions && offers_host(local) && !got.markers_tx &&
			   (reply->flags & MPA_FLAG_HOST);
		got.large_fpdus = agrees_to_large(local, reply);
		setup = negotiate_reply(local, &enh, &got);
	}
	*result = got;
	return setup;
}

/*
 * The RTRs to offer: those that the peer asked for and we take or, failing that, those that we
 * take. Without an IRD the Read is offered only when there is no other: RFC 6581 9.2 demands at
 * least one.
 */
static uint8_t offer_rtr(const struct aw_mpa_local *local, uint8_t asked)
{
	uint8_t takes = local->rtr;

	if (local->ird == 0 && takes != MPA_RTR_READ)
		takes &= (uint8_t)~MPA_RTR_READ;
	return takes & asked ? takes & asked : takes;
}

static void negotiate_request(const struct aw_mpa_local *local, const struct mpa_enhanced *enh,
			      struct aw_mpa_result *result)
{
	result->peer_ird = enh->ird;
	result->peer_ord = enh->ord;
	result->peer_rtr = enh->rtr;
	result->ird = local->ird_ord_ulp ? local->ird : min_u16(local->ird, enh->ord);
	result->ord = min_u16(local->ord, enh->ird);
	result->p2p = enh->p2p;
	if (!enh->p2p)
		return;
	result->rtr = offer_rtr(local, enh->rtr);
	/* RFC 6581 9.1: an RTR that is a Read needs one entry, though the ULP reads nothing. */
	if ((result->rtr & MPA_RTR_READ) && result->ird == 0)
		result->ird = 1;
}

enum aw_setup aw_mpa_on_request(const struct aw_mpa_local *local, const struct mpa_frame *request,
				struct aw_mpa_result *result)
{
	struct aw_mpa_result got;
	struct mpa_enhanced enh;
	enum aw_setup setup;

	if (request->kind != MPA_REQUEST)
		return AW_SETUP_WRONG_KIND;
	setup = read_frame(local, request, local->revision, &got);
	if (setup != AW_SETUP_OK)
		return setup;
	if (got.enhanced) {
		enh = mpa_enhanced_get(request->pd);
		got.placement = offers_placement(local) &&
				(request->flags & MPA_FLAG_PLACEMENT_OFFER);
		got.extensions = got.placement ||
				 (local->extensions && (request->flags & MPA_FLAG_EXT_OFFER));
		got.tls = offers_tls(local) && got.placement &&
			  !(request->flags & MPA_FLAG_EXT_OFFER);
		got.host = got.extensions && offers_host(local) && !got.markers_tx &&
			   (request->flags & MPA_FLAG_HOST);
		got.large_fpdus = local->large_fpdus != AW_LARGE_OFF &&
				  (request->flags & MPA_FLAG_LARGE_FPDUS);
		got.waits = got.placement && local->waits;
		negotiate_request(local, &enh, &got);
	}
	*result = got;
	return AW_SETUP_OK;
}

/*
 * Frames of a responder that stand before its Reply. A peer that sends the Request's flags back sends S as well, since a
 * Request that takes these frames is enhanced; and a Reply that agrees does not offer. So these flags are neither's.
 */
static const uint8_t wait_flags = MPA_FLAG_EXT_OFFER | MPA_FLAG_PLACEMENT_OFFER;
static const uint8_t start_tls_flags = MPA_FLAG_EXT_OFFER | MPA_FLAG_PLACEMENT_OFFER |
				       MPA_FLAG_HOST;

static size_t build_notice(uint8_t flags, uint8_t *buf)
{
	const struct mpa_frame frame = {
		.kind = MPA_REPLY,
		.flags = flags,
		.revision = REVISION_ENHANCED,
	};

	return mpa_build(&frame, buf);
}

static bool is_notice(const struct aw_mpa_local *local, const struct mpa_frame *frame,
		      uint8_t flags)
{
	return wants_enhanced(local) && frame->kind == MPA_REPLY &&
	       frame->revision == REVISION_ENHANCED && frame->flags == flags && frame->pd_len == 0;
}

size_t aw_mpa_wait(uint8_t *buf)
{
	return build_notice(wait_flags, buf);
}

bool aw_mpa_is_wait(const struct aw_mpa_local *local, const struct mpa_frame *frame)
{
	return takes_waits(local) && is_notice(local, frame, wait_flags);
}

size_t aw_mpa_start_tls(uint8_t *buf)
{
	return build_notice(start_tls_flags, buf);
}

bool aw_mpa_is_start_tls(const struct aw_mpa_local *local, const struct mpa_frame *frame)
{
	return offers_tls(local) && is_notice(local, frame, start_tls_flags);
}

size_t aw_mpa_reply(const struct aw_mpa_local *local, const struct aw_mpa_result *result,
		    bool reject, const void *pd, size_t pd_len, uint8_t *buf)
{
	/*
	 * RFC 6581 9.1: depths that the Request left to the ULPs are left to them in the Reply too.
	 */
	bool ulp = local->ird_ord_ulp;
	const struct mpa_enhanced enh = {
		.p2p = result->p2p,
		.rtr = result->p2p ? result->rtr : 0,
		.ird = ulp || result->peer_ord == MPA_IRD_ORD_NONE ? MPA_IRD_ORD_NONE : result->ird,
		.ord = ulp || result->peer_ird == MPA_IRD_ORD_NONE ? MPA_IRD_ORD_NONE : result->ord,
	};
	struct mpa_frame frame = {
		.kind = MPA_REPLY,
		.flags = (local->markers ? MPA_FLAG_MARKERS : 0) |
			 (result->crc ? MPA_FLAG_CRC : 0) | (reject ? MPA_FLAG_REJECT : 0) |
			 (result->extensions && !reject ? extensions_answer(result) : 0) |
			 (result->host && !reject ? MPA_FLAG_HOST : 0) |
			 (result->large_fpdus && !reject ? large_answer(result) : 0),
		.revision = result->revision,
	};

	return build(&frame, result->enhanced ? &enh : NULL, pd, pd_len, buf);
}
