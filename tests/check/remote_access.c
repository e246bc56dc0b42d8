// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The peer's rkey is sent in network byte order, and must be turned back before it is used.
#include "pair.h"

#include <arpa/inet.h>

int main(int argc, char **argv)
{
	bool wrong = pair_wrong(argc, argv);
	struct pair pair;

	pair_open(&pair);
	struct ibv_sge sge = end_sge(&pair.a, INBOX, MESSAGE);
	struct ibv_send_wr wr = wr_read(&sge, &pair.b, WINDOW), *bad;
	uint32_t received = htonl(pair.b.mr->rkey);

	wr.wr.rdma.rkey = wrong ? received : ntohl(received);
	EXPECT(ibv_post_send(pair.a.qp, &wr, &bad) == 0); /* REPORT remote-access */
	struct ibv_wc wc = expect_completion(pair.a.cq);

	EXPECT((wc.status != IBV_WC_SUCCESS) == wrong);
	pair_close(&pair);
	return 0;
}
