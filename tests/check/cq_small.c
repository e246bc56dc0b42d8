// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A CQ has an entry for each WR that the QPs of it can hold. A smaller one may do: this is a risk, and no fault yet.
#include "pair.h"

int main(int argc, char **argv)
{
	bool wrong = pair_wrong(argc, argv);
	struct pair pair;

	pair_device(&pair);
	struct ibv_qp_cap cap = {
		.max_send_wr = 200, .max_recv_wr = 200, .max_send_sge = 1, .max_recv_sge = 1
	};
	struct ibv_cq *cq = ibv_create_cq(pair.context, wrong ? 10 : 400, NULL, NULL, 0);
	struct ibv_qp_init_attr init = {
		.send_cq = cq, .recv_cq = cq, .cap = cap, .qp_type = IBV_QPT_RC
	};
	struct ibv_qp *qp = ibv_create_qp(pair.pd, &init); /* REPORT cq-small */

	EXPECT(cq && qp);
	EXPECT(ibv_destroy_qp(qp) == 0);
	EXPECT(ibv_destroy_cq(cq) == 0);
	pair_close(&pair);
	return 0;
}
