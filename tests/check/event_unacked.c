// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A CQ waits in its destruction until every event that was got of it has been acknowledged.
#include "pair.h"

#include <signal.h>
#include <unistd.h>

#include "../lib/limit.h"

static void end_here(int signum)
{
	(void)signum;
	_exit(0);
}

int main(int argc, char **argv)
{
	bool wrong = pair_wrong(argc, argv);
	struct ibv_cq *cq;
	struct pair pair;
	void *context;

	pair_open(&pair);
	EXPECT(ibv_req_notify_cq(pair.b.cq, 0) == 0);
	end_recv(&pair.b);
	end_send(&pair.a);
	expect_success(pair.a.cq);
	EXPECT(ibv_get_cq_event(pair.b.channel, &cq, &context) == 0);
	expect_success(cq);
	end_destroy_qp(&pair.b);
	if (wrong) {
		EXPECT(signal(SIGALRM, end_here) != SIG_ERR);
		alarm(limit_s(3)); // where nobody checks, the next call does not return
	} else {
		ibv_ack_cq_events(cq, 1);
	}
	EXPECT(ibv_destroy_cq(pair.b.cq) == 0); /* REPORT event-unacked */
	pair.b.cq = NULL;
	pair_close(&pair);
	return 0;
}
