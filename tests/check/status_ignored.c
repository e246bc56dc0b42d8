// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A completion with an error says that the QP is in the error state: whatever is posted then fails as well.
#include "pair.h"

int main(int argc, char **argv)
{
	bool wrong = pair_wrong(argc, argv);
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };
	struct pair pair;

	pair_open(&pair);
	EXPECT(ibv_modify_qp(pair.a.qp, &attr, IBV_QP_STATE) == 0); // as if the peer had gone
	struct ibv_sge sge = end_sge(&pair.a, INBOX, 1);

	for (int i = 0; i < 3; i++) {
		struct ibv_send_wr wr = wr_write(&sge, &pair.b, WINDOW + i), *bad;

		EXPECT(ibv_post_send(pair.a.qp, &wr, &bad) == 0); /* REPORT status-ignored */
		struct ibv_wc wc = expect_completion(pair.a.cq);

		if (wc.status != IBV_WC_SUCCESS && !wrong)
			break;
	}
	pair_close(&pair);
	return 0;
}
