// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// XRC QPs and SRQs of ids, in the port space RDMA_PS_IB.
#include "cm.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/rdma_verbs.h>

enum {
	SRQ_WR = 4,
	ROUNDS = 3,
};

struct server {
	struct rdma_cm_id *listener;
	bool own_domain; /* the SRQ and the QP have an XRCD that the program opened */
	char octets[SRQ_WR][16];
	uint32_t target; /* the number of the target QP */
	const char *failed; /* cmocka's assertions work in the main thread only */
};

static struct rdma_addrinfo *resolve(uint16_t port, int flags, int qp_type)
{
	struct rdma_addrinfo hints = { .ai_flags = flags,
				       .ai_qp_type = qp_type,
				       .ai_port_space = RDMA_PS_IB },
			     *res;
	char service[8];

	snprintf(service, sizeof(service), "%u", port);
	assert_int_equal(rdma_getaddrinfo("127.0.0.1", service, &hints, &res), 0);
	assert_int_equal(res->ai_port_space, RDMA_PS_IB);
	assert_int_equal(res->ai_qp_type, qp_type);
	return res;
}

static struct ibv_qp_init_attr qp_attr(void)
{
	return (struct ibv_qp_init_attr){
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 },
		.sq_sig_all = 1,
	};
}

static int create_srq(struct rdma_cm_id *id, struct ibv_xrcd *xrcd)
{
	struct ibv_srq_init_attr attr = { .attr = { SRQ_WR, 1, 0 } };
	struct ibv_srq_init_attr_ex ex = {
		.attr = { SRQ_WR, 1, 0 },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_XRCD,
		.srq_type = IBV_SRQT_XRC,
		.xrcd = xrcd,
	};

	return xrcd ? rdma_create_srq_ex(id, &ex) : rdma_create_srq(id, NULL, &attr);
}

/* Takes the client's Sends by the SRQ whose number it accepts with. What failed. */
static const char *receive(struct server *server, struct rdma_cm_id *id)
{
	struct ibv_mr *mr = rdma_reg_msgs(id, server->octets, sizeof(server->octets));
	uint32_t number;
	struct rdma_conn_param param = { .private_data = &number,
					 .private_data_len = sizeof(number) };
	struct ibv_wc wc;

	if (!mr || ibv_get_srq_num(id->srq, &number) != 0)
		return "number";
	for (int i = 0; i < SRQ_WR; i++)
		if (rdma_post_recv(id, server->octets[i], server->octets[i], 16, mr) != 0)
			return "post";
	if (rdma_accept(id, &param) != 0)
		return "accept";
	for (int i = 0; i < SRQ_WR; i++)
		if (rdma_get_recv_comp(id, &wc) != 1 || wc.status != IBV_WC_SUCCESS ||
		    wc.qp_num != server->target || wc.byte_len != 8 ||
		    (char *)(uintptr_t)wc.wr_id != server->octets[i])
			return "receive";
	return rdma_disconnect(id) != 0 || rdma_dereg_mr(mr) != 0 ? "end" : NULL;
}

/* With a domain of its own: the QP is made by hand, because the listener's attributes have no XRCD. */
static const char *serve_own(struct server *server, struct rdma_cm_id *id)
{
	struct ibv_xrcd_init_attr of_xrcd = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = -1,
		.oflags = O_CREAT,
	};
	struct ibv_xrcd *xrcd = ibv_open_xrcd(id->verbs, &of_xrcd);
	struct ibv_qp_init_attr_ex attr = { .qp_type = IBV_QPT_XRC_RECV,
					    .comp_mask = IBV_QP_INIT_ATTR_XRCD,
					    .xrcd = xrcd };
	const char *failed;

	/* The CQ of the SRQ is the id's, which the QP has none of. */
	if (!xrcd || create_srq(id, xrcd) != 0 || rdma_create_qp_ex(id, &attr) != 0)
		return "objects";
	server->target = id->qp->qp_num;
	failed = receive(server, id);
	rdma_destroy_qp(id);
	if (!id->recv_cq)
		return "the srq's cq went with the qp";
	rdma_destroy_srq(id);
	return failed || ibv_close_xrcd(xrcd) == 0 ? failed : "close";
}

static const char *serve_default(struct server *server, struct rdma_cm_id *id)
{
	if (!id->qp || id->qp->qp_type != IBV_QPT_XRC_RECV || create_srq(id, NULL) != 0)
		return "objects";
	server->target = id->qp->qp_num;
	return receive(server, id);
}

static void *serve(void *arg)
{
	struct server *server = arg;
	struct rdma_cm_id *id;

	if (rdma_get_request(server->listener, &id) != 0) {
		server->failed = "request";
		return NULL;
	}
	server->failed = id->qp_type != IBV_QPT_XRC_RECV || id->ps != RDMA_PS_IB ? "type"
			 : server->own_domain ? serve_own(server, id)
					      : serve_default(server, id);
	if (!server->failed && id->recv_cq && !id->srq)
		server->failed = "a cq outlives the srq and the qp";
	rdma_destroy_ep(id);
	return NULL;
}

static void send_all(struct rdma_cm_id *id)
{
	char octets[8] = "message";
	struct ibv_mr *mr = rdma_reg_msgs(id, octets, sizeof(octets));
	struct ibv_wc wc;
	uint32_t srqn;

	assert_non_null(mr);
	assert_int_equal(rdma_connect(id, NULL), 0);
	memcpy(&srqn, id->event->param.conn.private_data, sizeof(srqn));
	for (int i = 0; i < SRQ_WR; i++) {
		struct ibv_sge sge = { (uintptr_t)octets, sizeof(octets), mr->lkey };
		struct ibv_send_wr wr = { .sg_list = &sge,
					  .num_sge = 1,
					  .opcode = IBV_WR_SEND,
					  .qp_type.xrc.remote_srqn = srqn },
				   *bad;

		assert_int_equal(ibv_post_send(id->qp, &wr, &bad), 0);
		assert_int_equal(rdma_get_send_comp(id, &wc), 1);
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
	}
	rdma_disconnect(id);
	assert_int_equal(rdma_dereg_mr(mr), 0);
}

static void exchange(bool own_domain)
{
	struct server server = { .own_domain = own_domain };
	struct rdma_addrinfo *res = resolve(0, RAI_PASSIVE, IBV_QPT_XRC_RECV);
	struct ibv_qp_init_attr attr = qp_attr();
	struct rdma_cm_id *client;
	pthread_t thread;

	assert_int_equal(rdma_create_ep(&server.listener, res, NULL, own_domain ? NULL : &attr), 0);
	rdma_freeaddrinfo(res);
	assert_int_equal(rdma_listen(server.listener, 0), 0);
	assert_int_equal(pthread_create(&thread, NULL, serve, &server), 0);
	res = resolve(cm_port(server.listener), 0, IBV_QPT_XRC_SEND);
	attr = qp_attr();
	assert_int_equal(rdma_create_ep(&client, res, NULL, &attr), 0);
	rdma_freeaddrinfo(res);
	assert_int_equal(client->qp->qp_type, IBV_QPT_XRC_SEND);
	send_all(client);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_null(server.failed);
	for (int i = 0; i < SRQ_WR; i++)
		assert_string_equal(server.octets[i], "message");
	rdma_destroy_ep(client);
	rdma_destroy_ep(server.listener);
}

static void endpoint__in_the_id_s_domain(void **state)
{
	(void)state;
	for (int i = 0; i < ROUNDS; i++)
		exchange(false);
}

static void endpoint__in_a_domain_of_its_own(void **state)
{
	(void)state;
	for (int i = 0; i < ROUNDS; i++)
		exchange(true);
}

static int error_of(int port_space, int qp_type)
{
	struct rdma_addrinfo hints = { .ai_flags = RAI_NUMERICHOST,
				       .ai_qp_type = qp_type,
				       .ai_port_space = port_space },
			     *res;

	if (rdma_getaddrinfo("127.0.0.1", "1", &hints, &res) != 0)
		return errno;
	rdma_freeaddrinfo(res);
	return 0;
}

static void getaddrinfo__what_goes_together(void **state)
{
	(void)state;
	assert_int_equal(error_of(0, IBV_QPT_XRC_SEND), 0);
	assert_int_equal(error_of(RDMA_PS_IB, 0), 0);
	assert_int_equal(error_of(RDMA_PS_IB, IBV_QPT_RC), 0);
	assert_int_equal(error_of(RDMA_PS_IB, IBV_QPT_UC), EPROTONOSUPPORT);
	assert_int_equal(error_of(RDMA_PS_IB, IBV_QPT_UD), EPROTONOSUPPORT);
	assert_int_equal(error_of(RDMA_PS_TCP, IBV_QPT_XRC_RECV), EPROTONOSUPPORT);
	assert_int_equal(error_of(RDMA_PS_UDP, IBV_QPT_XRC_RECV), EPROTONOSUPPORT);
}

/* Without a type of QP the id is for RC. */
static void create_id__ps_ib(void **state)
{
	struct ibv_qp_init_attr attr = qp_attr();
	struct sockaddr_storage addr = cm_address("127.0.0.1", 1);
	struct rdma_cm_id *id;

	(void)state;
	assert_int_equal(rdma_create_id(NULL, &id, NULL, RDMA_PS_IB), 0);
	assert_int_equal(id->ps, RDMA_PS_IB);
	assert_int_equal(id->qp_type, IBV_QPT_RC);
	assert_int_equal(rdma_resolve_addr(id, NULL, (struct sockaddr *)&addr, 2000), 0);
	attr.qp_type = IBV_QPT_XRC_RECV;
	assert_int_equal(rdma_create_qp(id, NULL, &attr), -1);
	assert_int_equal(errno, EINVAL);
	attr.qp_type = IBV_QPT_RC;
	assert_int_equal(rdma_create_qp(id, NULL, &attr), 0);
	rdma_destroy_ep(id);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(endpoint__in_the_id_s_domain),
		cmocka_unit_test(endpoint__in_a_domain_of_its_own),
		cmocka_unit_test(getaddrinfo__what_goes_together),
		cmocka_unit_test(create_id__ps_ib),
	};

	setenv("ANYWARP_PERSONA", "roce", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
