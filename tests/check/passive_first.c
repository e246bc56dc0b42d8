// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The end that accepts a connection of iWARP sends nothing before the other end's first message has come (RFC 5044 7.1.2).
#include "pair.h"

/* WITH --like irdma */

int main(int argc, char **argv)
{
	bool wrong = pair_wrong(argc, argv);
	struct pair pair;

	pair_by_cm();
	pair_open(&pair);
	if (!wrong) {
		end_recv(&pair.b);
		end_send(&pair.a);
		expect_success(pair.a.cq);
		expect_success(pair.b.cq);
	}
	end_recv(&pair.a);
	struct ibv_sge sge = end_sge(&pair.b, WINDOW, MESSAGE);
	struct ibv_send_wr wr = wr_send(&sge), *bad;

	EXPECT(ibv_post_send(pair.b.qp, &wr, &bad) == 0); /* REPORT passive-first */
	expect_success(pair.b.cq);
	expect_success(pair.a.cq);
	pair_close(&pair);
	return 0;
}
