// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A QP takes sends from RTS on, which is to say once it is connected.
#include "pair.h"

int main(int argc, char **argv)
{
	bool wrong = pair_wrong(argc, argv);
	struct ibv_send_wr wr, *bad;
	struct ibv_sge sge;
	struct pair pair;

	pair_device(&pair);
	pair_prepare(&pair);
	if (!wrong) {
		pair_connect(&pair);
		end_recv(&pair.b);
	}
	sge = end_sge(&pair.a, INBOX, MESSAGE);
	wr = wr_send(&sge);
	ibv_post_send(pair.a.qp, &wr, &bad); /* REPORT wrong-state */
	if (!wrong)
		expect_success(pair.a.cq);
	pair_close(&pair);
	return 0;
}
