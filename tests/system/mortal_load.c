// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The end that connects: it writes its slot, reads it back, sends, and checks all of it, over and
// over, and connects anew whenever the other end went away.
#include "mortal.h"

#include <arpa/inet.h>
#include <poll.h>
#include <string.h>
#include <time.h>

#define EVENT_SECONDS_MAX 30
#define ROUNDS_PER_LINE 100
#define RETRY_NS (5 * 1000 * 1000)

static unsigned char out[SLOT_OCTETS], back[SLOT_OCTETS], echoed[MESSAGE_MAX];
static struct ibv_mr *out_mr, *back_mr, *echoed_mr;

static uint32_t random_below(uint32_t bound)
{
	mortal.seed = mortal.seed * 1664525 + 1013904223;
	return (mortal.seed >> 8) % bound;
}

static void register_buffers(void)
{
	out_mr = ibv_reg_mr(mortal.pd, out, sizeof(out), 0);
	back_mr = ibv_reg_mr(mortal.pd, back, sizeof(back), IBV_ACCESS_LOCAL_WRITE);
	echoed_mr = ibv_reg_mr(mortal.pd, echoed, sizeof(echoed), IBV_ACCESS_LOCAL_WRITE);
	CHECK(out_mr && back_mr && echoed_mr);
}

/* The next event's type; its offer, where it carries one. A silent end is a failure. */
static enum rdma_cm_event_type next_event(struct offer *offer)
{
	struct pollfd fd = { mortal.channel->fd, POLLIN, 0 };
	struct rdma_cm_event *event;
	enum rdma_cm_event_type type;

	CHECK(poll(&fd, 1, EVENT_SECONDS_MAX * 1000) == 1);
	CHECK(rdma_get_cm_event(mortal.channel, &event) == 0);
	type = event->event;
	if (type == RDMA_CM_EVENT_ESTABLISHED) {
		CHECK(event->param.conn.private_data_len >= sizeof(*offer));
		memcpy(offer, event->param.conn.private_data, sizeof(*offer));
	}
	CHECK(rdma_ack_cm_event(event) == 0);
	return type;
}

static struct rdma_cm_id *resolve(const struct sockaddr_in *at)
{
	struct rdma_cm_id *id;

	CHECK(rdma_create_id(mortal.channel, &id, NULL, RDMA_PS_TCP) == 0);
	CHECK(rdma_resolve_addr(id, NULL, (struct sockaddr *)at, 5000) == 0);
	CHECK(next_event(NULL) == RDMA_CM_EVENT_ADDR_RESOLVED);
	CHECK(rdma_resolve_route(id, 5000) == 0);
	CHECK(next_event(NULL) == RDMA_CM_EVENT_ROUTE_RESOLVED);
	return id;
}

static void release(struct rdma_cm_id *id)
{
	rdma_destroy_qp(id);
	CHECK(rdma_destroy_id(id) == 0);
}

/* NULL: nobody there, or no room; to be tried again. */
static struct rdma_cm_id *connect_once(const struct sockaddr_in *at, struct offer *offer)
{
	struct rdma_cm_id *id = resolve(at);
	struct rdma_conn_param param = { .responder_resources = 4, .initiator_depth = 4 };
	struct ibv_qp_init_attr attr;

	if (!mortal.cq) {
		mortal_create_cq(id->verbs);
		register_buffers();
	}
	attr = mortal_qp_attr();
	CHECK(rdma_create_qp(id, mortal.pd, &attr) == 0);
	CHECK(rdma_connect(id, &param) == 0);
	if (next_event(offer) == RDMA_CM_EVENT_ESTABLISHED)
		return id;
	release(id);
	return NULL;
}

static struct rdma_cm_id *connect_at_last(const struct sockaddr_in *at, struct offer *offer)
{
	const struct timespec pause = { .tv_nsec = RETRY_NS };
	time_t deadline = time(NULL) + EVENT_SECONDS_MAX;
	struct rdma_cm_id *id;
	bool refused = false;

	while (!(id = connect_once(at, offer))) {
		CHECK(time(NULL) < deadline);
		if (!refused)
			printf("refused\n");
		refused = true;
		nanosleep(&pause, NULL);
	}
	return id;
}

/* Waits for so many completions; false when the connection ended instead. */
static bool completed(unsigned int count)
{
	time_t deadline = time(NULL) + EVENT_SECONDS_MAX;
	struct ibv_wc wc;

	while (count > 0) {
		int found = ibv_poll_cq(mortal.cq, 1, &wc);

		CHECK(found >= 0);
		if (found == 0) {
			CHECK(time(NULL) < deadline);
			continue;
		}
		if (wc.status != IBV_WC_SUCCESS) {
			CHECK(wc.status == IBV_WC_WR_FLUSH_ERR);
			return false;
		}
		count--;
	}
	return true;
}

static bool post(struct rdma_cm_id *id, enum ibv_wr_opcode opcode, struct ibv_sge *sge,
		 const struct offer *offer)
{
	struct ibv_send_wr wr = { .sg_list = sge,
				  .num_sge = 1,
				  .opcode = opcode,
				  .send_flags = IBV_SEND_SIGNALED },
			   *bad;

	wr.wr.rdma.remote_addr = offer->addr;
	wr.wr.rdma.rkey = offer->rkey;
	return ibv_post_send(id->qp, &wr, &bad) == 0;
}

/* Writes the slot and reads it back; false when the connection ended. */
static bool check_slot(struct rdma_cm_id *id, const struct offer *offer)
{
	uint32_t octets = 1 + random_below(SLOT_OCTETS);
	struct ibv_sge from = { (uintptr_t)out, octets, out_mr->lkey };
	struct ibv_sge to = { (uintptr_t)back, octets, back_mr->lkey };

	for (uint32_t i = 0; i < octets; i += 1 + random_below(64))
		out[i] = (unsigned char)mortal.seed;
	if (!post(id, IBV_WR_RDMA_WRITE, &from, offer) || !post(id, IBV_WR_RDMA_READ, &to, offer) ||
	    !completed(2))
		return false;
	CHECK(memcmp(out, back, octets) == 0);
	return true;
}

static bool check_echo(struct rdma_cm_id *id, const struct offer *offer)
{
	uint32_t octets = 1 + random_below(MESSAGE_MAX);
	struct ibv_sge from = { (uintptr_t)out, octets, out_mr->lkey };
	struct ibv_sge to = { (uintptr_t)echoed, octets, echoed_mr->lkey };
	struct ibv_recv_wr wr = { .sg_list = &to, .num_sge = 1 }, *bad;

	if (ibv_post_recv(id->qp, &wr, &bad) || !post(id, IBV_WR_SEND, &from, offer) ||
	    !completed(2))
		return false;
	CHECK(memcmp(out, echoed, octets) == 0);
	return true;
}

/* True after the rounds asked for; false when the connection ended before. */
static bool use(struct rdma_cm_id *id, const struct offer *offer, unsigned int *rounds)
{
	while (mortal.rounds_max == 0 || *rounds < mortal.rounds_max) {
		if (!check_slot(id, offer) || !check_echo(id, offer))
			return false;
		if (++*rounds % ROUNDS_PER_LINE == 0)
			printf("rounds %u\n", *rounds);
	}
	return true;
}

static void drain(void)
{
	struct ibv_wc wc;

	while (ibv_poll_cq(mortal.cq, 1, &wc) > 0)
		CHECK(wc.status == IBV_WC_SUCCESS || wc.status == IBV_WC_WR_FLUSH_ERR);
}

/* The event that explains why a connection ended. */
static void expect_disconnected(void)
{
	while (next_event(NULL) != RDMA_CM_EVENT_DISCONNECTED)
		continue;
}

void mortal_load(const char *address, uint16_t port)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons(port) };
	unsigned int rounds = 0, ends = 0;
	bool done = false;

	CHECK(inet_pton(AF_INET, address, &at.sin_addr) == 1);
	mortal_start_dying();
	while (!done) {
		struct offer offer;
		struct rdma_cm_id *id = connect_at_last(&at, &offer);

		printf("up %u\n", ++ends);
		done = use(id, &offer, &rounds);
		if (done)
			CHECK(rdma_disconnect(id) == 0);
		expect_disconnected();
		release(id);
		drain();
		printf("down %u fds %d threads %d\n", ends, mortal_entries("/proc/self/fd"),
		       mortal_entries("/proc/self/task"));
	}
}
