// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A connection under load: one end sends numbered messages of many lengths, and Writes and Reads, the
// other one sends each message back. What is lost, doubled or spoiled on the way fails the test.
#ifndef TESTS_ECHO_H
#define TESTS_ECHO_H

#include "cm.h"

#include <stdbool.h>

#define ECHO_WINDOW 16 /* messages under way */
#define ECHO_OCTETS 100000 /* of the longest */

struct echo {
	struct rdma_cm_id *id;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	uint8_t *
		buffers; /* ECHO_WINDOW for receives, as many for sends, one for Writes and Reads */
	uint32_t received, sent, completed;
	/* the asking end */
	uint64_t remote;
	uint32_t rkey;
	bool one_sided; /* a Write or Read is under way */
	uint32_t one_sided_count;
};

/* A QP for id, with receives posted. */
void echo_open(struct echo *e, struct rdma_cm_id *id);
/* With the id, of which DISCONNECTED may wait. */
void echo_close(struct echo *e);
/* All but the id, which is gone. */
void echo_free(struct echo *e);

/* The answering end; true until the peer disconnects. sleeps: waits for an event, else polls. */
bool echo_answer(struct echo *e, bool sleeps);

/* The asking end: one step, which does not wait; true until total messages have come back. */
bool echo_ask(struct echo *e, uint32_t total);

#endif
