// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// RDMAP's control octet, Read Request, Atomic and Immediate payloads (RFC 5040 4, RFC 7306 5, 6),
// and the Flush of docs/extensions.md. Octets to values and back, and the version and opcode check.
#ifndef WIRE_RDMAP_H
#define WIRE_RDMAP_H

#include "wire/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RDMAP_VERSION 1
#define RDMAP_READ_REQ_LEN 28
#define RDMAP_ATOMIC_REQ_LEN 52
#define RDMAP_ATOMIC_RESP_LEN 12
#define RDMAP_IMM_LEN 8
#define RDMAP_FLUSH_REQ_LEN 28
#define RDMAP_FLUSH_RESP_LEN 4

enum rdmap_opcode {
	RDMAP_WRITE = 0,
	RDMAP_READ_REQ = 1,
	RDMAP_READ_RESP = 2,
	RDMAP_SEND = 3,
	RDMAP_SEND_INV = 4,
	RDMAP_SEND_SE = 5,
	RDMAP_SEND_SE_INV = 6,
	RDMAP_TERMINATE = 7,
	RDMAP_IMM = 8,
	RDMAP_IMM_SE = 9,
	RDMAP_ATOMIC_REQ = 10,
	RDMAP_ATOMIC_RESP = 11,
	RDMAP_FLUSH_REQ = 12, /* this and the next: between two anywarp ends that agreed on it */
	RDMAP_FLUSH_RESP = 13,
};

enum rdmap_atomic_op {
	RDMAP_FETCH_ADD = 0,
	RDMAP_CMP_SWAP = 2,
	RDMAP_ATOMIC_WRITE = 15, /* between two anywarp ends that agreed on it */
};

struct rdmap_read_req {
	uint32_t sink_stag;
	uint64_t sink_to;
	uint32_t size;
	uint32_t src_stag;
	uint64_t src_to;
};

struct rdmap_atomic_req {
	uint8_t op; /* enum rdmap_atomic_op, 4 bits */
	uint32_t request_id;
	uint32_t stag;
	uint64_t to;
	uint64_t add_swap_data;
	uint64_t add_swap_mask;
	uint64_t compare_data;
	uint64_t compare_mask;
};

struct rdmap_atomic_resp {
	uint32_t request_id;
	uint64_t original;
};

/* The types of a Flush; the numbers of enum ibv_placement_type. */
enum rdmap_flush_type {
	RDMAP_FLUSH_GLOBAL = 1,
	RDMAP_FLUSH_PERSISTENT = 2,
};

#define RDMAP_FLUSH_TYPES (RDMAP_FLUSH_GLOBAL | RDMAP_FLUSH_PERSISTENT)

struct rdmap_flush_req {
	uint8_t type; /* mask of enum rdmap_flush_type */
	uint8_t level; /* enum rdmap_flush_level */
	uint32_t request_id;
	uint32_t stag;
	uint64_t to;
	uint64_t len;
};

/* The numbers of enum ibv_selectivity_level. */
enum rdmap_flush_level {
	RDMAP_FLUSH_RANGE = 0,
	RDMAP_FLUSH_MR = 1, /* to and len mean nothing */
};

#define RDMAP_IMM_OF_SEND UINT32_MAX /* instead of a length */

/* The 8 octets of Immediate Data as two anywarp ends use them (docs/extensions.md). */
struct rdmap_imm {
	uint32_t data; /* the program's */
	uint32_t length; /* of the Write that it completes; or RDMAP_IMM_OF_SEND */
};

/*
 * Set in the control octet of each segment of a Write that an Immediate will complete, between ends that use Immediates
 * so: one of the two bits that RFC 5040 reserves, and that others ignore.
 */
#define RDMAP_CTRL_IMM 0x10

static inline uint8_t rdmap_ctrl(enum rdmap_opcode op)
{
	return (uint8_t)(RDMAP_VERSION << 6 | op);
}

/*
 * Splits the control octet. AW_E_RDMAP_VERSION when RV is not 1, AW_E_RDMAP_OPCODE for a
 * reserved opcode, or one whose DDP model (tagged) or queue number does not match.
 * qn is ignored when tagged.
 */
enum aw_error rdmap_ctrl_get(uint8_t ctrl, bool tagged, uint32_t qn, enum rdmap_opcode *op);

void rdmap_read_req_put(const struct rdmap_read_req *req, uint8_t *p);
struct rdmap_read_req rdmap_read_req_get(const uint8_t *p);
void rdmap_atomic_req_put(const struct rdmap_atomic_req *req, uint8_t *p);
struct rdmap_atomic_req rdmap_atomic_req_get(const uint8_t *p);
void rdmap_atomic_resp_put(const struct rdmap_atomic_resp *resp, uint8_t *p);
struct rdmap_atomic_resp rdmap_atomic_resp_get(const uint8_t *p);
void rdmap_imm_put(const struct rdmap_imm *imm, uint8_t *p);
struct rdmap_imm rdmap_imm_get(const uint8_t *p);
void rdmap_flush_req_put(const struct rdmap_flush_req *req, uint8_t *p);
struct rdmap_flush_req rdmap_flush_req_get(const uint8_t *p);
/* A Flush Response is the Request Identifier. */
void rdmap_flush_resp_put(uint32_t request_id, uint8_t *p);
uint32_t rdmap_flush_resp_get(const uint8_t *p);

#endif
