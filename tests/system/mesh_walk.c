// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A mesh by ibv_modify_qp: the processes tell each other the numbers of their QPs, and walk them.
#include "mesh.h"

#include <arpa/inet.h>
#include <string.h>

enum {
	/* perftest's */
	TIMEOUT = 14,
	RETRIES = 7,
	RNR_FOR_EVER = 7,
	MIN_RNR_TIMER = 12,
};

static void open_device(struct mesh *mesh)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	CHECK(list && list[0]);
	mesh->verbs = ibv_open_device(list[0]);
	CHECK(mesh->verbs);
	ibv_free_device_list(list);
}

static union ibv_gid loopback_gid(const struct mesh *mesh, uint8_t *index)
{
	union ibv_gid gid, wanted;

	CHECK(inet_pton(AF_INET6, "::ffff:127.0.0.1", wanted.raw) == 1);
	for (*index = 0;; ++*index) {
		CHECK(ibv_query_gid(mesh->verbs, 1, *index, &gid) == 0);
		if (!memcmp(&gid, &wanted, sizeof(gid)))
			return gid;
	}
}

static void make_qp(struct mesh *mesh, unsigned int link)
{
	struct ibv_qp_init_attr init = mesh_qp_attr(mesh);
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ,
	};
	struct ibv_qp *qp = ibv_create_qp(mesh->pd, &init);

	CHECK(qp);
	CHECK(ibv_modify_qp(qp, &attr,
			    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) ==
	      0);
	mesh->qps[link] = qp;
	mesh->hello.qpns[link] = qp->qp_num;
	mesh_post_recvs(mesh, link);
}

static void walk_qp(struct mesh *mesh, unsigned int link, const union ibv_gid *gid, uint8_t index)
{
	struct ibv_qp_attr rtr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = mesh->hellos[mesh_peer(mesh, link)].qpns[mesh_mirror(mesh, link)],
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = MIN_RNR_TIMER,
		.ah_attr = { .port_num = 1,
			     .is_global = 1,
			     .grh = { .dgid = *gid, .sgid_index = index, .hop_limit = 1 } },
	};
	struct ibv_qp_attr rts = {
		.qp_state = IBV_QPS_RTS,
		.timeout = TIMEOUT,
		.retry_cnt = RETRIES,
		.rnr_retry = RNR_FOR_EVER,
		.max_rd_atomic = 1,
	};

	CHECK(ibv_modify_qp(mesh->qps[link], &rtr,
			    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				    IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				    IBV_QP_MIN_RNR_TIMER) == 0);
	CHECK(ibv_modify_qp(mesh->qps[link], &rts,
			    IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				    IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC) == 0);
}

void mesh_connect_walk(struct mesh *mesh)
{
	union ibv_gid gid;
	uint8_t index;

	open_device(mesh);
	gid = loopback_gid(mesh, &index);
	mesh_equip(mesh);
	for (unsigned int link = 0; link < mesh_links(mesh); link++) {
		if (mesh_peer(mesh, link) != mesh->rank)
			make_qp(mesh, link);
	}
	mesh_exchange(mesh);
	for (unsigned int link = 0; link < mesh_links(mesh); link++) {
		if (mesh_peer(mesh, link) != mesh->rank)
			walk_qp(mesh, link, &gid, index);
	}
}

void mesh_close_walk(struct mesh *mesh)
{
	for (unsigned int link = 0; link < mesh_links(mesh); link++) {
		if (mesh_peer(mesh, link) != mesh->rank)
			CHECK(ibv_destroy_qp(mesh->qps[link]) == 0);
	}
}
