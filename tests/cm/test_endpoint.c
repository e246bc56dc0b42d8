// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Synchronous ids and the helpers of rdma_verbs.h: a server thread and a client, data both ways.
#include "cm.h"

#include "verbs/newer.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OCTETS 100000

struct advert { /* where the server's memory is */
	uint64_t addr;
	uint32_t rkey;
};

struct server {
	struct rdma_cm_id *listener;
	uint8_t memory[OCTETS];
	struct advert advert;
	uint8_t byte;
	const char *failed; /* cmocka's assertions work in the main thread only */
};

static uint8_t pattern(size_t i, uint8_t seed)
{
	return (uint8_t)(i * 31 + (i >> 8) + seed);
}

static void fill(uint8_t *octets, uint8_t seed)
{
	for (size_t i = 0; i < OCTETS; i++)
		octets[i] = pattern(i, seed);
}

static int differs(const uint8_t *octets, uint8_t seed)
{
	for (size_t i = 0; i < OCTETS; i++)
		if (octets[i] != pattern(i, seed))
			return 1;
	return 0;
}

static struct ibv_qp_init_attr qp_attr(void)
{
	return (struct ibv_qp_init_attr){
		.cap = { .max_send_wr = 4,
			 .max_recv_wr = 4,
			 .max_send_sge = 1,
			 .max_recv_sge = 1,
			 .max_inline_data = 16 },
		.sq_sig_all = 1,
	};
}

static struct rdma_addrinfo *resolve(const char *ip, uint16_t port, int flags)
{
	struct rdma_addrinfo hints = { .ai_flags = flags, .ai_port_space = RDMA_PS_TCP }, *res;
	char service[8];

	snprintf(service, sizeof(service), "%u", port);
	assert_int_equal(rdma_getaddrinfo(ip, service, &hints, &res), 0);
	return res;
}

/* Advertises its memory, hears when the client wrote and read it, disconnects. What failed. */
static const char *serve_client(struct server *server, struct rdma_cm_id *id)
{
	struct ibv_mr *mr = ibv_reg_mr(id->pd, server->memory, OCTETS,
				       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ |
					       IBV_ACCESS_REMOTE_WRITE);
	struct ibv_mr *byte_mr = rdma_reg_msgs(id, &server->byte, 1);
	struct ibv_wc wc;

	if (!mr || !byte_mr)
		return "registration";
	if (rdma_post_recv(id, NULL, &server->byte, 1, byte_mr) < 0 || rdma_accept(id, NULL) < 0)
		return "accept";
	server->advert = (struct advert){ (uintptr_t)server->memory, mr->rkey };
	if (rdma_post_send(id, NULL, &server->advert, sizeof(server->advert), NULL,
			   IBV_SEND_INLINE) < 0)
		return "post";
	if (rdma_get_send_comp(id, &wc) != 1 || wc.status != IBV_WC_SUCCESS)
		return "send";
	if (rdma_get_recv_comp(id, &wc) != 1 || wc.status != IBV_WC_SUCCESS)
		return "receive";
	if (server->byte != 'x' || differs(server->memory, 5))
		return "data";
	if (rdma_disconnect(id) < 0 || rdma_dereg_mr(mr) < 0 || rdma_dereg_mr(byte_mr) < 0)
		return "disconnect";
	return NULL;
}

static void *serve(void *arg)
{
	struct server *server = arg;
	struct rdma_cm_id *id;

	if (rdma_get_request(server->listener, &id) < 0) {
		server->failed = "request";
		return NULL;
	}
	server->failed = serve_client(server, id);
	rdma_destroy_ep(id);
	return NULL;
}

static void exchange(struct rdma_cm_id *id)
{
	static uint8_t local[OCTETS];
	struct advert advert;
	struct ibv_wc wc;
	struct ibv_mr *mr = rdma_reg_msgs(id, local, OCTETS);
	struct ibv_mr *advert_mr = rdma_reg_msgs(id, &advert, sizeof(advert));

	assert_non_null(mr);
	assert_int_equal(rdma_post_recv(id, &advert, &advert, sizeof(advert), advert_mr), 0);
	assert_int_equal(rdma_connect(id, NULL), 0);
	assert_int_equal(id->event->event, RDMA_CM_EVENT_ESTABLISHED);
	assert_int_equal(rdma_get_recv_comp(id, &wc), 1);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.byte_len, sizeof(advert));
	assert_ptr_equal((void *)(uintptr_t)wc.wr_id, &advert);

	assert_int_equal(rdma_post_read(id, NULL, local, OCTETS, mr, 0, advert.addr, advert.rkey),
			 0);
	assert_int_equal(rdma_get_send_comp(id, &wc), 1);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_false(differs(local, 1));

	fill(local, 5);
	assert_int_equal(rdma_post_write(id, NULL, local, OCTETS, mr, 0, advert.addr, advert.rkey),
			 0);
	assert_int_equal(rdma_post_send(id, NULL, "x", 1, NULL, IBV_SEND_INLINE), 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(rdma_get_send_comp(id, &wc), 1);
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
	}
	assert_int_equal(rdma_disconnect(id), 0);
	assert_int_equal(rdma_dereg_mr(mr), 0);
	assert_int_equal(rdma_dereg_mr(advert_mr), 0);
}

static void run(const char *ip)
{
	static struct server server;
	struct ibv_qp_init_attr attr = qp_attr();
	struct rdma_addrinfo *res = resolve(ip, 0, RAI_PASSIVE);
	struct rdma_cm_id *client;
	pthread_t thread;

	memset(&server, 0, sizeof(server));
	fill(server.memory, 1);
	assert_int_equal(rdma_create_ep(&server.listener, res, NULL, &attr), 0);
	rdma_freeaddrinfo(res);
	assert_int_equal(rdma_listen(server.listener, 0), 0);
	assert_int_equal(pthread_create(&thread, NULL, serve, &server), 0);

	res = resolve(ip, cm_port(server.listener), 0);
	attr = qp_attr();
	assert_int_equal(rdma_create_ep(&client, res, NULL, &attr), 0);
	rdma_freeaddrinfo(res);
	exchange(client);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_null(server.failed);
	rdma_destroy_ep(client);
	rdma_destroy_ep(server.listener);
}

static void endpoint__data(void **state)
{
	(void)state;
	run("127.0.0.1");
	run("::1");
}

static void *reject_one(void *arg)
{
	struct rdma_cm_id *listener = arg, *id;

	if (rdma_get_request(listener, &id) < 0)
		return NULL;
	int ret = rdma_reject(id, "no", 2);

	rdma_destroy_ep(id);
	return ret == 0 ? arg : NULL;
}

static void endpoint__rejected(void **state)
{
	struct ibv_qp_init_attr attr = qp_attr();
	struct rdma_addrinfo *res = resolve("127.0.0.1", 0, RAI_PASSIVE);
	struct rdma_cm_id *listener, *client;
	pthread_t thread;
	void *ret;

	(void)state;
	assert_int_equal(rdma_create_ep(&listener, res, NULL, NULL), 0);
	rdma_freeaddrinfo(res);
	assert_int_equal(rdma_listen(listener, 1), 0);
	assert_int_equal(pthread_create(&thread, NULL, reject_one, listener), 0);
	res = resolve("127.0.0.1", cm_port(listener), 0);
	assert_int_equal(rdma_create_ep(&client, res, NULL, &attr), 0);
	rdma_freeaddrinfo(res);
	assert_int_equal(rdma_connect(client, NULL), -1);
	assert_int_equal(errno, ECONNREFUSED);
	assert_int_equal(client->event->event, RDMA_CM_EVENT_REJECTED);
	assert_memory_equal(client->event->param.conn.private_data, "no", 2);
	assert_int_equal(pthread_join(thread, &ret), 0);
	assert_non_null(ret);
	rdma_destroy_ep(client);
	rdma_destroy_ep(listener);
}

static void endpoint__refused(void **state)
{
	struct ibv_qp_init_attr attr = qp_attr();
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *bound = cm_bound(channel, "127.0.0.1"), *client;
	struct rdma_addrinfo *res = resolve("127.0.0.1", cm_port(bound), 0);

	(void)state;
	assert_int_equal(rdma_create_ep(&client, res, NULL, &attr), 0);
	assert_int_equal(rdma_connect(client, NULL), -1);
	assert_int_equal(errno, ECONNREFUSED);
	rdma_destroy_ep(client);
	rdma_freeaddrinfo(res);
	rdma_destroy_id(bound);
	rdma_destroy_event_channel(channel);
}

/* The server's QP cannot be made: the Request is rejected, the server goes on. */
static void endpoint__bad_attr(void **state)
{
	struct ibv_qp_init_attr attr = qp_attr(), bad = qp_attr();
	struct rdma_addrinfo *res = resolve("127.0.0.1", 0, RAI_PASSIVE);
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *listener, *id, *client;

	(void)state;
	bad.cap.max_send_sge = 100000;
	assert_int_equal(rdma_create_ep(&listener, res, NULL, &bad), 0);
	rdma_freeaddrinfo(res);
	assert_int_equal(rdma_listen(listener, 1), 0);
	client = cm_resolved(channel, "127.0.0.1", cm_port(listener));
	assert_int_equal(rdma_connect(client, NULL), 0);
	assert_int_equal(rdma_get_request(listener, &id), -1);
	cm_expect_ack(channel, RDMA_CM_EVENT_REJECTED, -ECONNREFUSED);
	cm_destroy(client);
	rdma_destroy_ep(listener);
	rdma_destroy_event_channel(channel);

	res = resolve("127.0.0.1", 1, 0);
	attr.cap.max_inline_data = 100000;
	assert_int_equal(rdma_create_ep(&client, res, NULL, &attr), -1);
	rdma_freeaddrinfo(res);
}

/* rdma_getaddrinfo(3): connection data go before the program's private data, if it gives any. */
static void endpoint__connection_data(void **state)
{
	struct rdma_conn_param param = { .private_data = "private", .private_data_len = 7 };
	struct rdma_event_channel *passive = rdma_create_event_channel();
	struct rdma_event_channel *active = rdma_create_event_channel();
	struct rdma_cm_id *listener = cm_listener(passive, "127.0.0.1", 2), *client;

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct rdma_addrinfo *res = resolve("127.0.0.1", cm_port(listener), 0);
		struct ibv_qp_init_attr attr = qp_attr();
		struct rdma_cm_event *event;

		res->ai_connect = strdup("connection ");
		res->ai_connect_len = 11;
		assert_int_equal(rdma_create_ep(&client, res, NULL, &attr), 0);
		rdma_freeaddrinfo(res);
		assert_int_equal(rdma_migrate_id(client, active), 0);
		assert_int_equal(rdma_connect(client, i ? &param : NULL), 0);
		event = cm_expect(passive, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
		assert_int_equal(event->param.conn.private_data_len, i ? 18 : 11);
		assert_memory_equal(event->param.conn.private_data, "connection private",
				    i ? 18 : 11);
		rdma_destroy_id(event->id);
		rdma_ack_cm_event(event);
		cm_expect_ack(active, RDMA_CM_EVENT_REJECTED, -ECONNREFUSED);
		rdma_destroy_ep(client);
	}
	rdma_destroy_id(listener);
	rdma_destroy_event_channel(passive);
	rdma_destroy_event_channel(active);
}

static void endpoint__too_many_connection_data(void **state)
{
	struct rdma_addrinfo *res = resolve("127.0.0.1", 1, 0);
	struct rdma_cm_id *client;

	(void)state;
	res->ai_connect_len = 256;
	res->ai_connect = calloc(1, res->ai_connect_len);
	assert_int_equal(rdma_create_ep(&client, res, NULL, NULL), -1);
	assert_int_equal(errno, EINVAL);
	rdma_freeaddrinfo(res);
}

/* rdma_create_ep's PD is the listener's, and rdma_get_request makes QPs in the one that is there then. */
static void endpoint__pd_of_the_listener(void **state)
{
	struct ibv_qp_init_attr attr = qp_attr();
	struct rdma_addrinfo *res = resolve("0.0.0.0", 0, RAI_PASSIVE);
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct ibv_context **devices = rdma_get_devices(NULL);
	struct ibv_pd *pds[] = { ibv_alloc_pd(devices[0]), ibv_alloc_pd(devices[0]) };
	struct rdma_cm_id *listener, *id, *client;

	(void)state;
	assert_int_equal(rdma_create_ep(&listener, res, pds[0], &attr), 0);
	rdma_freeaddrinfo(res);
	assert_int_equal(rdma_listen(listener, 1), 0);
	for (int i = 0; i < 2; i++) {
		assert_ptr_equal(listener->pd, pds[i]);
		client = cm_resolved(channel, "127.0.0.1", cm_port(listener));
		assert_int_equal(rdma_connect(client, NULL), 0);
		assert_int_equal(rdma_get_request(listener, &id), 0);
		assert_ptr_equal(id->qp->pd, pds[i]);
		assert_int_equal(rdma_reject(id, NULL, 0), 0);
		cm_expect_ack(channel, RDMA_CM_EVENT_REJECTED, -ECONNREFUSED);
		cm_destroy(client);
		rdma_destroy_ep(id);
		listener->pd = pds[1];
	}
	rdma_destroy_ep(listener);
	for (int i = 0; i < 2; i++)
		assert_int_equal(ibv_dealloc_pd(pds[i]), 0);
	rdma_free_devices(devices);
	rdma_destroy_event_channel(channel);
}

static void qp__attr(void **state)
{
	struct cm_ends ends;
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT };
	int mask = 0;

	(void)state;
	cm_ends_open(&ends, "127.0.0.1");
	assert_int_equal(ends.client->qp->state, IBV_QPS_INIT);
	assert_int_equal(rdma_init_qp_attr(ends.client, &attr, &mask), 0);
	assert_int_equal(attr.qp_access_flags, IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
						       IBV_ACCESS_REMOTE_ATOMIC | VB_ACCESS_FLUSH);
	assert_int_equal(ibv_modify_qp(ends.client->qp, &attr, mask), 0);
	cm_ends_connect(&ends);
	assert_int_equal(ends.client->qp->state, IBV_QPS_RTS);
	assert_int_equal(ends.server->qp->state, IBV_QPS_RTS);
	attr.qp_state = IBV_QPS_RTS;
	assert_int_equal(rdma_init_qp_attr(ends.client, &attr, &mask), 0);
	assert_int_equal(rdma_notify(ends.client, IBV_EVENT_COMM_EST), 0);
	cm_ends_disconnect(&ends);
	cm_ends_close(&ends);
}

/* An id with one CQ for both queues, as rdma-core's rsockets give one: it is the id's then. */
static struct rdma_cm_id *with_cq(struct rdma_event_channel *channel)
{
	struct rdma_cm_id *id = cm_resolved(channel, "127.0.0.1", 1);

	rdma_destroy_qp(id);
	id->send_cq_channel = id->recv_cq_channel = ibv_create_comp_channel(id->verbs);
	id->send_cq = id->recv_cq = ibv_create_cq(id->verbs, 8, id, id->recv_cq_channel, 0);
	assert_non_null(id->recv_cq);
	return id;
}

static void qp__cq_that_the_id_has(void **state)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *id = with_cq(channel);
	struct ibv_qp_init_attr attr = qp_attr();
	struct ibv_cq *cq = id->send_cq;

	(void)state;
	attr.qp_type = IBV_QPT_RC;
	assert_int_equal(rdma_create_qp(id, NULL, &attr), 0);
	assert_ptr_equal(id->qp->send_cq, cq);
	assert_ptr_equal(id->qp->recv_cq, cq);
	rdma_destroy_qp(id);
	assert_null(id->send_cq);
	assert_null(id->recv_cq_channel);
	rdma_destroy_id(id);
	rdma_destroy_event_channel(channel);
}

static void qp__cq_of_the_id_is_destroyed_once(void **state)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *id = with_cq(channel);
	struct ibv_qp_init_attr attr = qp_attr();

	(void)state;
	attr.qp_type = IBV_QPT_RC;
	attr.send_cq = attr.recv_cq = id->send_cq;
	assert_int_equal(rdma_create_qp(id, NULL, &attr), 0);
	rdma_destroy_qp(id);
	rdma_destroy_id(id);
	rdma_destroy_event_channel(channel);
}

static void qp__cq_other_than_the_id_s(void **state)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *id = cm_resolved(channel, "127.0.0.1", 1);
	struct ibv_cq *cq = ibv_create_cq(id->verbs, 8, NULL, NULL, 0), *own;
	struct ibv_qp_init_attr attr = qp_attr();

	(void)state;
	attr.qp_type = IBV_QPT_RC;
	attr.recv_cq = cq;
	own = id->recv_cq;
	ibv_destroy_qp(id->qp);
	id->qp = NULL;
	assert_int_equal(rdma_create_qp(id, NULL, &attr), -1);
	assert_int_equal(errno, EINVAL);
	assert_ptr_equal(id->recv_cq, own);
	attr.recv_cq = NULL;
	assert_int_equal(rdma_create_qp(id, NULL, &attr), 0);
	assert_ptr_equal(id->qp->recv_cq, own);
	cm_destroy(id);
	assert_int_equal(ibv_destroy_cq(cq), 0);
	rdma_destroy_event_channel(channel);
}

/* The CQs that the library made for a QP which it could not create are gone, and not in the attributes. */
static void qp__tried_again_with_less(void **state)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *id = cm_resolved(channel, "127.0.0.1", 1);
	struct ibv_qp_init_attr_ex attr = {
		.cap = { 4, 4, 1, 1, 100000 },
		.qp_type = IBV_QPT_RC,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = IBV_QP_EX_WITH_SEND,
	};

	(void)state;
	rdma_destroy_qp(id);
	assert_int_equal(rdma_create_qp_ex(id, &attr), -1);
	assert_null(attr.send_cq);
	assert_null(attr.recv_cq);
	attr.cap.max_inline_data = 16;
	assert_int_equal(rdma_create_qp_ex(id, &attr), 0);
	assert_ptr_equal(attr.send_cq, id->send_cq);
	cm_destroy(id);
	rdma_destroy_event_channel(channel);
}

static void qp__shared_receive_queue(void **state)
{
	struct ibv_srq_init_attr srq_attr = { .attr = { .max_wr = 8, .max_sge = 1 } };
	struct ibv_qp_init_attr attr = qp_attr();
	struct cm_ends ends;
	uint8_t octets[8];
	struct ibv_wc wc;

	(void)state;
	attr.qp_type = IBV_QPT_RC;
	cm_ends_open(&ends, "127.0.0.1");
	cm_ends_request(&ends);
	rdma_destroy_qp(ends.server);
	assert_int_equal(rdma_create_srq(ends.server, NULL, &srq_attr), 0);
	assert_int_equal(rdma_create_qp(ends.server, NULL, &attr), 0);
	assert_ptr_equal(attr.srq, ends.server->srq);
	struct ibv_mr *mr = rdma_reg_msgs(ends.server, octets, sizeof(octets));

	assert_int_equal(rdma_post_recv(ends.server, NULL, octets, sizeof(octets), mr), 0);
	cm_ends_accept(&ends);
	char text[] = "shared";
	struct ibv_mr *from = rdma_reg_msgs(ends.client, text, 6);

	assert_int_equal(rdma_post_send(ends.client, NULL, from->addr, 6, from, 0), 0);
	assert_int_equal(rdma_get_recv_comp(ends.server, &wc), 1);
	assert_int_equal(wc.byte_len, 6);
	assert_memory_equal(octets, "shared", 6);
	assert_int_equal(rdma_get_send_comp(ends.client, &wc), 1);
	cm_ends_disconnect(&ends);
	rdma_dereg_mr(mr);
	rdma_dereg_mr(from);
	rdma_destroy_qp(ends.server);
	rdma_destroy_srq(ends.server);
	cm_ends_close(&ends);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(endpoint__data),
		cmocka_unit_test(endpoint__rejected),
		cmocka_unit_test(endpoint__refused),
		cmocka_unit_test(endpoint__bad_attr),
		cmocka_unit_test(endpoint__connection_data),
		cmocka_unit_test(endpoint__too_many_connection_data),
		cmocka_unit_test(endpoint__pd_of_the_listener),
		cmocka_unit_test(qp__attr),
		cmocka_unit_test(qp__cq_that_the_id_has),
		cmocka_unit_test(qp__cq_of_the_id_is_destroyed_once),
		cmocka_unit_test(qp__cq_other_than_the_id_s),
		cmocka_unit_test(qp__tried_again_with_less),
		cmocka_unit_test(qp__shared_receive_queue),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
