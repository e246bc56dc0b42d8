// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A poll that fills its array may leave completions behind, and those from before the arm make no event: whoever arms polls until the CQ
// is empty.
#include "pair.h"

#include <poll.h>

static void write_post(struct pair *pair)
{
	struct ibv_sge sge = end_sge(&pair->a, INBOX, MESSAGE);
	struct ibv_send_wr wr = wr_write(&sge, &pair->b, WINDOW), *bad;

	EXPECT(ibv_post_send(pair->a.qp, &wr, &bad) == 0);
}

int main(int argc, char **argv)
{
	bool wrong = pair_wrong(argc, argv);
	int polled = 0, more = 0;
	struct ibv_cq *cq;
	struct ibv_wc wc;
	struct pair pair;
	void *owner;

	pair_open(&pair);
	write_post(&pair);
	EXPECT(ibv_req_notify_cq(pair.a.cq, 0) == 0);
	write_post(&pair); // its completion makes an event: the program does not hang
	struct pollfd readable = { .fd = pair.a.channel->fd, .events = POLLIN };

	EXPECT(poll(&readable, 1, -1) == 1);
	while (polled == 0 || (!wrong && more)) {
		more = ibv_poll_cq(pair.a.cq, 1, &wc);
		polled += more;
	}
	EXPECT(!ibv_get_cq_event(pair.a.channel, &cq, &owner)); /* REPORT wakeup-lost */
	ibv_ack_cq_events(cq, 1);
	for (; polled < 2; polled++)
		expect_success(cq);
	pair_close(&pair);
	return 0;
}
