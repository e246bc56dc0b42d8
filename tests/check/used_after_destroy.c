// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A pointer to a destroyed object is dangling, as after free.
#include "pair.h"

#include <signal.h>
#include <unistd.h>

static void end_here(int signum)
{
	(void)signum;
	_exit(0);
}

int main(int argc, char **argv)
{
	bool wrong = pair_wrong(argc, argv);
	struct pair pair;

	// Where nobody checks, the second call on the QP may well end in one of these.
	EXPECT(signal(SIGSEGV, end_here) != SIG_ERR && signal(SIGABRT, end_here) != SIG_ERR);
	pair_device(&pair);
	struct ibv_cq *cq = ibv_create_cq(pair.context, 16, NULL, NULL, 0);
	struct ibv_qp_init_attr init = {
		.send_cq = cq, .recv_cq = cq, .cap = pair.cap, .qp_type = IBV_QPT_RC
	};
	struct ibv_qp *qp = ibv_create_qp(pair.pd, &init);
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

	EXPECT(cq && qp);
	if (!wrong)
		ibv_modify_qp(qp, &attr, IBV_QP_STATE);
	EXPECT(ibv_destroy_qp(qp) == 0);
	if (wrong)
		ibv_modify_qp(qp, &attr, IBV_QP_STATE); /* REPORT used-after-destroy */
	EXPECT(ibv_destroy_cq(cq) == 0);
	pair_close(&pair);
	return 0;
}
