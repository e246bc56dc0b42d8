// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// One process of many, each of which has a QP to every other one; the processes exchange what they need to
// know through their parent.
#ifndef SYSTEM_MESH_H
#define SYSTEM_MESH_H

#include "link.h"

#include <stdint.h>

#define MESH_MAX 64
#define MESH_WR_MAX 8 /* of each queue of each QP */

/* What each process tells all others. */
struct mesh_hello {
	uint64_t in_addr, out_addr;
	uint32_t in_rkey, out_rkey;
	uint16_t port; /* rdma_cm's, network byte order */
	uint32_t qpns[MESH_MAX]; /* ibv_modify_qp's; by the rank that each is for */
};

struct mesh {
	unsigned int rank, size;
	int parent;
	struct mesh_hello hello, hellos[MESH_MAX];
	struct rdma_event_channel *channel; /* rdma_cm's, with the listener and ids; else NULL */
	struct rdma_cm_id *listener, *ids[MESH_MAX];
	struct ibv_context *verbs;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_comp_channel *comp_channel;
	struct ibv_qp *qps[MESH_MAX]; /* none for rank itself */
};

/* Makes pd, cq and the memory, by mesh->verbs; fills in hello. */
void mesh_equip(struct mesh *mesh);
struct ibv_qp_init_attr mesh_qp_attr(const struct mesh *mesh);
/* The receives of a new QP. */
void mesh_post_recvs(struct mesh *mesh, unsigned int rank);
/* Tells hello, learns everybody's. */
void mesh_exchange(struct mesh *mesh);

/* By either way: from nothing to a QP for each rank, and back. */
void mesh_connect_cm(struct mesh *mesh);
void mesh_close_cm(struct mesh *mesh);
void mesh_connect_walk(struct mesh *mesh);
void mesh_close_walk(struct mesh *mesh);

#endif
