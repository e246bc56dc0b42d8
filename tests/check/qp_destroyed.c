// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Whoever destroys a connected QP never learns what became of the sends that have not completed.
#include "pair.h"

int main(int argc, char **argv)
{
	bool wrong = pair_wrong(argc, argv);
	struct pair pair;

	pair_open(&pair);
	end_recv(&pair.b);
	end_send(&pair.a);
	if (!wrong)
		expect_success(pair.a.cq);
	if (pair.a.id)
		rdma_destroy_qp(pair.a.id); /* REPORT qp-destroyed */
	else
		EXPECT(ibv_destroy_qp(pair.a.qp) == 0); /* REPORT qp-destroyed */
	pair.a.qp = NULL;
	pair_close(&pair);
	return 0;
}
