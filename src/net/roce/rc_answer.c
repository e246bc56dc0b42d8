// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Requests that come for QPs of the roce persona, and those that wait for their QP.
#include "base/clock.h"
#include "base/log.h"
#include "net/base/addr.h"
#include "net/base/bounds.h"
#include "net/base/fork.h"
#include "net/conn/listener.h"
#include "net/roce/qpn.h"
#include "net/roce/rc_impl.h"
#include "ring/lock.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#define MS_NS UINT64_C(1000000)

/* Held Requests of all QPs. Relaxed: only the number matters. */
static _Atomic uint32_t held_count;

static void on_held(void *arg, struct aw_conn *conn, enum aw_conn_event event);

void aw_rc_fork_child(void)
{
	atomic_store_explicit(&held_count, 0, memory_order_relaxed);
}

/* Rejects with a reply that names both ends the other way round. */
static void reject(struct aw_conn *conn, const struct pair *request, enum pair_answer answer)
{
	struct pair reply = {
		.answer = answer,
		.src_qpn = request->dst_qpn,
		.dst_qpn = request->src_qpn,
	};
	uint8_t pd[PAIR_LEN];

	pair_put(&reply, pd);
	aw_conn_reject(conn, pd, sizeof(pd));
}

static uint16_t at_most(uint16_t a, uint16_t b)
{
	return a < b ? a : b;
}

static bool accept_request(struct aw_rc *rc, struct aw_conn *conn, const struct pair *request)
	AW_REQUIRES(rc->lock)
{
	const struct aw_mpa_result *result = &aw_conn_info(conn)->result;
	const struct pair reply = aw_rc_pair(rc, PAIR_OK);
	uint8_t pd[PAIR_LEN];
	int err;

	pair_put(&reply, pd);
	aw_rc_agree(rc, request);
	err = aw_conn_accept(conn, rc->qp, at_most(result->ird, aw_rc_depth(rc->told.ird)),
			     at_most(result->ord, aw_rc_depth(rc->ord)), pd, sizeof(pd));
	if (err) {
		aw_log(AW_LOG_INFO, "qp 0x%x: the call of qp 0x%x was not answered: %s",
		       rc->qp->qpn, rc->told.pair.remote.qpn, strerror(err));
		return false;
	}
	aw_rc_joined(rc);
	return true;
}

/* In the child of a fork the Requests of the parent's QPs are not counted. */
static void take_out(struct aw_rc *rc, struct aw_rc_held *held, struct aw_rc_litter *litter)
	AW_REQUIRES(rc->lock)
{
	aw_rc_drop(litter, held->conn);
	held->conn = NULL;
	if (rc->generation == aw_fork_generation())
		atomic_fetch_sub_explicit(&held_count, 1, memory_order_relaxed);
}

static void reject_held(struct aw_rc *rc, struct aw_rc_held *held, enum pair_answer answer,
			struct aw_rc_litter *litter) AW_REQUIRES(rc->lock)
{
	reject(held->conn, &held->request, answer);
	take_out(rc, held, litter);
}

/*
 * A place for one more Request: a free one when the process has a file for it, else that of the
 * oldest Request, which is rejected. NULL: there is none.
 */
static struct aw_rc_held *place_for(struct aw_rc *rc, struct aw_rc_litter *litter)
	AW_REQUIRES(rc->lock)
{
	struct aw_rc_held *oldest = NULL, *free_one = NULL;

	for (int i = 0; i < AW_RC_HELD_MAX; i++) {
		struct aw_rc_held *held = &rc->held[i];

		if (!held->conn)
			free_one = held;
		else if (!oldest || held->until_ns < oldest->until_ns)
			oldest = held;
	}
	if (free_one) {
		/*
		 * The files that the ports' listeners may hold; rdma_cm's listeners have the rest
		 * (rdmacm/listen.c).
		 */
		uint64_t most = (uint64_t)aw_listener_files(AW_FILES_REQUESTS) * aw_qpn_ports();

		if (atomic_load_explicit(&held_count, memory_order_relaxed) < most)
			return free_one;
	}
	if (oldest)
		reject_held(rc, oldest, PAIR_BUSY, litter);
	return oldest;
}

static void hold(struct aw_rc *rc, struct aw_conn *conn, const struct pair *request,
		 struct aw_rc_litter *litter) AW_REQUIRES(rc->lock)
{
	struct aw_rc_held *place = place_for(rc, litter);

	if (!place) {
		reject(conn, request, PAIR_BUSY);
		aw_rc_drop(litter, conn);
		return;
	}
	atomic_fetch_add_explicit(&held_count, 1, memory_order_relaxed);
	*place = (struct aw_rc_held){
		.conn = conn,
		.request = *request,
		.until_ns = aw_now_ns() + AW_RC_HELD_MS * MS_NS,
	};
	aw_conn_listen_to(conn, on_held, rc);
}

/* The peer has left, or cannot wait any longer. */
static void on_held(void *arg, struct aw_conn *conn, enum aw_conn_event event)
{
	struct aw_rc_litter litter = { .count = 0 };
	struct aw_rc *rc = arg;

	(void)event;
	aw_lock(&rc->lock);
	for (int i = 0; i < AW_RC_HELD_MAX; i++)
		if (rc->held[i].conn == conn)
			take_out(rc, &rc->held[i], &litter);
	aw_unlock(&rc->lock);
	aw_rc_sweep(&litter);
}

static enum pair_answer match(const struct aw_rc *rc, const struct aw_conn *conn,
			      const struct pair *request) AW_REQUIRES(rc->lock)
{
	return aw_pair_match(&rc->told.pair, request, &aw_conn_info(conn)->peer);
}

/* The latest Request of the QP's peer; NULL when there is none. */
static struct aw_rc_held *latest(struct aw_rc *rc) AW_REQUIRES(rc->lock)
{
	struct aw_rc_held *best = NULL;

	for (int i = 0; i < AW_RC_HELD_MAX; i++) {
		struct aw_rc_held *held = &rc->held[i];

		if (!held->conn || match(rc, held->conn, &held->request))
			continue;
		if (!best || aw_pair_is_later(held->request.incarnation, best->request.incarnation))
			best = held;
	}
	return best;
}

static void reject_strangers(struct aw_rc *rc, struct aw_rc_litter *litter) AW_REQUIRES(rc->lock)
{
	for (int i = 0; i < AW_RC_HELD_MAX; i++) {
		struct aw_rc_held *held = &rc->held[i];
		enum pair_answer answer;

		if (!held->conn)
			continue;
		answer = match(rc, held->conn, &held->request);
		if (!answer)
			continue;
		if (answer == PAIR_OTHER_TYPE)
			aw_rc_log_type(rc);
		reject_held(rc, held, answer, litter);
	}
}

bool aw_rc_answer_held(struct aw_rc *rc, struct aw_rc_litter *litter)
{
	struct aw_rc_held *held;

	reject_strangers(rc, litter);
	while ((held = latest(rc))) {
		uint32_t incarnation = held->request.incarnation;
		bool accepted = accept_request(rc, held->conn, &held->request);

		take_out(rc, held, litter);
		if (accepted) {
			aw_rc_drop_held_until(rc, incarnation, litter);
			return true;
		}
	}
	return false;
}

void aw_rc_drop_held_until(struct aw_rc *rc, uint32_t incarnation, struct aw_rc_litter *litter)
{
	for (int i = 0; i < AW_RC_HELD_MAX; i++) {
		struct aw_rc_held *held = &rc->held[i];

		if (!held->conn || match(rc, held->conn, &held->request) ||
		    aw_pair_is_later(held->request.incarnation, incarnation))
			continue;
		reject_held(rc, held, PAIR_BUSY, litter);
	}
}

void aw_rc_expire_held(struct aw_rc *rc, uint64_t now_ns, struct aw_rc_litter *litter)
{
	for (int i = 0; i < AW_RC_HELD_MAX; i++) {
		struct aw_rc_held *held = &rc->held[i];

		if (!held->conn || now_ns < held->until_ns)
			continue;
		reject_held(rc, held, PAIR_BUSY, litter);
	}
}

void aw_rc_drop_held(struct aw_rc *rc, struct aw_rc_litter *litter)
{
	for (int i = 0; i < AW_RC_HELD_MAX; i++)
		if (rc->held[i].conn)
			take_out(rc, &rc->held[i], litter);
}

static void take_request(struct aw_rc *rc, struct aw_conn *conn, const struct pair *request)
{
	struct aw_rc_litter litter = { .count = 0 };
	enum aw_pair_verdict verdict;
	enum pair_answer answer;

	aw_lock(&rc->lock);
	aw_rc_look(rc, &litter);
	verdict = rc->ended ? AW_PAIR_REJECT
			    : aw_pair_judge(aw_rc_phase(rc), &rc->told.pair, request,
					    &aw_conn_info(conn)->peer);
	switch (verdict) {
	case AW_PAIR_ACCEPT:
		aw_rc_drop_call(rc, &litter);
		if (!accept_request(rc, conn, request))
			aw_rc_call_later(rc);
		aw_rc_drop(&litter, conn);
		break;
	case AW_PAIR_HOLD:
		hold(rc, conn, request, &litter);
		break;
	case AW_PAIR_REJECT:
		answer = rc->ended ? PAIR_NO_QP : match(rc, conn, request);
		if (answer == PAIR_OTHER_TYPE)
			aw_rc_log_type(rc);
		reject(conn, request, answer);
		aw_rc_drop(&litter, conn);
		break;
	}
	if (!rc->ended)
		aw_rc_set_clock(rc);
	aw_unlock(&rc->lock);
	aw_rc_sweep(&litter);
}

void aw_rc_on_request(void *arg, struct aw_conn *conn, enum aw_conn_event event)
{
	const struct aw_conn_info *info = aw_conn_info(conn);
	enum pair_answer answer = PAIR_NO_QP;
	struct aw_uqp *qp = NULL;
	struct pair request;

	(void)arg;
	(void)event;
	if (!info->result.pd || !pair_get(info->result.pd, info->result.pd_len, &request)) {
		request = (struct pair){ .answer = PAIR_MALFORMED };
		answer = PAIR_MALFORMED;
	} else if (!aw_pair_is_from(&request, &info->peer)) {
		answer = PAIR_ADDRESS;
	} else {
		qp = aw_qpn_get(request.dst_qpn);
	}
	if (qp) {
		take_request(qp->rc, conn, &request);
		aw_uqp_put(qp);
		return;
	}
	aw_log(AW_LOG_INFO, "a call for qp 0x%x from %s rejected", request.dst_qpn,
	       aw_addr_text(&info->peer).text);
	reject(conn, &request, answer);
	aw_conn_destroy(conn);
}
