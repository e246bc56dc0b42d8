// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// DDP segment headers (RFC 5041 4.2, 4.3), at named offsets.
#include "wire/ddp.h"

#include "wire/octets.h"

enum {
	CTRL = 0,
	ULP_CTRL = 1,
	TAGGED_STAG = 2,
	TAGGED_TO = 6,
	UNTAGGED_ULP_RSVD = 2,
	UNTAGGED_QN = 6,
	UNTAGGED_MSN = 10,
	UNTAGGED_MO = 14,
};

enum {
	CTRL_LAST = 0x40,
	CTRL_VERSION = 0x03, /* the four bits between are reserved and ignored */
};

size_t ddp_put(const struct ddp_hdr *hdr, uint8_t *p)
{
	p[CTRL] = (uint8_t)((hdr->tagged ? DDP_CTRL_TAGGED : 0) | (hdr->last ? CTRL_LAST : 0) |
			    DDP_VERSION);
	p[ULP_CTRL] = hdr->ulp_ctrl;
	if (hdr->tagged) {
		put_be32(p + TAGGED_STAG, hdr->stag);
		put_be64(p + TAGGED_TO, hdr->to);
	} else {
		put_be32(p + UNTAGGED_ULP_RSVD, hdr->ulp_rsvd);
		put_be32(p + UNTAGGED_QN, hdr->qn);
		put_be32(p + UNTAGGED_MSN, hdr->msn);
		put_be32(p + UNTAGGED_MO, hdr->mo);
	}
	return ddp_hdr_len(hdr->tagged);
}

enum aw_error ddp_get(const uint8_t *p, size_t len, struct ddp_hdr *hdr)
{
	bool tagged;

	if (len == 0)
		return AW_E_DDP_CATASTROPHIC;
	tagged = p[CTRL] & DDP_CTRL_TAGGED;
	if (len < ddp_hdr_len(tagged))
		return AW_E_DDP_CATASTROPHIC;
	if ((p[CTRL] & CTRL_VERSION) != DDP_VERSION)
		return tagged ? AW_E_DDP_TAGGED_VERSION : AW_E_DDP_UNTAGGED_VERSION;

	*hdr = (struct ddp_hdr){
		.tagged = tagged,
		.last = p[CTRL] & CTRL_LAST,
		.ulp_ctrl = p[ULP_CTRL],
	};
	if (tagged) {
		hdr->stag = get_be32(p + TAGGED_STAG);
		hdr->to = get_be64(p + TAGGED_TO);
	} else {
		hdr->ulp_rsvd = get_be32(p + UNTAGGED_ULP_RSVD);
		hdr->qn = get_be32(p + UNTAGGED_QN);
		hdr->msn = get_be32(p + UNTAGGED_MSN);
		hdr->mo = get_be32(p + UNTAGGED_MO);
	}
	return AW_OK;
}
