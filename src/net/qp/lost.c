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

static void look_at(struct aw_uqp *qp) AW_REQUIRES(qp->lock)
{
	uint64_t lost_ns = aw_bounds.lost_ms * MS_NS;
	struct tcp_info info = { 0 };
	socklen_t len = sizeof(info);
	struct aw_tcp_seen seen;
	uint64_t heard_ms;

	if (qp->fd < 0 || qp->quiet_pos == qp->core.tx_pos ||
	    getsockopt(qp->fd, IPPROTO_TCP, TCP_INFO, &info, &len) != 0)
		return;
	heard_ms = info.tcpi_last_ack_recv < info.tcpi_last_data_recv ? info.tcpi_last_ack_recv
								      : info.tcpi_last_data_recv;
	seen = (struct aw_tcp_seen){
		.under_way = qp->batch || info.tcpi_unacked > 0 || info.tcpi_notsent_bytes > 0,
		.unacked = info.tcpi_unacked > 0,
		.probing = info.tcpi_probes > 0,
		.sent_ns = info.tcpi_last_data_sent * MS_NS,
		.heard_ns = heard_ms * MS_NS,
	};
	switch (aw_liveness_look(&qp->liveness, &seen, lost_ns + lost_ns / LOOKS, aw_now_ns())) {
	case AW_LIVENESS_IDLE:
		qp->quiet_pos = qp->core.tx_pos;
		break;
	case AW_LIVENESS_LOOK:
		atomic_store_explicit(&sent, true, memory_order_relaxed);
		break;
	case AW_LIVENESS_LOST:
		atomic_store_explicit(&sent, true, memory_order_relaxed);
		aw_uqp_stream_lost(qp);
		aw_uqp_push(qp);
		break;
	}
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
