// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A QP's connecting: the calls of the program, and what is due by the clock. Connections that are
// given up are destroyed after the lock has been released.
#include "net/roce/rc_impl.h"

#include "base/clock.h"
#include "base/log.h"
#include "core/rnr_wait.h"
#include "core/tx.h"
#include "net/base/addr.h"
#include "net/base/bounds.h"
#include "net/base/fork.h"
#include "net/base/policy_env.h"
#include "net/progress/watch.h"
#include "net/roce/qpn.h"
#include "ring/lock.h"

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#define MS_NS UINT64_C(1000000)
#define SOON_MS 1 /* the shortest deadline of the progress thread */

static _Atomic uint32_t incarnations;

static void on_clock(struct aw_watch *w, uint32_t events);
static void follow_qp(struct aw_uqp *qp) AW_REQUIRES(qp->lock);

static int create_rc(struct aw_uqp *qp)
{
	struct aw_rc *rc = calloc(1, sizeof(*rc));
	int err;

	if (!rc)
		return ENOMEM;
	rc->qp = qp;
	rc->generation = aw_fork_generation();
	pthread_mutex_init(&rc->lock, NULL);
	err = aw_watch_add(&rc->watch, -1, 0, on_clock, NULL);
	if (err) {
		pthread_mutex_destroy(&rc->lock);
		free(rc);
		return err;
	}
	qp->rc = rc;
	return 0;
}

static int open_rc(struct aw_uqp *qp)
{
	return aw_qpn_take(qp->handle, &qp->qpn);
}

void aw_rc_drop(struct aw_rc_litter *litter, struct aw_conn *conn)
{
	assert(litter->count < sizeof(litter->conns) / sizeof(litter->conns[0]));
	litter->conns[litter->count++] = conn;
}

void aw_rc_sweep(struct aw_rc_litter *litter)
{
	while (litter->count > 0)
		aw_conn_destroy(litter->conns[--litter->count]);
}

/* Waits for the rc's events, so the caller holds no lock. */
static void close_rc(struct aw_uqp *qp)
{
	struct aw_rc_litter litter = { .count = 0 };
	struct aw_rc *rc = qp->rc;

	aw_qpn_give(qp->qpn);
	aw_lock(&rc->lock);
	rc->ended = true;
	rc->phase = AW_PAIR_OVER;
	aw_rc_drop_call(rc, &litter);
	aw_rc_drop_held(rc, &litter);
	aw_unlock(&rc->lock);
	aw_rc_sweep(&litter);
	aw_watch_remove_wait(&rc->watch);
}

static void destroy_rc(struct aw_uqp *qp)
{
	struct aw_rc *rc = qp->rc;

	if (!rc->ended)
		aw_watch_remove_wait(&rc->watch);
	pthread_mutex_destroy(&rc->lock);
	free(rc);
}

const struct aw_uqp_kind aw_rc_kind = {
	.create = create_rc,
	.open = open_rc,
	.close = close_rc,
	.destroy = destroy_rc,
	.follow = follow_qp,
};

/* The child of a fork makes no connection for a QP of its parent. */
static bool is_own(const struct aw_rc *rc)
{
	return rc->generation == aw_fork_generation();
}

enum aw_pair_phase aw_rc_phase(const struct aw_rc *rc)
{
	if (rc->phase == AW_PAIR_CALLING && aw_conn_has_asked(rc->call))
		return AW_PAIR_ASKED;
	return rc->phase;
}

struct pair aw_rc_pair(const struct aw_rc *rc, enum pair_answer answer)
{
	const struct aw_pair *told = &rc->told.pair;
	struct pair pair = {
		.answer = answer,
		.type = (uint8_t)told->type,
		.incarnation = rc->incarnation,
		.src_qpn = told->local.qpn,
		.dst_qpn = told->remote.qpn,
		.keeps = told->type == PAIR_RC,
		.rnr_retry = rc->rnr_retry,
	};

	for (int i = 0; i < GID_LEN; i++)
		pair.src_gid[i] = told->local.gid[i];
	return pair;
}

void aw_rc_look(struct aw_rc *rc, struct aw_rc_litter *litter)
{
	bool open = rc->phase == AW_PAIR_WAITING || rc->phase == AW_PAIR_CALLING;

	if (!open || aw_uqp_state(rc->qp) != AW_QP_ERROR)
		return;
	rc->phase = AW_PAIR_OVER;
	rc->call_ns = 0;
	aw_rc_drop_call(rc, litter);
}

static void begin(struct aw_rc *rc, struct aw_rc_litter *litter) AW_REQUIRES(rc->lock)
{
	const struct aw_pair *pair = &rc->told.pair;

	if (!aw_pair_is_self(pair) && aw_rc_answer_held(rc, litter))
		return;
	if (aw_pair_is_self(pair) || aw_pair_is_caller(pair) || !aw_bounds.yield_ms)
		aw_rc_call(rc);
	else
		rc->call_ns = aw_now_ns() + aw_bounds.yield_ms * MS_NS;
}

int aw_rc_tell(struct aw_rc *rc, const struct aw_rc_told *told)
{
	struct aw_rc_litter litter = { .count = 0 };

	if (!is_own(rc))
		return EINVAL;
	aw_lock(&rc->lock);
	rc->told = *told;
	rc->ord = AW_RD_MAX;
	rc->rnr_timer = told->rnr_timer;
	rc->rnr_retry = PAIR_RNR_RETRY_ENDLESS;
	rc->calls = 0;
	rc->met = rc->type_told = false;
	/* Relaxed: only the number matters. */
	rc->incarnation = atomic_fetch_add_explicit(&incarnations, 1, memory_order_relaxed) + 1;
	rc->phase = told->at_rts ? AW_PAIR_UNTOLD : AW_PAIR_WAITING;
	/* From now on the QP's streams are made by its rc, and posts wait for the first one. */
	struct aw_uqp *qp = rc->qp;

	aw_lock(&qp->lock);
	qp->by_rc = true;
	qp->posts_drop = false;
	qp->rnr_ms = 0;
	qp->retry_ms = 0;
	qp->peer_qpn = told->pair.remote.qpn;
	aw_unlock(&qp->lock);
	if (!told->at_rts)
		begin(rc, &litter);
	aw_rc_set_clock(rc);
	aw_unlock(&rc->lock);
	aw_rc_sweep(&litter);
	return 0;
}

/* The stream was agreed on before the program set the bound. */
static void bound_ord(struct aw_uqp *qp, uint16_t ord) AW_REQUIRES(qp->lock)
{
	if (qp->core.state != AW_QP_IDLE && qp->core.stream.ord > aw_rc_depth(ord))
		qp->core.stream.ord = aw_rc_depth(ord);
}

/* How long an inbound message waits for a receive; 0: for ever. */
static uint32_t rnr_ms(const struct aw_rc *rc) AW_REQUIRES(rc->lock)
{
	uint32_t ms = rc->rnr_timer * (rc->rnr_retry + 1u) / 100;

	if (rc->rnr_retry == PAIR_RNR_RETRY_ENDLESS)
		return 0;
	return ms > AW_RNR_MS ? ms : AW_RNR_MS;
}

static bool is_target(const struct aw_rc *rc)
{
	return rc->qp->attr.xrc == AW_XRC_TARGET;
}

void aw_rc_ready(struct aw_rc *rc, const struct aw_rc_ready *ready)
{
	struct aw_rc_litter litter = { .count = 0 };
	struct aw_uqp *qp = rc->qp;

	aw_lock(&rc->lock);
	rc->ord = ready->ord;
	rc->rnr_timer = ready->rnr_timer;
	if (!is_target(rc))
		rc->rnr_retry = ready->rnr_retry;
	aw_lock(&qp->lock);
	qp->core.posts_early = qp->attr.xrc != AW_XRC_TARGET;
	qp->retry_ms = ready->retry_ms;
	if (!qp->attr.uc)
		qp->rnr_ms = rnr_ms(rc);
	bound_ord(qp, ready->ord);
	aw_unlock(&qp->lock);
	if (rc->told.at_rts && rc->phase == AW_PAIR_UNTOLD) {
		rc->phase = AW_PAIR_WAITING;
		begin(rc, &litter);
		aw_rc_set_clock(rc);
	}
	aw_unlock(&rc->lock);
	aw_rc_sweep(&litter);
}

void aw_rc_agree(struct aw_rc *rc, const struct pair *peer)
{
	if (is_target(rc))
		rc->rnr_retry = peer->rnr_retry;
	aw_lock(&rc->qp->lock);
	rc->qp->peer_keeps = peer->keeps;
	if (is_target(rc))
		rc->qp->rnr_ms = rnr_ms(rc);
	aw_unlock(&rc->qp->lock);
}

void aw_rc_joined(struct aw_rc *rc)
{
	rc->phase = AW_PAIR_JOINED;
	rc->met = true;
	rc->call_ns = 0;
	rc->calls = 0;
	aw_lock(&rc->qp->lock);
	bound_ord(rc->qp, rc->ord);
	aw_unlock(&rc->qp->lock);
}

void aw_rc_stop(struct aw_rc *rc, bool over)
{
	struct aw_rc_litter litter = { .count = 0 };

	aw_lock(&rc->lock);
	rc->phase = over ? AW_PAIR_OVER : AW_PAIR_UNTOLD;
	rc->call_ns = 0;
	aw_rc_drop_call(rc, &litter);
	aw_unlock(&rc->lock);
	aw_rc_sweep(&litter);
}

/*
 * The clock runs on the progress thread, which takes both locks and so may look at what the QP's
 * lock guards. A thread that holds only the QP's lock sets the clock.
 */

/* True for posts that wait for a stream; in SQD only those that were begun do. */
static bool has_posts(const struct aw_uqp *qp) AW_REQUIRES(qp->lock)
{
	const struct aw_qp *core = &qp->core;

	return core->state < AW_QP_TERMINATE && aw_sq_count(&core->sq) > 0 &&
	       !(core->sq_halts && aw_qp_is_drained(core));
}

static uint32_t post_wait_ms(const struct aw_uqp *qp) AW_REQUIRES(qp->lock)
{
	/* After a stream that was used no other one will come, so the QP's own timeout holds. UC has none. */
	if (qp->attr.uc)
		return aw_bounds.post_wait_ms;
	if (qp->lost || qp->peer_gone || qp->retry_ms > aw_bounds.post_wait_ms)
		return qp->retry_ms;
	return aw_bounds.post_wait_ms;
}

/* True when the stream ended before either end had begun a message on it; or, of UC, when it ended. */
static bool ended_for_another(const struct aw_uqp *qp) AW_REQUIRES(qp->lock)
{
	const struct aw_sq *sq = &qp->core.sq;

	return qp->lost && (!qp->touched || qp->attr.uc) && qp->core.state == AW_QP_RTS &&
	       sq->next == sq->head && !qp->core.tx_begun;
}

/* UC: what was posted is dropped where it will find no stream that its peer awaits it on. */
static void drop_posts(struct aw_uqp *qp) AW_REQUIRES(qp->lock)
{
	qp->posts_drop |= (qp->lost && qp->touched) || qp->peer_gone;
	if (qp->posts_drop)
		aw_tx_drop(&qp->core);
}

static void follow_qp(struct aw_uqp *qp)
{
	if (qp->attr.uc)
		drop_posts(qp);

	bool has_time = qp->retry_ms > 0 || qp->attr.uc;
	bool waits = aw_uqp_is_cut_off(qp) && has_posts(qp) && has_time;
	bool waits_anew = waits && !qp->fail_ns;
	bool ended_anew = ended_for_another(qp) && !qp->recall_due;

	if (!waits)
		qp->fail_ns = 0;
	if (waits_anew)
		qp->fail_ns = aw_now_ns() + post_wait_ms(qp) * MS_NS;
	qp->recall_due |= ended_anew;
	/* Once for each: a program that posts all the time must not put the clock off. */
	if (waits_anew || ended_anew)
		aw_watch_deadline(&qp->rc->watch, SOON_MS);
}

/*
 * The peer may have been reset and may connect again. On InfiniBand an end of an unused stream
 * would not be noticed, nor any of UC, so the QP goes back to waiting.
 */
static void look_after_stream(struct aw_rc *rc, struct aw_rc_litter *litter) AW_REQUIRES(rc->lock)
{
	struct aw_uqp *qp = rc->qp;
	bool again;

	if (rc->phase != AW_PAIR_JOINED)
		return;
	aw_lock(&qp->lock);
	again = ended_for_another(qp);
	if (again) {
		aw_qp_recall(&qp->core);
		qp->attached = qp->lost = qp->recall_due = false;
		/* Of the stream; that the queue is drained is of the program's move to SQD. */
		qp->events_due &= AW_UQP_DRAINED;
		qp->events_told &= AW_UQP_DRAINED;
		qp->fail_ns = 0;
		follow_qp(qp);
	}
	aw_unlock(&qp->lock);
	if (!again)
		return;
	rc->phase = AW_PAIR_WAITING;
	if (!aw_rc_answer_held(rc, litter))
		aw_rc_call_later(rc);
}

/* A peer that goes after its work is done is nothing to mend; one that never came is. */
static void log_given_up(const struct aw_rc *rc) AW_REQUIRES(rc->lock)
{
	struct sockaddr_storage addr;

	aw_pair_address(&rc->told.pair.remote, aw_qpn_port(rc->told.pair.remote.qpn), &addr);
	aw_log(rc->met ? AW_LOG_WARN : AW_LOG_ERROR,
	       "qp 0x%x: peer qp 0x%x at %s did not answer in time%s: is its program still running, with --persona roce, and is the port open?",
	       rc->qp->qpn, rc->told.pair.remote.qpn, aw_addr_text(&addr).text,
	       rc->qp->attr.uc ? ", and what is posted is dropped until it does, as on any uc qp"
			       : "");
}

void aw_rc_log_type(struct aw_rc *rc)
{
	static const char *const names[] = {
		[PAIR_RC] = "rc",
		[PAIR_UC] = "uc",
		[PAIR_XRC_INITIATOR] = "xrc send",
		[PAIR_XRC_TARGET] = "xrc recv",
	};
	struct sockaddr_storage addr;

	if (rc->type_told)
		return;
	rc->type_told = true;
	aw_pair_address(&rc->told.pair.remote, aw_qpn_port(rc->told.pair.remote.qpn), &addr);
	aw_log(AW_LOG_ERROR,
	       "qp 0x%x is %s, and its peer qp 0x%x at %s is of another type: rc connects to rc, uc to uc, xrc send to xrc recv (perftest: "
	       "the same -c at both ends)",
	       rc->qp->qpn, names[rc->told.pair.type], rc->told.pair.remote.qpn,
	       aw_addr_text(&addr).text);
}

/* The time when the posts fail, or 0. */
static uint64_t fail_time(const struct aw_uqp *qp) AW_REQUIRES(qp->lock)
{
	return aw_uqp_is_cut_off(qp) && has_posts(qp) ? qp->fail_ns : 0;
}

/* The peer has not answered this end's call; its own call may wait for the end of that. */
static bool takes_peers_call(struct aw_rc *rc, struct aw_rc_litter *litter) AW_REQUIRES(rc->lock)
{
	if (aw_rc_phase(rc) != AW_PAIR_ASKED)
		return false;
	rc->phase = AW_PAIR_WAITING;
	aw_rc_drop_call(rc, litter);
	return aw_rc_answer_held(rc, litter);
}

static void fail_in_time(struct aw_rc *rc, uint64_t now_ns, struct aw_rc_litter *litter)
	AW_REQUIRES(rc->lock)
{
	bool stopped = rc->phase == AW_PAIR_UNTOLD || rc->phase == AW_PAIR_OVER;
	uint64_t at;

	if (stopped)
		return; /* the program is about to reset or end the QP itself */
	aw_lock(&rc->qp->lock);
	at = fail_time(rc->qp);
	aw_unlock(&rc->qp->lock);
	if (!at || now_ns < at || takes_peers_call(rc, litter))
		return;
	log_given_up(rc);
	if (rc->qp->attr.uc) {
		if (rc->phase == AW_PAIR_WAITING && !rc->call_ns)
			aw_rc_call_later(rc);
		aw_uqp_drop_posts(rc->qp);
		return;
	}
	rc->phase = AW_PAIR_OVER;
	rc->call_ns = 0;
	aw_rc_drop_call(rc, litter);
	aw_uqp_give_up(rc->qp, AW_WC_RETRY_EXC_ERR);
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return a && (!b || a < b) ? a : b;
}

static uint32_t ms_until(uint64_t at_ns)
{
	uint64_t now_ns = aw_now_ns();

	if (!at_ns)
		return 0;
	return at_ns > now_ns ? (uint32_t)((at_ns - now_ns + MS_NS - 1) / MS_NS) : SOON_MS;
}

/*
 * Sets the clock under the QP's lock as well, so that a clock set by follow_qp meanwhile is not
 * lost.
 */
void aw_rc_set_clock(struct aw_rc *rc)
{
	uint64_t at = is_own(rc) ? rc->call_ns : 0;

	for (int i = 0; i < AW_RC_HELD_MAX; i++)
		if (rc->held[i].conn)
			at = earlier(rc->held[i].until_ns, at);
	aw_lock(&rc->qp->lock);
	at = earlier(fail_time(rc->qp), at);
	aw_watch_deadline(&rc->watch, ended_for_another(rc->qp) ? SOON_MS : ms_until(at));
	aw_unlock(&rc->qp->lock);
}

static void on_clock(struct aw_watch *w, uint32_t events)
{
	struct aw_rc *rc = (struct aw_rc *)w;
	struct aw_rc_litter litter = { .count = 0 };
	uint64_t now_ns = aw_now_ns();

	(void)events;
	aw_lock(&rc->lock);
	if (!rc->ended) {
		aw_rc_look(rc, &litter);
		look_after_stream(rc, &litter);
		aw_rc_expire_held(rc, now_ns, &litter);
		fail_in_time(rc, now_ns, &litter);
		if (rc->phase == AW_PAIR_WAITING && is_own(rc) && rc->call_ns &&
		    now_ns >= rc->call_ns)
			aw_rc_call(rc);
		aw_rc_set_clock(rc);
	}
	aw_unlock(&rc->lock);
	aw_rc_sweep(&litter);
}

int aw_rc_mpa_local(struct aw_mpa_local *local)
{
	*local = (struct aw_mpa_local){ .ird = AW_RD_MAX, .ord = AW_RD_MAX };
	int err = aw_policy_local(local);

	/* Revision 2 is required: either end may send first, and the depths are the QPs'. */
	local->revision = 2;
	local->p2p = true;
	local->ird_ord_ulp = false;
	local->waits = false; /* a call that is not answered is repeated instead */
	return err;
}
