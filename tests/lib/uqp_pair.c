// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The pair over loopback.
#include "uqp_pair.h"

#include "base/clock.h"
#include "net/mr/mrtab.h"
#include "net/progress/engine.h"
#include "net/qp/carrier.h"
#include "net/qp/cq_poll.h"
#include "net/qp/serving.h"
#include "net/qp/uqp_sock.h"
#include "under_way.h"
#include "until.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cmocka.h>

#ifdef PAIR_OVER_MEMORY
#define OVER_MEMORY true
#else
#define OVER_MEMORY false
#endif

static void tcp_pair(int fd[2])
{
	struct sockaddr_in addr = { .sin_family = AF_INET,
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(addr);
	int one = 1, lfd = socket(AF_INET, SOCK_STREAM, 0);

	assert_int_equal(bind(lfd, (struct sockaddr *)&addr, len), 0);
	assert_int_equal(listen(lfd, 1), 0);
	getsockname(lfd, (struct sockaddr *)&addr, &len);
	fd[0] = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(connect(fd[0], (struct sockaddr *)&addr, len), 0);
	fd[1] = accept(lfd, NULL, NULL);
	assert_true(fd[1] >= 0);
	close(lfd);
	for (int i = 0; i < 2; i++)
		setsockopt(fd[i], IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
}

/* As a responder and an initiator that are one process. */
static void make_memory(struct aw_host_ring *ring[2])
{
	uint8_t hello[AW_HOST_HELLO_LEN], verdict[AW_HOST_VERDICT_LEN];
	const char *cause;

	ring[1] = aw_host_ring_make(hello, &cause);
	assert_non_null(ring[1]);
	ring[0] = aw_host_ring_open(hello, verdict, &cause);
	assert_non_null(ring[0]);
	assert_int_equal(aw_host_ring_decide(ring[1], verdict), AW_HOST_RING);
}

static void on_event(void *arg, uint32_t events)
{
	atomic_fetch_or(&((struct end *)arg)->events, events);
}

static void make(struct end *e, const void *pd, struct aw_cq *cq, struct aw_srq *srq)
{
	struct aw_uqp_attr attr = {
		.send_cq = cq,
		.recv_cq = cq,
		.srq = srq,
		.pd = pd,
		.send_wr_max = 64,
		.recv_wr_max = 64,
		.send_sge_max = 4,
		.recv_sge_max = 4,
		.inline_max = 64,
	};

	assert_int_equal(aw_uqp_create(&attr, &e->qp), 0);
	aw_uqp_listen(e->qp, AW_UQP_VERBS, on_event, e);
	e->buf = calloc(1, BUF_OCTETS);
	e->mr = (struct aw_mr){
		.access = AW_ACCESS_LOCAL_WRITE | AW_ACCESS_REMOTE_WRITE | AW_ACCESS_REMOTE_READ,
		.iova = (uintptr_t)e->buf,
		.len = BUF_OCTETS,
		.host = e->buf,
		.pd = pd,
	};
	assert_int_equal(aw_mr_add(&e->mr), 0);
}

void end_make(struct end *e, const void *pd, struct aw_srq *srq)
{
	assert_int_equal(aw_cq_init(&e->cq, 1024, NULL, NULL), 0);
	make(e, pd, &e->cq, srq);
}

void end_make_on(struct end *e, const void *pd, struct aw_cq *cq)
{
	make(e, pd, cq, NULL);
}

void end_destroy(struct end *e)
{
	bool own_cq = e->qp->attr.send_cq == &e->cq;

	aw_uqp_destroy(e->qp);
	if (own_cq)
		aw_cq_fini(&e->cq);
	aw_mr_remove(&e->mr);
	free(e->buf);
}

void end_move(struct end *e, struct aw_host_ring *ring)
{
	aw_lock(&e->qp->lock);
	e->qp->ring = ring;
	aw_carrier_move_in(e->qp);
	aw_carrier_move_out(e->qp);
	aw_uqp_serve(e->qp);
	aw_unlock(&e->qp->lock);
}

void (*pair_secure)(const int fd[2], struct aw_tls *tls[2]);

static void attach(struct end *e, bool initiates, int fd, struct aw_tls *tls)
{
	struct aw_stream s = { .initiator = initiates, .crc = true, .ird = 16, .ord = 16 };
	const struct aw_uqp_socket to = { .fd = fd, .tls = tls };

	assert_int_equal(aw_uqp_attach_to(e->qp, &to, &s), 0);
}

void pair_attach(struct pair *p)
{
	struct aw_host_ring *ring[2] = { NULL, NULL };
	struct aw_tls *tls[2] = { NULL, NULL };
	int fd[2];

	tcp_pair(fd);
	if (pair_secure)
		pair_secure(fd, tls);
	attach(&p->b, false, fd[1], tls[1]);
	attach(&p->a, true, fd[0], tls[0]);
	if (!OVER_MEMORY)
		return;
	make_memory(ring);
	end_move(&p->b, ring[1]);
	end_move(&p->a, ring[0]);
}

int pair_setup(void **state)
{
	struct pair *p = calloc(1, sizeof(*p));

	assert_int_equal(aw_engine_get(), 0);
	end_make(&p->a, &p->pd, NULL);
	end_make(&p->b, &p->pd, NULL);
	pair_attach(p);
	*state = p;
	return 0;
}

int pair_teardown(void **state)
{
	struct pair *p = *state;

	end_destroy(&p->a);
	end_destroy(&p->b);
	aw_engine_put();
	free(p);
	return 0;
}

static bool is_stopped;

void pair_stop_progress(void)
{
	if (!is_stopped)
		aw_engine_fork_prepare();
	is_stopped = true;
}

void pair_start_progress(void)
{
	if (is_stopped)
		aw_engine_fork_done();
	is_stopped = false;
}

int pair_teardown_stopped(void **state)
{
	pair_start_progress();
	return pair_teardown(state);
}

void end_set_channel(struct end *e, struct aw_channel *channel)
{
	pair_stop_progress();
	e->cq.channel = channel;
	pair_start_progress();
}

struct aw_cq_entry end_wait_cqe(struct end *e)
{
	struct aw_cq_entry entry;

	until(aw_cq_poll(&e->cq, &entry, 1) == 1);
	return entry;
}

void end_wait_event(struct end *e, uint32_t event)
{
	until(atomic_load(&e->events) & event);
}

void end_hold(struct end *e)
{
	aw_lock(&e->qp->lock);
	e->qp->core.rnr_holds = true;
	aw_unlock(&e->qp->lock);
}

void end_wait_held(struct end *e)
{
	bool held = false;

	repeat_until(held)
	{
		aw_lock(&e->qp->lock);
		held = e->qp->core.rx_held > 0;
		aw_unlock(&e->qp->lock);
	}
}

bool end_is_in_memory(struct end *e, bool in)
{
	aw_lock(&e->qp->lock);
	bool is = (in ? e->qp->in : e->qp->out) == &aw_carrier_host;

	aw_unlock(&e->qp->lock);
	return is;
}

bool end_is_full(struct end *e)
{
	aw_lock(&e->qp->lock);
	bool full = e->qp->tx_blocked && !e->qp->out->has_room(e->qp);

	aw_unlock(&e->qp->lock);
	return full;
}

/* poll(2) tells of room only once a third of the buffer is free. */
void end_fill_socket(struct end *e, int peers_fd)
{
	int kept = -1, before = -1;

	assert_true(fix_receive_buffer(peers_fd));

	repeat_until(kept >= 0 && kept == before && end_is_full(e))
	{
		before = kept;
		aw_lock(&e->qp->lock);
		aw_uqp_push(e->qp);
		aw_uqp_unlock(e->qp);
		kept = kept_at_rest(e->qp->fd);
	}
}

struct aw_sge end_sge(struct end *e, size_t offset, uint32_t len)
{
	return (struct aw_sge){ (uintptr_t)e->buf + offset, len, e->mr.stag };
}

static void post(struct end *e, struct end *peer, struct aw_swqe wqe)
{
	aw_uqp_send_begin(e->qp);
	struct aw_swqe *w = aw_uqp_send_slot(e->qp);

	assert_non_null(w);
	*w = wqe;
	w->sge_count = 1;
	w->stag = peer->mr.stag;
	w->to = (uintptr_t)peer->buf;
	w->sge[0] = end_sge(e, 0, wqe.len);
	aw_uqp_send_commit(e->qp);
	aw_uqp_send_end(e->qp);
}

void end_post(struct end *e, enum aw_op op, struct end *peer, uint32_t len)
{
	post(e, peer,
	     (struct aw_swqe){ .wr_id = 7, .op = op, .flags = AW_WR_SIGNALED, .len = len });
}

void end_write_unsignalled(struct end *e, struct end *peer, uint32_t len)
{
	post(e, peer, (struct aw_swqe){ .op = AW_OP_WRITE, .len = len });
}

bool uqp_is_eventful(struct aw_uqp *qp)
{
	aw_lock(&qp->lock);
	bool is_enough = aw_eventful_is_enough(&qp->serving.eventful);

	aw_unlock(&qp->lock);
	return is_enough;
}

void uqp_wait_received(struct aw_uqp *qp)
{
	int octets;

	do {
		sched_yield();
		assert_int_equal(ioctl(qp->fd, FIONREAD, &octets), 0);
	} while (octets > 0);
	aw_lock(&qp->lock);
	aw_unlock(&qp->lock);
}

bool uqp_is_away(struct aw_uqp *qp, const struct aw_channel *to)
{
	aw_lock(&qp->lock);
	bool away = aw_serving_is_away(&qp->serving) && (!to || qp->serving.channel == to);

	aw_unlock(&qp->lock);
	return away;
}

void uqp_leave_to_pollers(struct aw_uqp *qp)
{
	if (!aw_serving_is_away(&qp->serving))
		aw_uqp_leave_to(qp, AW_SERVER_POLLER, NULL);
}

void uqp_take_back(struct aw_uqp *qp)
{
	assert_int_equal(aw_uqp_listen_again(qp), 0);
	aw_serving_lock();
	aw_serving_take_back(qp);
	aw_serving_unlock();
}

void uqp_poll(struct aw_uqp *qp)
{
	aw_lock(&qp->lock);
	if (qp->fd >= 0)
		aw_uqp_serve_polled(qp);
	aw_uqp_unlock(qp);
}

struct aw_channel *uqp_waiters_next(struct aw_uqp *qp)
{
	uint64_t now = aw_now_ns();
	struct aw_channel *channel;

	aw_lock(&qp->lock);
	const struct aw_serve_seen seen = aw_serving_at_arrival(qp, now, &channel);
	const struct aw_serve_plan plan = aw_serve_plan(AW_SERVE_ARRIVAL, &seen, now);

	aw_unlock(&qp->lock);
	return plan.next == AW_SERVER_WAITER ? channel : NULL;
}

void uqp_wait_taken_back(struct aw_uqp *qp, const struct aw_channel *to)
{
	until(!uqp_is_away(qp, to));
}

__attribute__((no_sanitize("thread"))) uint8_t octet_at(const uint8_t *p)
{
	return *(const volatile uint8_t *)p;
}
