// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// UD over two links whose link-local addresses are equal: what is sent for one stays on it. Both ends of both links are
// in one network namespace.
#include "cm.h"

#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RESOLVE_MS 2000
#define GROUP "ff02::7:7"
#define NEAR "fe80::2"
#define FAR "fe80::1"
#define GRH 40

struct link {
	const char *near, *far; /* interfaces, with the addresses NEAR and FAR */
};

static const struct link links[] = { { "aw2", "aw3" }, { "aw4", "aw5" } };

/* A QP, and its buffer for one receive at a time. */
struct end {
	struct rdma_cm_id *id;
	struct ibv_mr *mr;
	uint8_t buf[GRH + 100];
};

static int make_links(void **state)
{
	char line[512];

	if (!getenv("ANYWARP_TEST_NET"))
		return cm_open_channel(state);
	for (size_t i = 0; i < 2; i++) {
		const char *n = links[i].near, *f = links[i].far;

		snprintf(
			line, sizeof(line),
			"ip link add %s type veth peer name %s && "
			"ip link set %s addrgenmode none up && ip link set %s addrgenmode none up && "
			"ip addr add " NEAR "/64 dev %s nodad && ip addr add " FAR
			"/64 dev %s nodad",
			n, f, n, f, n, f);
		if (system(line) != 0)
			return -1;
	}
	return cm_open_channel(state);
}

static int need_links(void **state)
{
	(void)state;
	if (!getenv("ANYWARP_TEST_NET"))
		skip();
	return 0;
}

static struct sockaddr_storage on_link(const char *ip, const char *interface, uint16_t port)
{
	struct sockaddr_storage ss = cm_address(ip, port);

	((struct sockaddr_in6 *)&ss)->sin6_scope_id = if_nametoindex(interface);
	return ss;
}

static struct rdma_cm_id *fresh(void)
{
	struct rdma_cm_id *id;

	assert_int_equal(rdma_create_id(cm_channel, &id, NULL, RDMA_PS_UDP), 0);
	return id;
}

static void give_qp(struct end *end)
{
	struct ibv_qp_init_attr attr = { .cap = { 4, 4, 1, 1, 64 }, .qp_type = IBV_QPT_UD };

	assert_int_equal(rdma_create_qp(end->id, NULL, &attr), 0);
	end->mr = ibv_reg_mr(end->id->pd, end->buf, sizeof(end->buf), IBV_ACCESS_LOCAL_WRITE);
	assert_non_null(end->mr);
}

static void open_end(struct end *end, const char *from, const char *to, const char *interface,
		     uint16_t port)
{
	struct sockaddr_storage src = on_link(from, interface, 0);
	struct sockaddr_storage dst = on_link(to, interface, port);

	end->id = fresh();
	assert_int_equal(rdma_resolve_addr(end->id, (struct sockaddr *)&src,
					   (struct sockaddr *)&dst, RESOLVE_MS),
			 0);
	cm_expect_ack(cm_channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	give_qp(end);
}

static void close_end(struct end *end)
{
	assert_int_equal(ibv_dereg_mr(end->mr), 0);
	cm_destroy(end->id);
}

static void expect_link(struct rdma_cm_id *id, const struct ibv_ah_attr *attr,
			const char *interface)
{
	struct ibv_gid_entry entry;

	assert_int_equal(ibv_query_gid_ex(id->verbs, 1, attr->grh.sgid_index, &entry, 0), 0);
	assert_int_equal(entry.ndev_ifindex, if_nametoindex(interface));
}

static struct ibv_ah *join(struct rdma_cm_id *id, const char *interface)
{
	struct sockaddr_storage group = on_link(GROUP, interface, 0);
	struct rdma_cm_event *event;
	struct ibv_ah *ah;

	assert_int_equal(rdma_join_multicast(id, (struct sockaddr *)&group, NULL), 0);
	event = cm_expect(cm_channel, RDMA_CM_EVENT_MULTICAST_JOIN, 0);
	expect_link(id, &event->param.ud.ah_attr, interface);
	ah = ibv_create_ah(id->pd, &event->param.ud.ah_attr);
	assert_non_null(ah);
	rdma_ack_cm_event(event);
	return ah;
}

static void post_recv(struct end *end)
{
	assert_int_equal(rdma_post_recv(end->id, NULL, end->buf, sizeof(end->buf), end->mr), 0);
}

static void send_text(struct end *end, struct ibv_ah *ah, uint32_t qpn, const char *text)
{
	assert_int_equal(rdma_post_ud_send(end->id, NULL, (void *)(uintptr_t)text, strlen(text),
					   NULL, IBV_SEND_INLINE, ah, qpn),
			 0);
}

static void expect_text(struct end *end, const char *text, struct ibv_wc *wc)
{
	assert_int_equal(rdma_get_recv_comp(end->id, wc), 1);
	assert_int_equal(wc->status, IBV_WC_SUCCESS);
	assert_memory_equal(end->buf + GRH, text, strlen(text));
}

/* The first datagram has reached every socket of the host by the time that the second one has come. */
static void group__stays_on_its_link(void **state)
{
	struct end near, far[2];
	struct ibv_ah *ahs[2], *ah;
	struct ibv_wc wc;

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		open_end(&far[i], FAR, GROUP, links[i].far, 0);
		ahs[i] = join(far[i].id, links[i].far);
		post_recv(&far[i]);
	}
	open_end(&near, NEAR, GROUP, links[1].near, 0);
	ah = join(near.id, links[1].near);
	send_text(&near, ah, 0xffffff, "one");
	expect_text(&far[1], "one", &wc);
	post_recv(&far[1]);
	send_text(&near, ah, 0xffffff, "two");
	expect_text(&far[1], "two", &wc);
	assert_int_equal(ibv_poll_cq(far[0].id->recv_cq, 1, &wc), 0);
	assert_int_equal(ibv_destroy_ah(ah), 0);
	close_end(&near);
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(ibv_destroy_ah(ahs[i]), 0);
		close_end(&far[i]);
	}
}

static struct rdma_cm_id *listener(const char *interface)
{
	struct sockaddr_storage ss = on_link(FAR, interface, 0);
	struct rdma_cm_id *id = fresh();

	assert_int_equal(rdma_bind_addr(id, (struct sockaddr *)&ss), 0);
	assert_int_equal(rdma_listen(id, 1), 0);
	return id;
}

static void take_request(struct end *server)
{
	struct rdma_cm_event *event = cm_expect(cm_channel, RDMA_CM_EVENT_CONNECT_REQUEST, 0);

	server->id = event->id;
	rdma_ack_cm_event(event);
	give_qp(server);
	post_recv(server);
	assert_int_equal(rdma_accept(server->id, &(struct rdma_conn_param){ 0 }), 0);
}

static struct ibv_ah *connect_to(struct end *client, struct end *server, const char *interface,
				 uint32_t *qpn)
{
	struct rdma_cm_event *event;
	struct ibv_ah *ah;

	assert_int_equal(rdma_resolve_route(client->id, RESOLVE_MS), 0);
	cm_expect_ack(cm_channel, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	assert_int_equal(rdma_connect(client->id, &(struct rdma_conn_param){ 0 }), 0);
	take_request(server);
	event = cm_expect(cm_channel, RDMA_CM_EVENT_ESTABLISHED, 0);
	expect_link(client->id, &event->param.ud.ah_attr, interface);
	*qpn = event->param.ud.qp_num;
	ah = ibv_create_ah(client->id->pd, &event->param.ud.ah_attr);
	assert_non_null(ah);
	rdma_ack_cm_event(event);
	return ah;
}

/* There and, by the address that the work completion leads to, back. */
static void service__answers_on_the_link_of_the_question(void **state)
{
	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct rdma_cm_id *service = listener(links[i].far);
		struct end client, server;
		struct ibv_ah_attr attr;
		struct ibv_ah *ah, *back;
		struct ibv_wc wc;
		uint32_t qpn;

		open_end(&client, NEAR, FAR, links[i].near, cm_port(service));
		post_recv(&client);
		ah = connect_to(&client, &server, links[i].near, &qpn);
		send_text(&client, ah, qpn, "there");
		expect_text(&server, "there", &wc);
		assert_int_equal(ibv_init_ah_from_wc(server.id->verbs, 1, &wc,
						     (struct ibv_grh *)server.buf, &attr),
				 0);
		expect_link(server.id, &attr, links[i].far);
		back = ibv_create_ah(server.id->pd, &attr);
		assert_non_null(back);
		send_text(&server, back, wc.src_qp, "back");
		expect_text(&client, "back", &wc);
		assert_int_equal(ibv_destroy_ah(back), 0);
		assert_int_equal(ibv_destroy_ah(ah), 0);
		close_end(&client);
		close_end(&server);
		rdma_destroy_id(service);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(group__stays_on_its_link, need_links),
		cmocka_unit_test_setup(service__answers_on_the_link_of_the_question, need_links),
	};

	setenv("ANYWARP_PERSONA", "roce", 1);
	return cmocka_run_group_tests(tests, make_links, cm_close_channel);
}
