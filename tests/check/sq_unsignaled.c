// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A slot of the SQ is free again once a completion behind it was polled: where nothing is signaled, that is never.
#include "pair.h"

enum {
	WRITES = 1000, /* more than an SQ has slots that was asked for 8 */
};

int main(int argc, char **argv)
{
	bool wrong = pair_wrong(argc, argv);
	struct pair pair;
	int i;

	pair_open(&pair);
	struct ibv_sge sge = end_sge(&pair.a, INBOX, 1);

	for (i = 0; i < WRITES; i++) {
		struct ibv_send_wr wr = wr_write(&sge, &pair.b, WINDOW + i), *bad;
		bool signaled = !wrong && i % 4 == 3;

		wr.send_flags = signaled ? IBV_SEND_SIGNALED : 0;
		if (ibv_post_send(pair.a.qp, &wr, &bad)) /* REPORT sq-unsignaled */
			break;
		if (signaled)
			expect_success(pair.a.cq);
	}
	EXPECT(i == WRITES || wrong); // a lenient device may take them all the same
	pair_close(&pair);
	return 0;
}
