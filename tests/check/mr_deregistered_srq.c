// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The receives of an SRQ use their memory as long as a QP takes its messages there.
#include "pair.h"

int main(int argc, char **argv)
{
	bool wrong = pair_wrong(argc, argv);
	struct ibv_qp_init_attr attr = { .qp_type = IBV_QPT_RC,
					 .cap = { .max_send_wr = 1, .max_send_sge = 1 } };
	struct ibv_srq_init_attr srq_attr = { .attr = { .max_wr = 1, .max_sge = 1 } };
	char *memory = calloc(1, MESSAGE);
	struct ibv_recv_wr *bad;
	struct pair pair;

	pair_device(&pair);
	pair.cqe = 80; // room for the third QP
	pair_prepare(&pair);
	pair_connect(&pair);

	struct ibv_srq *srq = ibv_create_srq(pair.pd, &srq_attr);
	struct ibv_mr *mr = ibv_reg_mr(pair.pd, memory, MESSAGE, IBV_ACCESS_LOCAL_WRITE);

	EXPECT(srq && mr);
	attr.srq = srq;
	attr.send_cq = attr.recv_cq = pair.a.cq;

	struct ibv_qp *qp = ibv_create_qp(pair.pd, &attr);
	struct ibv_sge sge = { .addr = (uintptr_t)memory, .length = MESSAGE, .lkey = mr->lkey };
	struct ibv_recv_wr wr = wr_recv(&sge);

	EXPECT(qp && ibv_post_srq_recv(srq, &wr, &bad) == 0);
	if (!wrong)
		EXPECT(ibv_destroy_qp(qp) == 0);
	EXPECT(ibv_dereg_mr(mr) == 0); /* REPORT mr-deregistered */
	if (wrong)
		EXPECT(ibv_destroy_qp(qp) == 0);
	EXPECT(ibv_destroy_srq(srq) == 0);
	free(memory);
	pair_close(&pair);
	return 0;
}
