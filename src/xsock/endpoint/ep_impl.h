// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The structure of an endpoint; shared by the files of this directory. Order of the locks: the
// endpoint's, then the service's (ep_service.c). The executor's thread holds the service's and only
// tries an endpoint's.
#ifndef XSOCK_ENDPOINT_EP_IMPL_H
#define XSOCK_ENDPOINT_EP_IMPL_H

#include "base/thread_safety.h"
#include "xsock/endpoint/ep.h"
#include "xsock/endpoint/executor.h"
#include "xsock/stream/stream.h"

#include <pthread.h>
#include <sys/queue.h>
#include <sys/types.h>

#define AW_XS_CALLER_WRS_MAX 64u /* WRs of callers in progress */
#define AW_XS_UNACKED_MAX 64u /* so many completion events are acknowledged together */

/* The phases of an endpoint. */
enum aw_xs_phase {
	AW_XS_PHASE_IDLE,
	AW_XS_PHASE_ADDR, /* resolving the address */
	AW_XS_PHASE_ROUTE, /* resolving the route */
	AW_XS_PHASE_REQUEST, /* passive: waits for the peer's MPA Request */
	AW_XS_PHASE_REPLY, /* active: has sent the Request; passive: has sent the Reply */
	AW_XS_PHASE_UP,
	AW_XS_PHASE_OVER, /* has ended, or start-up has failed */
};

struct aw_xs_cq {
	struct ibv_cq *cq;
	bool armed;
	uint32_t unacked;
};

/*
 * The callback of a WR that a caller has posted (aw_xs_ep_post, aw_xs_ep_send_zero); done NULL: a
 * nudge.
 */
struct aw_xs_caller_wr {
	void (*done)(void *arg, int err);
	void *arg;
};

struct aw_xs_map {
	TAILQ_ENTRY(aw_xs_map) entry;
	struct ibv_mr *mr;
	uint64_t offset;
	uint32_t index; /* the peer's entry; UINT32_MAX: the map is not announced to the peer */
	bool announced;
};

/* The endpoint's lock guards all fields but those that are fixed or under the service's lock. */
struct aw_xs_ep {
	/* fixed after create */
	struct aw_xs_options options;
	pid_t pid; /* a child of fork must not use the connection */
	uint8_t *memory;
	size_t memory_len;
	/* offsets in memory, behind the send ring; shared_at: of what the peer may write */
	size_t messages_at, shared_at;

	aw_mutex lock;
	pthread_cond_t changed; /* for threads that wait while another one sleeps */
	enum aw_xs_phase phase;
	struct aw_xs_stream stream;
	int error; /* positive, until it was returned */
	bool nodelay, rd_shut, disconnecting;
	bool has_ticket;
	uint8_t ticket[AW_XS_TICKET_LEN];
	uint8_t refusal[UINT8_MAX]; /* private data of a peer that has rejected */
	uint8_t refusal_len;

	struct rdma_event_channel *events;
	struct rdma_cm_id *id;
	struct rdma_cm_id *listen_id; /* respond: the id that receives the peer's Request */
	/* the endpoint's own, so that one peer's STags are invalid for another */
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct aw_xs_cq send_cq, recv_cq;
	struct ibv_mr *own_mr, *shared_mr; /* of memory before and behind shared_at */
	uint32_t inline_max;
	uint32_t recv_count;
	struct aw_xs_caller_wr caller_wr[AW_XS_CALLER_WRS_MAX];
	uint32_t caller_first, caller_wrs; /* a ring in caller_wr, in the SQ's order */
	bool flush_awaited; /* a thread waits until TCP has taken all bytes (aw_xs_ep_unsent), or the endpoint lingers */
	TAILQ_HEAD(aw_xs_map_list, aw_xs_map) maps; /* announced maps first */
	uint32_t maps_due; /* maps that are not announced yet */

	/* the threads that sleep, and the changes of readiness that they have not seen */
	uint64_t changes; /* counts the changes of readiness */
	/* no event tells of some changes: they came without one, or it was taken from the channel */
	bool needs_nudge;
	void (*sleep_limit)(int64_t timeout_ns); /* anywarp_sleep_limit, or NULL */
	/* a thread in ibv_get_cq_event makes progress, and the connection's end wakes it, too */
	bool lends;
	uint32_t waiters; /* threads in aw_xs_ep_wait */
	bool interrupted; /* by aw_xs_ep_interrupt */
	bool sleeping; /* one of them sleeps on the channel */
	pthread_t sleeper;
	uint64_t sleeper_changes;
	bool poller; /* a thread has armed the endpoint for its own poll(2) and not come back */
	pthread_t poller_id;
	uint64_t poller_changes;
	uint64_t ready_changes; /* the changes that aw_xs_ep_ready has returned last */

	uint32_t calls; /* calls made so far */
	bool listed; /* the endpoint is behind, for the service */

	/* guarded by the service's lock */
	TAILQ_ENTRY(aw_xs_ep) live_entry, served_entry;
	bool is_live; /* in the service's list of endpoints that are not closed */
	bool is_behind, is_lingering; /* in one of the service's other lists */
	/* is_abandoned: closed by exit(3), not freed; is_kept: hung up, and freed only once it is closed, too */
	bool is_abandoned, is_kept;
	uint32_t calls_seen, idle_ticks;

	/* used by the service once the endpoint lingers */
	uint64_t stalled_since_ns, stalled_at;
};

/* ep_cm.c: start-up and the connection's end. */
void aw_xs_ep_cm_progress(struct aw_xs_ep *ep) AW_REQUIRES(ep->lock);

/* Ends the connection; error: a positive errno, or 0 for an orderly end. */
void aw_xs_ep_end(struct aw_xs_ep *ep, int error) AW_REQUIRES(ep->lock);
/* Returns a function of anywarp's librdmacm by dlsym; NULL: the librdmacm in use is another. */
void *aw_xs_cm_extension(const char *name);

/* ep_qp.c. */
int aw_xs_ep_qp_create(struct aw_xs_ep *ep) AW_REQUIRES(ep->lock);
void aw_xs_ep_qp_destroy(struct aw_xs_ep *ep) AW_REQUIRES(ep->lock);

/* ep_work.c. */
/* Posts count receives, beginning with message slot first. */
int aw_xs_ep_post_receives(struct aw_xs_ep *ep, uint32_t first, uint32_t count)
	AW_REQUIRES(ep->lock);
/* Completes the callers' WRs with an error: the QP is gone. */
void aw_xs_ep_fail_caller_wrs(struct aw_xs_ep *ep) AW_REQUIRES(ep->lock);
/* Processes completions, then posts what can be posted. */
void aw_xs_ep_progress(struct aw_xs_ep *ep) AW_REQUIRES(ep->lock);
/* Posts what can be posted. min: as for aw_xs_stream_next. */
void aw_xs_ep_pump(struct aw_xs_ep *ep, uint32_t min) AW_REQUIRES(ep->lock);
void aw_xs_ep_reap_sends(struct aw_xs_ep *ep) AW_REQUIRES(ep->lock);
int aw_xs_ep_post_work(struct aw_xs_ep *ep, const struct aw_xs_work *wr) AW_REQUIRES(ep->lock);
void aw_xs_ep_arm_cq(struct aw_xs_cq *cq);
/* Wakes the threads that sleep and have missed a change. */
void aw_xs_ep_wake_sleepers(struct aw_xs_ep *ep) AW_REQUIRES(ep->lock);
/* Does the same, leaves bytes that no caller sends to the service, and unlocks the endpoint. */
void aw_xs_ep_unlock(struct aw_xs_ep *ep) AW_RELEASE(ep->lock);
/* Returns whether bytes or the end wait to be sent, for the peer or for TCP. */
bool aw_xs_ep_is_behind(const struct aw_xs_ep *ep) AW_REQUIRES(ep->lock);
/* Returns whether the peer receives no more. */
bool aw_xs_ep_is_over(const struct aw_xs_ep *ep) AW_REQUIRES(ep->lock);
/* Returns whether all bytes and the end of the stream were sent, or cannot be any more. */
bool aw_xs_ep_is_flushed(struct aw_xs_ep *ep) AW_REQUIRES(ep->lock);

/* ep_iomap.c. */
void aw_xs_ep_announce_maps(struct aw_xs_ep *ep) AW_REQUIRES(ep->lock);
void aw_xs_ep_free_maps(struct aw_xs_ep *ep) AW_REQUIRES(ep->lock);

/* ep_wait.c: returns the readiness. */
short aw_xs_ep_bits(const struct aw_xs_ep *ep) AW_REQUIRES(ep->lock);
/* As aw_xs_ep_arm */
bool aw_xs_ep_arm_poller(struct aw_xs_ep *ep) AW_REQUIRES(ep->lock);

/* ep.c: frees an endpoint that no thread uses any more. */
void aw_xs_ep_free(struct aw_xs_ep *ep);

TAILQ_HEAD(aw_xs_ep_list, aw_xs_ep);
struct aw_xs_service {
	/*
	 * Guards the fields below. A thread may take it while it holds an endpoint's lock; a thread
	 * that holds it only tries an endpoint's lock.
	 */
	aw_mutex lock;
	pthread_cond_t idle; /* no endpoint lingers */
	struct aw_xs_ep_list live; /* endpoints that are not closed */
	struct aw_xs_ep_list behind;
	struct aw_xs_ep_list closed; /* endpoints that linger, not yet moved to `lingering` */
	struct aw_xs_ep_list lingering; /* used by the thread alone */
	uint32_t lingering_count; /* length of `closed` and `lingering` */
	bool prepared;
};
/* ep_service.c */
extern struct aw_xs_service aw_xs_service;
/* ep_linger.c */
extern struct aw_xs_job aw_xs_service_job;

/*
 * ep_service.c. join: the endpoint is created. leave: it is closed or, kept, hung up; false: there is nothing left to do, or
 * the service does it. behind: bytes are left to send; drop_behind: none are. linger: the service takes an endpoint that has left; false: it has no thread.
 */
void aw_xs_service_join(struct aw_xs_ep *ep);
bool aw_xs_service_leave(struct aw_xs_ep *ep, bool kept);
void aw_xs_service_behind(struct aw_xs_ep *ep) AW_REQUIRES(ep->lock);
void aw_xs_service_drop_behind(struct aw_xs_ep *ep) AW_REQUIRES(aw_xs_service.lock);
bool aw_xs_service_linger(struct aw_xs_ep *ep);

#endif
