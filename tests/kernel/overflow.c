// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// overflow HOST PORT: connects twice to an rping server, with one CQ of few entries for both QPs, and lets it overflow
// by Writes of the first. Prints what comes of it: "cq-error" when the CQ's event came, and "qp N error" when that QP is in
// error, the second one behind a Write of its own.
#include <errno.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define GIVE_UP_SECONDS 60
#define CQ_ENTRIES 4
#define WRITES (2 * CQ_ENTRIES)

static void die(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	exit(2);
}

static struct rdma_cm_id *connected(struct rdma_addrinfo *to, struct ibv_pd *pd, struct ibv_cq *cq)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = { .max_send_wr = WRITES,
			 .max_recv_wr = 1,
			 .max_send_sge = 1,
			 .max_recv_sge = 1 },
		.sq_sig_all = 1,
	};
	struct rdma_conn_param param = { .responder_resources = 1, .initiator_depth = 1 };
	struct rdma_cm_id *id;

	if (rdma_create_ep(&id, to, pd, cq ? &attr : NULL))
		die("rdma_create_ep");
	if (cq && rdma_connect(id, &param))
		die("rdma_connect");
	return id;
}

/* Of no octets, so that no region is needed. */
static void post_write(struct rdma_cm_id *id)
{
	struct ibv_send_wr *bad, wr = { .opcode = IBV_WR_RDMA_WRITE };

	if (ibv_post_send(id->qp, &wr, &bad))
		die("ibv_post_send");
}

static void wait_cq_error(struct ibv_cq *cq)
{
	struct ibv_async_event event;
	bool is_cq_error;

	do {
		if (ibv_get_async_event(cq->context, &event))
			die("ibv_get_async_event");
		is_cq_error = event.event_type == IBV_EVENT_CQ_ERR && event.element.cq == cq;
		ibv_ack_async_event(&event);
	} while (!is_cq_error);
	puts("cq-error");
}

static void wait_qp_error(struct rdma_cm_id *id, int number)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	do {
		if (ibv_query_qp(id->qp, &attr, IBV_QP_STATE, &init))
			die("ibv_query_qp");
	} while (attr.qp_state != IBV_QPS_ERR);
	printf("qp %d error\n", number);
}

int main(int argc, char **argv)
{
	struct rdma_addrinfo hints = { .ai_port_space = RDMA_PS_TCP }, *to;
	struct rdma_cm_id *first, *second, *any;
	struct ibv_pd *pd;
	struct ibv_cq *cq;

	if (argc != 3) {
		fprintf(stderr, "usage: overflow HOST PORT\n");
		return 2;
	}
	alarm(GIVE_UP_SECONDS);
	if (rdma_getaddrinfo(argv[1], argv[2], &hints, &to))
		die("rdma_getaddrinfo");
	any = connected(to, NULL, NULL);
	pd = ibv_alloc_pd(any->verbs);
	cq = pd ? ibv_create_cq(any->verbs, CQ_ENTRIES, NULL, NULL, 0) : NULL;
	if (!cq)
		die("ibv_create_cq");
	first = connected(to, pd, cq);
	second = connected(to, pd, cq);
	for (int i = 0; i < WRITES; i++)
		post_write(first);
	wait_cq_error(cq);
	wait_qp_error(first, 1);
	post_write(second);
	wait_qp_error(second, 2);
	return 0;
}
