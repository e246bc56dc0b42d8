// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What a Read brings is there once the Read has completed: a Send of it that is posted earlier sends anything.
#include "pair.h"

int main(int argc, char **argv)
{
	bool wrong = pair_wrong(argc, argv);
	struct pair pair;

	pair_open(&pair);
	struct ibv_sge sge = end_sge(&pair.a, INBOX, MESSAGE);
	struct ibv_send_wr fetch = wr_read(&sge, &pair.b, WINDOW), forward = wr_send(&sge), *bad;

	end_recv(&pair.b);
	EXPECT(ibv_post_send(pair.a.qp, &fetch, &bad) == 0);
	if (!wrong)
		expect_success(pair.a.cq);
	EXPECT(ibv_post_send(pair.a.qp, &forward, &bad) == 0); /* REPORT overlap */
	if (wrong)
		expect_success(pair.a.cq);
	expect_success(pair.a.cq);
	expect_success(pair.b.cq);
	pair_close(&pair);
	return 0;
}
