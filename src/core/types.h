// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The types that pass between the core and its driver: limits, scatter/gather entries, work
// requests, completions. Field terms are those of the verbs API; nothing here is on the wire.
#ifndef CORE_TYPES_H
#define CORE_TYPES_H

#include "wire/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define AW_MUST_USE __attribute__((warn_unused_result))

#define AW_SGE_MAX 30
#define AW_INLINE_MAX 512 /* octets */
#define AW_WR_MAX 16384 /* WRs a queue */
#define AW_MSG_MAX 0x80000000u /* octets a message */
#define AW_RD_MAX 128 /* IRD and ORD */

/* The layout of struct ibv_sge. */
struct aw_sge {
	uint64_t addr;
	uint32_t len;
	uint32_t lkey;
};

/* The layout of struct iovec. */
struct aw_iov {
	void *base;
	size_t len;
};

enum aw_op {
	AW_OP_WRITE,
	AW_OP_SEND,
	AW_OP_SEND_INV,
	AW_OP_READ,
	AW_OP_LOCAL_INV,
	AW_OP_BIND_MW,
	AW_OP_WRITE_IMM,
	AW_OP_SEND_IMM,
	AW_OP_CMP_SWAP,
	AW_OP_FETCH_ADD,
	AW_OP_ATOMIC_WRITE,
	AW_OP_FLUSH,
};

/* RFC 7306: only where start-up agreed on it. The value before goes to eight octets of SGEs. */
static inline bool aw_op_is_atomic(enum aw_op op)
{
	return op == AW_OP_CMP_SWAP || op == AW_OP_FETCH_ADD;
}

static inline bool aw_op_is_extension(enum aw_op op)
{
	return op == AW_OP_WRITE_IMM || op == AW_OP_SEND_IMM || aw_op_is_atomic(op);
}

/* Only where start-up agreed on these as well (docs/extensions.md). */
static inline bool aw_op_is_placement(enum aw_op op)
{
	return op == AW_OP_ATOMIC_WRITE || op == AW_OP_FLUSH;
}

/* The peer answers it, and it is outstanding until then: ORD bounds these together. */
static inline bool aw_op_is_request(enum aw_op op)
{
	return op == AW_OP_READ || aw_op_is_atomic(op) || aw_op_is_placement(op);
}

/* A Write or a Send: octets go to the peer, and nothing comes back. */
static inline bool aw_op_is_one_way(enum aw_op op)
{
	switch (op) {
	case AW_OP_WRITE:
	case AW_OP_WRITE_IMM:
	case AW_OP_SEND:
	case AW_OP_SEND_IMM:
	case AW_OP_SEND_INV:
		return true;
	case AW_OP_READ:
	case AW_OP_LOCAL_INV:
	case AW_OP_BIND_MW:
	case AW_OP_CMP_SWAP:
	case AW_OP_FETCH_ADD:
	case AW_OP_ATOMIC_WRITE:
	case AW_OP_FLUSH:
		return false;
	}
	return false;
}

enum aw_wr_flag {
	AW_WR_FENCE = 1,
	AW_WR_SIGNALED = 2,
	AW_WR_SOLICITED = 4,
	AW_WR_INLINE = 8,
};

/* Access rights of an MR; the numbers of enum ibv_access_flags. */
enum aw_access {
	AW_ACCESS_LOCAL_WRITE = 1,
	AW_ACCESS_REMOTE_WRITE = 2,
	AW_ACCESS_REMOTE_READ = 4,
	AW_ACCESS_REMOTE_ATOMIC = 8,
	AW_ACCESS_MW_BIND = 16,
	AW_ACCESS_ZERO_BASED = 32,
	AW_ACCESS_ON_DEMAND = 64, /* each access finds out which of it is mapped, and how */
	/* A Flush makes memory visible to all, or has it kept by the file that it maps. */
	AW_ACCESS_FLUSH_GLOBAL = 256,
	AW_ACCESS_FLUSH_PERSISTENT = 512,
};

/* The rights that a peer may be granted. */
#define AW_ACCESS_FLUSH (AW_ACCESS_FLUSH_GLOBAL | AW_ACCESS_FLUSH_PERSISTENT)
#define AW_ACCESS_REMOTE \
	(AW_ACCESS_REMOTE_WRITE | AW_ACCESS_REMOTE_READ | AW_ACCESS_REMOTE_ATOMIC | AW_ACCESS_FLUSH)

/* The numbers of enum ibv_wc_status. */
enum aw_wc_status {
	AW_WC_SUCCESS = 0,
	AW_WC_LOC_LEN_ERR = 1,
	AW_WC_LOC_QP_OP_ERR = 2,
	AW_WC_LOC_PROT_ERR = 4,
	AW_WC_WR_FLUSH_ERR = 5,
	AW_WC_MW_BIND_ERR = 6,
	AW_WC_LOC_ACCESS_ERR = 8,
	AW_WC_REM_INV_REQ_ERR = 9,
	AW_WC_REM_ACCESS_ERR = 10,
	AW_WC_REM_OP_ERR = 11,
	AW_WC_RETRY_EXC_ERR = 12,
	AW_WC_RNR_RETRY_EXC_ERR = 13,
	AW_WC_GENERAL_ERR = 21,
};

/* A WR on the send queue, filled by the poster in place (aw_sq_reserve, aw_sq_commit). */
struct aw_swqe {
	uint64_t wr_id;
	uint64_t
		to; /* remote tagged offset: Write, Read, atomics, Flush; BIND_MW: its first address */
	uint32_t stag; /* remote STag; for LOCAL_INV the local one; BIND_MW: the window's next */
	uint32_t inv_or_imm; /* STag to invalidate (SEND_INV), immediate data, or lkey (BIND_MW) */
	uint32_t len; /* octets of the message: sum of the SGEs, or inline octets */
	uint8_t op; /* enum aw_op */
	uint8_t flags; /* enum aw_wr_flag */
	uint8_t sge_count; /* 0 when inline */
	uint8_t done; /* core: nothing more will happen to it but its completion */
	uint8_t status; /* core: enum aw_wc_status once done */
	uint8_t access; /* BIND_MW: enum aw_access; FLUSH: enum rdmap_flush_type */
	uint8_t mark; /* the driver's own */
	uint8_t pad;
	uint32_t msn; /* core: of its first message on QN 0 */
	uint64_t end_pos; /* core: stream position behind its last octet */
	uint64_t compare_add; /* atomics; BIND_MW, FLUSH: octets */
	/*
	 * atomics; BIND_MW: the driver's own, which window; FLUSH: 1: of the whole MR; XRC: the SRQ that a Send or WRITE_IMM
	 * is for
	 */
	uint64_t swap;
	union {
		struct aw_sge sge[1]; /* sge_count of them: the slot's stride has the room */
		uint8_t data[16]; /* len inline octets, likewise */
	};
};

/* A WR on a receive queue or SRQ, with room for every SGE. */
struct aw_rwqe {
	uint64_t wr_id;
	uint32_t len; /* sum of the SGEs, at most UINT32_MAX by construction */
	uint32_t sge_count;
	struct aw_sge sge[AW_SGE_MAX];
};

enum aw_queue {
	AW_SQ,
	AW_RQ,
};

enum aw_wc_flag {
	AW_WC_WITH_IMM = 1,
	AW_WC_WITH_INV = 2,
	AW_WC_SOLICITED = 4, /* the Send carried the solicited-event bit, or status is an error */
	AW_WC_GRH = 8, /* a datagram: its buffer begins with 40 octets that describe its route */
};

struct aw_cqe {
	uint64_t wr_id;
	enum aw_wc_status status;
	enum aw_op op; /* AW_RQ: SEND, SEND_INV, SEND_IMM or WRITE_IMM as received */
	uint32_t byte_len; /* octets received or, WRITE_IMM, written (AW_RQ); read, atomics: 8 */
	uint32_t inv_or_imm;
	uint32_t flags; /* enum aw_wc_flag */
	uint32_t vendor_err; /* the enum aw_error behind a bad status, or 0; of UD the link */
	uint32_t src_qpn; /* of a datagram, and of XRC: the QP that sent it */
	uint8_t sl; /* likewise: the service level that verbs show */
};

#endif
