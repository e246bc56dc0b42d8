// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What stands behind an endpoint, for the files that make it up.
#ifndef XSOCK_ENDPOINT_EP_IMPL_H
#define XSOCK_ENDPOINT_EP_IMPL_H

#include "xsock/endpoint/ep.h"
#include "xsock/stream/stream.h"

#include <pthread.h>
#include <sys/queue.h>
#include <sys/types.h>

#define AW_XS_OTHERS_MAX 64u /* WRs of callers under way */
#define AW_XS_UNACKED_MAX 64u /* completion events that are acknowledged together */

/* Where set-up is. */
enum aw_xs_phase {
	AW_XS_PHASE_IDLE,
	AW_XS_PHASE_ADDR, /* resolving */
	AW_XS_PHASE_ROUTE,
	AW_XS_PHASE_REQUEST, /* passive: waits for the peer's */
	AW_XS_PHASE_REPLY, /* active: asked; passive: answered */
	AW_XS_PHASE_UP,
	AW_XS_PHASE_OVER, /* was up, or never came to be */
};

struct aw_xs_cq {
	struct ibv_cq *cq;
	bool armed;
	uint32_t unacked;
};

/* A WR that is not the stream's, or not only. */
struct aw_xs_other {
	void (*done)(void *arg, int err);
	void *arg;
};

struct aw_xs_map {
	TAILQ_ENTRY(aw_xs_map) entry;
	struct ibv_mr *mr;
	uint64_t offset;
	uint32_t index; /* the peer's entry; UINT32_MAX: it is not told of this one */
	bool announced;
};

/* All but what is fixed is guarded by lock. */
struct aw_xs_ep {
	/* fixed after create */
	struct aw_xs_options options;
	pid_t pid; /* a fork's child owns nothing of it */
	uint8_t *memory;
	size_t memory_len;
	size_t recv_at, target_at,
		messages_at; /* in memory; the send ring and the notes are first */

	pthread_mutex_t lock;
	pthread_cond_t changed; /* for who waits while another one sleeps */
	enum aw_xs_phase phase;
	struct aw_xs_stream stream;
	int error; /* positive, until it was told */
	bool nodelay, rd_shut, disconnecting;
	bool has_ticket;
	uint8_t ticket[AW_XS_TICKET_LEN];
	uint8_t refusal[UINT8_MAX]; /* of a peer that has rejected */
	uint8_t refusal_len;

	struct rdma_event_channel *events;
	struct rdma_cm_id *id;
	struct rdma_cm_id *listen_id; /* respond: what the peer's request comes by */
	struct ibv_pd *pd; /* its own: an STag of one peer's is none of another's */
	struct ibv_comp_channel *channel;
	struct aw_xs_cq send_cq, recv_cq;
	struct ibv_mr *send_mr, *recv_mr, *target_mr, *messages_mr;
	uint32_t sq_wrs, inline_max;
	uint32_t recv_count;
	struct aw_xs_other other[AW_XS_OTHERS_MAX];
	uint32_t other_first, others;
	TAILQ_HEAD(aw_xs_map_list, aw_xs_map) maps; /* announced ones first */
	uint32_t maps_due; /* not announced yet */

	/* who sleeps, and what they have not heard of */
	uint64_t news; /* counts what changes readiness */
	bool silent_news; /* some of it came without an event */
	bool event_taken; /* and some with one that is gone from the channel */
	void (*sleep_limit)(int64_t timeout_ns); /* anywarp_sleep_limit, or NULL */
	bool lends; /* who sleeps in ibv_get_cq_event makes progress, and is woken by the end as well */
	uint32_t waiters; /* threads in aw_xs_ep_wait */
	bool sleeping; /* one of them, on the channel */
	pthread_t sleeper;
	uint64_t sleeper_news;
	bool poller; /* some thread armed for a poll(2) of its own and did not come back yet */
	pthread_t poller_id;
	uint64_t poller_news;
	uint64_t ready_news; /* as aw_xs_ep_ready last told them */

	uint32_t calls; /* made so far */
	bool listed; /* the service knows that it is behind */

	/* guarded by the service's lock */
	TAILQ_ENTRY(aw_xs_ep) live_entry;
	TAILQ_ENTRY(aw_xs_ep) behind_entry;
	bool is_live; /* in its list of those that nobody has closed */
	bool is_behind, is_left; /* in its list of those; nobody's but the service's, at exit */
	uint32_t calls_seen, idle_ticks;

	/* the service's, once it lingers */
	TAILQ_ENTRY(aw_xs_ep) entry;
	uint64_t stalled_since_ns, stalled_at;
};

uint64_t aw_xs_now_ns(void);

/* ep_cm.c: set-up and its end. The lock is held. */
void aw_xs_ep_cm_progress(struct aw_xs_ep *ep);

void aw_xs_ep_over(struct aw_xs_ep *ep, int error);
/* By dlsym from the librdmacm in use; NULL where it is not ours. */
void *aw_xs_cm_extension(const char *name);

/* ep_qp.c: verbs. The lock is held. */
int aw_xs_ep_qp_create(struct aw_xs_ep *ep);
void aw_xs_ep_qp_destroy(struct aw_xs_ep *ep);
/* Takes what came and what is done; then posts what can be. min: as aw_xs_stream_next. */
void aw_xs_ep_progress(struct aw_xs_ep *ep, uint32_t min);
void aw_xs_ep_pump(struct aw_xs_ep *ep, uint32_t min);
void aw_xs_ep_reap_sends(struct aw_xs_ep *ep);
int aw_xs_ep_post_work(struct aw_xs_ep *ep, const struct aw_xs_work *wr);
/* A Write without bytes, whose completion wakes who sleeps on the channel. */
void aw_xs_ep_nudge(struct aw_xs_ep *ep);

/* ep_iomap.c. The lock is held. */
void aw_xs_ep_announce_maps(struct aw_xs_ep *ep);
void aw_xs_ep_free_maps(struct aw_xs_ep *ep);

/* ep_wait.c. The lock is held. */
short aw_xs_ep_bits(const struct aw_xs_ep *ep);
/* Gives the lock back, and wakes who sleeps and has missed something. */
void aw_xs_ep_unlock(struct aw_xs_ep *ep);
/* Wakes who sleeps and has missed something. */
void aw_xs_ep_tell(struct aw_xs_ep *ep);
/* As aw_xs_ep_arm. */
bool aw_xs_ep_arm_poller(struct aw_xs_ep *ep);

/* ep.c */
enum aw_xs_state aw_xs_ep_state_of(const struct aw_xs_ep *ep);
void aw_xs_ep_free(struct aw_xs_ep *ep);
/* Nothing that was taken is left to be sent, and the end was told, or none can be. */
bool aw_xs_ep_is_flushed(struct aw_xs_ep *ep);

/*
 * ep_service.c: the one thread that serves endpoints that have bytes to send and nobody who calls. join and leave: an
 * endpoint's life. behind: with the endpoint's lock. linger: from here on it is the service's.
 */
void aw_xs_service_join(struct aw_xs_ep *ep);
void aw_xs_service_leave(struct aw_xs_ep *ep);
void aw_xs_service_behind(struct aw_xs_ep *ep);
void aw_xs_service_linger(struct aw_xs_ep *ep);

/* ep_linger.c: one turn of an endpoint that was closed; true once it may be freed. */
bool aw_xs_ep_linger(struct aw_xs_ep *ep);

/* Has it something to send that waits for the peer, or for TCP? The lock is held. */
bool aw_xs_ep_is_behind(const struct aw_xs_ep *ep);

#endif
