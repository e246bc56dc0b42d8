// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// How many Reads may be under way towards a QP (IRD) is limited by the device.
#include "pair.h"

int main(int argc, char **argv)
{
	bool wrong = pair_wrong(argc, argv);
	struct ibv_device_attr device;
	struct ibv_qp_attr attr;
	struct pair pair;
	int mask, reads, err;

	pair_device(&pair);
	pair_prepare(&pair);
	EXPECT(ibv_query_device(pair.context, &device) == 0);
	reads = device.max_qp_rd_atom + (wrong ? 1 : 0);
	if (pair.a.id) {
		struct rdma_conn_param param = { .responder_resources = (uint8_t)reads };

		err = rdma_connect(pair.a.id, &param); /* REPORT rd-atomic-exceeded */
	} else {
		end_init(&pair.a);
		mask = pair_rtr_attr(&pair, &pair.a, &attr);
		attr.max_dest_rd_atomic = (uint8_t)reads;
		err = ibv_modify_qp(pair.a.qp, &attr, mask); /* REPORT rd-atomic-exceeded */
	}
	EXPECT(!err || wrong);
	pair_close(&pair);
	return 0;
}
