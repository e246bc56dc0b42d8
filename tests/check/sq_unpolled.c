// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A slot of the SQ is free again once its completion was polled: to post in vain again and again frees none.
#include "pair.h"

enum {
	WRITES = 1000, /* more than an SQ has slots that was asked for 8 */
	ATTEMPTS = 3,
};

int main(int argc, char **argv)
{
	bool wrong = pair_wrong(argc, argv);
	int posted = 0, polled = 0, attempts = 0;
	struct pair pair;

	pair_open(&pair);
	struct ibv_sge sge = end_sge(&pair.a, INBOX, 1);

	while (posted < WRITES && attempts < ATTEMPTS) {
		struct ibv_send_wr wr = wr_write(&sge, &pair.b, WINDOW + posted), *bad;

		if (ibv_post_send(pair.a.qp, &wr, &bad) == 0) { /* REPORT sq-unpolled */
			posted++;
		} else if (wrong) {
			attempts++;
		} else {
			expect_success(pair.a.cq);
			polled++;
		}
	}
	EXPECT((posted < WRITES) == wrong);
	for (; !wrong && polled < posted; polled++)
		expect_success(pair.a.cq);
	pair_close(&pair);
	return 0;
}
