// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What arrives before the CQ is armed makes no event: whoever arms polls once more before it sleeps.
#include "pair.h"

int main(int argc, char **argv)
{
	bool wrong = pair_wrong(argc, argv);
	struct ibv_cq *cq;
	struct ibv_wc wc;
	struct pair pair;
	void *owner;

	pair_open(&pair);
	end_recv(&pair.b);
	EXPECT(ibv_req_notify_cq(pair.b.cq, 0) == 0);
	if (!wrong)
		EXPECT(ibv_poll_cq(pair.b.cq, 1, &wc) == 0);
	end_send(&pair.a); // by luck not before the CQ was armed
	EXPECT(!ibv_get_cq_event(pair.b.channel, &cq, &owner)); /* REPORT wakeup-lost */
	ibv_ack_cq_events(cq, 1);
	expect_success(cq);
	expect_success(pair.a.cq);
	pair_close(&pair);
	return 0;
}
