// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Two connected QPs in one process, for short programs of which each keeps or breaks one rule of verbs. Over rdma_cm on
// 127.0.0.1 (the variable PAIR_ADDRESS has another one), or by ibv_modify_qp where the variable ANYWARP_PERSONA is roce. Public calls only: the programs run over any
// libibverbs and librdmacm. What fails prints where and ends the program with status 1.
#ifndef TESTS_CHECK_PAIR_H
#define TESTS_CHECK_PAIR_H

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#define EXPECT(claim)                                                                           \
	do {                                                                                    \
		if (!(claim)) {                                                                 \
			fprintf(stderr, "%s:%d: not true: %s (errno %m)\n", __FILE__, __LINE__, \
				#claim);                                                        \
			exit(1);                                                                \
		}                                                                               \
	} while (0)

enum {
	MEMORY = 8192, /* bytes of each end */
	INBOX = 0, /* offset of what Sends bring */
	WINDOW = 4096, /* offset of what the peer writes and reads */
	MESSAGE = 64, /* bytes of the usual message */
};

struct end {
	struct rdma_cm_id *id; /* NULL where ibv_modify_qp connects */
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq; /* of sends and receives, on the channel, not armed */
	struct ibv_cq_ex *cq_ex; /* the same one, of an extended pair */
	struct ibv_qp *qp;
	char *memory;
	struct ibv_mr *mr; /* of the memory: local and remote Writes, remote Reads */
};

struct pair {
	/* What a program may change before pair_prepare. */
	struct ibv_qp_cap cap; /* of both QPs */
	int cqe; /* of both CQs */
	struct ibv_pd *qp_pd; /* the PD of the QPs: pd */
	bool extended; /* the QPs have the ibv_wr_* calls of Sends; the CQs ibv_start_poll */

	struct ibv_context *context;
	struct ibv_pd *pd;
	struct rdma_event_channel *events; /* these two for rdma_cm */
	struct rdma_cm_id *listener;
	struct end a; /* connects, and sends first */
	struct end b;
};

/* True for the argument "wrong", false for "right". From here on the program has half a minute. */
bool pair_wrong(int argc, char **argv);

/* From here on rdma_cm connects, whatever ANYWARP_PERSONA is: for rules about one of the two ends. */
void pair_by_cm(void);
/* In this order. The first opens a device and makes the PD, the second all that a has, but for a connection. */
void pair_device(struct pair *pair);
void pair_prepare(struct pair *pair);
void pair_connect(struct pair *pair);
/* All three. */
void pair_open(struct pair *pair);
/* Moves the QPs to the error state and destroys what is left: a program that destroyed something itself has set the pointer to NULL. */
void pair_close(struct pair *pair);
/* An end's QP. */
void end_destroy_qp(struct end *end);

/* The step to INIT where ibv_modify_qp connects. */
void end_init(struct end *end);
/* The step to RTR, as both ends make it where ibv_modify_qp connects: the attributes; returns their mask. */
int pair_rtr_attr(const struct pair *pair, const struct end *peer, struct ibv_qp_attr *attr);

/* A piece of an end's memory; and WRs of one SGE. Each send is signaled. */
struct ibv_sge end_sge(const struct end *end, size_t offset, uint32_t length);
struct ibv_send_wr wr_send(struct ibv_sge *sge);
struct ibv_send_wr wr_write(struct ibv_sge *sge, const struct end *to, size_t offset);
struct ibv_send_wr wr_read(struct ibv_sge *sge, const struct end *from, size_t offset);
struct ibv_recv_wr wr_recv(struct ibv_sge *sge);

/* Returns once a thread of this process, which gettid(2) has named, sleeps in a call. */
void await_sleep(int thread);

/* Posts a receive of MESSAGE bytes into the inbox; sends as many from the inbox of the other end. */
void end_recv(struct end *end);
void end_send(struct end *end);

/* The next completion of the CQ, polled for, of any status; and the status that it must have. */
struct ibv_wc expect_completion(struct ibv_cq *cq);
void expect_success(struct ibv_cq *cq);
/* The next event of rdma_cm, which must be of this type; its id. */
struct rdma_cm_id *expect_event(struct pair *pair, enum rdma_cm_event_type type);

#endif
