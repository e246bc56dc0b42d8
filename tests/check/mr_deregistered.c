// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// An MR is deregistered once all WRs that name it have completed.
#include "pair.h"

int main(int argc, char **argv)
{
	bool wrong = pair_wrong(argc, argv);
	struct pair pair;

	pair_open(&pair);
	struct ibv_mr *mr = ibv_reg_mr(pair.pd, pair.a.memory, MESSAGE, 0);

	EXPECT(mr);
	struct ibv_sge sge = { (uintptr_t)pair.a.memory, MESSAGE, mr->lkey };
	struct ibv_send_wr wr = wr_send(&sge), *bad;

	end_recv(&pair.b);
	EXPECT(ibv_post_send(pair.a.qp, &wr, &bad) == 0);
	if (wrong)
		EXPECT(ibv_dereg_mr(mr) == 0); /* REPORT mr-deregistered */
	expect_completion(pair.a.cq); // which may be a local protection error by now
	if (!wrong)
		EXPECT(ibv_dereg_mr(mr) == 0);
	pair_close(&pair);
	return 0;
}
