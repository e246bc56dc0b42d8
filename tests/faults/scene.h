// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A program's whole life with the library: ids, a listener, a connection, queues, memory, traffic,
// the end. Both ends are in one process; every step may fail, and then what was made is undone.
#ifndef FAULTS_SCENE_H
#define FAULTS_SCENE_H

#include <stdbool.h>
#include <stdint.h>

#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>

#define SCENE_OCTETS 100000u
#define SCENE_SPARES 5 /* QPs that stay idle: the CQ then has an epoll set */
#define SCENE_WAIT_MS 8000 /* longer than anything may take: the library's own time-outs are less */

enum side {
	ACTIVE,
	PASSIVE,
	SIDES
};

struct scene {
	struct rdma_event_channel *channel[SIDES];
	uint32_t seen[SIDES]; /* bits of events that came */
	struct rdma_cm_id *listener;
	struct rdma_cm_id *id[SIDES];
	bool has_qp[SIDES];
	struct ibv_pd *pd;
	struct ibv_comp_channel *comp;
	struct ibv_cq *cq;
	struct ibv_srq *srq; /* the passive side's receives */
	struct ibv_mr *mr[SIDES];
	struct ibv_qp *spare[SCENE_SPARES];
	struct ibv_mw *mw;
	struct rdma_addrinfo *info;
	struct rdma_cm_id *endpoint; /* a synchronous id with a QP, not connected */
	uint8_t *memory[SIDES]; /* SCENE_OCTETS */
	const char *step; /* the one that failed */
	bool stuck; /* it waited in vain */
	int err; /* its errno */
};

/* Each step in turn; true when all went well. */
bool scene_open(struct scene *s); /* until both ends are connected */
bool scene_talk(struct scene *s); /* Send, Write and Read, with what came compared */
bool scene_part(struct scene *s); /* disconnects, and hears of it */
/* Whatever there is; nothing of it may fail. */
void scene_close(struct scene *s);

#endif
