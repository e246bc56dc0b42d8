// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The device writes into the sink of a receive: its MR needs IBV_ACCESS_LOCAL_WRITE.
#include "pair.h"

int main(int argc, char **argv)
{
	bool wrong = pair_wrong(argc, argv);
	struct pair pair;

	pair_open(&pair);
	struct ibv_mr *mr =
		ibv_reg_mr(pair.pd, pair.b.memory, MESSAGE, wrong ? 0 : IBV_ACCESS_LOCAL_WRITE);

	EXPECT(mr);
	struct ibv_sge sge = { (uintptr_t)pair.b.memory, MESSAGE, mr->lkey };
	struct ibv_recv_wr wr = wr_recv(&sge), *bad;

	EXPECT(ibv_post_recv(pair.b.qp, &wr, &bad) == 0); /* REPORT local-access */
	end_send(&pair.a);
	struct ibv_wc wc = expect_completion(pair.b.cq);

	EXPECT((wc.status != IBV_WC_SUCCESS) == wrong);
	expect_completion(pair.a.cq);
	EXPECT(ibv_dereg_mr(mr) == 0);
	pair_close(&pair);
	return 0;
}
