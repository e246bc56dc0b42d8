// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What source_changed.c does, by the calls of a QP and a CQ that ibv_create_qp_ex and ibv_create_cq_ex made.
#include "pair.h"

int main(int argc, char **argv)
{
	bool wrong = pair_wrong(argc, argv);
	struct ibv_poll_cq_attr poll = { 0 };
	struct ibv_qp_ex *qp;
	struct pair pair;

	pair_device(&pair);
	pair.extended = true;
	pair_prepare(&pair);
	pair_connect(&pair);
	end_recv(&pair.b);
	qp = ibv_qp_to_qp_ex(pair.a.qp);
	ibv_wr_start(qp);
	qp->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_send(qp);
	ibv_wr_set_sge(qp, pair.a.mr->lkey, (uintptr_t)pair.a.memory, MESSAGE);
	EXPECT(ibv_wr_complete(qp) == 0); /* REPORT source-changed */
	if (wrong)
		pair.a.memory[0] = 'x'; // for the next message, but this one is still under way
	while (ibv_start_poll(pair.a.cq_ex, &poll))
		;
	EXPECT(pair.a.cq_ex->status == IBV_WC_SUCCESS);
	ibv_end_poll(pair.a.cq_ex);
	if (!wrong)
		pair.a.memory[0] = 'x';
	expect_success(pair.b.cq);
	pair_close(&pair);
	return 0;
}
