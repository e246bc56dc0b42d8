// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Addresses and ports: port N of RDMA_PS_TCP is TCP port N.
#define _GNU_SOURCE /* unshare */
#include "cm.h"
#include "raw.h"

#include "../lib/own_host.h"

#include <errno.h>
#include <rdma/rsocket.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

static struct rdma_cm_id *fresh(void)
{
	struct rdma_cm_id *id;

	assert_int_equal(rdma_create_id(cm_channel, &id, NULL, RDMA_PS_TCP), 0);
	return id;
}

static void assert_bind(struct rdma_cm_id *id, const char *ip, uint16_t port, int err)
{
	struct sockaddr_storage ss = cm_address(ip, port);
	int ret = rdma_bind_addr(id, (struct sockaddr *)&ss);

	assert_int_equal(ret ? errno : 0, err);
}

static void set_option(struct rdma_cm_id *id, int option, int value)
{
	assert_int_equal(rdma_set_option(id, RDMA_OPTION_ID, option, &value, sizeof(value)), 0);
}

/* Connects to ip:port, where a listener of ours is; the Request's id. */
static struct rdma_cm_id *knock(const char *ip, uint16_t port, struct rdma_cm_id **client)
{
	struct rdma_event_channel *active = rdma_create_event_channel();

	*client = cm_resolved(active, ip, port);
	assert_int_equal(rdma_connect(*client, NULL), 0);
	struct rdma_cm_event *event = cm_expect(cm_channel, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
	struct rdma_cm_id *server = event->id;

	rdma_ack_cm_event(event);
	return server;
}

static void hang_up(struct rdma_cm_id *server, struct rdma_cm_id *client)
{
	struct rdma_event_channel *active = client->channel;

	cm_destroy(server);
	cm_destroy(client);
	rdma_destroy_event_channel(active);
}

static void knock_once(const char *ip, uint16_t port)
{
	struct rdma_cm_id *client;
	struct rdma_cm_id *server = knock(ip, port, &client);

	hang_up(server, client);
}

static void bind__port_is_tcp_port(void **state)
{
	struct rdma_cm_id *id = cm_listener(cm_channel, "127.0.0.1", 1);

	(void)state;
	close(raw_connect(cm_port(id)));
	rdma_destroy_id(id);
}

static void bind__port_in_use(void **state)
{
	struct rdma_cm_id *bound = cm_bound(cm_channel, "127.0.0.1");
	struct rdma_cm_id *listener = cm_listener(cm_channel, "127.0.0.1", 1);
	struct rdma_cm_id *id = fresh();
	uint16_t port;
	int tcp = raw_listen(&port);

	(void)state;
	assert_bind(id, "127.0.0.1", cm_port(bound), EADDRINUSE);
	assert_bind(id, "127.0.0.1", cm_port(listener), EADDRINUSE);
	assert_bind(id, "127.0.0.1", port, EADDRINUSE);
	assert_bind(id, "127.0.0.1", 0, 0);
	close(tcp);
	rdma_destroy_id(id);
	rdma_destroy_id(listener);
	rdma_destroy_id(bound);
}

static void bind__twice(void **state)
{
	struct rdma_cm_id *id = cm_bound(cm_channel, "127.0.0.1");

	(void)state;
	assert_bind(id, "127.0.0.1", 0, EINVAL);
	rdma_destroy_id(id);
}

static void bind__foreign_address(void **state)
{
	struct sockaddr_storage unix_address = { .ss_family = AF_UNIX };
	struct rdma_cm_id *id = fresh();

	(void)state;
	assert_bind(id, "192.0.2.1", 0, EADDRNOTAVAIL);
	assert_bind(id, "2001:db8::1", 0, EADDRNOTAVAIL);
	assert_int_equal(rdma_bind_addr(id, (struct sockaddr *)&unix_address), -1);
	assert_int_equal(errno, EAFNOSUPPORT);
	rdma_destroy_id(id);
}

/* Connections that a server left behind do not keep its port from it. */
static void bind__again_after_connections(void **state)
{
	struct rdma_cm_id *listener = cm_listener(cm_channel, "127.0.0.1", 1), *client;
	uint16_t port = cm_port(listener);
	struct rdma_cm_id *server = knock("127.0.0.1", port, &client);

	(void)state;
	cm_make_qp(server);
	assert_int_equal(rdma_accept(server, NULL), 0);
	cm_expect_ack(cm_channel, RDMA_CM_EVENT_ESTABLISHED, 0);
	rdma_destroy_id(listener);
	listener = fresh();
	assert_bind(listener, "127.0.0.1", port, 0);
	assert_int_equal(rdma_listen(listener, 1), 0);
	rdma_disconnect(server);
	cm_expect_ack(cm_channel, RDMA_CM_EVENT_DISCONNECTED, 0);
	hang_up(server, client);
	rdma_destroy_id(listener);
	listener = fresh();
	assert_bind(listener, "127.0.0.1", port, 0);
	rdma_destroy_id(listener);
}

static void bind__reuse(void **state)
{
	struct rdma_cm_id *a = fresh(), *b = fresh();

	(void)state;
	set_option(a, RDMA_OPTION_ID_REUSEADDR, 1);
	set_option(b, RDMA_OPTION_ID_REUSEADDR, 1);
	assert_bind(a, "127.0.0.1", 0, 0);
	assert_bind(b, "127.0.0.1", cm_port(a), 0);
	assert_int_equal(rdma_listen(a, 1), 0);
	assert_int_equal(rdma_listen(b, 1), -1);
	assert_int_equal(errno, EADDRINUSE);
	rdma_destroy_id(a);
	assert_int_equal(rdma_listen(b, 1), 0);
	rdma_destroy_id(b);
}

static void listen__wildcard(void **state)
{
	struct rdma_cm_id *listener = cm_listener(cm_channel, "0.0.0.0", 1), *client;
	struct rdma_cm_id *server = knock("127.0.0.1", cm_port(listener), &client);

	(void)state;
	assert_non_null(server->verbs);
	hang_up(server, client);
	rdma_destroy_id(listener);
}

static void listen__wildcard_of_both(void **state)
{
	struct rdma_cm_id *listener = cm_listener(cm_channel, "::", 2), *client;
	struct rdma_cm_id *server = knock("::1", cm_port(listener), &client);

	(void)state;
	assert_int_equal(rdma_get_local_addr(server)->sa_family, AF_INET6);
	hang_up(server, client);
	server = knock("127.0.0.1", cm_port(listener), &client);
	assert_int_equal(rdma_get_local_addr(server)->sa_family, AF_INET);
	assert_int_equal(rdma_get_peer_addr(server)->sa_family, AF_INET);
	hang_up(server, client);
	rdma_destroy_id(listener);
}

/* One port for both families; another program may have it in the second. */
static void bind_pair(struct rdma_cm_id **v6, struct rdma_cm_id **v4)
{
	for (int tries = 0; tries < 16; tries++) {
		*v6 = fresh();
		*v4 = fresh();
		set_option(*v6, RDMA_OPTION_ID_AFONLY, 1);
		assert_bind(*v6, "::", 0, 0);
		struct sockaddr_storage ss = cm_address("0.0.0.0", cm_port(*v6));

		if (rdma_bind_addr(*v4, (struct sockaddr *)&ss) == 0)
			return;
		assert_int_equal(errno, EADDRINUSE);
		rdma_destroy_id(*v6);
		rdma_destroy_id(*v4);
	}
	fail_msg("no port is free in both families");
}

static void listen__wildcard_of_one(void **state)
{
	struct rdma_cm_id *v6, *v4;

	(void)state;
	bind_pair(&v6, &v4);
	assert_int_equal(rdma_listen(v6, 1), 0);
	assert_int_equal(rdma_listen(v4, 1), 0);
	knock_once("::1", cm_port(v6));
	knock_once("127.0.0.1", cm_port(v6));
	rdma_destroy_id(v4);
	rdma_destroy_id(v6);
}

static void assert_listen(struct rdma_cm_id *id, int err)
{
	int ret = rdma_listen(id, 1);

	assert_int_equal(ret ? errno : 0, err);
}

/* As with Linux's rdma_cm: while an id is idle or bound. */
static void option__af_only_by_state(void **state)
{
	struct rdma_cm_id *v4 = cm_bound(cm_channel, "127.0.0.1"),
			  *v6 = cm_bound(cm_channel, "::1");
	struct rdma_event_channel *active = rdma_create_event_channel();
	struct rdma_cm_id *client = cm_resolved(active, "127.0.0.1", cm_port(v4));
	int on = 1;

	(void)state;
	for (int value = 1; value >= 0; value--) {
		set_option(v4, RDMA_OPTION_ID_AFONLY, value);
		set_option(v6, RDMA_OPTION_ID_AFONLY, value);
	}
	assert_listen(v4, 0);
	assert_listen(v6, 0);
	knock_once("::1", cm_port(v6));
	struct rdma_cm_id *late[] = { v4, v6, client };

	for (int i = 0; i < 3; i++) {
		assert_int_equal(rdma_set_option(late[i], RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY,
						 &on, sizeof(on)),
				 -1);
		assert_int_equal(errno, EINVAL);
	}
	cm_destroy(client);
	rdma_destroy_event_channel(active);
	rdma_destroy_id(v4);
	rdma_destroy_id(v6);
}

static void option__af_only_leaves_the_other_family(void **state)
{
	struct rdma_cm_id *v6 = cm_bound(cm_channel, "::"), *v4 = fresh();

	(void)state;
	assert_bind(v4, "0.0.0.0", cm_port(v6), EADDRINUSE);
	set_option(v6, RDMA_OPTION_ID_AFONLY, 1);
	assert_bind(v4, "0.0.0.0", cm_port(v6), 0);
	assert_listen(v6, 0);
	assert_listen(v4, 0);
	knock_once("::1", cm_port(v6));
	knock_once("127.0.0.1", cm_port(v6));
	rdma_destroy_id(v4);
	rdma_destroy_id(v6);
}

/* Where the other family has the port it is rdma_listen that fails, and the id is bound as before. */
static void option__af_only_takes_the_other_family(void **state)
{
	struct rdma_cm_id *v6, *v4;

	(void)state;
	bind_pair(&v6, &v4);
	uint16_t port = cm_port(v6);

	set_option(v6, RDMA_OPTION_ID_AFONLY, 0);
	assert_listen(v6, EADDRINUSE);
	rdma_destroy_id(v4);
	v4 = fresh();
	assert_listen(v6, 0);
	assert_int_equal(cm_port(v6), port);
	knock_once("127.0.0.1", port);
	knock_once("::1", port);
	assert_bind(v4, "0.0.0.0", port, EADDRINUSE);
	rdma_destroy_id(v4);
	rdma_destroy_id(v6);
}

static void listen__unbound(void **state)
{
	struct rdma_cm_id *listener = fresh();

	(void)state;
	assert_int_equal(rdma_listen(listener, 1), 0);
	assert_int_not_equal(rdma_get_src_port(listener), 0);
	knock_once("127.0.0.1", cm_port(listener));
	assert_int_equal(rdma_listen(listener, 1), -1);
	assert_int_equal(errno, EINVAL);
	rdma_destroy_id(listener);
}

static void resolve__source(void **state)
{
	struct rdma_cm_id *listener = cm_listener(cm_channel, "127.0.0.1", 1);
	struct sockaddr_storage src = cm_address("127.0.0.2", 0), local;
	struct sockaddr_storage dst = cm_address("127.0.0.1", cm_port(listener));
	struct rdma_event_channel *active = rdma_create_event_channel();
	struct rdma_cm_id *client;

	(void)state;
	assert_int_equal(rdma_create_id(active, &client, NULL, RDMA_PS_TCP), 0);
	assert_int_equal(
		rdma_resolve_addr(client, (struct sockaddr *)&src, (struct sockaddr *)&dst, 1), 0);
	cm_expect_ack(active, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	memcpy(&local, rdma_get_local_addr(client), sizeof(local));
	assert_int_not_equal(((struct sockaddr_in *)&local)->sin_port, 0);
	((struct sockaddr_in *)&local)->sin_port = 0;
	assert_memory_equal(&local, &src, sizeof(struct sockaddr_in));
	assert_int_equal(rdma_resolve_route(client, 1), 0);
	cm_expect_ack(active, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	cm_make_qp(client);
	assert_int_equal(rdma_connect(client, NULL), 0);
	struct rdma_cm_event *event = cm_expect(cm_channel, RDMA_CM_EVENT_CONNECT_REQUEST, 0);

	assert_int_equal(rdma_get_dst_port(event->id), rdma_get_src_port(client));
	struct rdma_cm_id *server = event->id;

	rdma_ack_cm_event(event);
	hang_up(server, client);
	rdma_destroy_id(listener);
}

/* As Linux's rdma_cm, which binds an id that resolves to a port of its own. */
static void resolve__any_port(void **state)
{
	struct rdma_cm_id *listener = cm_listener(cm_channel, "127.0.0.1", 1);
	struct rdma_event_channel *active = rdma_create_event_channel();
	struct rdma_cm_id *client = cm_resolved(active, "127.0.0.1", cm_port(listener));
	uint16_t port = cm_port(client);

	(void)state;
	assert_int_not_equal(port, 0);
	assert_int_equal(((struct sockaddr_in *)rdma_get_local_addr(client))->sin_port,
			 htons(port));
	assert_int_equal(rdma_connect(client, NULL), 0);
	struct rdma_cm_event *event = cm_expect(cm_channel, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
	struct rdma_cm_id *server = event->id;

	assert_int_equal(cm_port(client), port);
	assert_int_equal(rdma_get_dst_port(server), htons(port));
	rdma_ack_cm_event(event);
	hang_up(server, client);
	rdma_destroy_id(listener);
}

static void resolve__families_differ(void **state)
{
	struct sockaddr_storage src = cm_address("127.0.0.1", 0), dst = cm_address("::1", 1);
	struct rdma_cm_id *id = fresh();

	(void)state;
	assert_int_equal(rdma_resolve_addr(id, (struct sockaddr *)&src, (struct sockaddr *)&dst, 1),
			 -1);
	assert_int_equal(errno, EINVAL);
	rdma_destroy_id(id);
}

static void option__bad(void **state)
{
	struct rdma_cm_id *id = cm_bound(cm_channel, "127.0.0.1");
	int on = 1;

	(void)state;
	assert_int_equal(rdma_set_option(id, RDMA_OPTION_ID, 77, &on, sizeof(on)), -1);
	assert_int_equal(errno, ENOSYS);
	assert_int_equal(rdma_set_option(id, 5, RDMA_OPTION_ID_AFONLY, &on, sizeof(on)), -1);
	assert_int_equal(errno, ENOSYS);
	assert_int_equal(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &on, 4), -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &on, 1), 0);
	assert_int_equal(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &on, 4),
			 -1);
	assert_int_equal(errno, EINVAL);
	on = 32; /* the field has five bits */
	assert_int_equal(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &on, 1),
			 -1);
	assert_int_equal(errno, EINVAL);
	rdma_destroy_id(id);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, cm_open_channel, cm_close_channel)

/* IPv6 sockets take IPv6 alone there. */
static bool enter_host_of_v6only(void)
{
	return enter_own_host() && set_sysctl("/proc/sys/net/ipv6/bindv6only", "1");
}

static void expect_port_of_v4(struct rdma_cm_id *v6, int err)
{
	struct rdma_cm_id *v4 = fresh();

	assert_bind(v4, "0.0.0.0", cm_port(v6), err);
	rdma_destroy_id(v4);
}

static void expect_rsocket_of_v6(void)
{
	struct sockaddr_storage ss = cm_address("::", 0);
	socklen_t len = sizeof(ss);
	int v6 = rsocket(AF_INET6, SOCK_STREAM, 0), v4 = rsocket(AF_INET, SOCK_STREAM, 0);

	assert_int_equal(rbind(v6, (struct sockaddr *)&ss, len), 0);
	assert_int_equal(rgetsockname(v6, (struct sockaddr *)&ss, &len), 0);
	ss = cm_address("0.0.0.0", ntohs(((struct sockaddr_in6 *)&ss)->sin6_port));
	assert_int_equal(rbind(v4, (struct sockaddr *)&ss, sizeof(ss)), 0);
	assert_int_equal(rlisten(v4, 1), 0);
	assert_int_equal(rlisten(v6, 1), 0);
	rclose(v4);
	rclose(v6);
}

/* The program's own word goes before the host's. */
static void listen_by_sysctl(void)
{
	struct rdma_cm_id *v6;

	if (!enter_host_of_v6only())
		_exit(CM_CHILD_SKIPS);
	cm_channel = rdma_create_event_channel();
	v6 = fresh();
	assert_bind(v6, "::", 0, 0);
	expect_port_of_v4(v6, 0);
	assert_listen(v6, 0);
	expect_port_of_v4(v6, 0);
	rdma_destroy_id(v6);
	v6 = fresh();
	set_option(v6, RDMA_OPTION_ID_AFONLY, 0);
	assert_bind(v6, "::", 0, 0);
	expect_port_of_v4(v6, EADDRINUSE);
	rdma_destroy_id(v6);
	v6 = fresh();
	assert_bind(v6, "::", 0, 0);
	set_option(v6, RDMA_OPTION_ID_AFONLY, 0);
	expect_port_of_v4(v6, EADDRINUSE);
	assert_listen(v6, 0);
	knock_once("127.0.0.1", cm_port(v6));
	rdma_destroy_id(v6);
	expect_rsocket_of_v6();
	rdma_destroy_event_channel(cm_channel);
}

static void listen__wildcard_by_sysctl(void **state)
{
	(void)state;
	cm_pass_in_child(listen_by_sysctl);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(listen__wildcard_by_sysctl),
		TEST(bind__port_is_tcp_port),
		TEST(bind__port_in_use),
		TEST(bind__twice),
		TEST(bind__foreign_address),
		TEST(bind__again_after_connections),
		TEST(bind__reuse),
		TEST(listen__wildcard),
		TEST(listen__wildcard_of_both),
		TEST(listen__wildcard_of_one),
		TEST(option__af_only_by_state),
		TEST(option__af_only_leaves_the_other_family),
		TEST(option__af_only_takes_the_other_family),
		TEST(listen__unbound),
		TEST(resolve__source),
		TEST(resolve__any_port),
		TEST(resolve__families_differ),
		TEST(option__bad),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
