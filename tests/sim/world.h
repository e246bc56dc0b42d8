// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What a simulated world is made of: two hosts, up to three connections between them, and the
// memory, queues and octet pipes that go with those. One seed makes one world; one thread runs it.
#ifndef SIM_WORLD_H
#define SIM_WORLD_H

#include "core/ending.h"
#include "core/qp.h"
#include "core/rnr_wait.h"
#include "core/startup.h"
#include "core/tx.h"
#include "pipe.h"
#include "rng.h"
#include "trace.h"
#include "watch.h"

#define CONNS_MAX 3
#define REGIONS_MAX 24
#define GENERATION 5 /* what a seed may have in store: see plan.c */
#define RED_ZONE 256 /* octets before and behind every MR */
#define IOV_MAX_SIM 96
#define RD_MAX_SIM 16
#define CANARY 0xa5
#define REFUSALS_MAX 6 /* in a row */
#define RETRIES_MAX 12 /* of a held message, before its driver gives up: more than are refused */

struct world;
struct end;
struct sink;

/* What an MR is there for. Sources never change, so what was sent from them is known. */
enum role {
	ROLE_SOURCE, /* gathered from, read by the peer */
	ROLE_RECV, /* receives are placed here */
	ROLE_WRITE, /* the peer writes here */
	ROLE_READ, /* our Reads are placed here */
	ROLE_SPARE, /* to be invalidated */
	ROLE_FOREIGN, /* another PD's */
	ROLE_ATOMIC, /* for the peer's atomics alone */
	ROLE_WINDOW, /* over a part of another region */
};

struct region {
	struct aw_mr mr;
	enum role role;
	bool live; /* found by its STag */
	bool named; /* a posted WR invalidates it */
	uint32_t refs;
	uint8_t *memory; /* red zone, mr.len octets, red zone */
	uint8_t *shadow; /* the same, as it ought to be */
	size_t cursor; /* where the next sink is looked for */
	struct sink *sinks; /* pieces that may change now */

	/* a window; memory, shadow and sinks are its parent's */
	struct region *parent;
	struct end *user; /* who may name it */
	bool used;
};

/* A piece of a region that an operation may change. */
struct sink {
	struct region *region;
	size_t off;
	uint32_t len;
	const uint8_t *want; /* what may come to stand there */
	uint32_t want_len; /* octets behind these stay as they are */
	bool held; /* linked in region->sinks */
	struct sink *next;
};

struct host {
	struct world *world;
	struct region region[REGIONS_MAX];
	unsigned int region_count;
	uint8_t pd, foreign_pd; /* their addresses are the PDs */
	bool use_srq;
	bool recv_frozen; /* no more receives are posted */
	struct aw_rq srq;
	void *srq_mem;
	uint32_t srq_recv_len;
	uint32_t srq_posted, srq_promised; /* receives; Sends that will take one */
};

/* What is wrong on purpose with a WR. */
enum bad {
	BAD_NOT,
	BAD_WRITE_STAG,
	BAD_WRITE_BOUNDS,
	BAD_WRITE_RIGHT,
	BAD_WRITE_PD,
	BAD_WRITE_WRAP,
	BAD_READ_STAG,
	BAD_READ_BOUNDS,
	BAD_READ_RIGHT,
	BAD_READ_PD,
	BAD_SEND_LONG,
	BAD_SEND_NO_RECV,
	BAD_INV_STAG,
	BAD_INV_SOURCE,
	BAD_LKEY,
	BAD_LOCAL_INV,
	BAD_FIRST_COUNT, /* generation 1 has those above */
	BAD_QP_WRITE = BAD_FIRST_COUNT,
	BAD_QP_READ,
	BAD_WINDOW_RIGHT,
	BAD_WINDOW_STALE,
	BAD_WINDOW_QP,
	BAD_BIND,
	BAD_ATOMIC_STAG,
	BAD_ATOMIC_BOUNDS,
	BAD_ATOMIC_RIGHT,
	BAD_ATOMIC_PD,
	BAD_ATOMIC_ALIGN,
	BAD_NOT_AGREED,
	BAD_COUNT,
};

/* A single violation in an honest stream. */
enum surgery {
	SURGERY_NONE,
	SURGERY_QN,
	SURGERY_MSN,
	SURGERY_MO,
	SURGERY_DDP_VERSION,
	SURGERY_RDMAP_VERSION,
	SURGERY_OPCODE,
	SURGERY_RESPONSE_STAG,
	SURGERY_RESPONSE_TO,
	SURGERY_RESPONSE_LONG,
	SURGERY_CRC,
	SURGERY_MARKER,
	SURGERY_FIRST_COUNT, /* generation 1 has those above */
	SURGERY_IMM_LENGTH = SURGERY_FIRST_COUNT,
	SURGERY_ATOMIC_OP,
	SURGERY_ATOMIC_SHORT,
	SURGERY_ATOMIC_ID,
	SURGERY_COUNT,
};

/* A posted WR of a send queue. */
struct wr {
	uint32_t index;
	enum aw_op op;
	uint8_t flags;
	enum bad bad;
	uint32_t len;
	uint32_t stag;
	uint32_t inv;
	uint64_t to;
	uint64_t operand[2]; /* of an atomic: add, or compare and swap; of a Flush: octets, level */
	uint8_t *data; /* len octets: sent, or what a Read must bring */
	struct sink sink[AW_SGE_MAX];
	unsigned int sink_count;
	struct region *touches; /* LOCAL_INV, SEND_INV, BIND_MW */
	uint32_t executed; /* times: an atomic or a Flush at the peer, a BIND_MW here */
	bool misfit; /* a Send that no receive can hold */
	uint32_t message; /* Sends: how many came before on this QP */
	bool before_close; /* by either program */
	bool emitted; /* its last octet was given to the wire */
	uint64_t end_pos; /* when emitted: stream position behind it */
	bool succeeded, confirmed; /* confirmed: its Write was seen at the peer */
};

/* A posted receive. */
struct recv {
	uint64_t wr_id;
	uint32_t len;
	struct sink sink[AW_SGE_MAX];
	unsigned int sink_count;
	struct end *taker;
	bool completed;
};

enum phase {
	PHASE_REQUEST, /* initiator: request goes out */
	PHASE_WAIT, /* a frame is due from the peer */
	PHASE_REPLY, /* responder: reply goes out */
	PHASE_STREAM,
	PHASE_OVER, /* start-up failed or was refused */
};

/* One end of a connection: a QP, its driver's state and its program's. */
struct end {
	struct world *world;
	struct conn *conn;
	struct host *host;
	struct end *peer;
	char name; /* in traces */
	bool initiator;

	/* the driver */
	struct aw_qp qp;
	struct aw_qp_mem mem;
	struct aw_rq rq;
	void *rq_mem;
	struct pipe out, *in;
	uint8_t *stage;
	size_t stage_cap, stage_len;
	uint8_t *arena; /* arena_len octets and a canary */
	size_t arena_len;
	struct aw_iov iov[IOV_MAX_SIM + 1];
	unsigned int iov_max, iov_count, iov_at;
	size_t iov_off;
	uint64_t taken; /* octets of the stream that the pipe took */
	struct aw_ending ending;
	bool lingers; /* the core is in ERROR: the rest of the input is dropped until the peer's FIN */
	bool fin_seen, over;
	uint64_t flip_after, cut_after; /* octets of what this end transmits; UINT64_MAX: never */
	uint32_t read_max, write_max; /* octets a turn */
	uint32_t asleep_until; /* step */
	uint32_t deadline; /* step at which its driver's timer ends it; 0: none runs */
	bool timed_out;
	uint32_t refused; /* receives in a row, for which its messages wait */
	struct aw_rnr_wait rnr_wait; /* of a message that waits, by the clock of its tries */
	uint32_t tries;
	size_t stashed; /* octets of its stash's chunks */

	/* start-up */
	enum phase phase;
	struct aw_mpa_local local;
	struct aw_mpa_result result;
	uint8_t frame[MPA_FRAME_MAX];
	size_t frame_len, frame_off;
	uint8_t pd[64], pd_got[MPA_PD_MAX];
	size_t pd_len;

	/* the program */
	uint32_t budget; /* WRs still to post */
	uint32_t close_at, abort_at; /* when so many are left; UINT32_MAX: never */
	bool closed, aborted; /* by the program */
	struct wr **wr;
	uint32_t wr_count, wr_cap, done;
	bool failed_wr; /* a bad completion was seen: from here every WR has one */
	struct recv **recv;
	uint32_t recv_count, recv_cap;
	uint32_t sends; /* posted by this end: messages that take a receive */
	uint32_t atomics; /* executed for the peer, Atomic Writes among them */
	uint32_t flushes; /* likewise */
	bool writes_back; /* its driver has begun to, for the peer's Flush */
	uint32_t grants; /* what its QP allows a peer */
	uint32_t taken_recvs, done_recvs;
	struct recv **order; /* receives in the order taken */
	struct watch watch; /* of what this end transmits */
};

struct conn {
	struct world *world;
	struct end end[2];
	bool untrusted; /* octets change on the way and no CRC tells: contents are not compared */
	enum surgery surgery; /* of a hostile end: the one thing it does */
	enum aw_error surgery_error; /* once done: what it must lead to */
	uint64_t surgery_pos; /* pipe position behind it */
	bool expect_clean; /* nothing may go wrong */
	bool hostile; /* end[1]'s FPDUs are mutated */
	unsigned int hostility; /* percent of FPDUs */
	enum bad bad; /* the one bad WR that was posted */
	struct end *bad_poster;
	bool faulty; /* flip, cut */
	bool torn; /* a fault or an abort struck */
};

struct plan {
	uint32_t len_max; /* largest message */
	unsigned int conns;
	bool bad; /* one WR of each connection is wrong */
	bool dereg;
	bool flip, cut_fin, cut_rst, hostile;
	bool close, abort;
	uint32_t timeout; /* steps that start-up, or an ending, may take; 0: as many as it likes */
	unsigned int post_percent;
	bool extended; /* RFC 7306, windows, QPs with fewer rights */
	bool placement; /* Atomic Writes and Flushes */
	unsigned int
		hold_percent; /* of messages find no receive when they come, and wait for one */
	bool keeps; /* and do not stop what is behind them (core/stash.h) */
	unsigned int scarce_percent; /* of the memory for that is refused */
	bool records; /* the streams come as records of TLS */
};

struct world {
	uint32_t step, steps_max;
	unsigned int generation;
	uint64_t events;
	struct rng rng;
	struct plan plan;
	struct host host[2];
	struct conn conn[CONNS_MAX];
	struct recv **srq_recv[2]; /* in the order posted */
	uint32_t srq_recv_count[2], srq_recv_cap[2];
	bool dereg_done;
	struct trace trace;
	bool failed;
	char why[256];
};

/* world.c */
/* generation: 1 to GENERATION. A seed means the same world for ever within its generation. */
void world_init(struct world *w, struct rng rng, unsigned int generation, uint32_t steps_max,
		bool verbose);
/* Does a message of this kind take a receive? */
static inline bool takes_recv(enum aw_op op)
{
	return op == AW_OP_SEND || op == AW_OP_SEND_INV || op == AW_OP_SEND_IMM ||
	       op == AW_OP_WRITE_IMM;
}

static inline bool is_write(enum aw_op op)
{
	return op == AW_OP_WRITE || op == AW_OP_WRITE_IMM;
}

/* Is it answered by the peer? */
static inline bool is_request(enum aw_op op)
{
	return op == AW_OP_READ || aw_op_is_atomic(op) || op == AW_OP_ATOMIC_WRITE ||
	       op == AW_OP_FLUSH;
}

/* With octets? */
static inline bool brings_octets(enum aw_op op)
{
	return op == AW_OP_READ || aw_op_is_atomic(op);
}

/* Done without a word to the peer? */
static inline bool is_local(enum aw_op op)
{
	return op == AW_OP_LOCAL_INV || op == AW_OP_BIND_MW;
}

/* Runs it to its end; false when a check failed (why tells which). */
bool world_run(struct world *w);
void world_fini(struct world *w);
/* Remembers the first thing that went wrong. */
void world_fail(struct world *w, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* plan.c */
/* Draws the plan; then, with the hosts made, each connection by it. */
void plan_draw(struct world *w);
void plan_conns(struct world *w);

/* memory.c */
void memory_init(struct host *host);
void memory_fini(struct host *host);
struct region *memory_find(struct host *host, uint32_t stag);
/* A random live region of that role, or NULL. */
struct region *memory_pick(struct host *host, enum role role);
uint8_t *memory_at(const struct region *region, size_t off);
uint8_t *memory_shadow_at(const struct region *region, size_t off);
/* Takes [off, off + len) for an operation; false when there is no free piece of that size. */
bool memory_claim(struct region *region, uint32_t len, struct sink *sink);
/* The same at one place. */
bool memory_claim_at(struct region *region, size_t off, uint32_t len, struct sink *sink);
/* One more region, without memory; NULL when there are too many. */
struct region *memory_add_window(struct host *host);
void memory_release(struct sink *sink);
/* Takes what stands in the sink as right from now on. */
void memory_settle(struct sink *sink);
/* The same for an operation that did not end well: each octet is the old one or the one wanted. */
void memory_accept(struct world *w, struct sink *sink, bool anything);
/* Does the sink hold what was wanted, and the old octets behind that? */
bool memory_matches(const struct sink *sink);
void memory_check(struct world *w);

/* node.c */
void node_init(struct end *end);
void node_fini(struct end *end);
void node_start(struct end *end);
/* Takes up to n octets from the wire; false when nothing happened. */
bool node_receive(struct end *end, size_t n);
/* Gives up to n octets to the wire, and closes what is to be closed; false: nothing happened. */
bool node_transmit(struct end *end, size_t n);
/* Its timer, by the virtual clock: starts with start-up and with an ending, and ends those. */
void node_tick(struct end *end);
/* The connection is lost for this end. */
void node_abort(struct end *end, enum aw_error why);
extern const struct aw_ops node_ops;

/* setup.c */
void setup_init(struct end *end);
/* Octets staged while no stream runs. */
void setup_receive(struct end *end);
void setup_sent(struct end *end);

/* traffic.c */
void traffic_receives(struct end *end);
bool traffic_post(struct end *end);
/* Longest Send that the receive it will meet can hold; UINT32_MAX when there is none. */
uint32_t traffic_credit(const struct end *end);
/* A length up to max, mostly at an edge. */
uint32_t traffic_len(struct end *end, uint32_t max);

/* extensions.c: RFC 7306, and Atomic Writes and Flushes. */
bool extensions_make(struct end *end, struct wr *wr);
uint64_t extensions_execute(struct end *end, uint8_t *at, const struct rdmap_atomic_req *req);
bool extensions_make_placement(struct end *end, struct wr *wr);
enum aw_written extensions_write_back(struct end *end, const uint8_t *at, size_t len,
				      bool persistent);
/* False when nothing is under way, or goes on. */
bool extensions_written_back(struct end *end);

/* windows.c: type 2 memory windows. False: the WR was not made. */
bool windows_make_bind(struct end *end, struct wr *wr);
bool windows_make_access(struct end *end, struct wr *wr);
/* A Send that invalidates one of the peer's; one of ours that the peer never used. */
struct region *windows_pick_used(struct end *end);
struct region *windows_pick_unused(struct end *end);
enum aw_wc_status windows_bind(struct end *end, const struct aw_swqe *wqe);
/* Makes an access wrong. */
bool windows_spoil(struct end *end, struct wr *wr);

/* lists.c: an SGE list over regions for a WR of len octets. */
unsigned int lists_source(struct end *end, uint32_t len, struct aw_sge *sge, uint8_t *data);
unsigned int lists_sink(struct end *end, enum role role, uint32_t len, struct sink *sink);
void lists_release(struct sink *sink, unsigned int count);
void lists_sges(const struct sink *sink, unsigned int count, struct aw_sge *sge);

/* bad.c */
void bad_make(struct end *end, struct wr *wr, struct aw_sge *sge);
enum aw_error bad_error(enum bad bad);
enum bad bad_draw(struct end *end);

/* hostile.c: changes an FPDU that was given out, or puts others in its place; new length. */
size_t hostile_mutate(struct end *end, uint8_t *fpdu, size_t len);
/* Makes a ULPDU of that length, which stands at fpdu + 2, an FPDU; returns its octets. */
size_t hostile_seal(struct end *end, uint8_t *fpdu, size_t ulpdu);

/* surgery.c: the same for a connection with one surgery. */
size_t surgery_apply(struct end *end, uint8_t *fpdu, size_t len);
void surgery_check(struct conn *conn);

/* check_cqe.c: every WR and receive completes once, in order, with the right outcome. */
void check_sq_cqe(struct end *end, const struct aw_cqe *cqe);
void check_rq_cqe(struct end *end, const struct aw_cqe *cqe);
void check_taken(struct end *end, const struct aw_rwqe *rwqe);
/* Every Write of the peer's before this WR of its is placed. */
void check_writes_placed(struct end *end, const struct wr *upto);
/* wr succeeded, with a CQE or without. */
void check_succeeded(struct end *end, struct wr *wr);

/* check_end.c: what must hold of a connection as a whole. */
/* A responder is silent until an FPDU came (RFC 5044 7.1.2): nothing can be asked of it. */
bool check_muted(const struct end *end);
void check_setup(struct conn *conn);
void check_live(struct conn *conn);
void check_over(struct conn *conn);

#endif
