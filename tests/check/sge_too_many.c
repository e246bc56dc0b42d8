// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A WR has at most as many SGEs as the QP was created for.
#include "pair.h"

enum {
	PARTS = 3,
};

int main(int argc, char **argv)
{
	bool wrong = pair_wrong(argc, argv);
	struct pair pair;

	pair_device(&pair);
	pair.cap.max_send_sge = wrong ? PARTS - 1 : PARTS;
	pair_prepare(&pair);
	pair_connect(&pair);
	struct ibv_sge parts[PARTS] = { end_sge(&pair.a, 0, 8), end_sge(&pair.a, 100, 8),
					end_sge(&pair.a, 200, 8) };
	struct ibv_send_wr wr = wr_write(parts, &pair.b, WINDOW), *bad;

	wr.num_sge = PARTS;
	int err = ibv_post_send(pair.a.qp, &wr, &bad); /* REPORT sge-too-many */

	if (!err)
		expect_completion(pair.a.cq);
	EXPECT(!err || wrong);
	pair_close(&pair);
	return 0;
}
