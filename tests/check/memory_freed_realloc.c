// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A buffer that grows by realloc is another buffer then, and the WRs under way use the old one.
#include "pair.h"

enum {
	LENGTH = 1024,
};

int main(int argc, char **argv)
{
	bool wrong = pair_wrong(argc, argv);
	struct pair pair;

	pair_open(&pair);
	char *text = calloc(1, LENGTH), *longer = NULL;
	struct ibv_mr *mr = ibv_reg_mr(pair.pd, text, LENGTH, 0);

	EXPECT(mr);
	struct ibv_sge sge = { (uintptr_t)text, MESSAGE, mr->lkey };
	struct ibv_send_wr wr = wr_send(&sge), *bad;

	end_recv(&pair.b);
	EXPECT(ibv_post_send(pair.a.qp, &wr, &bad) == 0);
	if (wrong)
		longer = realloc(text, 64 * LENGTH); /* REPORT memory-freed */
	expect_completion(pair.a.cq); // what was sent, and whether, nobody knows
	EXPECT(ibv_dereg_mr(mr) == 0);
	if (!wrong)
		longer = realloc(text, 64 * LENGTH);
	free(longer);
	pair_close(&pair);
	return 0;
}
