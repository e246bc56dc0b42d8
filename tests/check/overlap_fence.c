// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A Send of what a Read brings may be posted while the Read is under way, if a fence makes the device wait in the program's place.
#include "pair.h"

int main(int argc, char **argv)
{
	bool wrong = pair_wrong(argc, argv);
	struct pair pair;

	pair_open(&pair);
	struct ibv_sge sge = end_sge(&pair.a, INBOX, MESSAGE);
	struct ibv_send_wr fetch = wr_read(&sge, &pair.b, WINDOW), forward = wr_send(&sge), *bad;

	if (!wrong)
		forward.send_flags |= IBV_SEND_FENCE;
	end_recv(&pair.b);
	EXPECT(ibv_post_send(pair.a.qp, &fetch, &bad) == 0);
	EXPECT(ibv_post_send(pair.a.qp, &forward, &bad) == 0); /* REPORT overlap */
	expect_success(pair.a.cq);
	expect_success(pair.a.cq);
	expect_success(pair.b.cq);
	pair_close(&pair);
	return 0;
}
