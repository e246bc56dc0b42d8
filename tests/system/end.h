// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// One end of a connection that tests exchange data over: its memory, its QP, its posts and its
// completions, by the public interface alone. What the program did wrong ends it (CHECK); a
// connection that ends early does not: then the function returns false. For tests only.
#ifndef SYSTEM_END_H
#define SYSTEM_END_H

#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define END_RECEIVES 4
#define END_CELLS 3

/* What one end tells the other as private data when they connect. */
struct advert {
	uint64_t out;
	uint64_t target;
	uint64_t cell;
	uint32_t rkey;
	uint32_t seed;
};

/* Regions of one MR. The peer Reads out, Writes target, and does its atomics on cells[0]. */
struct end_memory {
	uint8_t *out;
	uint8_t *target;
	uint8_t *in; /* the sink of our Reads */
	uint8_t *note; /* a short message on its way */
	uint8_t *received[END_RECEIVES];
	uint64_t *cells; /* ours, then what FetchAdd and CmpSwap returned */
};

struct end {
	/* Fixed once open. */
	struct rdma_event_channel *events;
	struct rdma_cm_id *id;
	struct ibv_pd *pd;
	struct ibv_comp_channel *completions;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	struct end_memory memory;
	size_t size_max;
	struct advert mine;
	struct advert peer;

	/* Counters of posts and completions; a WR's number is its wr_id. */
	uint64_t sends_posted, sends_done;
	uint64_t receives_posted, receives_done;
	struct ibv_wc arrived[END_RECEIVES];
	uint64_t taken; /* of receives_done, how many end_wait_message gave out */
	enum ibv_wc_status status; /* the first that was no success */

	/* The window over target, once there is one, and the peer's. */
	struct ibv_mw *window;
	uint32_t window_rkey;
	uint32_t peer_window_rkey;
};

/* Gives an id with resolved addresses its memory and its QP; receives are posted. */
void end_open(struct end *end, struct rdma_event_channel *events, struct rdma_cm_id *id,
	      size_t size_max, uint32_t seed);

/* For an id that is disconnected, or never was connected. */
void end_close(struct end *end);

/* Posts one signalled WR with one SGE; only what the opcode needs of wr has to be set. */
void end_post(struct end *end, struct ibv_send_wr *wr, const void *at, size_t size);

/* Every WR posted so far has completed. */
bool end_wait_sent(struct end *end);

/* The next message arrived: its completion. Its octets are at end_received until end_receive. */
bool end_wait_message(struct end *end, struct ibv_wc *wc);
const uint8_t *end_received(const struct end *end);

/* Posts the receive again that the last message took. */
void end_receive(struct end *end);

/* Takes what a lost connection flushes, which is every WR posted, once and in order. */
void end_drain(struct end *end);

/* The next event of the id, which must be of this type. */
void end_expect(struct end *end, enum rdma_cm_event_type type);

#endif
