// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A QP that outlives its connection: reset, and connected again on another id by its number.
#include "cm.h"

#include "../lib/proc.h"

#include <stdlib.h>

#define FDS_LINGER 8 /* sockets of which the progress thread has not heard the end yet */

static int again = 100;

/* A QP that no id owns, as programs have it that make their QPs by libibverbs. */
struct own {
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr; /* of number */
	int number;
};

static void own_open(struct own *own, struct rdma_cm_id *id)
{
	own->cq = ibv_create_cq(id->verbs, 16, NULL, NULL, 0);
	assert_non_null(own->cq);
	struct ibv_qp_init_attr attr = {
		.send_cq = own->cq,
		.recv_cq = own->cq,
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC,
	};

	own->qp = ibv_create_qp(id->pd, &attr);
	assert_non_null(own->qp);
	own->mr = ibv_reg_mr(id->pd, &own->number, sizeof(own->number), IBV_ACCESS_LOCAL_WRITE);
	assert_non_null(own->mr);
}

static void own_close(struct own *own)
{
	assert_int_equal(ibv_destroy_qp(own->qp), 0);
	assert_int_equal(ibv_dereg_mr(own->mr), 0);
	assert_int_equal(ibv_destroy_cq(own->cq), 0);
}

static struct rdma_cm_id *client_of(struct cm_ends *ends)
{
	struct rdma_cm_id *id = cm_resolved(ends->active, "127.0.0.1", cm_port(ends->listener));

	rdma_destroy_qp(id);
	return id;
}

/* id connects qp; returns the server's id. */
static struct rdma_cm_id *join(struct cm_ends *ends, struct rdma_cm_id *id, struct ibv_qp *qp)
{
	struct rdma_conn_param param = { .qp_num = qp->qp_num };

	assert_int_equal(rdma_connect(id, &param), 0);
	struct rdma_cm_event *event = cm_expect(ends->passive, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
	struct rdma_cm_id *server = event->id;

	rdma_ack_cm_event(event);
	cm_make_qp(server);
	assert_int_equal(rdma_accept(server, NULL), 0);
	cm_expect_ack(ends->active, RDMA_CM_EVENT_ESTABLISHED, 0);
	cm_expect_ack(ends->passive, RDMA_CM_EVENT_ESTABLISHED, 0);
	return server;
}

static void reset(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };

	assert_int_equal(ibv_modify_qp(qp, &attr, IBV_QP_STATE), 0);
}

static void init(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };

	assert_int_equal(ibv_modify_qp(qp, &attr,
				       IBV_QP_STATE | IBV_QP_PORT | IBV_QP_PKEY_INDEX |
					       IBV_QP_ACCESS_FLAGS),
			 0);
}

static void both_open(struct cm_ends *ends, struct own *own)
{
	cm_set_timewait_ms(60000);
	cm_ends_open(ends, "127.0.0.1");
	own_open(own, ends->client);
	rdma_destroy_qp(ends->client);
	ends->server = join(ends, ends->client, own->qp);
}

/* qp connects on a new id, and that connection is then ended by its server. */
static void connects_again(struct cm_ends *ends, struct ibv_qp *qp)
{
	struct rdma_cm_id *id = client_of(ends), *server = join(ends, id, qp);

	cm_expect_none(ends->active);
	cm_expect_none(ends->passive);
	assert_int_equal(rdma_disconnect(server), 0);
	cm_expect_ack(ends->active, RDMA_CM_EVENT_DISCONNECTED, 0);
	cm_expect_ack(ends->passive, RDMA_CM_EVENT_DISCONNECTED, 0);
	rdma_destroy_id(id);
	cm_destroy(server);
}

/* A reset is an end: either id hears of it. */
static void reuse__reset_while_connected(void **state)
{
	struct cm_ends ends;
	struct own own;

	(void)state;
	both_open(&ends, &own);
	reset(own.qp);
	cm_expect_ack(ends.active, RDMA_CM_EVENT_DISCONNECTED, 0);
	cm_expect_ack(ends.passive, RDMA_CM_EVENT_DISCONNECTED, 0);
	assert_int_equal(rdma_disconnect(ends.client), 0);
	cm_expect_none(ends.active);
	init(own.qp);
	connects_again(&ends, own.qp);
	own_close(&own);
	cm_ends_close(&ends);
}

/* The id goes though its connection's end was never seen; the QP is as new. */
static void reuse__id_destroyed_after_the_reset(void **state)
{
	struct cm_ends ends;
	struct own own;

	(void)state;
	both_open(&ends, &own);
	assert_int_equal(rdma_disconnect(ends.client), 0);
	reset(own.qp);
	rdma_destroy_id(ends.client);
	ends.client = NULL;
	cm_expect_ack(ends.passive, RDMA_CM_EVENT_DISCONNECTED, 0);
	init(own.qp);
	connects_again(&ends, own.qp);
	own_close(&own);
	cm_ends_close(&ends);
}

static void post_recv(struct own *own)
{
	struct ibv_sge sge = { (uintptr_t)&own->number, sizeof(own->number), own->mr->lkey };
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;

	assert_int_equal(ibv_post_recv(own->qp, &wr, &bad), 0);
}

/* The server sends a number, which has to be what arrives. */
static void number_arrives(struct own *own, struct rdma_cm_id *server, int number)
{
	struct ibv_sge sge = { (uintptr_t)&number, sizeof(number), 0 };
	struct ibv_send_wr wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_INLINE
	};
	struct ibv_send_wr *bad;
	struct ibv_wc wc;

	assert_int_equal(ibv_post_send(server->qp, &wr, &bad), 0);
	while (ibv_poll_cq(own->cq, 1, &wc) == 0)
		continue;
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(own->number, number);
}

/* Every second time the reset ends the connection. */
static void ends_anew(struct cm_ends *ends, struct own *own, int number)
{
	struct rdma_cm_id *id = client_of(ends), *server = join(ends, id, own->qp);

	number_arrives(own, server, number);
	post_recv(own); /* a leftover */
	if (number % 2)
		reset(own->qp);
	else
		assert_int_equal(rdma_disconnect(server), 0);
	cm_expect_ack(ends->active, RDMA_CM_EVENT_DISCONNECTED, 0);
	cm_expect_ack(ends->passive, RDMA_CM_EVENT_DISCONNECTED, 0);
	rdma_destroy_id(id);
	cm_destroy(server);
}

/* Nothing of one connection reaches the next, and nothing stays behind. */
static void reuse__again_and_again(void **state)
{
	struct cm_ends ends;
	struct own own;
	int fds;

	(void)state;
	both_open(&ends, &own);
	reset(own.qp);
	cm_expect_ack(ends.active, RDMA_CM_EVENT_DISCONNECTED, 0);
	cm_expect_ack(ends.passive, RDMA_CM_EVENT_DISCONNECTED, 0);
	fds = proc_fds();
	for (int i = 0; i < again; i++) {
		init(own.qp);
		post_recv(&own);
		ends_anew(&ends, &own, i);
		reset(own.qp);
	}
	assert_in_range(proc_fds(), 0, fds + FDS_LINGER);
	own_close(&own);
	cm_ends_close(&ends);
}

/* With a number: the last test alone, so often. */
int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reuse__reset_while_connected),
		cmocka_unit_test(reuse__id_destroyed_after_the_reset),
		cmocka_unit_test(reuse__again_and_again),
	};

	if (argc > 1) {
		again = atoi(argv[1]);
		cmocka_set_test_filter("reuse__again_and_again");
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
