// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A post that fails has accepted the WRs of the list before *bad_wr: a retry begins there.
#include "pair.h"

enum {
	WRITES = 12, /* more than the SQ has slots */
	ATTEMPTS = 20,
};

int main(int argc, char **argv)
{
	bool wrong = pair_wrong(argc, argv);
	struct ibv_send_wr writes[WRITES], *next = writes, *bad;
	struct pair pair;
	int polled = 0;

	pair_open(&pair);
	struct ibv_qp *qp = pair.a.qp;
	struct ibv_sge sge = end_sge(&pair.a, INBOX, 1);

	for (int i = 0; i < WRITES; i++) {
		writes[i] = wr_write(&sge, &pair.b, WINDOW + i);
		writes[i].wr_id = i;
		writes[i].next = i + 1 < WRITES ? &writes[i + 1] : NULL;
	}
	while (polled < ATTEMPTS && ibv_post_send(qp, next, &bad)) { /* REPORT posted-again */
		if (!wrong)
			next = bad;
		expect_success(pair.a.cq); // makes room
		polled++;
	}
	for (; !wrong && polled < WRITES; polled++)
		expect_success(pair.a.cq);
	pair_close(&pair);
	return 0;
}
