// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The Terminate payload (RFC 5040 4.8): control, DDP segment length, DDP header, RDMA header;
// each part after the first is there only when its header control bit is set.
#include "wire/term.h"

#include "wire/ddp.h"
#include "wire/octets.h"

#include <string.h>

enum {
	LAYER_TYPE = 0,
	CODE = 1,
	HDR_CTRL = 2,
};

enum {
	HDR_CTRL_SEG_LEN = 0x80, /* M */
	HDR_CTRL_DDP = 0x40, /* D */
	HDR_CTRL_RDMAP = 0x20, /* R; all below is reserved */
	HDR_CTRL_MIRRORED = 0x07, /* M, D and R of a reversed bit-field */
};

size_t term_put(const struct term_msg *msg, uint8_t *p)
{
	size_t at = TERM_CTRL_LEN;

	p[LAYER_TYPE] = (uint8_t)(aw_error_layer(msg->error) << 4 | aw_error_type(msg->error));
	p[CODE] = aw_error_code(msg->error);
	put_be16(p + HDR_CTRL, 0);
	p[HDR_CTRL] = (uint8_t)((msg->has_seg_len ? HDR_CTRL_SEG_LEN : 0) |
				(msg->has_ddp ? HDR_CTRL_DDP : 0) |
				(msg->has_rdmap ? HDR_CTRL_RDMAP : 0));
	/* The length must be present with the DDP header even where M says it is not valid. */
	if (msg->has_seg_len || msg->has_ddp) {
		put_be16(p + at, msg->has_seg_len ? msg->seg_len : 0);
		at += TERM_SEG_LEN_LEN;
	}
	if (msg->has_ddp) {
		memcpy(p + at, msg->ddp, msg->ddp_len);
		at += msg->ddp_len;
	}
	if (msg->has_rdmap) {
		memcpy(p + at, msg->rdmap, TERM_RDMAP_MAX);
		at += TERM_RDMAP_MAX;
	}
	return at;
}

/* The next n octets of what is left, or NULL when there are fewer. */
static const uint8_t *take(const uint8_t **p, size_t *left, size_t n)
{
	const uint8_t *part = *p;

	if (*left < n)
		return NULL;
	*p += n;
	*left -= n;
	return part;
}

static bool get_seg_len(const uint8_t **p, size_t *left, struct term_msg *msg)
{
	const uint8_t *part = take(p, left, TERM_SEG_LEN_LEN);

	if (!part)
		return false;
	if (msg->has_seg_len)
		msg->seg_len = get_be16(part);
	return true;
}

static bool get_ddp(const uint8_t **p, size_t *left, struct term_msg *msg)
{
	if (*left == 0)
		return false;
	msg->ddp_len = (uint8_t)ddp_hdr_len(**p & DDP_CTRL_TAGGED);
	msg->ddp = take(p, left, msg->ddp_len);
	return msg->ddp;
}

static bool get_rdmap(const uint8_t **p, size_t *left, struct term_msg *msg)
{
	msg->rdmap = take(p, left, TERM_RDMAP_MAX);
	return msg->rdmap;
}

bool term_get(const uint8_t *p, size_t len, struct term_msg *msg)
{
	const uint8_t *ctrl = take(&p, &len, TERM_CTRL_LEN);
	struct term_msg got;

	if (!ctrl)
		return false;
	got = (struct term_msg){
		.error = (enum aw_error)AW_ERROR(ctrl[LAYER_TYPE] >> 4, ctrl[LAYER_TYPE] & 0xf,
						 ctrl[CODE]),
		.has_seg_len = ctrl[HDR_CTRL] & HDR_CTRL_SEG_LEN,
		.has_ddp = ctrl[HDR_CTRL] & HDR_CTRL_DDP,
		.has_rdmap = ctrl[HDR_CTRL] & HDR_CTRL_RDMAP,
		.mirrored = ctrl[HDR_CTRL] & HDR_CTRL_MIRRORED,
	};
	if ((got.has_seg_len || got.has_ddp) && !get_seg_len(&p, &len, &got))
		return false;
	if (got.has_ddp && !get_ddp(&p, &len, &got))
		return false;
	if (got.has_rdmap && !get_rdmap(&p, &len, &got))
		return false;
	*msg = got;
	return true;
}
