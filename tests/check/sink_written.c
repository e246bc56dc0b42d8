// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The sink of a receive belongs to the device until the receive has completed: also the bytes that the message leaves alone.
#include "pair.h"

int main(int argc, char **argv)
{
	bool wrong = pair_wrong(argc, argv);
	struct pair pair;

	pair_open(&pair);
	struct ibv_sge sge = end_sge(&pair.b, INBOX, 2 * MESSAGE);
	struct ibv_recv_wr wr = wr_recv(&sge), *bad;

	EXPECT(ibv_post_recv(pair.b.qp, &wr, &bad) == 0); /* REPORT sink-written */
	if (wrong)
		pair.b.memory[MESSAGE] = '.'; // to end what comes as a sentence
	end_send(&pair.a);
	expect_success(pair.a.cq);
	expect_success(pair.b.cq);
	if (!wrong)
		pair.b.memory[MESSAGE] = '.';
	pair_close(&pair);
	return 0;
}
