// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// An SGE lies in its MR from the first byte to the last.
#include "pair.h"

int main(int argc, char **argv)
{
	bool wrong = pair_wrong(argc, argv);
	struct pair pair;

	pair_open(&pair);
	struct ibv_mr *mr = ibv_reg_mr(pair.pd, pair.a.memory, wrong ? MESSAGE - 1 : MESSAGE, 0);

	EXPECT(mr);
	struct ibv_sge sge = { (uintptr_t)pair.a.memory, MESSAGE, mr->lkey };
	struct ibv_send_wr wr = wr_send(&sge), *bad;

	end_recv(&pair.b);
	EXPECT(ibv_post_send(pair.a.qp, &wr, &bad) == 0); /* REPORT sge-outside-mr */
	struct ibv_wc wc = expect_completion(pair.a.cq);

	EXPECT((wc.status != IBV_WC_SUCCESS) == wrong);
	EXPECT(ibv_dereg_mr(mr) == 0);
	pair_close(&pair);
	return 0;
}
