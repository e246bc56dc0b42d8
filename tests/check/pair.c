// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Two connected QPs in one process; see pair.h.
#include "pair.h"

#include <arpa/inet.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../lib/limit.h"

enum {
	PROGRAM_S = 30, /* then it hangs */
	COMPLETION_S = 10,
	RESOLVE_MS = 5000,
	RIGHTS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ,
};

static void on_alarm(int signum)
{
	static const char text[] = "the program hangs\n";

	(void)signum;
	_exit(write(STDERR_FILENO, text, sizeof(text) - 1) < 0 ? 2 : 1);
}

bool pair_wrong(int argc, char **argv)
{
	bool wrong = argc == 2 && !strcmp(argv[1], "wrong");

	if (!wrong && (argc != 2 || strcmp(argv[1], "right") != 0)) {
		fprintf(stderr, "usage: %s wrong|right\n", argv[0]);
		exit(2);
	}
	EXPECT(signal(SIGALRM, on_alarm) != SIG_ERR);
	alarm(limit_s(PROGRAM_S));
	return wrong;
}

static bool by_cm;

void pair_by_cm(void)
{
	by_cm = true;
}

static bool by_modify_qp(void)
{
	const char *persona = getenv("ANYWARP_PERSONA");

	return !by_cm && persona && !strcmp(persona, "roce");
}

struct rdma_cm_id *expect_event(struct pair *pair, enum rdma_cm_event_type type)
{
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;

	EXPECT(rdma_get_cm_event(pair->events, &event) == 0);
	if (event->event != type) {
		fprintf(stderr, "wanted %s, got %s, status %d\n", rdma_event_str(type),
			rdma_event_str(event->event), event->status);
		exit(1);
	}
	id = event->id;
	EXPECT(rdma_ack_cm_event(event) == 0);
	return id;
}

/* 127.0.0.1, or that of PAIR_ADDRESS, for adapters that do not reach the loopback interface. */
static in_addr_t own_address(void)
{
	const char *text = getenv("PAIR_ADDRESS");
	struct in_addr address = { htonl(INADDR_LOOPBACK) };

	EXPECT(!text || inet_pton(AF_INET, text, &address) == 1);
	return address.s_addr;
}

/* A listener on a port of its own, and an id that has found the way there, and with it its device. */
static void resolve(struct pair *pair)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = own_address() };

	EXPECT((pair->events = rdma_create_event_channel()) != NULL);
	EXPECT(rdma_create_id(pair->events, &pair->listener, NULL, RDMA_PS_TCP) == 0);
	EXPECT(rdma_bind_addr(pair->listener, (struct sockaddr *)&address) == 0);
	EXPECT(rdma_listen(pair->listener, 1) == 0);
	address.sin_port = rdma_get_src_port(pair->listener);
	EXPECT(rdma_create_id(pair->events, &pair->a.id, NULL, RDMA_PS_TCP) == 0);
	EXPECT(rdma_resolve_addr(pair->a.id, NULL, (struct sockaddr *)&address, RESOLVE_MS) == 0);
	expect_event(pair, RDMA_CM_EVENT_ADDR_RESOLVED);
	EXPECT(rdma_resolve_route(pair->a.id, RESOLVE_MS) == 0);
	expect_event(pair, RDMA_CM_EVENT_ROUTE_RESOLVED);
}

void pair_device(struct pair *pair)
{
	*pair = (struct pair){ .cap = { 8, 8, 2, 2, 16 }, .cqe = 16 };
	if (by_modify_qp()) {
		struct ibv_device **devices = ibv_get_device_list(NULL);

		EXPECT(devices && devices[0]);
		EXPECT((pair->context = ibv_open_device(devices[0])) != NULL);
		ibv_free_device_list(devices);
	} else {
		resolve(pair);
		pair->context = pair->a.id->verbs;
	}
	EXPECT((pair->pd = ibv_alloc_pd(pair->context)) != NULL);
	pair->qp_pd = pair->pd;
}

static void end_make_qp(struct pair *pair, struct end *end)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = end->cq, .recv_cq = end->cq, .cap = pair->cap, .qp_type = IBV_QPT_RC
	};

	if (end->id) {
		EXPECT(rdma_create_qp(end->id, pair->qp_pd, &attr) == 0);
		end->qp = end->id->qp;
	} else {
		EXPECT((end->qp = ibv_create_qp(pair->qp_pd, &attr)) != NULL);
	}
}

static void end_make_extended(struct pair *pair, struct end *end)
{
	struct ibv_cq_init_attr_ex cq_attr = { .cqe = pair->cqe,
					       .channel = end->channel,
					       .wc_flags = IBV_WC_EX_WITH_BYTE_LEN };
	struct ibv_qp_init_attr_ex attr = {
		.cap = pair->cap,
		.qp_type = IBV_QPT_RC,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = pair->qp_pd,
		.send_ops_flags = IBV_QP_EX_WITH_SEND,
	};

	EXPECT((end->cq_ex = ibv_create_cq_ex(pair->context, &cq_attr)) != NULL);
	end->cq = ibv_cq_ex_to_cq(end->cq_ex);
	attr.send_cq = attr.recv_cq = end->cq;
	if (end->id) {
		EXPECT(rdma_create_qp_ex(end->id, &attr) == 0);
		end->qp = end->id->qp;
	} else {
		EXPECT((end->qp = ibv_create_qp_ex(pair->context, &attr)) != NULL);
	}
}

static void end_make(struct pair *pair, struct end *end)
{
	EXPECT((end->channel = ibv_create_comp_channel(pair->context)) != NULL);
	if (pair->extended) {
		end_make_extended(pair, end);
	} else {
		EXPECT((end->cq = ibv_create_cq(pair->context, pair->cqe, NULL, end->channel, 0)) !=
		       NULL);
		end_make_qp(pair, end);
	}
	EXPECT((end->memory = calloc(1, MEMORY)) != NULL);
	EXPECT((end->mr = ibv_reg_mr(pair->pd, end->memory, MEMORY, RIGHTS)) != NULL);
}

void pair_prepare(struct pair *pair)
{
	end_make(pair, &pair->a);
}

static void connect_cm(struct pair *pair)
{
	struct rdma_conn_param param = { .responder_resources = 1, .initiator_depth = 1 };

	EXPECT(rdma_connect(pair->a.id, &param) == 0);
	pair->b.id = expect_event(pair, RDMA_CM_EVENT_CONNECT_REQUEST);
	end_make(pair, &pair->b);
	EXPECT(rdma_accept(pair->b.id, &param) == 0);
	expect_event(pair, RDMA_CM_EVENT_ESTABLISHED);
	expect_event(pair, RDMA_CM_EVENT_ESTABLISHED);
}

/* The GID of 127.0.0.1, or the first where the device has none. */
static union ibv_gid loopback_gid(const struct pair *pair, uint8_t *index)
{
	union ibv_gid gid, wanted;

	EXPECT(inet_pton(AF_INET6, "::ffff:127.0.0.1", wanted.raw) == 1);
	for (*index = 0; ibv_query_gid(pair->context, 1, *index, &gid) == 0 && *index < UINT8_MAX;
	     ++*index) {
		if (!memcmp(&gid, &wanted, sizeof(gid)))
			return gid;
	}
	*index = 0;
	EXPECT(ibv_query_gid(pair->context, 1, 0, &gid) == 0);
	return gid;
}

int pair_rtr_attr(const struct pair *pair, const struct end *peer, struct ibv_qp_attr *attr)
{
	uint8_t index;
	union ibv_gid gid = loopback_gid(pair, &index);

	*attr = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = peer->qp->qp_num,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 12,
		.ah_attr = { .port_num = 1,
			     .is_global = 1,
			     .grh = { .dgid = gid, .sgid_index = index, .hop_limit = 1 } },
	};
	return IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
	       IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
}

void end_init(struct end *end)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT,
				    .port_num = 1,
				    .qp_access_flags = IBV_ACCESS_REMOTE_WRITE |
						       IBV_ACCESS_REMOTE_READ };

	EXPECT(ibv_modify_qp(end->qp, &attr,
			     IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				     IBV_QP_ACCESS_FLAGS) == 0);
}

static void end_walk(struct pair *pair, struct end *end, struct end *peer)
{
	struct ibv_qp_attr rtr;
	struct ibv_qp_attr rts = {
		.qp_state = IBV_QPS_RTS,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.max_rd_atomic = 1,
	};
	int mask = pair_rtr_attr(pair, peer, &rtr);

	EXPECT(ibv_modify_qp(end->qp, &rtr, mask) == 0);
	EXPECT(ibv_modify_qp(end->qp, &rts,
			     IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				     IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC) == 0);
}

void pair_connect(struct pair *pair)
{
	if (pair->a.id) {
		connect_cm(pair);
		return;
	}
	end_make(pair, &pair->b);
	end_init(&pair->a);
	end_init(&pair->b);
	end_walk(pair, &pair->b, &pair->a);
	end_walk(pair, &pair->a, &pair->b);
}

void pair_open(struct pair *pair)
{
	pair_device(pair);
	pair_prepare(pair);
	pair_connect(pair);
}

void end_destroy_qp(struct end *end)
{
	if (end->id)
		rdma_destroy_qp(end->id);
	else
		EXPECT(ibv_destroy_qp(end->qp) == 0);
	end->qp = NULL;
}

static void end_close(struct end *end)
{
	if (end->mr)
		EXPECT(ibv_dereg_mr(end->mr) == 0);
	free(end->memory);
	if (end->cq)
		EXPECT(ibv_destroy_cq(end->cq) == 0);
	if (end->channel)
		EXPECT(ibv_destroy_comp_channel(end->channel) == 0);
	if (end->id)
		EXPECT(rdma_destroy_id(end->id) == 0);
}

/* What is still under way is flushed first, and nobody asks for its completions. */
static void end_give_up(struct end *end)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

	if (!end->qp)
		return;
	ibv_modify_qp(end->qp, &attr,
		      IBV_QP_STATE); // may fail: the QP of a failed connection is there already
	end_destroy_qp(end);
}

void pair_close(struct pair *pair)
{
	if (pair->b.id)
		rdma_disconnect(
			pair->a.id); // may fail: a program's fault may have ended the connection
	end_give_up(&pair->a);
	end_give_up(&pair->b);
	end_close(&pair->a);
	end_close(&pair->b);
	EXPECT(ibv_dealloc_pd(pair->pd) == 0);
	if (!pair->events) {
		EXPECT(ibv_close_device(pair->context) == 0);
		return;
	}
	EXPECT(rdma_destroy_id(pair->listener) == 0);
	rdma_destroy_event_channel(pair->events);
}

struct ibv_sge end_sge(const struct end *end, size_t offset, uint32_t length)
{
	return (struct ibv_sge){ (uintptr_t)end->memory + offset, length, end->mr->lkey };
}

struct ibv_send_wr wr_send(struct ibv_sge *sge)
{
	return (struct ibv_send_wr){
		.sg_list = sge, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED
	};
}

static struct ibv_send_wr wr_remote(struct ibv_sge *sge, enum ibv_wr_opcode opcode,
				    const struct end *end, size_t offset)
{
	struct ibv_send_wr wr = wr_send(sge);

	wr.opcode = opcode;
	wr.wr.rdma.remote_addr = (uintptr_t)end->memory + offset;
	wr.wr.rdma.rkey = end->mr->rkey;
	return wr;
}

struct ibv_send_wr wr_write(struct ibv_sge *sge, const struct end *to, size_t offset)
{
	return wr_remote(sge, IBV_WR_RDMA_WRITE, to, offset);
}

struct ibv_send_wr wr_read(struct ibv_sge *sge, const struct end *from, size_t offset)
{
	return wr_remote(sge, IBV_WR_RDMA_READ, from, offset);
}

struct ibv_recv_wr wr_recv(struct ibv_sge *sge)
{
	return (struct ibv_recv_wr){ .sg_list = sge, .num_sge = 1 };
}

void end_recv(struct end *end)
{
	struct ibv_sge sge = end_sge(end, INBOX, MESSAGE);
	struct ibv_recv_wr wr = wr_recv(&sge), *bad;

	EXPECT(ibv_post_recv(end->qp, &wr, &bad) == 0);
}

void end_send(struct end *end)
{
	struct ibv_sge sge = end_sge(end, INBOX, MESSAGE);
	struct ibv_send_wr wr = wr_send(&sge), *bad;

	EXPECT(ibv_post_send(end->qp, &wr, &bad) == 0);
}

void await_sleep(int thread)
{
	char path[64], state = 0;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", thread);
	while (state != 'S') {
		FILE *file = fopen(path, "r");

		EXPECT(file && fscanf(file, "%*d (%*[^)]) %c", &state) == 1);
		fclose(file);
	}
}

struct ibv_wc expect_completion(struct ibv_cq *cq)
{
	time_t end = time(NULL) + limit_s(COMPLETION_S);
	struct ibv_wc wc;
	int polled;

	do
		polled = ibv_poll_cq(cq, 1, &wc);
	while (polled == 0 && time(NULL) <= end);
	EXPECT(polled == 1);
	return wc;
}

void expect_success(struct ibv_cq *cq)
{
	struct ibv_wc wc = expect_completion(cq);

	if (wc.status == IBV_WC_SUCCESS)
		return;
	fprintf(stderr, "a completion is '%s'\n", ibv_wc_status_str(wc.status));
	exit(1);
}
