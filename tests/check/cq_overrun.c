// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A CQ that gets more completions than it has entries is broken from then on, and its QPs with it.
/* ALSO cq-small */
#include "pair.h"

enum {
	WRITES = 40,
};

int main(int argc, char **argv)
{
	bool wrong = pair_wrong(argc, argv);
	struct pair pair;

	pair_device(&pair);
	pair.cap.max_send_wr = WRITES;
	pair.cqe = wrong ? 4 : 2 * WRITES;
	pair_prepare(&pair);
	pair_connect(&pair);
	struct ibv_sge sge = end_sge(&pair.a, INBOX, 1);

	for (int i = 0; i < WRITES; i++) {
		struct ibv_send_wr wr = wr_write(&sge, &pair.b, WINDOW + i), *bad;

		EXPECT(ibv_post_send(pair.a.qp, &wr, &bad) == 0 || wrong); /* REPORT cq-overrun */
	}
	for (int i = 0; !wrong && i < WRITES; i++)
		expect_success(pair.a.cq);
	pair_close(&pair);
	return 0;
}
