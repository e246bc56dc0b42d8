// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// An independent reader of what an end transmits: frames, then messages, each held against the WRs
// posted, the ORD agreed on and the RFCs. It shares no code with wire/ and core/.
#ifndef SIM_WATCH_H
#define SIM_WATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WATCH_READS 256
#define WATCH_FPDU_MAX 66064

struct end;
struct wr;

struct watch_read {
	struct wr *wr; /* NULL: an RTR */
	unsigned int answer; /* the opcode that answers it */
	uint32_t sink_stag; /* of an atomic or a Flush its Request Identifier */
	uint64_t sink_to;
	uint32_t size;
	uint32_t answered; /* octets */
	uint64_t end_pos; /* where the response ended in the other direction */
};

struct watch {
	uint64_t pos; /* stream position behind the last FPDU */
	uint64_t fpdus;
	uint64_t first_end; /* behind the first FPDU */
	uint64_t in_base; /* octets of the other direction before its stream began */
	uint32_t msn[4];
	uint32_t next_wr; /* the WR whose octets come next */
	uint32_t off; /* octets of it that were seen */
	bool imm_seen; /* its Send's Immediate was */
	struct watch_read read[WATCH_READS]; /* Read Requests of this end */
	uint32_t read_head, read_next, read_tail; /* delivered, to be answered, free */
	bool in_response; /* this end is in the middle of a Read Response */
	bool not_ready; /* the peer was told to hold its requests back, */
	uint64_t rnr_end; /* by what ends here, in this direction */
	bool terminated;
	uint16_t term_error; /* layer, type and code of the Terminate */
	uint8_t plain[WATCH_FPDU_MAX]; /* the FPDU without markers */
};

/* One FPDU (with markers if on) that end gave out. */
void watch_fpdu(struct end *end, const uint8_t *fpdu, size_t len);
/* watch_frame.c: the ULPDU within, at watch.plain + 2; its length, or SIZE_MAX after a failure. */
size_t watch_frame(struct end *end, const uint8_t *fpdu, size_t len);
uint32_t watch_crc32c(const uint8_t *p, size_t len);
/* Reads of this end whose response it cannot have received yet. */
uint32_t watch_reads_outstanding(struct end *end);

#endif
