// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// One side of a connection, step by step, with the distribution's libraries. Each step ends with 0 or an errno, and
// waits for a bounded time alone.
#ifndef TESTS_KERNEL_SIDE_H
#define TESTS_KERNEL_SIDE_H

#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stdint.h>

enum {
	SIDE_SLOTS = 4, /* receives that are posted */
	SIDE_SLOT_BYTES = 16384,
	SIDE_BYTES = SIDE_SLOT_BYTES * (SIDE_SLOTS + 2), /* and what is sent, and a peer's target */
	SIDE_SEND_AT = SIDE_SLOT_BYTES * SIDE_SLOTS,
	SIDE_TARGET_AT = SIDE_SEND_AT + SIDE_SLOT_BYTES,
	SIDE_WAIT_MS = 20000,
};

struct side {
	struct rdma_event_channel *channel; /* a server's connections have its listener's */
	struct rdma_cm_id *id; /* a listener's, or a connection's */
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	struct ibv_comp_channel *comp;
	struct ibv_cq *cq;
	struct ibv_srq *srq;
	bool with_srq;
	char *buf;
	unsigned int sent, received; /* completions that were seen */
	unsigned int replied; /* echoes that were posted */
	uint64_t target; /* the peer's */
	uint32_t rkey;
};

int side_open_channel(struct side *s);
int side_create_id(struct side *s);
int side_bind(struct side *s, const char *address, int port);
int side_listen(struct side *s);
int side_resolve_addr(struct side *s, const char *address, int port);
int side_resolve_route(struct side *s);
int side_alloc_pd(struct side *s);
int side_reg_mr(struct side *s);
int side_create_comp(struct side *s);
int side_create_cq(struct side *s);
int side_create_srq(struct side *s);
int side_create_qp(struct side *s);
int side_arm(struct side *s);
int side_post_recvs(struct side *s);
/* With an SRQ: an event is due as soon as one of its receives is taken. Nobody reads it. */
int side_limit_srq(struct side *s);
int side_connect(struct side *s);
int side_accept(struct side *s);
int side_disconnect(struct side *s);

/* The next event of this kind; ECONNRESET: it was another one. request: the new connection's id, or NULL. */
int side_wait_event(struct side *s, enum rdma_cm_event_type type, struct rdma_cm_id **request);
/* Whatever event comes; its type, or a negative errno. */
int side_next_event(struct side *s, struct rdma_cm_id **request);

/* One WR from the place of sending; the first bytes of it are what they are. */
int side_post(struct side *s, enum ibv_wr_opcode opcode, uint32_t bytes);
/* Sees the completions that are there, and echoes what was received where echo is said. */
int side_poll(struct side *s, bool echo);
/* Until one more WR was sent, or received. */
int side_wait(struct side *s, const unsigned int *count, unsigned int wanted);

/* Destroys what is there, and forgets it: 0, or the errno at which it stayed. Any number of times. */
int side_destroy_qp(struct side *s);
int side_destroy_srq(struct side *s);
int side_destroy_cq(struct side *s);
int side_destroy_comp(struct side *s);
int side_dereg_mr(struct side *s);
int side_dealloc_pd(struct side *s);
int side_destroy_id(struct side *s);
int side_close_channel(struct side *s);
int side_close(struct side *s);

#endif
