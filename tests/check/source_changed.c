// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The source of a Send belongs to the device until the program has polled the Send's completion.
#include "pair.h"

int main(int argc, char **argv)
{
	bool wrong = pair_wrong(argc, argv);
	struct pair pair;

	pair_open(&pair);
	struct ibv_sge sge = end_sge(&pair.a, INBOX, MESSAGE);
	struct ibv_send_wr wr = wr_send(&sge), *bad;

	end_recv(&pair.b);
	EXPECT(ibv_post_send(pair.a.qp, &wr, &bad) == 0); /* REPORT source-changed */
	if (wrong)
		pair.a.memory[0] = 'x'; // for the next message, but this one is still under way
	expect_success(pair.a.cq);
	if (!wrong)
		pair.a.memory[0] = 'x';
	expect_success(pair.b.cq);
	pair_close(&pair);
	return 0;
}
