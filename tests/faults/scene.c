// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The steps. A function that fails says so with errno set, as the API's do; a wait fails with the
// status of the error event that came instead.
#include "scene.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <string.h>
#include <time.h>

static uint8_t storage[4][SIDES][SCENE_OCTETS]; /* scenes at once; no heap of ours */

static bool fail(struct scene *s, const char *step)
{
	if (!s->step) {
		s->step = step;
		s->err = errno;
	}
	return false;
}

static bool check(struct scene *s, bool good, const char *step)
{
	return good || fail(s, step);
}

static int64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static bool is_error(enum rdma_cm_event_type type)
{
	return type == RDMA_CM_EVENT_ADDR_ERROR || type == RDMA_CM_EVENT_ROUTE_ERROR ||
	       type == RDMA_CM_EVENT_CONNECT_ERROR || type == RDMA_CM_EVENT_UNREACHABLE ||
	       type == RDMA_CM_EVENT_REJECTED || type == RDMA_CM_EVENT_DISCONNECTED;
}

/* Takes one event of a side. errno is that of an error event. */
static bool hear(struct scene *s, enum side side, enum rdma_cm_event_type due)
{
	struct rdma_cm_event *event;
	enum rdma_cm_event_type type;

	if (rdma_get_cm_event(s->channel[side], &event) != 0)
		return errno == EAGAIN;
	type = event->event;
	errno = event->status < 0 ? -event->status : ECONNABORTED;
	if (type == RDMA_CM_EVENT_CONNECT_REQUEST)
		s->id[PASSIVE] = event->id;
	s->seen[side] |= 1u << type;
	rdma_ack_cm_event(event);
	return type == due || !is_error(type);
}

static bool await(struct scene *s, enum side side, enum rdma_cm_event_type type)
{
	int64_t until = now_ms() + SCENE_WAIT_MS;

	while (!(s->seen[side] & 1u << type)) {
		struct pollfd pfd[SIDES] = { { .fd = s->channel[0]->fd, .events = POLLIN },
					     { .fd = s->channel[1]->fd, .events = POLLIN } };

		if (now_ms() > until) {
			s->stuck = true;
			errno = ETIME;
			return fail(s, rdma_event_str(type));
		}
		poll(pfd, SIDES, 100);
		for (int i = 0; i < SIDES; i++)
			if (pfd[i].revents && !hear(s, (enum side)i, type))
				return fail(s, rdma_event_str(type));
	}
	return true;
}

static struct sockaddr_in address(uint16_t port)
{
	return (struct sockaddr_in){ .sin_family = AF_INET,
				     .sin_port = port,
				     .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
}

static bool open_channels(struct scene *s)
{
	for (int i = 0; i < SIDES; i++) {
		s->channel[i] = rdma_create_event_channel();
		if (!s->channel[i])
			return fail(s, "rdma_create_event_channel");
	}
	return true;
}

static bool listen_somewhere(struct scene *s)
{
	struct sockaddr_in addr = address(0);

	return check(s, !rdma_create_id(s->channel[PASSIVE], &s->listener, NULL, RDMA_PS_TCP),
		     "rdma_create_id") &&
	       check(s, !rdma_bind_addr(s->listener, (struct sockaddr *)&addr), "rdma_bind_addr") &&
	       check(s, !rdma_listen(s->listener, 4), "rdma_listen");
}

static bool resolve(struct scene *s)
{
	struct sockaddr_in addr = address(rdma_get_src_port(s->listener));
	struct rdma_cm_id **id = &s->id[ACTIVE];

	return check(s, !rdma_create_id(s->channel[ACTIVE], id, NULL, RDMA_PS_TCP),
		     "rdma_create_id") &&
	       check(s, !rdma_resolve_addr(*id, NULL, (struct sockaddr *)&addr, 1000),
		     "rdma_resolve_addr") &&
	       await(s, ACTIVE, RDMA_CM_EVENT_ADDR_RESOLVED) &&
	       check(s, !rdma_resolve_route(*id, 1000), "rdma_resolve_route") &&
	       await(s, ACTIVE, RDMA_CM_EVENT_ROUTE_RESOLVED);
}

static bool make_objects(struct scene *s)
{
	struct ibv_context *verbs = s->id[ACTIVE]->verbs;
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = 8, .max_sge = 1 } };
	int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;

	if (!check(s, (s->pd = ibv_alloc_pd(verbs)), "ibv_alloc_pd") ||
	    !check(s, (s->comp = ibv_create_comp_channel(verbs)), "ibv_create_comp_channel") ||
	    !check(s, (s->cq = ibv_create_cq(verbs, 32, NULL, s->comp, 0)), "ibv_create_cq") ||
	    !check(s, (s->srq = ibv_create_srq(s->pd, &attr)), "ibv_create_srq"))
		return false;
	for (int i = 0; i < SIDES; i++)
		if (!check(s, (s->mr[i] = ibv_reg_mr(s->pd, s->memory[i], SCENE_OCTETS, access)),
			   "ibv_reg_mr"))
			return false;
	attr.attr.max_wr = 16;
	return check(s, !(errno = ibv_resize_cq(s->cq, 64)), "ibv_resize_cq") &&
	       check(s, !(errno = ibv_modify_srq(s->srq, &attr.attr, IBV_SRQ_MAX_WR)),
		     "ibv_modify_srq");
}

static struct ibv_qp_init_attr qp_attr(const struct scene *s)
{
	return (struct ibv_qp_init_attr){
		.send_cq = s->cq,
		.recv_cq = s->cq,
		.srq = s->srq,
		.cap = { .max_send_wr = 8, .max_send_sge = 1 },
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
	};
}

static bool make_qp(struct scene *s, enum side side)
{
	struct ibv_qp_init_attr attr = qp_attr(s);

	s->has_qp[side] = !rdma_create_qp(s->id[side], s->pd, &attr);
	return check(s, s->has_qp[side], "rdma_create_qp");
}

static bool make_spares(struct scene *s)
{
	for (int i = 0; i < SCENE_SPARES; i++) {
		struct ibv_qp_init_attr attr = qp_attr(s);

		s->spare[i] = ibv_create_qp(s->pd, &attr);
		if (!s->spare[i])
			return fail(s, "ibv_create_qp");
	}
	return true;
}

/* What else a program may make. */
static bool make_others(struct scene *s)
{
	struct rdma_addrinfo hints = { .ai_port_space = RDMA_PS_TCP, .ai_flags = RAI_PASSIVE };
	struct ibv_qp_init_attr attr = qp_attr(s);
	struct ibv_device **devices = ibv_get_device_list(NULL);

	if (!devices)
		return fail(s, "ibv_get_device_list");
	ibv_free_device_list(devices);
	return check(s, (s->mw = ibv_alloc_mw(s->pd, IBV_MW_TYPE_2)), "ibv_alloc_mw") &&
	       check(s, !rdma_getaddrinfo("127.0.0.1", "0", &hints, &s->info),
		     "rdma_getaddrinfo") &&
	       check(s, !rdma_create_ep(&s->endpoint, s->info, s->pd, &attr), "rdma_create_ep");
}

static bool connect_both(struct scene *s)
{
	struct rdma_conn_param param = { .private_data = "hello",
					 .private_data_len = 5,
					 .responder_resources = 4,
					 .initiator_depth = 4 };

	return make_qp(s, ACTIVE) &&
	       check(s, !rdma_connect(s->id[ACTIVE], &param), "rdma_connect") &&
	       await(s, PASSIVE, RDMA_CM_EVENT_CONNECT_REQUEST) && make_qp(s, PASSIVE) &&
	       check(s, !rdma_accept(s->id[PASSIVE], &param), "rdma_accept") &&
	       await(s, ACTIVE, RDMA_CM_EVENT_ESTABLISHED) &&
	       await(s, PASSIVE, RDMA_CM_EVENT_ESTABLISHED);
}

bool scene_open(struct scene *s)
{
	static unsigned int next;

	*s = (struct scene){ 0 };
	for (int i = 0; i < SIDES; i++)
		s->memory[i] = storage[next % 4][i];
	next++;
	return open_channels(s) && listen_somewhere(s) && resolve(s) && make_objects(s) &&
	       make_spares(s) && make_others(s) && connect_both(s);
}

/* By the completion channel until one is there. */
static bool next_wc(struct scene *s, const char *step)
{
	int64_t until = now_ms() + SCENE_WAIT_MS;
	struct ibv_wc wc;

	for (;;) {
		struct pollfd pfd = { .fd = s->comp->fd, .events = POLLIN };
		struct ibv_cq *cq;
		void *context;
		int n = ibv_poll_cq(s->cq, 1, &wc);

		if (n != 0) {
			errno = n < 0 ? EIO : wc.status ? ECONNABORTED : 0;
			return check(s, n == 1 && wc.status == IBV_WC_SUCCESS, step);
		}
		if (now_ms() > until) {
			s->stuck = true;
			errno = ETIME;
			return fail(s, step);
		}
		ibv_req_notify_cq(s->cq, 0);
		if (poll(&pfd, 1, 5) == 1 && ibv_get_cq_event(s->comp, &cq, &context) == 0)
			ibv_ack_cq_events(cq, 1);
	}
}

static bool post(struct scene *s, enum ibv_wr_opcode opcode, const char *step)
{
	struct ibv_mr *here = s->mr[ACTIVE], *there = s->mr[PASSIVE];
	struct ibv_sge sge = { (uintptr_t)here->addr, SCENE_OCTETS, here->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = opcode }, *bad;

	wr.wr.rdma.remote_addr = (uintptr_t)there->addr;
	wr.wr.rdma.rkey = there->rkey;
	errno = ibv_post_send(s->id[ACTIVE]->qp, &wr, &bad);
	return check(s, !errno, step);
}

static bool post_recv(struct scene *s)
{
	struct ibv_mr *here = s->mr[PASSIVE];
	struct ibv_sge sge = { (uintptr_t)here->addr, SCENE_OCTETS, here->lkey };
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;

	errno = ibv_post_srq_recv(s->srq, &wr, &bad);
	return check(s, !errno, "ibv_post_srq_recv");
}

/* Octets of a side, different each time. */
static void fill(struct scene *s, enum side side, uint8_t with)
{
	for (uint32_t i = 0; i < SCENE_OCTETS; i++)
		s->memory[side][i] = (uint8_t)(i * 7 + with);
}

static bool same(struct scene *s, const char *step)
{
	errno = EBADMSG;
	s->stuck |= memcmp(s->memory[0], s->memory[1], SCENE_OCTETS) != 0;
	return check(s, !s->stuck, step);
}

bool scene_talk(struct scene *s)
{
	fill(s, ACTIVE, 1);
	fill(s, PASSIVE, 2);
	/* Send and receive complete, in whichever order. */
	if (!post_recv(s) || !post(s, IBV_WR_SEND, "send") || !next_wc(s, "send") ||
	    !next_wc(s, "receive") || !same(s, "octets sent"))
		return false;
	fill(s, PASSIVE, 3);
	if (!post(s, IBV_WR_RDMA_READ, "read") || !next_wc(s, "read") || !same(s, "octets read"))
		return false;
	/* A Read behind it tells that the Write was placed. */
	fill(s, ACTIVE, 4);
	return post(s, IBV_WR_RDMA_WRITE, "write") && next_wc(s, "write") &&
	       post(s, IBV_WR_RDMA_READ, "read back") && next_wc(s, "read back") &&
	       same(s, "octets written");
}

bool scene_part(struct scene *s)
{
	return check(s, !rdma_disconnect(s->id[ACTIVE]), "rdma_disconnect") &&
	       await(s, ACTIVE, RDMA_CM_EVENT_DISCONNECTED) &&
	       await(s, PASSIVE, RDMA_CM_EVENT_DISCONNECTED);
}

/* A Request that came after the listener failed to be heard of is its id's own to destroy. */
static void drain(struct scene *s)
{
	struct pollfd pfd = { .fd = s->channel[PASSIVE]->fd, .events = POLLIN };

	while (poll(&pfd, 1, 0) == 1 && hear(s, PASSIVE, RDMA_CM_EVENT_DISCONNECTED))
		;
}

static void end_id(struct scene *s, struct rdma_cm_id *id)
{
	if (id && rdma_destroy_id(id) != 0)
		fail(s, "rdma_destroy_id");
}

static void undo(struct scene *s, int err, const char *step)
{
	if (err) {
		s->stuck = true;
		fail(s, step);
	}
}

void scene_close(struct scene *s)
{
	if (s->listener)
		drain(s);
	for (int i = 0; i < SIDES; i++)
		if (s->has_qp[i])
			rdma_destroy_qp(s->id[i]);
	for (int i = 0; i < SIDES; i++)
		end_id(s, s->id[i]);
	if (s->endpoint)
		rdma_destroy_ep(s->endpoint);
	if (s->info)
		rdma_freeaddrinfo(s->info);
	undo(s, s->mw ? ibv_dealloc_mw(s->mw) : 0, "ibv_dealloc_mw");
	for (int i = 0; i < SCENE_SPARES; i++)
		undo(s, s->spare[i] ? ibv_destroy_qp(s->spare[i]) : 0, "ibv_destroy_qp");
	for (int i = 0; i < SIDES; i++)
		undo(s, s->mr[i] ? ibv_dereg_mr(s->mr[i]) : 0, "ibv_dereg_mr");
	undo(s, s->srq ? ibv_destroy_srq(s->srq) : 0, "ibv_destroy_srq");
	undo(s, s->cq ? ibv_destroy_cq(s->cq) : 0, "ibv_destroy_cq");
	undo(s, s->comp ? ibv_destroy_comp_channel(s->comp) : 0, "ibv_destroy_comp_channel");
	undo(s, s->pd ? ibv_dealloc_pd(s->pd) : 0, "ibv_dealloc_pd");
	end_id(s, s->listener);
	for (int i = 0; i < SIDES; i++)
		if (s->channel[i])
			rdma_destroy_event_channel(s->channel[i]);
}
