// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The verbs end of a session: connections by rdma_cm or ibv_modify_qp, and per thread the CQs and one registered
// buffer that all its connections use.
#ifndef BENCH_VERBS_H
#define BENCH_VERBS_H

#include "worker/session.h"

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <stddef.h>

#define VERBS_LANES_MAX 512
#define VERBS_WCS_MAX 128 /* found by one wait of the hot-spot test */
#define VERBS_SERVED_TIMES 8 /* connect: at_once, and what may be left of connections of before */
#define VERBS_RESOLVE_MS 5000
#define WINDOW_PARTS 4 /* a window is signalled, and a receive queue told of, in so many parts */

/* The requirements of a test on every connection. */
struct verbs_shape {
	uint32_t send_wr, recv_wr; /* as many receives are posted at once */
	uint32_t inline_octets;
	uint32_t reads; /* RDMA Reads under way */
	size_t in_octets, out_octets; /* buffers */
	bool in_each; /* each connection has its own to receive in, else a thread's share one */
	bool send_cq; /* completions of what we post have a CQ of their own */
};

/* Shared by one thread's connections; with mode=epoll each connection has its own. */
struct verbs_lane {
	struct ibv_comp_channel *channel; /* of cq, for mode=event and threads that only wait */
	struct ibv_cq *cq;
	struct ibv_cq *send_cq; /* cq where there is no other */
	struct ibv_mr *mr;
	uint8_t *buf;
};

/* Where the other end's buffers are. */
struct verbs_far {
	uint64_t in, out;
	uint32_t key;
};

struct verbs_link {
	struct rdma_cm_id *id; /* NULL: by=modify_qp */
	struct ibv_qp *qp;
	struct verbs_lane *lane;
	uint8_t *in, *out;
	uint32_t number; /* wr_id of its receives */
	struct verbs_far far;
	uint32_t posted; /* since one was signalled, or not reaped: the test's own business */
	uint32_t room; /* bandwidth: Sends that the other end has receives for */
	bool opened; /* bandwidth: room is set */
	uint32_t taken; /* bandwidth: receives posted anew that the other end was not told of */
};

struct verbs {
	struct verbs_shape shape;
	uint32_t message_octets;
	struct rdma_event_channel *channel;
	struct rdma_cm_id *listener;
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct verbs_lane lanes[VERBS_LANES_MAX];
	struct verbs_link *links; /* in the order they were made; lane after lane */
	uint64_t count, max;
	uint32_t lane_links; /* connections of a lane */
};

extern struct verbs verbs;

/* Receives for Sends of the bandwidth test: twice the window, at least two for each part. */
static inline uint32_t verbs_room(const struct args *args)
{
	uint32_t room = 2 * (uint32_t)args->window;

	return room < 2 * WINDOW_PARTS ? 2 * WINDOW_PARTS : room;
}

/* verbs.c: resources, posting and completions. Room is for all connections of the test. */
void verbs_make_room(const struct session *session);
void verbs_prepare(struct session *session, struct ibv_context *context);
void verbs_link_prepare(struct verbs_link *link, struct rdma_cm_id *id);
void verbs_post_receive(struct verbs_link *link);
void verbs_post(struct verbs_link *link, enum ibv_wr_opcode opcode, uint32_t octets,
		bool signalled);
void verbs_check(const struct ibv_wc *wc);

/* Polls once; how many of at most max came. All of them are good. */
int verbs_poll(struct ibv_cq *cq, int max, struct ibv_wc *wc);

/* Polls a lane's cq until something came, spinning or, MODE_EVENT, asleep on its channel. */
int verbs_wait(const struct session *session, struct verbs_lane *lane, enum mode mode, int max,
	       struct ibv_wc *wc);

/* Gives way to the one question a spinning loop asks: is the other end still there? */
void verbs_spin(const struct session *session, uint32_t *spins);

/* verbs_cm.c: connections. The first call is verbs_open; verbs_listen and verbs_connect make it. */
void verbs_open(const struct session *session);
void verbs_listen(struct session *session);
void verbs_accept(struct session *session, uint64_t count);
void verbs_connect(struct session *session, uint64_t count);
void verbs_accept_request(struct session *session, struct verbs_link *link,
			  const struct rdma_cm_event *event);

/* Everything from rdma_create_id to ESTABLISHED; when rdma_connect was called. */
uint64_t verbs_connect_link(struct session *session, struct verbs_link *link);

/* QP and rdma_connect; when that was called. The address and the route are resolved. */
uint64_t verbs_call(struct session *session, struct verbs_link *link, struct rdma_cm_id *id);

/* The next event; the server fails when the client is gone. */
struct rdma_cm_event *verbs_event(const struct session *session);

/* After verbs_event_no_wait: the next event, NULL where there is none. */
struct rdma_cm_event *verbs_event_now(void);
void verbs_event_no_wait(void);

/* Takes the next event, which must be of this type; far, where not NULL, takes what it brings. */
void verbs_expect(const struct session *session, enum rdma_cm_event_type type,
		  struct verbs_far *far);

/* verbs_modify.c: so many connections more, which both ends make at the same time; and a QP, or NULL. */
void verbs_modify(struct session *session, uint64_t count);
struct ibv_qp *verbs_modify_create(struct ibv_qp_init_attr *attr);

void verbs_ping(struct session *session, const struct until *until, struct stats *stats);
void verbs_echo(struct session *session);
struct moved verbs_flow(struct session *session, unsigned int lane, unsigned int flow,
			uint64_t deadline_ns);
void verbs_ask_all(struct session *session, const struct until *until, struct stats *stats);
void verbs_answer_all(struct session *session);
/* verbs_epoll.c: asleep until completions came, of any connection; at most VERBS_WCS_MAX. */
int verbs_epoll_wait(struct ibv_wc *wcs);
void verbs_connect_many(struct session *session, uint64_t count, const struct connect_times *times);
void verbs_connect_at_once(struct session *session, uint64_t count,
			   const struct connect_times *times);
void verbs_serve_many(struct session *session, uint64_t count);
/* verbs_connect.c: how many Sends came; a Send for each where it answers. The CQ is armed again, also after an event. */
uint64_t verbs_arm(struct verbs_lane *lane, bool answers);
uint64_t verbs_take_raised(struct verbs_lane *lane, bool answers);
void verbs_end(struct rdma_cm_id *id);
void verbs_look(struct session *session);

#endif
