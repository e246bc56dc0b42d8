// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// One process of many, each of which has so many QPs to every other one; the processes exchange what they need
// to know through their parent. A link is one QP of this process, numbered by peer and lane.
#ifndef SYSTEM_MESH_H
#define SYSTEM_MESH_H

#include "link.h"

#include <stdint.h>

#define MESH_MAX 64
#define MESH_LINKS_MAX 2048
#define MESH_WR_MAX 8 /* of each queue of each QP */

/* What each process tells all others. */
struct mesh_hello {
	uint64_t in_addr, out_addr;
	uint32_t in_rkey, out_rkey;
	uint16_t port; /* rdma_cm's, network byte order */
	uint32_t qpns[MESH_LINKS_MAX]; /* ibv_modify_qp's */
};

struct mesh {
	unsigned int rank, size, lanes;
	int parent;
	struct mesh_hello hello, hellos[MESH_MAX];
	struct rdma_event_channel *channel; /* rdma_cm's, with the listener and ids; else NULL */
	struct rdma_cm_id *listener, *ids[MESH_LINKS_MAX];
	struct ibv_context *verbs;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_comp_channel *comp_channel;
	struct ibv_qp *qps[MESH_LINKS_MAX]; /* none for rank itself */
};

static inline unsigned int mesh_links(const struct mesh *mesh)
{
	return mesh->size * mesh->lanes;
}

static inline unsigned int mesh_peer(const struct mesh *mesh, unsigned int link)
{
	return link / mesh->lanes;
}

/* What the peer calls this link. */
static inline unsigned int mesh_mirror(const struct mesh *mesh, unsigned int link)
{
	return mesh->rank * mesh->lanes + link % mesh->lanes;
}

/* Makes pd, cq and the memory, by mesh->verbs; fills in hello. */
void mesh_equip(struct mesh *mesh);
struct ibv_qp_init_attr mesh_qp_attr(const struct mesh *mesh);
/* The receives of a new QP. */
void mesh_post_recvs(struct mesh *mesh, unsigned int link);
/* Tells hello, learns everybody's. */
void mesh_exchange(struct mesh *mesh);

/* By either way: from nothing to a QP for each link, and back. */
void mesh_connect_cm(struct mesh *mesh);
void mesh_close_cm(struct mesh *mesh);
void mesh_connect_walk(struct mesh *mesh);
void mesh_close_walk(struct mesh *mesh);

#endif
