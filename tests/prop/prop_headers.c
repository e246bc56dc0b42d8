// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// DDP and RDMAP headers and Terminate payloads: values survive the wire, whatever octets
// arrive are read within their bounds, and what was accepted is written back the same.
#include "prop/prop.h"

#include "wire/ddp.h"
#include "wire/rdmap.h"
#include "wire/term.h"

#include <string.h>

static void ddp_values_survive(struct bytes *b)
{
	struct ddp_hdr hdr = { .tagged = bytes_bool(b), .last = bytes_bool(b) };
	uint8_t *wire = malloc(ddp_hdr_len(hdr.tagged));
	struct ddp_hdr got;

	hdr.ulp_ctrl = bytes_u8(b);
	if (hdr.tagged) {
		hdr.stag = bytes_u32(b);
		hdr.to = bytes_u64(b);
	} else {
		hdr.ulp_rsvd = bytes_u32(b);
		hdr.qn = bytes_u32(b);
		hdr.msn = bytes_u32(b);
		hdr.mo = bytes_u32(b);
	}
	PROP(ddp_put(&hdr, wire) == ddp_hdr_len(hdr.tagged));
	PROP(ddp_get(wire, ddp_hdr_len(hdr.tagged), &got) == AW_OK);
	PROP(got.tagged == hdr.tagged && got.last == hdr.last);
	PROP(got.ulp_ctrl == hdr.ulp_ctrl && got.ulp_rsvd == hdr.ulp_rsvd);
	PROP(got.stag == hdr.stag && got.to == hdr.to);
	PROP(got.qn == hdr.qn && got.msn == hdr.msn && got.mo == hdr.mo);
	free(wire);
}

/* The reserved bits of the control octet are the only ones a reader may lose. */
static void ddp_octets_survive(struct bytes *b)
{
	size_t len;
	uint8_t *wire = bytes_rest(b, DDP_UNTAGGED_LEN, &len);
	uint8_t again[DDP_UNTAGGED_LEN];
	struct ddp_hdr hdr;

	if (ddp_get(wire, len, &hdr) == AW_OK) {
		size_t hdr_len = ddp_put(&hdr, again);

		PROP(hdr_len <= len);
		wire[0] &= 0xc3;
		PROP(memcmp(wire, again, hdr_len) == 0);
	}
	free(wire);
}

static void ctrl_survives(struct bytes *b)
{
	uint8_t ctrl = bytes_u8(b);
	bool tagged = bytes_bool(b);
	uint32_t qn = bytes_u8(b) & 3;
	enum rdmap_opcode op;

	if (rdmap_ctrl_get(ctrl, tagged, qn, &op) == AW_OK)
		PROP(rdmap_ctrl(op) == (ctrl & 0xcf));
}

static void read_req_survives(struct bytes *b)
{
	uint8_t wire[RDMAP_READ_REQ_LEN], again[RDMAP_READ_REQ_LEN];
	struct rdmap_read_req req;

	bytes_take(b, wire, sizeof(wire));
	req = rdmap_read_req_get(wire);
	rdmap_read_req_put(&req, again);
	PROP(memcmp(wire, again, sizeof(wire)) == 0);
}

static void atomics_survive(struct bytes *b)
{
	uint8_t wire[RDMAP_ATOMIC_REQ_LEN], again[RDMAP_ATOMIC_REQ_LEN];
	struct rdmap_atomic_req req;
	struct rdmap_atomic_resp resp;

	bytes_take(b, wire, sizeof(wire));
	resp = rdmap_atomic_resp_get(wire);
	rdmap_atomic_resp_put(&resp, again);
	PROP(memcmp(wire, again, RDMAP_ATOMIC_RESP_LEN) == 0);

	wire[0] = wire[1] = wire[2] = 0;
	wire[3] &= 0x0f;
	req = rdmap_atomic_req_get(wire);
	rdmap_atomic_req_put(&req, again);
	PROP(memcmp(wire, again, sizeof(wire)) == 0);
}

static void flushes_survive(struct bytes *b)
{
	uint8_t wire[RDMAP_FLUSH_REQ_LEN], again[RDMAP_FLUSH_REQ_LEN];
	struct rdmap_flush_req req;

	bytes_take(b, wire, sizeof(wire));
	wire[0] = wire[1] = 0;
	req = rdmap_flush_req_get(wire);
	rdmap_flush_req_put(&req, again);
	PROP(memcmp(wire, again, sizeof(wire)) == 0);
}

static void term_values_survive(struct bytes *b)
{
	uint8_t ddp[DDP_UNTAGGED_LEN], rdmap[TERM_RDMAP_MAX], wire[TERM_MAX];
	struct term_msg msg = { .error = (enum aw_error)(0x10000 | bytes_u16(b)) };
	struct term_msg got;
	size_t len;

	bytes_take(b, ddp, sizeof(ddp));
	bytes_take(b, rdmap, sizeof(rdmap));
	msg.has_seg_len = bytes_bool(b);
	msg.has_ddp = bytes_bool(b);
	msg.has_rdmap = bytes_bool(b);
	msg.seg_len = bytes_u16(b);
	msg.ddp = ddp;
	msg.ddp_len = ddp[0] & DDP_CTRL_TAGGED ? DDP_TAGGED_LEN : DDP_UNTAGGED_LEN;
	msg.rdmap = rdmap;

	len = term_put(&msg, wire);
	PROP(len <= TERM_MAX);
	PROP(term_get(wire, len, &got));
	PROP(got.error == msg.error);
	PROP(got.has_seg_len == msg.has_seg_len && got.has_ddp == msg.has_ddp);
	PROP(got.has_rdmap == msg.has_rdmap);
	PROP(!got.has_seg_len || got.seg_len == msg.seg_len);
	PROP(!got.has_ddp || got.ddp_len == msg.ddp_len);
	PROP(!got.has_ddp || memcmp(got.ddp, ddp, got.ddp_len) == 0);
	PROP(!got.has_rdmap || memcmp(got.rdmap, rdmap, sizeof(rdmap)) == 0);
}

static void term_octets_survive(struct bytes *b)
{
	size_t len;
	uint8_t *wire = bytes_rest(b, TERM_MAX + 8, &len);
	uint8_t again[TERM_MAX];
	struct term_msg msg;

	if (term_get(wire, len, &msg)) {
		size_t again_len = term_put(&msg, again);

		PROP(again_len <= len);
		wire[2] &= 0xe0;
		wire[3] = 0;
		if (msg.has_ddp && !msg.has_seg_len)
			wire[4] = wire[5] = 0;
		PROP(memcmp(wire, again, again_len) == 0);
	}
	free(wire);
}

void prop_run(struct bytes *b)
{
	static void (*const props[])(struct bytes *) = {
		ddp_values_survive, ddp_octets_survive,	 ctrl_survives,	      read_req_survives,
		atomics_survive,    term_values_survive, term_octets_survive, flushes_survive,
	};

	props[bytes_u8(b) % (sizeof(props) / sizeof(props[0]))](b);
}
