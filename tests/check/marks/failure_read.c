// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Of a completion with an error wr_id, status, qp_num and vendor_err are defined; its opcode is not.
#include "../pair.h"

int main(int argc, char **argv)
{
	bool wrong = pair_wrong(argc, argv);
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };
	struct pair pair;

	pair_open(&pair);
	end_recv(&pair.b);
	EXPECT(ibv_modify_qp(pair.b.qp, &attr, IBV_QP_STATE) == 0);
	struct ibv_wc wc = expect_completion(pair.b.cq); /* ORIGIN */

	EXPECT(wc.status == IBV_WC_WR_FLUSH_ERR && wc.wr_id == 0);
	EXPECT(wc.qp_num == pair.b.qp->qp_num);
	if (wrong && wc.opcode == IBV_WC_RECV) /* UNDEFINED */
		puts("a receive has failed");
	pair_close(&pair);
	return 0;
}
