// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// While any QP has bytes under way, the progress thread reads now and then when TCP last heard from
// the peer.
#include "net/qp/lost.h"

#include "base/clock.h"
#include "net/base/bounds.h"
#include "net/progress/engine.h"
#include "net/qp/uqp_sock.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>

#define MS_NS UINT64_C(1000000)
/*
 * Looks during the time that a peer has: a loss is found three sixteenths of that time late at the
 * most.
 */
#define LOOKS 16

static _Atomic bool sent; /* bytes were sent, or are under way, since the last look began */
static pthread_once_t registered = PTHREAD_ONCE_INIT;
static uint64_t look_ns; /* only for the progress thread: the time of the next look; 0: none */

static uint64_t min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/*
 * The time for which TCP has heard nothing from the peer. Bytes from the peer count, though they
 * need not acknowledge any.
 */
static uint64_t silent_ns(const struct tcp_info *info)
{
	return min_u64(info->tcpi_last_ack_recv, info->tcpi_last_data_recv) * MS_NS;
}

/*
 * True when TCP has asked and had no answer: it has probed a closed window, or has sent bytes after
 * it last heard from the peer. Between two answered probes there may be two minutes.
 */
static bool is_unanswered(const struct tcp_info *info)
{
	return info->tcpi_probes > 0 ||
	       (info->tcpi_unacked > 0 && info->tcpi_last_data_sent * MS_NS < silent_ns(info));
}

static bool has_under_way(const struct aw_uqp *qp, const struct tcp_info *info)
{
	return qp->batch || info->tcpi_unacked > 0 || info->tcpi_notsent_bytes > 0;
}

/*
 * A look's interval longer than lost_ms: TCP's longest pause between two probes is two minutes as
 * well (TCP_RTO_MAX). When one probe is lost on its way, the interval is left for the next one and
 * its answer.
 */
static uint64_t patience_ns(void)
{
	return aw_bounds.lost_ms * MS_NS + aw_bounds.lost_ms * MS_NS / LOOKS;
}

/* The time runs from the first look at which an answer was due, for as long as none has come. */
static bool is_lost(struct aw_uqp *qp, const struct tcp_info *info)
{
	uint64_t now = aw_now_ns();

	if (!is_unanswered(info))
		qp->unanswered_ns = 0;
	else if (!qp->unanswered_ns || now - silent_ns(info) > qp->unanswered_ns)
		qp->unanswered_ns = now;
	return qp->unanswered_ns && now - qp->unanswered_ns >= patience_ns();
}

static void look_at(struct aw_uqp *qp)
{
	struct tcp_info info = { 0 };
	socklen_t len = sizeof(info);

	if (qp->fd < 0 || qp->quiet_pos == qp->core.tx_pos ||
	    getsockopt(qp->fd, IPPROTO_TCP, TCP_INFO, &info, &len) != 0)
		return;
	if (!has_under_way(qp, &info)) {
		qp->quiet_pos = qp->core.tx_pos;
		qp->unanswered_ns = 0;
		return;
	}
	atomic_store_explicit(&sent, true, memory_order_relaxed);
	if (is_lost(qp, &info))
		aw_uqp_lose(qp);
}

/*
 * A thread that transmits meanwhile has either set `sent` again, or had the QP's lock before the
 * look. The kick of another tick may run this one before its time.
 */
static uint64_t tick(uint64_t now_ns)
{
	uint64_t step_ns = aw_bounds.lost_ms * MS_NS / LOOKS;

	if (look_ns && now_ns < look_ns)
		return look_ns;
	if (look_ns) {
		atomic_store_explicit(&sent, false, memory_order_relaxed);
		aw_uqp_each(look_at);
	}
	look_ns = atomic_load_explicit(&sent, memory_order_relaxed) ? aw_now_ns() + step_ns : 0;
	return look_ns;
}

static void set_tick(void)
{
	aw_engine_set_tick(AW_TICK_LOST, tick);
}

void aw_lost_sent(void)
{
	if (atomic_load_explicit(&sent, memory_order_relaxed))
		return;
	pthread_once(&registered, set_tick);
	atomic_store_explicit(&sent, true, memory_order_relaxed);
	aw_engine_kick_tick();
}
