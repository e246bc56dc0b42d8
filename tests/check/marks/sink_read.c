// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What the sink of a receive or of a Read holds is defined once it has completed: what has arrived, and, behind a message that is shorter than
// its receive, what was there before. To send bytes that were given no value is no fault.
#include "../pair.h"

#include <string.h>

static void read_into_window(struct end *end, const struct end *peer)
{
	struct ibv_sge sge = end_sge(end, WINDOW, MESSAGE);
	struct ibv_send_wr wr = wr_read(&sge, peer, INBOX), *bad;

	EXPECT(ibv_post_send(end->qp, &wr, &bad) == 0);
	expect_success(end->cq);
}

static void send_undefined(struct pair *pair)
{
	char *text = malloc(MESSAGE);
	struct ibv_mr *mr = ibv_reg_mr(pair->pd, text, MESSAGE, 0);

	EXPECT(mr);
	struct ibv_sge sge = { (uintptr_t)text, MESSAGE, mr->lkey };
	struct ibv_send_wr wr = wr_send(&sge), *bad;

	end_recv(&pair->b);
	EXPECT(ibv_post_send(pair->a.qp, &wr, &bad) == 0);
	expect_success(pair->a.cq);
	expect_success(pair->b.cq);
	EXPECT(ibv_dereg_mr(mr) == 0);
	free(text);
}

int main(int argc, char **argv)
{
	bool wrong = pair_wrong(argc, argv);
	struct pair pair;

	pair_open(&pair);
	memset(pair.a.memory, 'x', MESSAGE);
	struct ibv_sge sge = end_sge(&pair.b, INBOX, 2 * MESSAGE);
	struct ibv_recv_wr wr = wr_recv(&sge), *bad;

	EXPECT(ibv_post_recv(pair.b.qp, &wr, &bad) == 0); /* ORIGIN */
	if (wrong && pair.b.memory[INBOX] == 'x') /* UNDEFINED */
		puts("nobody has sent it yet");
	end_send(&pair.a);
	expect_success(pair.a.cq);
	expect_success(pair.b.cq);
	EXPECT(pair.b.memory[MESSAGE - 1] == 'x');
	EXPECT(pair.b.memory[MESSAGE] == '\0');
	read_into_window(&pair.a, &pair.b);
	EXPECT(pair.a.memory[WINDOW] == 'x');
	send_undefined(&pair);
	pair_close(&pair);
	return 0;
}
