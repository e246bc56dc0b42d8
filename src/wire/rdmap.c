// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// RDMAP's control octet (RFC 5040 4.1, RFC 7306 4) and its message headers (RFC 5040 4.4,
// RFC 7306 5.2, docs/extensions.md), at named offsets.
#include "wire/rdmap.h"

#include "wire/ddp.h"
#include "wire/octets.h"

enum {
	CTRL_VERSION_SHIFT = 6,
	CTRL_OPCODE = 0x0f, /* the two bits between are reserved and ignored */
};

enum {
	READ_SINK_STAG = 0,
	READ_SINK_TO = 4,
	READ_SIZE = 12,
	READ_SRC_STAG = 16,
	READ_SRC_TO = 20,
};

enum {
	ATOMIC_OP = 0,
	ATOMIC_REQUEST_ID = 4,
	ATOMIC_STAG = 8,
	ATOMIC_TO = 12,
	ATOMIC_ADD_SWAP_DATA = 20,
	ATOMIC_ADD_SWAP_MASK = 28,
	ATOMIC_COMPARE_DATA = 36,
	ATOMIC_COMPARE_MASK = 44,
	ATOMIC_OP_MASK = 0x0f, /* the 28 bits before are reserved and ignored */
};

enum {
	RESP_REQUEST_ID = 0,
	RESP_ORIGINAL = 4,
};

enum {
	IMM_DATA = 0,
	IMM_LENGTH = 4,
};

enum {
	FLUSH_TYPE = 2, /* the two octets before are reserved and ignored */
	FLUSH_LEVEL = 3,
	FLUSH_REQUEST_ID = 4,
	FLUSH_STAG = 8,
	FLUSH_TO = 12,
	FLUSH_LEN = 20,
};

/* RFC 5040 figure 4, RFC 7306 figure 2, and the Flush, whose answers share the atomics' queue. */
static const struct {
	bool tagged;
	uint32_t qn;
} opcodes[] = {
	[RDMAP_WRITE] = { .tagged = true },	     [RDMAP_READ_REQ] = { .qn = DDP_QN_READ },
	[RDMAP_READ_RESP] = { .tagged = true },	     [RDMAP_SEND] = { .qn = DDP_QN_SEND },
	[RDMAP_SEND_INV] = { .qn = DDP_QN_SEND },    [RDMAP_SEND_SE] = { .qn = DDP_QN_SEND },
	[RDMAP_SEND_SE_INV] = { .qn = DDP_QN_SEND }, [RDMAP_TERMINATE] = { .qn = DDP_QN_TERMINATE },
	[RDMAP_IMM] = { .qn = DDP_QN_SEND },	     [RDMAP_IMM_SE] = { .qn = DDP_QN_SEND },
	[RDMAP_ATOMIC_REQ] = { .qn = DDP_QN_READ },  [RDMAP_ATOMIC_RESP] = { .qn = DDP_QN_ATOMIC },
	[RDMAP_FLUSH_REQ] = { .qn = DDP_QN_READ },   [RDMAP_FLUSH_RESP] = { .qn = DDP_QN_ATOMIC },
};

#define OPCODE_COUNT (sizeof(opcodes) / sizeof(opcodes[0]))

enum aw_error rdmap_ctrl_get(uint8_t ctrl, bool tagged, uint32_t qn, enum rdmap_opcode *op)
{
	unsigned int code = ctrl & CTRL_OPCODE;

	if (ctrl >> CTRL_VERSION_SHIFT != RDMAP_VERSION)
		return AW_E_RDMAP_VERSION;
	if (code >= OPCODE_COUNT || opcodes[code].tagged != tagged)
		return AW_E_RDMAP_OPCODE;
	if (!tagged && opcodes[code].qn != qn)
		return AW_E_RDMAP_OPCODE;
	*op = (enum rdmap_opcode)code;
	return AW_OK;
}

void rdmap_read_req_put(const struct rdmap_read_req *req, uint8_t *p)
{
	put_be32(p + READ_SINK_STAG, req->sink_stag);
	put_be64(p + READ_SINK_TO, req->sink_to);
	put_be32(p + READ_SIZE, req->size);
	put_be32(p + READ_SRC_STAG, req->src_stag);
	put_be64(p + READ_SRC_TO, req->src_to);
}

struct rdmap_read_req rdmap_read_req_get(const uint8_t *p)
{
	return (struct rdmap_read_req){
		.sink_stag = get_be32(p + READ_SINK_STAG),
		.sink_to = get_be64(p + READ_SINK_TO),
		.size = get_be32(p + READ_SIZE),
		.src_stag = get_be32(p + READ_SRC_STAG),
		.src_to = get_be64(p + READ_SRC_TO),
	};
}

void rdmap_atomic_req_put(const struct rdmap_atomic_req *req, uint8_t *p)
{
	put_be32(p + ATOMIC_OP, req->op & ATOMIC_OP_MASK);
	put_be32(p + ATOMIC_REQUEST_ID, req->request_id);
	put_be32(p + ATOMIC_STAG, req->stag);
	put_be64(p + ATOMIC_TO, req->to);
	put_be64(p + ATOMIC_ADD_SWAP_DATA, req->add_swap_data);
	put_be64(p + ATOMIC_ADD_SWAP_MASK, req->add_swap_mask);
	put_be64(p + ATOMIC_COMPARE_DATA, req->compare_data);
	put_be64(p + ATOMIC_COMPARE_MASK, req->compare_mask);
}

struct rdmap_atomic_req rdmap_atomic_req_get(const uint8_t *p)
{
	return (struct rdmap_atomic_req){
		.op = get_be32(p + ATOMIC_OP) & ATOMIC_OP_MASK,
		.request_id = get_be32(p + ATOMIC_REQUEST_ID),
		.stag = get_be32(p + ATOMIC_STAG),
		.to = get_be64(p + ATOMIC_TO),
		.add_swap_data = get_be64(p + ATOMIC_ADD_SWAP_DATA),
		.add_swap_mask = get_be64(p + ATOMIC_ADD_SWAP_MASK),
		.compare_data = get_be64(p + ATOMIC_COMPARE_DATA),
		.compare_mask = get_be64(p + ATOMIC_COMPARE_MASK),
	};
}

void rdmap_atomic_resp_put(const struct rdmap_atomic_resp *resp, uint8_t *p)
{
	put_be32(p + RESP_REQUEST_ID, resp->request_id);
	put_be64(p + RESP_ORIGINAL, resp->original);
}

struct rdmap_atomic_resp rdmap_atomic_resp_get(const uint8_t *p)
{
	return (struct rdmap_atomic_resp){
		.request_id = get_be32(p + RESP_REQUEST_ID),
		.original = get_be64(p + RESP_ORIGINAL),
	};
}

void rdmap_imm_put(const struct rdmap_imm *imm, uint8_t *p)
{
	put_be32(p + IMM_DATA, imm->data);
	put_be32(p + IMM_LENGTH, imm->length);
}

struct rdmap_imm rdmap_imm_get(const uint8_t *p)
{
	return (struct rdmap_imm){
		.data = get_be32(p + IMM_DATA),
		.length = get_be32(p + IMM_LENGTH),
	};
}

void rdmap_flush_req_put(const struct rdmap_flush_req *req, uint8_t *p)
{
	put_be16(p, 0);
	p[FLUSH_TYPE] = req->type;
	p[FLUSH_LEVEL] = req->level;
	put_be32(p + FLUSH_REQUEST_ID, req->request_id);
	put_be32(p + FLUSH_STAG, req->stag);
	put_be64(p + FLUSH_TO, req->to);
	put_be64(p + FLUSH_LEN, req->len);
}

struct rdmap_flush_req rdmap_flush_req_get(const uint8_t *p)
{
	return (struct rdmap_flush_req){
		.type = p[FLUSH_TYPE],
		.level = p[FLUSH_LEVEL],
		.request_id = get_be32(p + FLUSH_REQUEST_ID),
		.stag = get_be32(p + FLUSH_STAG),
		.to = get_be64(p + FLUSH_TO),
		.len = get_be64(p + FLUSH_LEN),
	};
}

void rdmap_flush_resp_put(uint32_t request_id, uint8_t *p)
{
	put_be32(p, request_id);
}

uint32_t rdmap_flush_resp_get(const uint8_t *p)
{
	return get_be32(p);
}
