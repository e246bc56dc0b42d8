// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Two QPs of the core, joined by octet buffers, each with a small MR table, an RQ and a log of its
// completions. Nothing moves unless a test says so.
#ifndef LIB_CORE_PAIR_H
#define LIB_CORE_PAIR_H

#include "core/rx.h"
#include "core/tx.h"
#include "wire/crc32c.h"

#define CORE_MRS 8
#define CORE_CQES 256
#define CORE_MEM (1u << 17)
#define CORE_WIRE (1u << 20)
#define CORE_SQ 16
#define CORE_RQ 16
#define CORE_READS 4

struct core_cqe {
	enum aw_queue queue;
	struct aw_cqe cqe;
};

/* One end. mem is covered by mr[0], STag CORE_STAG, with every right. */
struct core_end {
	struct aw_qp qp;
	struct aw_rq rq;
	struct aw_mr mr[CORE_MRS]; /* pd NULL: no such MR */
	unsigned int held; /* mr_get without its mr_put */
	unsigned int placed; /* calls */
	unsigned int executed; /* atomics */
	enum aw_written written; /* how write-backs end; a test may set it */
	unsigned int write_backs;
	struct {
		uint32_t at, len; /* in mem */
		bool persistent;
	} write_back; /* the last one */
	const uint8_t *gone; /* this octet of mem is not there any more; or NULL */
	uint32_t invalidated; /* the last STag */
	bool invalidated_by_peer;
	uint32_t srqn; /* of the SRQ that rq is, where qp.xrc is a target's */
	enum aw_wc_status bind_status; /* how binds end; a test may set it */
	unsigned int binds;
	size_t stashed; /* octets of stash_get without their stash_put */
	bool stash_none; /* there is no memory for more; a test may set it */
	struct aw_swqe bound; /* the last one */
	struct core_cqe log[CORE_CQES];
	unsigned int logged, read; /* read: by core_cqe */
	_Alignas(16) uint8_t mem[CORE_MEM];
	uint8_t wire[CORE_WIRE]; /* what it transmitted, less what was delivered */
	size_t wire_len;
	uint64_t sq_mem[16384];
	uint64_t rq_mem[8192];
	struct aw_irq_entry irq[CORE_READS];
	struct aw_orq_entry orq[CORE_READS];
	uint8_t arena[2 * AW_TX_ARENA_MIN];
	struct aw_iov iov[3 * AW_TX_IOV_MIN];
};

#define CORE_STAG 0x5100
#define CORE_IOVA 0x10000u

struct core_pair {
	struct core_end a; /* initiator */
	struct core_end b; /* responder */
};

/* A stream as most tests want it: CRC, no markers, IRD and ORD CORE_READS, FPDUs up to emss. */
struct aw_stream core_stream(bool initiator, uint32_t emss);

/* A responder, an initiator in RTS; IRD and ORD CORE_READS. */
struct core_end *core_responder(void);
struct core_end *core_initiator(uint32_t emss);

struct core_end *core_end_create(const struct aw_stream *stream);
struct core_pair *core_pair_create(const struct aw_stream *a, const struct aw_stream *b);

/* Started, with completions that wait for the peer (qp.acks); a may have ord Reads outstanding. */
struct core_pair *core_pair_acking(uint32_t ord);
/* RTS on both sides, and the responder has heard of the initiator. */
struct core_pair *core_pair_ready(uint32_t emss);
/* Both assert that no MR is still held, and that a stash gives back what it has. */
void core_end_destroy(struct core_end *end);
void core_pair_destroy(struct core_pair *pair);

/* A PD of its own for MRs that must not be reachable. */
extern const char core_other_pd;
struct aw_mr *core_mr_add(struct core_end *end, uint32_t stag, uint32_t access, uint32_t at,
			  uint32_t len);

/* A WR over mem[at .. at + len), signalled; wr_id is its op. NULL when the SQ is full. */
struct aw_swqe *core_wr(struct core_end *end, enum aw_op op, uint32_t at, uint32_t len);
/* The same, posted, towards mem[to] of the peer. */
void core_post(struct core_end *end, enum aw_op op, uint32_t at, uint32_t len, uint32_t to);
void core_recv(struct core_end *end, uint64_t wr_id, uint32_t at, uint32_t len);

/* One FPDU (or none) onto the end's wire, sent at once; false when there was none. */
bool core_tx_one(struct core_end *end);
void core_tx(struct core_end *end);
/* Delivers what from has on its wire; then both ways until nothing moves. */
void core_deliver(struct core_end *from, struct core_end *to);
void core_pump(struct core_pair *pair);

/* The next completion not yet looked at; NULL when there is none. */
const struct core_cqe *core_cqe(struct core_end *end);

/* Expects the next completion to be of the SQ, of this op and status. */
void core_expect_sq(struct core_end *end, enum aw_op op, enum aw_wc_status status);

/* Live octets of a siw peer: a whole FPDU with a Send of 16 octets, behind 20 octets of headers. */
extern const uint8_t core_siw_send[40];

/* Payload for injected segments: begins 1 to 9. */
extern const uint8_t core_data[65535];

/* Headers with L set; and a segment of len octets of core_data straight behind the CRC check. */
struct ddp_hdr core_untagged(enum rdmap_opcode op, uint32_t qn, uint32_t msn, uint32_t mo);
struct ddp_hdr core_tagged(enum rdmap_opcode op, uint32_t stag, uint64_t to);
enum aw_error core_ulpdu(struct core_end *end, const struct ddp_hdr *hdr, size_t len);

/* Writes an FPDU without markers to p; returns its octets. */
size_t core_fpdu(uint8_t *p, const struct ddp_hdr *hdr, const void *payload, size_t len);
/* Hands such an FPDU to the end. */
void core_inject(struct core_end *end, const struct ddp_hdr *hdr, const void *payload, size_t len);

/* Reads the first FPDU on the end's wire (no markers). Returns its payload. */
const uint8_t *core_peek(const struct core_end *end, struct ddp_hdr *hdr, size_t *len);

#endif
