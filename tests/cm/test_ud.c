// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The UDP port space: a question and its answer, as programs see them.
#include "cm.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	RESOLVE_MS = 2000,
	HDR_LEN = 24, /* of a question: docs/roce-ud.md */
};

static struct rdma_event_channel *passive, *active;

static int open_channels(void **state)
{
	(void)state;
	passive = rdma_create_event_channel();
	active = rdma_create_event_channel();
	return passive && active ? 0 : -1;
}

static int close_channels(void **state)
{
	(void)state;
	cm_expect_none(passive);
	cm_expect_none(active);
	rdma_destroy_event_channel(passive);
	rdma_destroy_event_channel(active);
	return 0;
}

static struct rdma_cm_id *fresh(struct rdma_event_channel *channel)
{
	struct rdma_cm_id *id;

	assert_int_equal(rdma_create_id(channel, &id, NULL, RDMA_PS_UDP), 0);
	assert_int_equal(id->qp_type, IBV_QPT_UD);
	return id;
}

static struct rdma_cm_id *listener(const char *ip, int backlog)
{
	struct sockaddr_storage ss = cm_address(ip, 0);
	struct rdma_cm_id *id = fresh(passive);

	assert_int_equal(rdma_bind_addr(id, (struct sockaddr *)&ss), 0);
	assert_int_equal(rdma_listen(id, backlog), 0);
	return id;
}

static void make_qp(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = { .cap = { 4, 4, 1, 1, 64 }, .qp_type = IBV_QPT_UD };

	assert_int_equal(rdma_create_qp(id, NULL, &attr), 0);
}

static struct rdma_cm_id *resolved(const char *ip, uint16_t port)
{
	struct sockaddr_storage ss = cm_address(ip, port);
	struct rdma_cm_id *id = fresh(active);

	assert_int_equal(rdma_resolve_addr(id, NULL, (struct sockaddr *)&ss, RESOLVE_MS), 0);
	cm_expect_ack(active, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	assert_int_equal(rdma_resolve_route(id, RESOLVE_MS), 0);
	cm_expect_ack(active, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	make_qp(id);
	return id;
}

static struct rdma_cm_id *take_request(const char *pd)
{
	struct rdma_cm_event *event = cm_expect(passive, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
	struct rdma_cm_id *id = event->id;
	size_t len = pd ? strlen(pd) : 0;

	assert_int_equal(event->param.ud.private_data_len, len);
	if (len)
		assert_memory_equal(event->param.ud.private_data, pd, len);
	rdma_ack_cm_event(event);
	return id;
}

static struct rdma_conn_param param(const char *pd)
{
	return (struct rdma_conn_param){ .private_data = pd,
					 .private_data_len = pd ? (uint8_t)strlen(pd) : 0 };
}

static void qp__is_in_rts_with_the_port_space_s_qkey(void **state)
{
	struct rdma_cm_id *id = resolved("127.0.0.1", 9);
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	(void)state;
	assert_int_equal(ibv_query_qp(id->qp, &attr, IBV_QP_STATE, &init), 0);
	assert_int_equal(attr.qp_state, IBV_QPS_RTS);
	assert_int_equal(attr.qkey, RDMA_UDP_QKEY);
	cm_destroy(id);
}

static void exchange(const char *bound, const char *ip)
{
	struct rdma_cm_id *listen_id = listener(bound, 4), *client, *server;
	struct rdma_conn_param ask = param("who"), answer = param("me");
	struct rdma_cm_event *event;
	struct ibv_ah *ah;

	client = resolved(ip, cm_port(listen_id));
	assert_int_equal(rdma_connect(client, &ask), 0);
	server = take_request("who");
	assert_int_equal(rdma_get_dst_port(server), rdma_get_src_port(client));
	assert_int_equal(rdma_get_peer_addr(server)->sa_family,
			 rdma_get_local_addr(client)->sa_family);
	assert_int_equal(rdma_get_local_addr(server)->sa_family,
			 rdma_get_peer_addr(client)->sa_family);
	make_qp(server);
	assert_int_equal(rdma_accept(server, &answer), 0);
	event = cm_expect(active, RDMA_CM_EVENT_ESTABLISHED, 0);
	assert_int_equal(event->param.ud.qp_num, server->qp->qp_num);
	assert_int_equal(event->param.ud.qkey, RDMA_UDP_QKEY);
	assert_int_equal(event->param.ud.private_data_len, 2);
	assert_memory_equal(event->param.ud.private_data, "me", 2);
	ah = ibv_create_ah(client->pd, &event->param.ud.ah_attr);
	assert_non_null(ah);
	rdma_ack_cm_event(event);

	uint8_t buf[100];
	struct ibv_mr *mr = ibv_reg_mr(server->pd, buf, sizeof(buf), IBV_ACCESS_LOCAL_WRITE);
	struct ibv_wc wc;

	assert_non_null(mr);
	assert_int_equal(rdma_post_recv(server, NULL, buf, sizeof(buf), mr), 0);
	assert_int_equal(rdma_post_ud_send(client, NULL, (void *)(uintptr_t) "data", 4, NULL,
					   IBV_SEND_INLINE, ah, server->qp->qp_num),
			 0);
	assert_int_equal(rdma_get_recv_comp(server, &wc), 1);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.src_qp, client->qp->qp_num);
	assert_memory_equal(buf + 40, "data", 4);
	assert_int_equal(rdma_disconnect(client), -1);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_destroy_ah(ah), 0);
	cm_destroy(client);
	cm_destroy(server);
	rdma_destroy_id(listen_id);
}

static void connect__ipv4(void **state)
{
	(void)state;
	exchange("127.0.0.1", "127.0.0.1");
}

static void connect__ipv6(void **state)
{
	(void)state;
	exchange("::1", "::1");
}

static void connect__any_address_of_both_families(void **state)
{
	(void)state;
	exchange("0.0.0.0", "127.0.0.1");
	exchange("::", "127.0.0.1");
	exchange("::", "::1");
}

static void connect__rejected(void **state)
{
	struct rdma_cm_id *listen_id = listener("127.0.0.1", 4), *client, *server;
	struct rdma_cm_event *event;

	(void)state;
	client = resolved("127.0.0.1", cm_port(listen_id));
	assert_int_equal(rdma_connect(client, NULL), 0);
	server = take_request(NULL);
	assert_int_equal(rdma_reject(server, "no", 2), 0);
	event = cm_expect(active, RDMA_CM_EVENT_UNREACHABLE, 2);
	assert_int_equal(event->param.ud.private_data_len, 2);
	rdma_ack_cm_event(event);
	rdma_destroy_id(server);
	cm_destroy(client);
	rdma_destroy_id(listen_id);
}

static struct rdma_cm_id *shared;

/* Of this process, at that port. */
static int sockets_at(uint16_t port)
{
	struct sockaddr_in sin;
	int count = 0;

	for (int fd = 0; fd < 1024; fd++) {
		socklen_t len = sizeof(sin);

		if (getsockname(fd, (struct sockaddr *)&sin, &len) == 0 &&
		    sin.sin_family == AF_INET && ntohs(sin.sin_port) == port)
			count++;
	}
	return count;
}

static void destroy_in_child(void)
{
	uint16_t port = cm_port(shared);

	assert_int_equal(sockets_at(port), 1);
	rdma_destroy_id(shared);
	assert_int_equal(sockets_at(port), 0);
}

/* A request that reaches listen_id, and whose id is destroyed. */
static void let_request_go(struct rdma_cm_id *listen_id)
{
	struct rdma_cm_id *client = resolved("127.0.0.1", cm_port(listen_id));

	assert_int_equal(rdma_connect(client, NULL), 0);
	rdma_destroy_id(take_request(NULL));
	cm_expect_ack(active, RDMA_CM_EVENT_UNREACHABLE, 2);
	cm_destroy(client);
}

/* An id that shares its port with others that ask for it. */
static struct rdma_cm_id *sharing(uint16_t port)
{
	struct sockaddr_storage ss = cm_address("127.0.0.1", port);
	struct rdma_cm_id *id = fresh(passive);

	assert_int_equal(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &(int){ 1 },
					 sizeof(int)),
			 0);
	if (rdma_bind_addr(id, (struct sockaddr *)&ss) == 0)
		return id;
	assert_int_equal(errno, EADDRINUSE);
	rdma_destroy_id(id);
	return NULL;
}

/* As with Linux's rdma_cm. */
static void listen__needs_the_port_for_itself(void **state)
{
	struct rdma_cm_id *a = sharing(0), *b = sharing(cm_port(a));
	uint16_t port = cm_port(a);

	(void)state;
	assert_non_null(b);
	assert_int_equal(rdma_listen(a, 4), -1);
	assert_int_equal(errno, EADDRINUSE);
	assert_int_equal(rdma_listen(b, 4), -1);
	assert_int_equal(errno, EADDRINUSE);
	rdma_destroy_id(b);
	b = sharing(port);
	assert_non_null(b); /* a shares it still */
	rdma_destroy_id(b);
	assert_int_equal(rdma_listen(a, 4), 0);
	assert_int_equal(cm_port(a), port);
	assert_null(sharing(port));
	let_request_go(a);
	rdma_destroy_id(a);
}

/* The child's copy of the socket goes with its id, and the parent's listens on. */
static void fork__child_destroys_the_listener(void **state)
{
	(void)state;
	shared = listener("127.0.0.1", 4);
	assert_int_equal(cm_in_child(destroy_in_child), 0);
	let_request_go(shared);
	rdma_destroy_id(shared);
}

static void connect__server_s_id_destroyed(void **state)
{
	struct rdma_cm_id *listen_id = listener("127.0.0.1", 4);

	(void)state;
	let_request_go(listen_id);
	rdma_destroy_id(listen_id);
}

/* A socket that keeps its port, and is there for a peer of its own alone: the kernel refuses what others send. */
static int deaf_socket(uint16_t *port)
{
	struct sockaddr_storage ss = cm_address("127.0.0.1", 0);
	socklen_t len = sizeof(struct sockaddr_in);
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	assert_int_equal(bind(fd, (struct sockaddr *)&ss, len), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&ss, &len), 0);
	*port = ntohs(((struct sockaddr_in *)&ss)->sin_port);
	assert_int_equal(connect(fd, (struct sockaddr *)&ss, len), 0);
	return fd;
}

static void connect__nobody_there(void **state)
{
	struct rdma_cm_id *client;
	uint16_t port;
	int deaf = deaf_socket(&port);

	(void)state;
	client = resolved("127.0.0.1", port);
	assert_int_equal(rdma_connect(client, NULL), 0);
	cm_expect_ack(active, RDMA_CM_EVENT_UNREACHABLE, -ECONNREFUSED);
	cm_destroy(client);
	close(deaf);
}

/* The client asks again; a server that was busy has room by then. */
static void connect__full_backlog_is_asked_again(void **state)
{
	struct rdma_cm_id *listen_id = listener("127.0.0.1", 1), *first, *second, *server;

	(void)state;
	first = resolved("127.0.0.1", cm_port(listen_id));
	second = resolved("127.0.0.1", cm_port(listen_id));
	assert_int_equal(rdma_connect(first, NULL), 0);
	assert_int_equal(rdma_connect(second, NULL), 0);
	for (int i = 0; i < 2; i++) {
		server = take_request(NULL);
		make_qp(server);
		assert_int_equal(rdma_accept(server, NULL), 0);
		cm_destroy(server);
		cm_expect_ack(active, RDMA_CM_EVENT_ESTABLISHED, 0);
	}
	cm_destroy(first);
	cm_destroy(second);
	rdma_destroy_id(listen_id);
}

/* A question as a peer of our own making sends it. */
static int ask_raw(uint16_t port, const uint8_t *octets, size_t len)
{
	struct sockaddr_storage ss = cm_address("127.0.0.1", port);
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&ss, sizeof(struct sockaddr_in)), 0);
	assert_int_equal(send(fd, octets, len, 0), len);
	return fd;
}

static size_t answer_raw(int fd, uint8_t *octets, size_t room)
{
	struct pollfd pollfd = { .fd = fd, .events = POLLIN };

	assert_int_equal(poll(&pollfd, 1, EVENT_MS), 1);
	return (size_t)recv(fd, octets, room, 0);
}

static const uint8_t question[HDR_LEN] = { 'a', 'w', 'S', 'I', 1, 1, 0, 0, 9, 8, 7, 6, 5, 4, 3, 2 };

static void listen__the_same_question_has_the_same_answer(void **state)
{
	struct rdma_cm_id *listen_id = listener("127.0.0.1", 4), *server;
	uint8_t first[300], second[300];
	size_t len;
	int fd;

	(void)state;
	fd = ask_raw(cm_port(listen_id), question, sizeof(question));
	server = take_request(NULL);
	/* Again while it waits, and again when it was answered: one id, one answer. */
	assert_int_equal(send(fd, question, sizeof(question), 0), sizeof(question));
	make_qp(server);
	assert_int_equal(rdma_accept(server, NULL), 0);
	len = answer_raw(fd, first, sizeof(first));
	assert_int_equal(send(fd, question, sizeof(question), 0), sizeof(question));
	assert_int_equal(answer_raw(fd, second, sizeof(second)), len);
	assert_memory_equal(first, second, len);
	assert_memory_equal(first + 8, question + 8, 8);
	close(fd);
	cm_destroy(server);
	rdma_destroy_id(listen_id);
}

static void listen__what_is_no_question(void **state)
{
	struct rdma_cm_id *listen_id = listener("127.0.0.1", 4), *server;
	uint8_t octets[HDR_LEN];

	(void)state;
	for (size_t i = 0; i < 8; i++) {
		memcpy(octets, question, sizeof(octets));
		octets[i] ^= 0x40;
		close(ask_raw(cm_port(listen_id), octets, sizeof(octets)));
	}
	for (size_t len = 0; len < sizeof(question); len++)
		close(ask_raw(cm_port(listen_id), question, len));
	close(ask_raw(cm_port(listen_id), question, sizeof(question)));
	server = take_request(NULL);
	rdma_destroy_id(server);
	rdma_destroy_id(listen_id);
}

static void sync__the_calls_wait(void **state)
{
	struct rdma_cm_id *listen_id = listener("127.0.0.1", 4), *client;
	struct sockaddr_storage ss = cm_address("127.0.0.1", 9);

	(void)state;
	assert_int_equal(rdma_create_id(NULL, &client, NULL, RDMA_PS_UDP), 0);
	assert_int_equal(rdma_resolve_addr(client, NULL, (struct sockaddr *)&ss, RESOLVE_MS), 0);
	assert_int_equal(rdma_resolve_route(client, RESOLVE_MS), 0);
	assert_int_equal(rdma_connect(client, NULL), -1);
	assert_int_equal(errno, ECONNREFUSED);
	rdma_destroy_id(client);
	rdma_destroy_id(listen_id);
}

/* The listener may go while its accepted id is there: the Request's event is acknowledged. */
static void sync__accept_releases_the_request(void **state)
{
	struct sockaddr_storage ss = cm_address("127.0.0.1", 0);
	struct rdma_cm_id *listen_id, *server, *client;

	(void)state;
	assert_int_equal(rdma_create_id(NULL, &listen_id, NULL, RDMA_PS_UDP), 0);
	assert_int_equal(rdma_bind_addr(listen_id, (struct sockaddr *)&ss), 0);
	assert_int_equal(rdma_listen(listen_id, 4), 0);
	client = resolved("127.0.0.1", cm_port(listen_id));
	assert_int_equal(rdma_connect(client, NULL), 0);
	assert_int_equal(rdma_get_request(listen_id, &server), 0);
	assert_int_equal(server->event->event, RDMA_CM_EVENT_CONNECT_REQUEST);
	make_qp(server);
	assert_int_equal(rdma_accept(server, NULL), 0);
	assert_null(server->event);
	cm_expect_ack(active, RDMA_CM_EVENT_ESTABLISHED, 0);
	rdma_destroy_ep(listen_id);
	cm_destroy(client);
	cm_destroy(server);
}

static void addrinfo__of_the_port_space(void **state)
{
	struct rdma_addrinfo hints = { .ai_port_space = RDMA_PS_UDP }, *res;

	(void)state;
	assert_int_equal(rdma_getaddrinfo("127.0.0.1", "7174", &hints, &res), 0);
	assert_int_equal(res->ai_qp_type, IBV_QPT_UD);
	assert_int_equal(res->ai_port_space, RDMA_PS_UDP);
	rdma_freeaddrinfo(res);
	hints.ai_qp_type = IBV_QPT_RC;
	assert_int_not_equal(rdma_getaddrinfo("127.0.0.1", "7174", &hints, &res), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(qp__is_in_rts_with_the_port_space_s_qkey),
		cmocka_unit_test(connect__ipv4),
		cmocka_unit_test(connect__ipv6),
		cmocka_unit_test(connect__any_address_of_both_families),
		cmocka_unit_test(connect__rejected),
		cmocka_unit_test(connect__server_s_id_destroyed),
		cmocka_unit_test(fork__child_destroys_the_listener),
		cmocka_unit_test(connect__nobody_there),
		cmocka_unit_test(connect__full_backlog_is_asked_again),
		cmocka_unit_test(listen__needs_the_port_for_itself),
		cmocka_unit_test(listen__the_same_question_has_the_same_answer),
		cmocka_unit_test(listen__what_is_no_question),
		cmocka_unit_test(sync__the_calls_wait),
		cmocka_unit_test(sync__accept_releases_the_request),
		cmocka_unit_test(addrinfo__of_the_port_space),
	};

	setenv("ANYWARP_PERSONA", "roce", 1);
	return cmocka_run_group_tests(tests, open_channels, close_channels);
}
