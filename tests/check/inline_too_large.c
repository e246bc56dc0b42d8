// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Inline data is limited by the max_inline_data that the QP was created with.
#include "pair.h"

enum {
	LENGTH = 2000,
};

int main(int argc, char **argv)
{
	bool wrong = pair_wrong(argc, argv);
	struct pair pair;

	pair_open(&pair);
	struct ibv_sge sge = end_sge(&pair.a, INBOX, LENGTH);
	struct ibv_send_wr wr = wr_write(&sge, &pair.b, WINDOW), *bad;

	if (wrong || LENGTH <= pair.cap.max_inline_data)
		wr.send_flags |= IBV_SEND_INLINE;
	int err = ibv_post_send(pair.a.qp, &wr, &bad); /* REPORT inline-too-large */

	if (!err)
		expect_completion(pair.a.cq);
	EXPECT(!err || wrong);
	pair_close(&pair);
	return 0;
}
