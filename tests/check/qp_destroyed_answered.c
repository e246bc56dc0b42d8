// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Whoever has polled the peer's answer knows that the send before it has arrived, although it is not signaled.
#include "pair.h"

#define ANSWER 1024 /* offset of the answer */

static void answer_recv(struct end *end)
{
	struct ibv_sge sge = end_sge(end, ANSWER, MESSAGE);
	struct ibv_recv_wr wr = wr_recv(&sge), *bad;

	EXPECT(ibv_post_recv(end->qp, &wr, &bad) == 0);
}

static void question_send(struct end *end)
{
	struct ibv_sge sge = end_sge(end, INBOX, MESSAGE);
	struct ibv_send_wr wr = wr_send(&sge), *bad;

	wr.send_flags = 0;
	EXPECT(ibv_post_send(end->qp, &wr, &bad) == 0);
}

int main(int argc, char **argv)
{
	bool wrong = pair_wrong(argc, argv);
	struct pair pair;

	pair_open(&pair);
	answer_recv(&pair.a);
	end_recv(&pair.b);
	question_send(&pair.a);
	expect_success(pair.b.cq);
	end_send(&pair.b);
	expect_success(pair.b.cq);
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
