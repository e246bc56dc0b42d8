// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "worker/verbs.h"

#include "worker/fail.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define INLINE_MAX 256
#define PAGE_OCTETS 4096u
#define IN_EACH_MAX (256u << 20)
#define SPINS_A_CHECK (1u << 20)
#define HOTSPOT_SENDS 16
#define LATENCY_WRITES 128
/* Beside the data: credits under way and the mark of the end; see verbs_bandwidth.c. */
#define BANDWIDTH_EXTRA 8

struct verbs verbs;

static struct verbs_shape shape_of(const struct args *args)
{
	struct verbs_shape shape = { .send_wr = 2,
				     .recv_wr = 2,
				     .reads = 1,
				     .in_octets = args->size,
				     .out_octets = args->size };

	if (args->test == TEST_LATENCY) {
		shape.send_wr = args->op == OP_WRITE ? LATENCY_WRITES : 4;
		shape.send_cq = args->op != OP_READ;
		/* The next message finds no receive before the server has looked at this one: all use one buffer. */
		if (args->op == OP_SEND_DONE)
			shape.recv_wr = 1;
	} else if (args->test == TEST_BANDWIDTH) {
		shape.send_wr = (uint32_t)args->window + BANDWIDTH_EXTRA;
		shape.recv_wr = BANDWIDTH_EXTRA;
		if (args->op == OP_SEND)
			shape.recv_wr += verbs_room(args);
		if (args->op == OP_READ)
			shape.reads = (uint32_t)args->window;
	} else if (args->test == TEST_HOTSPOT) {
		shape.send_wr = HOTSPOT_SENDS;
	}
	if (shape.in_octets < 2)
		shape.in_octets = shape.out_octets = 2;
	shape.in_each = shape.in_octets * verbs.lane_links <= IN_EACH_MAX;
	if (args->size <= INLINE_MAX)
		shape.inline_octets = (uint32_t)shape.out_octets;
	return shape;
}

static void lane_prepare(struct verbs_lane *lane)
{
	const struct verbs_shape *shape = &verbs.shape;
	uint32_t links = verbs.lane_links;
	int deep = (int)(links * (shape->send_wr + shape->recv_wr));
	size_t octets = shape->out_octets + shape->in_octets * (shape->in_each ? links : 1);

	lane->channel = ibv_create_comp_channel(verbs.context);
	if (!lane->channel)
		fail_errno("ibv_create_comp_channel");
	lane->cq = ibv_create_cq(verbs.context, deep, NULL, lane->channel, 0);
	lane->send_cq = shape->send_cq ? ibv_create_cq(verbs.context, deep, NULL, NULL, 0)
				       : lane->cq;
	if (!lane->cq || !lane->send_cq)
		fail_errno("no CQ of %d entries: ask for fewer connections or a smaller window",
			   deep);
	octets = (octets + PAGE_OCTETS - 1) & ~(size_t)(PAGE_OCTETS - 1);
	lane->buf = aligned_alloc(PAGE_OCTETS, octets);
	if (!lane->buf)
		fail("no memory for a buffer of %zu bytes: give a smaller size", octets);
	memset(lane->buf, 0, octets);
	lane->mr = ibv_reg_mr(verbs.pd, lane->buf, octets,
			      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
				      IBV_ACCESS_REMOTE_READ);
	if (!lane->mr)
		fail_errno("cannot register %zu bytes", octets);
}

static uint64_t lanes_of(const struct session *session)
{
	return session->args.mode == MODE_EPOLL ? verbs.max : session->args.threads;
}

void verbs_prepare(struct session *session, struct ibv_context *context)
{
	struct ibv_device_attr attr;
	uint64_t lanes = lanes_of(session);

	if (verbs.context)
		return;
	verbs.context = context;
	verbs.pd = ibv_alloc_pd(context);
	if (!verbs.pd || ibv_query_device(context, &attr) != 0)
		fail_errno("the device %s is of no use", ibv_get_device_name(context->device));
	if (verbs.shape.reads > (uint32_t)attr.max_qp_rd_atom)
		verbs.shape.reads = (uint32_t)attr.max_qp_rd_atom;
	if (verbs.shape.reads > (uint32_t)attr.max_qp_init_rd_atom)
		verbs.shape.reads = (uint32_t)attr.max_qp_init_rd_atom;
	for (uint64_t i = 0; i < lanes; i++)
		lane_prepare(&verbs.lanes[i]);
}

static bool create_qp(struct verbs_link *link, uint32_t inline_octets)
{
	const struct verbs_shape *shape = &verbs.shape;
	struct ibv_qp_init_attr attr = { .send_cq = link->lane->send_cq,
					 .recv_cq = link->lane->cq,
					 .cap = { .max_send_wr = shape->send_wr,
						  .max_recv_wr = shape->recv_wr,
						  .max_send_sge = 1,
						  .max_recv_sge = 1,
						  .max_inline_data = inline_octets },
					 .qp_type = IBV_QPT_RC };

	if (!link->id)
		link->qp = verbs_modify_create(&attr);
	else
		link->qp = rdma_create_qp(link->id, verbs.pd, &attr) == 0 ? link->id->qp : NULL;
	return link->qp != NULL;
}

void verbs_link_prepare(struct verbs_link *link, struct rdma_cm_id *id)
{
	const struct verbs_shape *shape = &verbs.shape;
	uint32_t number = (uint32_t)(link - verbs.links), in_lane = number % verbs.lane_links;

	link->lane = &verbs.lanes[number / verbs.lane_links];
	link->id = id;
	link->number = number;
	link->out = link->lane->buf;
	link->in =
		link->out + shape->out_octets + (shape->in_each ? in_lane * shape->in_octets : 0);
	if (!create_qp(link, shape->inline_octets)) {
		/* A device without room for so much inline data does without. */
		verbs.shape.inline_octets = 0;
		if (!create_qp(link, 0))
			fail_errno("no QP number %u with %u + %u WRs", number, shape->send_wr,
				   shape->recv_wr);
	}
	for (uint32_t i = 0; i < shape->recv_wr; i++)
		verbs_post_receive(link);
}

void verbs_post_receive(struct verbs_link *link)
{
	struct ibv_sge sge = { (uintptr_t)link->in, (uint32_t)verbs.shape.in_octets,
			       link->lane->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = link->number, .sg_list = &sge, .num_sge = 1 }, *bad;

	errno = ibv_post_recv(link->qp, &wr, &bad);
	if (errno)
		fail_errno("ibv_post_recv");
}

void verbs_post(struct verbs_link *link, enum ibv_wr_opcode opcode, uint32_t octets, bool signalled)
{
	bool read = opcode == IBV_WR_RDMA_READ;
	struct ibv_sge sge = { (uintptr_t)(read ? link->in : link->out), octets,
			       link->lane->mr->lkey };
	struct ibv_send_wr wr = { .wr_id = link->number,
				  .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = opcode },
			   *bad;

	if (signalled)
		wr.send_flags |= IBV_SEND_SIGNALED;
	if (!read && octets <= verbs.shape.inline_octets)
		wr.send_flags |= IBV_SEND_INLINE;
	wr.wr.rdma.remote_addr = read ? link->far.out : link->far.in;
	wr.wr.rdma.rkey = link->far.key;
	errno = ibv_post_send(link->qp, &wr, &bad);
	if (errno)
		fail_errno("ibv_post_send of opcode %d", (int)opcode);
}

void verbs_check(const struct ibv_wc *wc)
{
	if (wc->status != IBV_WC_SUCCESS)
		fail("a WR of connection %u ended with '%s': the other end is gone, or "
		     "ANYWARP_LOG=info tells why",
		     (unsigned int)(uint32_t)wc->wr_id, ibv_wc_status_str(wc->status));
}

int verbs_poll(struct ibv_cq *cq, int max, struct ibv_wc *wc)
{
	int found = ibv_poll_cq(cq, max, wc);

	if (found < 0)
		fail("ibv_poll_cq gave %d", found);
	for (int i = 0; i < found; i++)
		verbs_check(&wc[i]);
	return found;
}

void verbs_spin(const struct session *session, uint32_t *spins)
{
	if (++*spins % SPINS_A_CHECK == 0)
		control_check(&session->control);
}

/* An event that was raised before stays for the next call, which then makes one empty poll more. */
static int wait_event(struct verbs_lane *lane, int max, struct ibv_wc *wc)
{
	struct ibv_cq *cq;
	void *context;
	int found;

	for (;;) {
		if (ibv_req_notify_cq(lane->cq, 0) != 0)
			fail_errno("ibv_req_notify_cq");
		/* A completion that came before the CQ was armed raises no event. */
		found = verbs_poll(lane->cq, max, wc);
		if (found > 0)
			return found;
		if (ibv_get_cq_event(lane->channel, &cq, &context) != 0)
			fail_errno("ibv_get_cq_event");
		ibv_ack_cq_events(cq, 1);
		found = verbs_poll(lane->cq, max, wc);
		if (found > 0)
			return found;
	}
}

int verbs_wait(const struct session *session, struct verbs_lane *lane, enum mode mode, int max,
	       struct ibv_wc *wc)
{
	uint32_t spins = 0;
	int found = verbs_poll(lane->cq, max, wc);

	if (found == 0 && mode == MODE_EVENT)
		return wait_event(lane, max, wc);
	while (found == 0) {
		verbs_spin(session, &spins);
		found = verbs_poll(lane->cq, max, wc);
	}
	return found;
}

void verbs_look(struct session *session)
{
	struct ibv_wc wc;

	(void)session;
	if (verbs_poll(verbs.lanes[0].cq, 1, &wc) != 0 && wc.opcode == IBV_WC_RECV)
		fail("an idle connection is not idle");
}

void verbs_make_room(const struct session *session)
{
	verbs.message_octets = (uint32_t)session->args.size;
	verbs.max = session->args.test == TEST_CONNECT ? VERBS_SERVED_TIMES * session->args.at_once
						       : args_connections(&session->args);
	verbs.lane_links = (uint32_t)(verbs.max / lanes_of(session));
	verbs.shape = shape_of(&session->args);
	verbs.links = calloc(verbs.max, sizeof(*verbs.links));
	if (!verbs.links)
		fail("no memory for %zu connections", (size_t)verbs.max);
}
