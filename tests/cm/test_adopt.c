// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// anywarp_cm_initiate and anywarp_cm_respond where all goes well, whoever the peer is.
#define _GNU_SOURCE /* O_ASYNC */
#include "anywarp/cm.h"
#include "given.h"
#include "half.h"
#include "raw.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <string.h>
#include <unistd.h>

#define MANY 64

static void adopt__both_ends(void **state)
{
	struct cm_ends ends;
	int fds[2];

	(void)state;
	given_pair(fds);
	given_open(&ends, fds);
	cm_ends_connect(&ends);
	given_talk(&ends);
	cm_ends_disconnect(&ends);
	cm_ends_close(&ends);
}

/* The Request lies in the socket before anybody asks for it. */
static void adopt__request_is_there_already(void **state)
{
	struct cm_ends ends = { 0 };
	uint8_t octet;
	int fds[2];

	(void)state;
	given_pair(fds);
	ends.passive = rdma_create_event_channel();
	ends.active = rdma_create_event_channel();
	ends.listener = given_id(ends.passive);
	ends.client = given_id(ends.active);
	assert_int_equal(anywarp_cm_initiate(ends.client, fds[0]), 0);
	cm_make_qp(ends.client);
	assert_int_equal(rdma_connect(ends.client, NULL), 0);
	assert_int_equal(recv(fds[1], &octet, 1, MSG_PEEK), 1);
	assert_int_equal(anywarp_cm_respond(ends.listener, fds[1]), 0);
	struct rdma_cm_event *event = cm_expect(ends.passive, RDMA_CM_EVENT_CONNECT_REQUEST, 0);

	assert_ptr_equal(event->listen_id, ends.listener);
	ends.server = event->id;
	rdma_ack_cm_event(event);
	cm_make_qp(ends.server);
	cm_ends_accept(&ends);
	given_talk(&ends);
	cm_ends_close(&ends);
}

static void adopt__initiate_to_a_listener(void **state)
{
	struct cm_ends ends = { 0 };

	(void)state;
	ends.passive = rdma_create_event_channel();
	ends.active = rdma_create_event_channel();
	ends.listener = cm_listener(ends.passive, "127.0.0.1", 0);
	ends.client = given_id(ends.active);
	assert_int_equal(anywarp_cm_initiate(ends.client, raw_connect(cm_port(ends.listener))), 0);
	cm_make_qp(ends.client);
	cm_ends_connect(&ends);
	given_talk(&ends);
	cm_ends_disconnect(&ends);
	cm_ends_close(&ends);
}

static void adopt__respond_to_a_connect(void **state)
{
	struct cm_ends ends = { 0 };
	uint16_t port;
	int listener;

	(void)state;
	listener = raw_listen(&port);
	ends.passive = rdma_create_event_channel();
	ends.active = rdma_create_event_channel();
	ends.listener = given_id(ends.passive);
	ends.client = cm_resolved(ends.active, "127.0.0.1", port);
	assert_int_equal(rdma_connect(ends.client, NULL), 0);
	assert_int_equal(anywarp_cm_respond(ends.listener, raw_accept(listener)), 0);
	cm_ends_take_request(&ends);
	cm_ends_accept(&ends);
	given_talk(&ends);
	close(listener);
	cm_ends_close(&ends);
}

static uint32_t ip_of(struct sockaddr *sa)
{
	assert_int_equal(sa->sa_family, AF_INET);
	return ((struct sockaddr_in *)sa)->sin_addr.s_addr;
}

/* An IPv4 connection of an IPv6 socket's, too, has IPv4 addresses: those of the connection. */
static void adopt__addresses(void **state)
{
	struct sockaddr_in6 any = { .sin6_family = AF_INET6 }, peer;
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *id = given_id(channel);
	socklen_t len = sizeof(any);
	int listener = socket(AF_INET6, SOCK_STREAM, 0), client, server;

	(void)state;
	assert_int_equal(bind(listener, (struct sockaddr *)&any, sizeof(any)), 0);
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&any, &len), 0);
	client = raw_connect(ntohs(any.sin6_port));
	server = raw_accept(listener);
	assert_int_equal(getpeername(server, (struct sockaddr *)&peer, &len), 0);
	assert_int_equal(anywarp_cm_initiate(id, server), 0);
	assert_int_equal(ip_of(rdma_get_local_addr(id)), htonl(INADDR_LOOPBACK));
	assert_int_equal(ip_of(rdma_get_peer_addr(id)), htonl(INADDR_LOOPBACK));
	assert_int_equal(rdma_get_src_port(id), any.sin6_port);
	assert_int_equal(rdma_get_dst_port(id), peer.sin6_port);
	assert_int_equal(id->route.addr.addr.ibaddr.dgid.raw[12], 127);
	assert_non_null(id->verbs);
	rdma_destroy_id(id);
	raw_expect_end(client);
	close(client);
	close(listener);
	rdma_destroy_event_channel(channel);
}

/* What the program has set would hold the stream up, kill its last octets, or send signals. */
static void set_options(int fd)
{
	struct linger linger = { .l_onoff = 1 };
	int octets = 4096, one = 1;

	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)), 0);
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &octets, sizeof(octets)), 0);
	assert_int_equal(setsockopt(fd, IPPROTO_TCP, TCP_CORK, &one, sizeof(one)), 0);
	assert_int_equal(setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &one, sizeof(one)), 0);
	assert_int_equal(fcntl(fd, F_SETFL, O_ASYNC), 0);
	assert_int_equal(fcntl(fd, F_SETFD, 0), 0);
}

static int option(int fd, int level, int name)
{
	int value[2] = { 0 }; /* of SO_LINGER: whether and how long */
	socklen_t len = sizeof(value);

	assert_int_equal(getsockopt(fd, level, name, value, &len), 0);
	return value[0];
}

static void expect_defaults(int fd)
{
	assert_int_equal(option(fd, SOL_SOCKET, SO_LINGER), 0);
	assert_int_equal(option(fd, SOL_SOCKET, SO_RCVLOWAT), 1);
	assert_int_equal(option(fd, IPPROTO_TCP, TCP_CORK), 0);
	assert_int_equal(option(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT), 0);
	assert_int_equal(fcntl(fd, F_GETFL) & (O_ASYNC | O_NONBLOCK), O_NONBLOCK);
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
}

static void adopt__options_of_the_program(void **state)
{
	struct cm_ends ends;
	int fds[2];

	(void)state;
	given_pair(fds);
	set_options(fds[0]);
	set_options(fds[1]);
	given_open(&ends, fds);
	expect_defaults(fds[0]);
	expect_defaults(fds[1]);
	cm_ends_connect(&ends);
	given_talk(&ends);
	cm_ends_disconnect(&ends);
	cm_ends_close(&ends);
}

/* One id gets them all; which Request is whose its port tells. */
static void adopt__many(void **state)
{
	struct cm_ends ends[MANY];
	struct rdma_event_channel *passive = rdma_create_event_channel();
	struct rdma_cm_id *listener = given_id(passive);

	(void)state;
	memset(ends, 0, sizeof(ends));
	for (int i = 0; i < MANY; i++) {
		int fds[2];

		given_pair(fds);
		ends[i].active = rdma_create_event_channel();
		ends[i].client = given_id(ends[i].active);
		assert_int_equal(anywarp_cm_respond(listener, fds[1]), 0);
		assert_int_equal(anywarp_cm_initiate(ends[i].client, fds[0]), 0);
		cm_make_qp(ends[i].client);
	}
	for (int i = 0; i < MANY; i++) {
		ends[i].passive = passive;
		cm_ends_request(&ends[i]);
		assert_int_equal(rdma_get_src_port(ends[i].client),
				 rdma_get_dst_port(ends[i].server));
		assert_int_equal(rdma_accept(ends[i].server, NULL), 0);
		cm_expect_ack(ends[i].active, RDMA_CM_EVENT_ESTABLISHED, 0);
		cm_expect_ack(passive, RDMA_CM_EVENT_ESTABLISHED, 0);
	}
	/* The ids of Requests do without it. */
	rdma_destroy_id(listener);
	for (int i = 0; i < MANY; i++) {
		given_talk(&ends[i]);
		cm_ends_disconnect(&ends[i]);
		cm_destroy(ends[i].client);
		cm_destroy(ends[i].server);
		rdma_destroy_event_channel(ends[i].active);
	}
	rdma_destroy_event_channel(passive);
}

/* Whatever it was given, it can still become a listener, and owes its backlog nothing. */
static void adopt__id_stays_fresh(void **state)
{
	struct sockaddr_storage any = cm_address("127.0.0.1", 0);
	struct cm_ends ends, more = { 0 };
	int fds[2];

	(void)state;
	given_pair(fds);
	given_open(&ends, fds);
	cm_ends_connect(&ends);
	assert_int_equal(rdma_bind_addr(ends.listener, (struct sockaddr *)&any), 0);
	assert_int_equal(rdma_listen(ends.listener, 1), 0);
	more.passive = ends.passive;
	more.active = ends.active;
	more.client = cm_resolved(more.active, "127.0.0.1", cm_port(ends.listener));
	cm_ends_connect(&more);
	given_talk(&more);
	cm_destroy(more.client);
	cm_expect_ack(ends.passive, RDMA_CM_EVENT_DISCONNECTED, 0);
	cm_destroy(more.server);
	given_talk(&ends);
	cm_ends_close(&ends);
}

/* Private data and a rejection go both ways as ever. */
static void adopt__rejected(void **state)
{
	struct rdma_conn_param param = { .private_data = "please", .private_data_len = 6 };
	struct rdma_cm_event *event;
	struct cm_ends ends;
	int fds[2];

	(void)state;
	given_pair(fds);
	given_open(&ends, fds);
	assert_int_equal(rdma_connect(ends.client, &param), 0);
	event = cm_expect(ends.passive, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
	assert_memory_equal(event->param.conn.private_data, "please", 6);
	assert_int_equal(rdma_reject(event->id, "no", 2), 0);
	ends.server = event->id;
	rdma_ack_cm_event(event);
	event = cm_expect(ends.active, RDMA_CM_EVENT_REJECTED, -ECONNREFUSED);
	assert_memory_equal(event->param.conn.private_data, "no", 2);
	rdma_ack_cm_event(event);
	cm_ends_close(&ends);
}

/* Synchronous ids: no event of their own for initiate; the Request is waited for as ever. */
static void adopt__synchronous(void **state)
{
	struct rdma_cm_id *listener = given_id(NULL), *server;
	struct half half = { .fd = -1, .listener = -1 };
	int fds[2];

	(void)state;
	given_pair(fds);
	half.channel = rdma_create_event_channel();
	half.id = given_id(half.channel);
	assert_int_equal(anywarp_cm_initiate(half.id, fds[0]), 0);
	cm_make_qp(half.id);
	assert_int_equal(anywarp_cm_respond(listener, fds[1]), 0);
	assert_int_equal(rdma_connect(half.id, NULL), 0);
	struct rdma_cm_event *event;

	assert_int_equal(rdma_get_cm_event(listener->channel, &event), 0);
	assert_int_equal(event->event, RDMA_CM_EVENT_CONNECT_REQUEST);
	server = event->id;
	rdma_ack_cm_event(event);
	cm_make_qp(server);
	assert_int_equal(rdma_accept(server, NULL), 0);
	assert_int_equal(server->event->event, RDMA_CM_EVENT_ESTABLISHED);
	cm_expect_ack(half.channel, RDMA_CM_EVENT_ESTABLISHED, 0);
	cm_destroy(server);
	rdma_destroy_id(listener);
	cm_expect_ack(half.channel, RDMA_CM_EVENT_DISCONNECTED, 0);
	half_close(&half);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(adopt__both_ends),
		cmocka_unit_test(adopt__request_is_there_already),
		cmocka_unit_test(adopt__initiate_to_a_listener),
		cmocka_unit_test(adopt__respond_to_a_connect),
		cmocka_unit_test(adopt__addresses),
		cmocka_unit_test(adopt__options_of_the_program),
		cmocka_unit_test(adopt__many),
		cmocka_unit_test(adopt__id_stays_fresh),
		cmocka_unit_test(adopt__rejected),
		cmocka_unit_test(adopt__synchronous),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
