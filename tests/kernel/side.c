// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "side.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* What a server tells of its memory as it accepts. */
struct offer {
	uint64_t addr;
	uint32_t rkey;
} __attribute__((packed));

static int failure(int result)
{
	return result == 0 ? 0 : errno ? errno : EIO;
}

static int set_nonblocking(int fd)
{
	return failure(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK));
}

/* 0: fd can be read. */
static int wait_readable(int fd)
{
	struct pollfd one = { .fd = fd, .events = POLLIN };
	int n = poll(&one, 1, SIDE_WAIT_MS);

	if (n < 0)
		return errno;
	return n == 0 ? ETIMEDOUT : 0;
}

static struct sockaddr_in socket_address(const char *address, int port)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons(port) };

	inet_pton(AF_INET, address, &at.sin_addr);
	return at;
}

int side_open_channel(struct side *s)
{
	s->channel = rdma_create_event_channel();
	return s->channel ? set_nonblocking(s->channel->fd) : failure(-1);
}

int side_create_id(struct side *s)
{
	return failure(rdma_create_id(s->channel, &s->id, NULL, RDMA_PS_TCP));
}

int side_bind(struct side *s, const char *address, int port)
{
	struct sockaddr_in at = socket_address(address, port);

	return failure(rdma_bind_addr(s->id, (struct sockaddr *)&at));
}

int side_listen(struct side *s)
{
	return failure(rdma_listen(s->id, 64));
}

int side_resolve_addr(struct side *s, const char *address, int port)
{
	struct sockaddr_in at = socket_address(address, port);

	return failure(rdma_resolve_addr(s->id, NULL, (struct sockaddr *)&at, SIDE_WAIT_MS));
}

int side_resolve_route(struct side *s)
{
	return failure(rdma_resolve_route(s->id, SIDE_WAIT_MS));
}

int side_alloc_pd(struct side *s)
{
	s->pd = ibv_alloc_pd(s->id->verbs);
	return s->pd ? 0 : failure(-1);
}

int side_reg_mr(struct side *s)
{
	const int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
			   IBV_ACCESS_REMOTE_READ;

	if (!s->buf)
		s->buf = mmap(NULL, SIDE_BYTES, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (s->buf == MAP_FAILED) {
		s->buf = NULL;
		return errno;
	}
	s->mr = ibv_reg_mr(s->pd, s->buf, SIDE_BYTES, access);
	return s->mr ? 0 : failure(-1);
}

int side_create_comp(struct side *s)
{
	s->comp = ibv_create_comp_channel(s->id->verbs);
	return s->comp ? set_nonblocking(s->comp->fd) : failure(-1);
}

int side_create_cq(struct side *s)
{
	s->cq = ibv_create_cq(s->id->verbs, 4 * SIDE_SLOTS, NULL, s->comp, 0);
	return s->cq ? 0 : failure(-1);
}

int side_create_srq(struct side *s)
{
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = SIDE_SLOTS, .max_sge = 1 } };

	s->srq = s->with_srq ? ibv_create_srq(s->pd, &attr) : NULL;
	return s->srq || !s->with_srq ? 0 : failure(-1);
}

int side_create_qp(struct side *s)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = s->cq,
		.recv_cq = s->cq,
		.srq = s->srq,
		.cap = { .max_send_wr = 2 * SIDE_SLOTS,
			 .max_recv_wr = SIDE_SLOTS,
			 .max_send_sge = 1,
			 .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
	};

	return failure(rdma_create_qp(s->id, s->pd, &attr));
}

int side_arm(struct side *s)
{
	return ibv_req_notify_cq(s->cq, 0);
}

static int post_recv(struct side *s, unsigned int slot)
{
	struct ibv_sge sge = { (uintptr_t)s->buf + slot * SIDE_SLOT_BYTES, SIDE_SLOT_BYTES,
			       s->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = slot, .sg_list = &sge, .num_sge = 1 }, *bad;

	return s->srq ? ibv_post_srq_recv(s->srq, &wr, &bad) : ibv_post_recv(s->id->qp, &wr, &bad);
}

int side_post_recvs(struct side *s)
{
	int err = 0;

	for (unsigned int slot = 0; slot < SIDE_SLOTS && !err; slot++)
		err = post_recv(s, slot);
	return err;
}

int side_limit_srq(struct side *s)
{
	struct ibv_srq_attr attr = { .srq_limit = SIDE_SLOTS };

	return s->srq ? ibv_modify_srq(s->srq, &attr, IBV_SRQ_LIMIT) : 0;
}

int side_connect(struct side *s)
{
	struct rdma_conn_param param = { .responder_resources = 4, .initiator_depth = 4 };

	return failure(rdma_connect(s->id, &param));
}

int side_accept(struct side *s)
{
	struct offer offer = { (uintptr_t)s->buf + SIDE_TARGET_AT, s->mr->rkey };
	struct rdma_conn_param param = {
		.private_data = &offer,
		.private_data_len = sizeof(offer),
		.responder_resources = 4,
		.initiator_depth = 4,
	};

	return failure(rdma_accept(s->id, &param));
}

int side_disconnect(struct side *s)
{
	return failure(rdma_disconnect(s->id));
}

static void hear_offer(struct side *s, const struct rdma_cm_event *event)
{
	struct offer offer;

	if (event->event != RDMA_CM_EVENT_ESTABLISHED ||
	    event->param.conn.private_data_len < sizeof(offer))
		return;
	memcpy(&offer, event->param.conn.private_data, sizeof(offer));
	s->target = offer.addr;
	s->rkey = offer.rkey;
}

int side_next_event(struct side *s, struct rdma_cm_id **request)
{
	struct rdma_cm_event *event;
	int type, err = wait_readable(s->channel->fd);

	if (!err)
		err = failure(rdma_get_cm_event(s->channel, &event));
	if (err)
		return -err;
	type = event->event;
	hear_offer(s, event);
	if (request)
		*request = event->id;
	rdma_ack_cm_event(event);
	return type;
}

int side_wait_event(struct side *s, enum rdma_cm_event_type type, struct rdma_cm_id **request)
{
	struct rdma_cm_id *id;
	int got = side_next_event(s, &id);

	if (got < 0)
		return -got;
	if (got == RDMA_CM_EVENT_CONNECT_REQUEST && (got != (int)type || !request)) {
		rdma_destroy_id(id);
	} else if (request) {
		*request = id;
	}
	return got == (int)type ? 0 : ECONNRESET;
}

int side_post(struct side *s, enum ibv_wr_opcode opcode, uint32_t bytes)
{
	struct ibv_sge sge = { (uintptr_t)s->buf + SIDE_SEND_AT, bytes, s->mr->lkey };
	struct ibv_send_wr *bad, wr = {
		.wr_id = SIDE_SLOTS,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = opcode,
		.wr.rdma = { .remote_addr = s->target, .rkey = s->rkey },
	};

	return ibv_post_send(s->id->qp, &wr, &bad);
}

/* A message goes back from where it was received; its slot is posted again once it is gone. */
static int post_echo(struct side *s, const struct ibv_wc *wc)
{
	struct ibv_sge sge = { (uintptr_t)s->buf + wc->wr_id * SIDE_SLOT_BYTES, wc->byte_len,
			       s->mr->lkey };
	struct ibv_send_wr *bad, wr = {
		.wr_id = wc->wr_id,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
	};

	s->replied++;
	return ibv_post_send(s->id->qp, &wr, &bad);
}

static int see_completion(struct side *s, const struct ibv_wc *wc, bool echo)
{
	if (wc->status != IBV_WC_SUCCESS)
		return ECONNRESET;
	if (wc->opcode & IBV_WC_RECV) {
		s->received++;
		return echo ? post_echo(s, wc) : post_recv(s, wc->wr_id);
	}
	s->sent++;
	return echo && wc->wr_id < SIDE_SLOTS ? post_recv(s, wc->wr_id) : 0;
}

int side_poll(struct side *s, bool echo)
{
	struct ibv_wc wc;
	int n, err = 0;

	while (!err && (n = ibv_poll_cq(s->cq, 1, &wc)) != 0)
		err = n < 0 ? EIO : see_completion(s, &wc, echo);
	return err;
}

int side_wait(struct side *s, const unsigned int *count, unsigned int wanted)
{
	struct ibv_cq *cq;
	void *context;
	int err = side_poll(s, false);

	while (!err && *count < wanted) {
		err = side_arm(s);
		if (!err)
			err = side_poll(s, false);
		if (err || *count >= wanted)
			return err;
		err = wait_readable(s->comp->fd);
		if (!err && ibv_get_cq_event(s->comp, &cq, &context) == 0)
			ibv_ack_cq_events(cq, 1);
		else if (!err)
			err = errno == EAGAIN ? 0 : errno;
		if (!err)
			err = side_poll(s, false);
	}
	return err;
}

/* Verbs answer with an errno, rdma_cm with -1. What is destroyed is forgotten. */
static int forget(int result, void *member)
{
	static void *const nothing;

	if (result == 0)
		memcpy(member, &nothing, sizeof(nothing));
	return result > 0 ? result : failure(result);
}

int side_destroy_qp(struct side *s)
{
	return s->id && s->id->qp ? forget(ibv_destroy_qp(s->id->qp), &s->id->qp) : 0;
}

int side_destroy_srq(struct side *s)
{
	return s->srq ? forget(ibv_destroy_srq(s->srq), &s->srq) : 0;
}

int side_destroy_cq(struct side *s)
{
	return s->cq ? forget(ibv_destroy_cq(s->cq), &s->cq) : 0;
}

int side_destroy_comp(struct side *s)
{
	return s->comp ? forget(ibv_destroy_comp_channel(s->comp), &s->comp) : 0;
}

int side_dereg_mr(struct side *s)
{
	return s->mr ? forget(ibv_dereg_mr(s->mr), &s->mr) : 0;
}

int side_dealloc_pd(struct side *s)
{
	return s->pd ? forget(ibv_dealloc_pd(s->pd), &s->pd) : 0;
}

int side_destroy_id(struct side *s)
{
	return s->id ? forget(rdma_destroy_id(s->id), &s->id) : 0;
}

int side_close_channel(struct side *s)
{
	if (s->channel)
		rdma_destroy_event_channel(s->channel);
	s->channel = NULL;
	return 0;
}

int side_close(struct side *s)
{
	int (*const steps[])(struct side *) = { side_destroy_qp, side_destroy_srq,
						side_destroy_cq, side_destroy_comp,
						side_dereg_mr,	 side_dealloc_pd,
						side_destroy_id, side_close_channel };
	int err = 0;

	for (unsigned int i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		int one = steps[i](s);

		err = err ? err : one;
	}
	if (s->buf)
		munmap(s->buf, SIDE_BYTES);
	s->buf = NULL;
	return err;
}
