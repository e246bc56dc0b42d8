// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// One fixed exchange between two cores, start-up included, octet for octet the same each time; and
// the one fault that may strike it at a given octet of one direction.
#ifndef SIM_EXCHANGE_H
#define SIM_EXCHANGE_H

#include "core/ending.h"
#include "core/qp.h"
#include "core/startup.h"

#define ITEMS_MAX 24
#define EXCHANGE_ZONE 5120u /* octets of each MR */
#define EXCHANGE_RED 64u /* between them */
#define EXCHANGE_MEM (EXCHANGE_RED + ZONES * (EXCHANGE_ZONE + EXCHANGE_RED))
#define EXCHANGE_STREAM (1u << 15)
#define EXCHANGE_READS 4
#define EXCHANGE_STAG 0x5100u /* of the first zone; the others' follow */

/* The MRs of a party. Every item has its own place in each, so that nothing is written twice. */
enum zone {
	ZONE_SOURCE, /* sent from, read by the peer */
	ZONE_TARGET, /* the peer writes here */
	ZONE_SINK, /* our Reads are placed here */
	ZONE_RECV,
	ZONE_CELLS, /* of the peer's atomics */
	ZONES,
	/* Without memory; to be invalidated: by the peer's two Sends, by its owner. */
	ZONE_SPARE = ZONES,
	ZONE_SPARE_SE,
	ZONE_OWN,
	STAGS,
};

/* What is posted at each end. */
enum script {
	SCRIPT_FULL, /* all of RFC 5040 */
	SCRIPT_BRIEF, /* some of it, in few octets */
	SCRIPT_EXTENDED, /* RFC 7306, Atomic Write and Flush, which are agreed on here alone */
};

struct exchange_terms {
	bool markers[2]; /* what a party wants in what it receives */
	bool crc;
	uint8_t rtr; /* enum mpa_rtr; 0: no peer-to-peer model */
	enum script script;
	uint32_t emss;
	bool waits; /* no message finds its receive until all is still; the ends agreed on core/stash.h */
	bool scarce; /* of its memory every second piece is refused */
};

enum fault {
	FAULT_NONE,
	FAULT_DRIBBLE, /* each octet alone */
	FAULT_CUT, /* the octets before and behind are read apart */
	FAULT_RECORDS, /* in either direction: at[1] octets at a time, of which the first ends at at[0] */
	FAULT_STALL, /* the octets behind come once all else is still */
	FAULT_FIN,
	FAULT_RST,
	FAULT_FLIP,
};

struct exchange_fault {
	enum fault kind;
	unsigned int from; /* index of the party whose octets it strikes */
	size_t at[2]; /* ascending stream positions; the second for CUT alone, or SIZE_MAX */
	uint8_t flip_with;
};

/* What a program posts. */
struct item {
	enum aw_op op;
	uint32_t len;
	uint8_t flags; /* enum aw_wr_flag */
};

struct log {
	struct aw_cqe cqe[ITEMS_MAX];
	unsigned int count;
};

/* What a party came to; filled by a run, or from the script alone. */
struct outcome {
	struct log queue[2]; /* enum aw_queue */
	bool invalid[STAGS];
	unsigned int atomics, binds, flushes; /* executed */
	_Alignas(8) uint8_t mem[EXCHANGE_MEM];
};

struct party {
	struct exchange *exchange;
	unsigned int index; /* 0: the initiator */
	struct party *peer;
	struct aw_qp qp;
	struct aw_mr mr[STAGS];
	unsigned int held;
	struct outcome outcome;
	unsigned int received; /* receives taken */
	bool has_receive; /* waits: the next message finds its receive */
	size_t stashed; /* octets of its stash's chunks */
	unsigned int asked; /* how often for such */
	struct aw_mpa_local local;
	struct aw_mpa_result result;
	bool streaming, over, fin_seen;
	struct aw_ending ending;

	/* what it transmits */
	uint8_t out[EXCHANGE_STREAM];
	size_t written, delivered; /* delivered: the peer read as much */
	bool fin;
	size_t stream_base; /* octets of its start-up frame */

	/* memory of its driver */
	uint64_t sq_mem[ITEMS_MAX * 32];
	struct aw_irq_entry irq[EXCHANGE_READS];
	struct aw_orq_entry orq[EXCHANGE_READS];
	uint8_t stage[EXCHANGE_STREAM];
	size_t staged;
};

struct exchange {
	struct exchange_terms terms;
	struct exchange_fault fault;
	struct party party[2];
	bool still; /* nothing moves but what FAULT_STALL holds back */
	bool reset; /* FAULT_RST struck */
	bool timed_out; /* not over by itself */
	/* Called, if set, after each octet of a FAULT_DRIBBLE. */
	void (*each_octet)(struct party *reader);
	const char *wrong; /* what a callback found, or NULL */
};

/* exchange.c: runs it from start-up until both ends are over. */
void exchange_run(struct exchange *x);

/* exchange_ops.c */
extern const struct aw_ops exchange_ops;

/* exchange_script.c */
const struct item *exchange_item(const struct party *party, unsigned int i);
unsigned int exchange_items(const struct exchange_terms *terms);
/* Fills in memory and MRs as they are before anything moves. */
void exchange_lay_out(struct party *party);
/* Posts every item. */
void exchange_post(struct party *party);
/* The receive for the peer's Send number n; false when it has no more. */
bool exchange_recv(const struct party *party, unsigned int n, struct aw_rwqe *recv);
/* What must come of it for this party, from the script alone. */
void exchange_expect(const struct party *party, struct outcome *expected);
/* What an atomic of the peer's makes of a cell that holds old. */
uint64_t exchange_atomic(const struct rdmap_atomic_req *req, uint64_t old);
/* Offset of a zone in a party's memory. */
size_t exchange_zone(enum zone zone);

#endif
