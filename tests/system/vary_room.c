// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Fills an RQ, has the receives flushed, and posts one more before and after it has polled a completion. Prints what the two posts
// return.
#include <err.h>
#include <infiniband/verbs.h>
#include <stdio.h>

static void move(struct ibv_qp *qp, enum ibv_qp_state state, int more)
{
	struct ibv_qp_attr attr = { .qp_state = state, .port_num = 1 };

	if (ibv_modify_qp(qp, &attr, IBV_QP_STATE | more) != 0)
		errx(1, "ibv_modify_qp");
}

static int post(struct ibv_qp *qp)
{
	struct ibv_recv_wr wr = { .num_sge = 0 }, *bad;

	return ibv_post_recv(qp, &wr, &bad);
}

int main(void)
{
	struct ibv_device **devices = ibv_get_device_list(NULL);
	struct ibv_context *context = devices && devices[0] ? ibv_open_device(devices[0]) : NULL;
	struct ibv_pd *pd = context ? ibv_alloc_pd(context) : NULL;
	struct ibv_cq *cq = pd ? ibv_create_cq(context, 64, NULL, NULL, 0) : NULL;
	struct ibv_qp_init_attr attr = {
		.send_cq = cq, .recv_cq = cq, .cap = { 1, 4, 1, 1, 0 }, .qp_type = IBV_QPT_RC
	};
	struct ibv_qp *qp = cq ? ibv_create_qp(pd, &attr) : NULL;
	struct ibv_wc wc;
	int before;

	if (!qp)
		errx(1, "no QP");
	move(qp, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
	for (unsigned i = 0; i < attr.cap.max_recv_wr; i++) {
		if (post(qp) != 0)
			errx(1, "a receive found no room");
	}
	move(qp, IBV_QPS_ERR, 0);
	before = post(qp);
	while (ibv_poll_cq(cq, 1, &wc) == 0)
		;
	printf("%d %d\n", before, post(qp));
	ibv_destroy_qp(qp);
	ibv_destroy_cq(cq);
	ibv_dealloc_pd(pd);
	ibv_close_device(context);
	ibv_free_device_list(devices);
	return 0;
}
