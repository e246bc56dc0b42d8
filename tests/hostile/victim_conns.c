// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The victim's connections with the attacker: one listener, one event channel, a CQ for each.
#include "victim.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>

#define CONNS_MAX 65536
#define REQUESTS_MAX 4096
#define BACKLOG 1024
#define LISTEN_TRIES 20
#define WRS 32
#define INLINE 64
#define RESOLVE_MS 5000
#define ANY UINT32_MAX /* for a type */

struct conn {
	struct rdma_cm_id *id;
	struct ibv_cq *cq;
	uint32_t seen; /* bits by event type */
	int status[32]; /* of the last event of each type */
};

static struct rdma_event_channel *channel;
static struct rdma_cm_id *listener;
static struct conn conns[CONNS_MAX];
static uint64_t conn_count;
static struct rdma_cm_id *requests[REQUESTS_MAX];
static unsigned int request_head, request_count;

static struct conn *conn_at(uint64_t number)
{
	CHECK(number < conn_count && conns[number].id);
	return &conns[number];
}

struct ibv_qp *conns_qp(uint64_t number)
{
	return conn_at(number)->id->qp;
}

static void note(const struct rdma_cm_event *event)
{
	struct conn *conn = event->id->context;

	if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST) {
		CHECK(request_count < REQUESTS_MAX);
		requests[(request_head + request_count++) % REQUESTS_MAX] = event->id;
		event->id->context = NULL;
	} else if (conn) {
		conn->seen |= 1u << event->event;
		conn->status[event->event] = event->status;
	}
}

/* Takes one event when one comes until the deadline. */
static bool pump(int64_t deadline)
{
	struct pollfd fd = { .fd = channel->fd, .events = POLLIN };
	int64_t left = deadline - now_ms();
	struct rdma_cm_event *event;

	if (poll(&fd, 1, left > 0 ? (int)left : 0) <= 0)
		return false;
	if (rdma_get_cm_event(channel, &event) != 0)
		return errno == EAGAIN;
	note(event);
	rdma_ack_cm_event(event);
	return true;
}

/* The channel of ids that wait for each other within this process would mix with the attacker's. */
void conns_listen(void)
{
	struct sockaddr_in any = {
		.sin_family = AF_INET,
		.sin_addr = victim_address(),
	};

	channel = rdma_create_event_channel();
	CHECK(channel);
	CHECK(fcntl(channel->fd, F_SETFL, fcntl(channel->fd, F_GETFL) | O_NONBLOCK) == 0);
	/*
	 * The kernel's rdma_cm takes a port that is free among its own listeners, and an attacker's TCP connection may
	 * have that number.
	 */
	for (int tries = 0; !listener && tries < LISTEN_TRIES; tries++) {
		CHECK(rdma_create_id(channel, &listener, NULL, RDMA_PS_TCP) == 0);
		CHECK(rdma_bind_addr(listener, (struct sockaddr *)&any) == 0);
		if (rdma_listen(listener, BACKLOG) == 0)
			break;
		CHECK(errno == EADDRINUSE && rdma_destroy_id(listener) == 0);
		listener = NULL;
	}
	CHECK(listener);
}

uint16_t conns_port(void)
{
	return ntohs(rdma_get_src_port(listener));
}

static struct conn *new_conn(struct rdma_cm_id *id, uint64_t pd, bool srq, uint64_t cqes)
{
	struct conn *conn = &conns[conn_count];
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.srq = srq ? victim_srq() : NULL,
		.cap = {
			.max_send_wr = WRS,
			.max_recv_wr = WRS,
			.max_send_sge = 2,
			.max_recv_sge = 2,
			.max_inline_data = INLINE,
		},
	};

	CHECK(conn_count < CONNS_MAX);
	conn_count++;
	conn->id = id;
	id->context = conn;
	conn->cq = ibv_create_cq(id->verbs, (int)cqes, NULL, NULL, 0);
	CHECK(conn->cq);
	attr.send_cq = attr.recv_cq = conn->cq;
	CHECK(rdma_create_qp(id, victim_pd(pd), &attr) == 0);
	return conn;
}

static void say_conn(const struct conn *conn)
{
	printf("%td %u\n", conn - conns, conn->id->qp->qp_num);
}

static struct rdma_cm_id *take_request(void)
{
	struct rdma_cm_id *id = requests[request_head];

	CHECK(request_count > 0);
	request_head = (request_head + 1) % REQUESTS_MAX;
	request_count--;
	return id;
}

void conns_accept(const struct ask *ask)
{
	struct rdma_conn_param param = {
		.responder_resources = (uint8_t)ask->n[2],
		.initiator_depth = (uint8_t)ask->n[3],
	};
	int64_t deadline = now_ms() + WAIT_MS;
	struct conn *conn;

	while (request_count == 0 && pump(deadline))
		;
	conn = new_conn(take_request(), ask->n[0], ask->n[1], ask->n[4]);
	CHECK(rdma_accept(conn->id, &param) == 0);
	say_conn(conn);
}

void conns_refuse(const struct ask *ask)
{
	unsigned int count = 0;

	(void)ask;
	while (pump(0))
		;
	for (; request_count > 0; count++) {
		struct rdma_cm_id *id = take_request();

		rdma_reject(id, NULL, 0);
		CHECK(rdma_destroy_id(id) == 0);
	}
	printf("%u\n", count);
}

static void await(struct conn *conn, enum rdma_cm_event_type type)
{
	int64_t deadline = now_ms() + WAIT_MS;

	while (!(conn->seen & 1u << type) && pump(deadline))
		;
	CHECK(conn->seen & 1u << type);
}

void conns_connect(const struct ask *ask)
{
	struct sockaddr_in peer = {
		.sin_family = AF_INET,
		.sin_port = htons((uint16_t)ask->n[0]),
		.sin_addr = victim_address(),
	};
	struct rdma_conn_param param = {
		.responder_resources = (uint8_t)ask->n[2],
		.initiator_depth = (uint8_t)ask->n[3],
	};
	struct conn *conn = &conns[conn_count];
	struct rdma_cm_id *id;

	CHECK(rdma_create_id(channel, &id, conn, RDMA_PS_TCP) == 0);
	CHECK(rdma_resolve_addr(id, NULL, (struct sockaddr *)&peer, RESOLVE_MS) == 0);
	await(conn, RDMA_CM_EVENT_ADDR_RESOLVED);
	CHECK(rdma_resolve_route(id, RESOLVE_MS) == 0);
	await(conn, RDMA_CM_EVENT_ROUTE_RESOLVED);
	CHECK(new_conn(id, ask->n[1], false, 2 * WRS) == conn);
	CHECK(rdma_connect(id, &param) == 0);
	say_conn(conn);
}

void conns_event(const struct ask *ask)
{
	struct conn *conn = conn_at(ask->n[0]);

	await(conn, (enum rdma_cm_event_type)ask->n[1]);
	printf("%d\n", conn->status[ask->n[1]]);
}

void conns_failed(const struct ask *ask)
{
	const uint32_t types = 1u << RDMA_CM_EVENT_CONNECT_ERROR | 1u << RDMA_CM_EVENT_UNREACHABLE |
			       1u << RDMA_CM_EVENT_REJECTED;
	struct conn *conn = conn_at(ask->n[0]);
	int64_t deadline = now_ms() + WAIT_MS;

	while (!(conn->seen & types) && pump(deadline))
		;
	CHECK(conn->seen & types);
	CHECK(!(conn->seen & 1u << RDMA_CM_EVENT_ESTABLISHED));
	printf("%d\n", __builtin_ctz(conn->seen & types));
}

void conns_recv(const struct ask *ask)
{
	struct ibv_sge sge = regions_sge(ask->n[2], ask->n[3], ask->n[4]);
	struct ibv_recv_wr wr = { .wr_id = ask->n[1], .sg_list = &sge, .num_sge = 1 }, *bad;

	CHECK(ibv_post_recv(conn_at(ask->n[0])->id->qp, &wr, &bad) == 0);
	printf("ok\n");
}

void conns_srq_recv(const struct ask *ask)
{
	struct ibv_sge sge = regions_sge(ask->n[1], ask->n[2], ask->n[3]);
	struct ibv_recv_wr wr = { .wr_id = ask->n[0], .sg_list = &sge, .num_sge = 1 }, *bad;

	CHECK(ibv_post_srq_recv(victim_srq(), &wr, &bad) == 0);
	printf("ok\n");
}

void conns_srq_limit(const struct ask *ask)
{
	struct ibv_srq_attr attr = { .srq_limit = (uint32_t)ask->n[0] };

	CHECK(ibv_modify_srq(victim_srq(), &attr, IBV_SRQ_LIMIT) == 0);
	printf("ok\n");
}

void conns_send(const struct ask *ask)
{
	struct ibv_sge sge = regions_sge(ask->n[3], ask->n[4], ask->n[5]);
	struct ibv_send_wr wr = {
		.wr_id = ask->n[1],
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = (enum ibv_wr_opcode)ask->n[2],
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { .rkey = (uint32_t)ask->n[6], .remote_addr = ask->n[7] },
	}, *bad;

	if (wr.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD || wr.opcode == IBV_WR_ATOMIC_CMP_AND_SWP) {
		wr.wr.atomic.rkey = (uint32_t)ask->n[6];
		wr.wr.atomic.remote_addr = ask->n[7];
		wr.wr.atomic.compare_add = 1;
		wr.wr.atomic.swap = 2;
	}
	CHECK(ibv_post_send(conn_at(ask->n[0])->id->qp, &wr, &bad) == 0);
	printf("ok\n");
}

void conns_poll(const struct ask *ask)
{
	struct ibv_cq *cq = conn_at(ask->n[0])->cq;
	int64_t deadline = now_ms() + WAIT_MS;
	struct ibv_wc wc;

	for (uint64_t found = 0; found < ask->n[1];) {
		int n = ibv_poll_cq(cq, 1, &wc);

		CHECK(n >= 0 && now_ms() < deadline);
		if (n == 0) {
			pump(now_ms() + 1);
			continue;
		}
		found++;
		printf("%llu:%u:%u:%u ", (unsigned long long)wc.wr_id, wc.status, wc.opcode,
		       wc.status ? 0 : wc.byte_len);
	}
	CHECK(ibv_poll_cq(cq, 1, &wc) == 0);
	printf("\n");
}

static uint32_t qpn_of(const struct ibv_async_event *event)
{
	switch (event->event_type) {
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_QP_LAST_WQE_REACHED:
		return event->element.qp->qp_num;
	default:
		return 0;
	}
}

void conns_async(const struct ask *ask)
{
	struct ibv_context *verbs = victim_pd(0)->context;
	struct pollfd fd = { .fd = verbs->async_fd, .events = POLLIN };
	bool found = false;

	while (!found) {
		struct ibv_async_event event;

		CHECK(poll(&fd, 1, WAIT_MS) == 1);
		CHECK(ibv_get_async_event(verbs, &event) == 0);
		found = qpn_of(&event) == ask->n[1] &&
			(ask->n[0] == ANY || event.event_type == (enum ibv_event_type)ask->n[0]);
		ibv_ack_async_event(&event);
		if (found)
			printf("%d\n", event.event_type);
	}
}

void conns_disconnect(const struct ask *ask)
{
	CHECK(rdma_disconnect(conn_at(ask->n[0])->id) == 0);
	printf("ok\n");
}

void conns_drop(const struct ask *ask)
{
	struct conn *conn = conn_at(ask->n[0]);

	rdma_destroy_qp(conn->id);
	CHECK(ibv_destroy_cq(conn->cq) == 0);
	CHECK(rdma_destroy_id(conn->id) == 0);
	conn->id = NULL;
	printf("ok\n");
}
