// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Calls that a device refuses, each for one reason that --explain tells: one line each, in this order. The program has no wrong side.
#include "pair.h"

#include <errno.h>
#include <string.h>

static void held_objects(struct pair *pair)
{
	EXPECT(ibv_dealloc_pd(pair->pd) == EBUSY);
	EXPECT(ibv_destroy_cq(pair->a.cq) == EBUSY);
	EXPECT(ibv_destroy_comp_channel(pair->a.channel) == EBUSY);
}

static void windows(struct pair *pair)
{
	struct ibv_mw *mw = ibv_alloc_mw(pair->pd, IBV_MW_TYPE_1);
	struct ibv_mw_bind bind = {
		.send_flags = ~0u, /* for devices that tell the MR's fault by a completion */
		.bind_info = { .mr = pair->a.mr,
			       .addr = (uintptr_t)pair->a.memory,
			       .length = MESSAGE,
			       .mw_access_flags = IBV_ACCESS_REMOTE_READ }
	};

	EXPECT(mw);
	EXPECT(ibv_bind_mw(pair->a.qp, mw, &bind) != 0);
	EXPECT(ibv_dealloc_mw(mw) == 0);
}

static void address_handles(struct pair *pair)
{
	struct ibv_ah_attr attr = { .port_num = 1, .is_global = 1 };

	EXPECT(!ibv_create_ah(pair->pd, &attr));
}

/* Of an id whose port space has other QPs. */
static void foreign_qp(struct pair *pair)
{
	struct ibv_qp_init_attr attr = { .send_cq = pair->a.cq,
					 .recv_cq = pair->a.cq,
					 .cap = pair->cap,
					 .qp_type = IBV_QPT_UD };
	struct sockaddr_in here = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	struct rdma_event_channel *events = rdma_create_event_channel();
	struct rdma_cm_id *id;

	EXPECT(events);
	EXPECT(rdma_create_id(events, &id, NULL, RDMA_PS_TCP) == 0);
	EXPECT(rdma_resolve_addr(id, NULL, (struct sockaddr *)&here, 2000) == 0);

	struct rdma_cm_event *event;

	EXPECT(rdma_get_cm_event(events, &event) == 0);
	EXPECT(event->event == RDMA_CM_EVENT_ADDR_RESOLVED);
	rdma_ack_cm_event(event);
	EXPECT(rdma_create_qp(id, NULL, &attr) == -1);
	EXPECT(rdma_destroy_id(id) == 0);
	rdma_destroy_event_channel(events);
}

int main(int argc, char **argv)
{
	struct pair pair;

	(void)pair_wrong(argc, argv);
	pair_open(&pair);
	held_objects(&pair);
	windows(&pair);
	address_handles(&pair);
	foreign_qp(&pair);
	pair_close(&pair);
	return 0;
}
