// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Two QPs of one process over loopback TCP: posts, progress from pollers and from the progress
// thread, close, loss, limits.
#include "net/qp/uqp.h"

#include "../lib/uqp_pair.h"
#include "base/clock.h"
#include "net/mem/pool.h"
#include "net/mr/mrtab.h"
#include "net/qp/cq_poll.h"
#include "net/qp/uqp_sock.h"

#include <errno.h>
#include <linux/sockios.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "../lib/limit.h"
#include "../lib/until.h"

static void fill(uint8_t *p, size_t n, unsigned int seed)
{
	for (size_t i = 0; i < n; i++)
		p[i] = (uint8_t)(i * 31 + i / 251 + seed);
}

static void post_send__delivers_every_size(void **state)
{
	struct pair *p = *state;
	const uint32_t sizes[] = { 0, 1, 2048, 2049, 65000, 1u << 20, BUF_OCTETS };

	for (unsigned int i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		struct aw_sge sge = end_sge(&p->b, 0, BUF_OCTETS);

		fill(p->a.buf, sizes[i], i);
		assert_int_equal(aw_uqp_recv(p->b.qp, 9, &sge, 1), 0);
		end_post(&p->a, AW_OP_SEND, &p->b, sizes[i]);
		struct aw_cq_entry r = end_wait_cqe(&p->b), s = end_wait_cqe(&p->a);

		assert_int_equal(r.cqe.status, AW_WC_SUCCESS);
		assert_int_equal(r.cqe.wr_id, 9);
		assert_int_equal(r.cqe.byte_len, sizes[i]);
		assert_int_equal(s.cqe.status, AW_WC_SUCCESS);
		assert_memory_equal(p->a.buf, p->b.buf, sizes[i]);
	}
}

static void post_write__arrives_though_the_target_calls_nothing(void **state)
{
	struct pair *p = *state;
	const uint8_t *last = p->b.buf + 99999;

	fill(p->a.buf, 100000, 1);
	p->a.buf[99999] = 0x5a;
	end_post(&p->a, AW_OP_WRITE, &p->b, 100000);
	until(octet_at(last) == 0x5a);
	assert_memory_equal(p->a.buf, p->b.buf, 100000);
}

static void post_read__fetches_though_the_source_calls_nothing(void **state)
{
	struct pair *p = *state;

	fill(p->b.buf, BUF_OCTETS, 3);
	end_post(&p->a, AW_OP_READ, &p->b, BUF_OCTETS);
	struct aw_cq_entry e = end_wait_cqe(&p->a);

	assert_int_equal(e.cqe.status, AW_WC_SUCCESS);
	assert_int_equal(e.cqe.byte_len, BUF_OCTETS);
	assert_memory_equal(p->a.buf, p->b.buf, BUF_OCTETS);
}

static void send_slot__holds_until_polled(void **state)
{
	struct pair *p = *state;
	struct aw_cq_entry entry[8];
	int posted = 0;

	aw_uqp_send_begin(p->a.qp);
	for (struct aw_swqe *w; (w = aw_uqp_send_slot(p->a.qp)); posted++) {
		*w = (struct aw_swqe){ .op = AW_OP_WRITE, .flags = AW_WR_SIGNALED, .stag = 1 };
		aw_uqp_send_commit(p->a.qp);
	}
	aw_uqp_send_end(p->a.qp);
	assert_int_equal(posted, 64);
	aw_uqp_send_begin(p->a.qp);
	assert_null(aw_uqp_send_slot(p->a.qp));
	aw_uqp_send_end(p->a.qp);
	assert_int_equal(aw_cq_poll(&p->a.cq, entry, 8), 8);
	aw_uqp_send_begin(p->a.qp);
	assert_non_null(aw_uqp_send_slot(p->a.qp));
	aw_uqp_send_end(p->a.qp);
}

static void close__flushes_both_ends(void **state)
{
	struct pair *p = *state;
	struct aw_sge sge = end_sge(&p->b, 0, 16);

	assert_int_equal(aw_uqp_recv(p->b.qp, 1, &sge, 1), 0);
	assert_int_equal(aw_uqp_recv(p->b.qp, 2, &sge, 1), 0);
	end_post(&p->a, AW_OP_SEND, &p->b, 16);
	aw_uqp_close(p->a.qp);
	end_wait_event(&p->b, AW_UQP_CLOSED);
	end_wait_event(&p->a, AW_UQP_CLOSED);
	struct aw_cq_entry first = end_wait_cqe(&p->b), second = end_wait_cqe(&p->b);

	assert_int_equal(first.cqe.wr_id, 1);
	assert_int_equal(first.cqe.status, AW_WC_SUCCESS);
	assert_int_equal(second.cqe.wr_id, 2);
	assert_int_equal(second.cqe.status, AW_WC_WR_FLUSH_ERR);
	assert_int_equal(aw_uqp_state(p->a.qp), AW_QP_ERROR);
	assert_false(p->a.events & AW_UQP_FATAL);
	assert_false(p->b.events & AW_UQP_FATAL);
}

static void expect_nothing_ended(const struct pair *p)
{
	assert_int_equal(aw_uqp_state(p->a.qp), AW_QP_RTS);
	assert_int_equal(aw_uqp_state(p->b.qp), AW_QP_RTS);
}

/* Posted late: the stream is held, nothing is lost, and what is behind comes in order. */
static void no_receive__waits_for_one(void **state)
{
	struct pair *p = *state;
	struct aw_sge sge = end_sge(&p->b, 0, 16);

	for (int i = 0; i < 8; i++)
		end_post(&p->a, AW_OP_SEND, &p->b, 16);
	end_post(&p->a, AW_OP_WRITE, &p->b, 16);
	for (int i = 0; i < 9; i++)
		assert_int_equal(end_wait_cqe(&p->a).cqe.status, AW_WC_SUCCESS);
	end_wait_held(&p->b);
	for (uint64_t i = 0; i < 8; i++) {
		expect_nothing_ended(p);
		assert_int_equal(aw_uqp_recv(p->b.qp, i, &sge, 1), 0);
		struct aw_cq_entry entry = end_wait_cqe(&p->b);

		assert_int_equal(entry.cqe.status, AW_WC_SUCCESS);
		assert_int_equal(entry.cqe.wr_id, i);
	}
	assert_int_equal(p->b.qp->core.rx_held, 0);
	expect_nothing_ended(p);
}

/* Who is held hears of the peer's end all the same: well before the wait is over. */
static void no_receive__peer_resets(void **state)
{
	struct pair *p = *state;
	struct linger now = { .l_onoff = 1 };

	/* A process that is killed before it has read all is told from one that left by what it has read. */
	if (p->b.qp->ring)
		skip();
	end_post(&p->a, AW_OP_SEND, &p->b, 16);
	end_wait_held(&p->b);
	assert_int_equal(setsockopt(p->a.qp->fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now)), 0);
	p->a.qp->reset_seen = true; /* closed, not lingered over */
	aw_uqp_abort(p->a.qp);
	end_wait_event(&p->b, AW_UQP_CLOSED);
	assert_int_equal(p->b.qp->core.error, AW_E_MPA_CLOSED);
}

/* A peer that sends and ends answers what comes to it then with a reset: this end sends and finds that before it has read. */
static void post_send__reads_what_the_peer_sent_before_it_ended(void **state)
{
	struct pair *p = *state;
	struct linger now = { .l_onoff = 1 };
	struct aw_sge sge = end_sge(&p->a, BUF_OCTETS / 2, BUF_OCTETS / 2);
	const uint32_t len = 3000;

	/* There what is sent to a peer that has left is dropped, and no send fails. */
	if (p->a.qp->ring)
		skip();
	/* The responder sends nothing before this. */
	end_post(&p->a, AW_OP_READ, &p->b, 16);
	assert_int_equal(end_wait_cqe(&p->a).cqe.status, AW_WC_SUCCESS);
	pair_stop_progress();
	fill(p->b.buf, len, 3);
	assert_int_equal(aw_uqp_recv(p->a.qp, 9, &sge, 1), 0);
	end_post(&p->b, AW_OP_SEND, &p->a, len);
	assert_int_equal(setsockopt(p->b.qp->fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now)), 0);
	p->b.qp->reset_seen = true; /* closed, not lingered over */
	aw_uqp_abort(p->b.qp);
	end_post(&p->a, AW_OP_SEND, &p->b, 16);
	struct aw_cq_entry received = end_wait_cqe(&p->a), sent = end_wait_cqe(&p->a);

	assert_int_equal(received.cqe.wr_id, 9);
	assert_int_equal(received.cqe.status, AW_WC_SUCCESS);
	assert_int_equal(received.cqe.byte_len, len);
	assert_memory_equal(p->a.buf + BUF_OCTETS / 2, p->b.buf, len);
	assert_int_equal(sent.cqe.status, AW_WC_WR_FLUSH_ERR);
}

/* Who closes does not wait for what it would flush. */
static void no_receive__close_does_not_wait(void **state)
{
	struct pair *p = *state;

	end_post(&p->a, AW_OP_SEND, &p->b, 16);
	end_wait_held(&p->b);
	aw_uqp_close(p->b.qp);
	assert_int_equal(p->b.qp->core.error, AW_E_DDP_NO_BUFFER);
	end_wait_event(&p->a, AW_UQP_FATAL);
}

static void no_receive__terminates_both_ends(void **state)
{
	struct pair *p = *state;

	end_post(&p->a, AW_OP_SEND, &p->b, 0); /* no receive is posted there */
	end_wait_event(&p->b, AW_UQP_REQ_ERR);
	end_wait_event(&p->a, AW_UQP_FATAL);
	assert_false(p->b.events & (AW_UQP_FATAL | AW_UQP_ACCESS_ERR));
	assert_int_equal(p->b.qp->core.error, AW_E_DDP_NO_BUFFER);
	assert_int_equal(p->a.qp->core.peer_error, AW_E_DDP_NO_BUFFER);
}

static void reset__makes_it_usable_again(void **state)
{
	struct pair *p = *state;

	for (int round = 0; round < 3; round++) {
		struct aw_sge sge = end_sge(&p->b, 0, 16);

		aw_uqp_reset(p->a.qp);
		aw_uqp_reset(p->b.qp);
		assert_int_equal(aw_uqp_recv(p->b.qp, 5, &sge, 1), 0);
		pair_attach(p);
		end_post(&p->a, AW_OP_SEND, &p->b, 16);
		assert_int_equal(end_wait_cqe(&p->b).cqe.status, AW_WC_SUCCESS);
		assert_int_equal(end_wait_cqe(&p->a).cqe.status, AW_WC_SUCCESS);
	}
}

static void create__refuses_what_is_over_a_limit(void **state)
{
	struct pair *p = *state;
	struct aw_uqp_attr attr = p->a.qp->attr;
	struct aw_uqp *qp;

	attr.send_wr_max = AW_WR_MAX;
	attr.send_sge_max = AW_SGE_MAX;
	attr.inline_max = AW_INLINE_MAX;
	assert_int_equal(aw_uqp_create(&attr, &qp), 0);
	aw_uqp_destroy(qp);
	attr.send_wr_max = AW_WR_MAX + 1;
	assert_int_equal(aw_uqp_create(&attr, &qp), EINVAL);
	attr.send_wr_max = AW_WR_MAX;
	attr.send_sge_max = AW_SGE_MAX + 1;
	assert_int_equal(aw_uqp_create(&attr, &qp), EINVAL);
	attr.send_sge_max = AW_SGE_MAX;
	attr.inline_max = AW_INLINE_MAX + 1;
	assert_int_equal(aw_uqp_create(&attr, &qp), EINVAL);
}

struct order {
	struct aw_uqp *qp;
	_Atomic uint32_t heard, first;
};

/* The end begins while the listener still hears of the beginning. */
static void end_early(void *arg, uint32_t events)
{
	struct order *order = arg;

	if (events & AW_UQP_READY)
		aw_uqp_abort(order->qp);
	if (!order->heard)
		order->first = events;
	atomic_fetch_or(&order->heard, events);
}

static void listen__hears_in_order(void **state)
{
	struct pair *p = *state;
	struct order order = { .qp = p->b.qp };

	aw_uqp_listen(p->b.qp, AW_UQP_CM, end_early, &order);
	end_post(&p->a, AW_OP_WRITE, &p->b, 1);
	until((order.heard & ~(uint32_t)AW_UQP_BEGUN) == (AW_UQP_READY | AW_UQP_CLOSED));
	assert_int_equal(order.first, AW_UQP_READY | AW_UQP_BEGUN);
}

enum {
	OTHERS = 4, /* with one more the CQ has an epoll set */
	PATIENCE_NS = 50000000,
};

/* One QP's destruction in a thread, which goes on while a poller has the QP's event in hand. */
static struct {
	struct aw_uqp *qp;
	struct aw_cq *cq;
	pthread_t thread;
	_Atomic bool over;
	_Atomic bool hold; /* until the poller has the event */
	bool over_too_soon;
} doomed;

static void *destroy_doomed(void *unused)
{
	(void)unused;
	aw_uqp_destroy(doomed.qp);
	doomed.over = true;
	return NULL;
}

/* Before the C library's. */
int epoll_wait(int epfd, struct epoll_event *ev, int max, int ms)
{
	int n = (int)syscall(SYS_epoll_pwait, epfd, ev, max, ms, NULL, sizeof(uint64_t));
	uint64_t start;

	if (!doomed.hold || epfd != doomed.cq->epfd)
		return n;
	assert_int_equal(n, 1);
	doomed.hold = false;
	aw_unlock(&doomed.qp->lock);
	for (start = aw_now_ns(); !doomed.over && aw_now_ns() - start < PATIENCE_NS;)
		sched_yield();
	doomed.over_too_soon = doomed.over;
	return n;
}

/* Nobody serves the QP until the poller does: its input waits, and so does who destroys it. */
static void begin_destroy(struct end *e, struct end *peer)
{
	uint64_t start;

	doomed.qp = e->qp;
	doomed.cq = &e->cq;
	doomed.over = false;
	aw_lock(&e->qp->lock);
	end_post(peer, AW_OP_WRITE, e, 1);
	assert_int_equal(pthread_create(&doomed.thread, NULL, destroy_doomed, NULL), 0);
	for (start = aw_now_ns(); aw_now_ns() - start < PATIENCE_NS;)
		sched_yield();
	doomed.hold = true;
}

/* A reset that was faster: the close means the old stream, not the next one. */
static void close__of_no_stream_is_nothing(void **state)
{
	struct pair *p = *state;

	aw_uqp_reset(p->a.qp);
	aw_uqp_reset(p->b.qp);
	aw_uqp_close(p->a.qp);
	pair_attach(p);
	end_post(&p->a, AW_OP_WRITE, &p->b, 1);
	assert_int_equal(end_wait_cqe(&p->a).cqe.status, AW_WC_SUCCESS);
}

static void destroy__while_a_poller_has_its_event(void **state)
{
	struct pair *p = *state;
	struct end others[OTHERS + 1];
	struct aw_cq_entry entry;

	/* Whose stream goes through memory is in no set of its CQs. */
	if (p->b.qp->ring)
		skip();
	aw_uqp_reset(p->b.qp);
	for (int i = 0; i <= OTHERS; i++)
		end_make_on(&others[i], &p->pd, &p->b.cq);
	aw_uqp_reset(p->a.qp);
	pair_attach(p);
	begin_destroy(&p->b, &p->a);
	assert_int_equal(aw_cq_poll(&p->b.cq, &entry, 1), 0);
	pthread_join(doomed.thread, NULL);
	assert_false(doomed.over_too_soon);
	p->b.qp = others[0].qp; /* for the teardown */
	aw_mr_remove(&others[0].mr);
	free(others[0].buf);
	for (int i = 1; i <= OTHERS; i++)
		end_destroy(&others[i]);
}

/* Reads until one socket has sent all that it was given; its QP's lock is held. */
static bool drain(int from, int to)
{
	static uint8_t octets[65536];
	uint64_t start = aw_now_ns();
	int unsent;

	do {
		while (recv(to, octets, sizeof(octets), MSG_DONTWAIT) > 0)
			;
		if (ioctl(from, SIOCOUTQ, &unsent) != 0)
			return false;
	} while (unsent > 0 && aw_now_ns() - start < UQP_PAIR_WAIT_NS);
	return unsent == 0 && recv(to, octets, 1, MSG_DONTWAIT) < 0;
}

/* What was flushed is the program's again: though the socket has room now, nothing goes out. */
static void abort__sends_nothing_more(void **state)
{
	struct pair *p = *state;
	struct aw_uqp *a = p->a.qp, *b = p->b.qp;
	bool waits, drained;
	uint8_t octet;
	ssize_t n;

	aw_lock(&b->lock); /* it takes nothing */
	for (int i = 0; i < 60 && !a->tx_blocked; i++)
		end_post(&p->a, AW_OP_WRITE, &p->b, BUF_OCTETS);
	aw_lock(&a->lock);
	waits = a->tx_blocked;
	drained = drain(a->fd, b->fd);
	aw_qp_abort(&a->core, AW_OK);
	aw_uqp_serve(a);
	aw_unlock(&a->lock);
	n = recv(b->fd, &octet, 1, MSG_DONTWAIT);
	aw_unlock(&b->lock);
	assert_true(waits && drained);
	assert_true(n <= 0);
}

static int visited_count;

static void visit(struct aw_uqp *qp)
{
	(void)qp;
	visited_count++;
}

/*
 * In the child of a fork, that of the parent's QPs which a thread had in hand stays locked for ever. Neither the progress
 * thread nor a region that is taken back may wait for it.
 */
static void each__child_leaves_the_parents_alone(void **state)
{
	struct pair *p = *state;
	pid_t child;
	int status;

	visited_count = 0;
	aw_uqp_each(visit);
	assert_int_equal(visited_count, 2);
	visited_count = 0;
	aw_lock(&p->a.qp->lock);
	child = fork();
	if (child == 0) {
		struct aw_batch *batch = aw_batch_get(); /* there is something to take back */

		alarm(limit_s(30));
		aw_uqp_each(visit);
		aw_uqp_unlend(&p->pd, p->a.buf, BUF_OCTETS);
		_exit(batch && visited_count == 0 ? 0 : 1);
	}
	aw_unlock(&p->a.qp->lock);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

/* Of many QPs over TCP the kernel tells which have news: a poll in vain looks at none of them. */
static void poll__looks_at_no_qp_without_memory(void **state)
{
	struct pair *p = *state;
	struct end others[20] = { 0 };
	const int count = sizeof(others) / sizeof(*others);
	struct aw_cq_entry entry;

	if (p->b.qp->ring)
		skip();
	for (int i = 0; i < count; i++)
		end_make_on(&others[i], &p->pd, &p->b.cq);
	uint32_t looked = p->b.cq.qps_next;

	for (int i = 0; i < count; i++) {
		assert_int_equal(aw_cq_poll(&p->b.cq, &entry, 1), 0);
		assert_int_equal(p->b.cq.qps_next, looked);
	}
	for (int i = 0; i < count; i++)
		end_destroy(&others[i]);
}

#define STOPPED(f) cmocka_unit_test_setup_teardown(f, pair_setup, pair_teardown_stopped)
#define CASE(f) cmocka_unit_test_setup_teardown(f, pair_setup, pair_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(post_send__delivers_every_size),
		CASE(post_write__arrives_though_the_target_calls_nothing),
		CASE(post_read__fetches_though_the_source_calls_nothing),
		CASE(send_slot__holds_until_polled),
		CASE(close__flushes_both_ends),
		CASE(no_receive__waits_for_one),
		CASE(no_receive__peer_resets),
		STOPPED(post_send__reads_what_the_peer_sent_before_it_ended),
		CASE(no_receive__close_does_not_wait),
		CASE(no_receive__terminates_both_ends),
		CASE(reset__makes_it_usable_again),
		CASE(create__refuses_what_is_over_a_limit),
		CASE(listen__hears_in_order),
		CASE(close__of_no_stream_is_nothing),
		CASE(destroy__while_a_poller_has_its_event),
		CASE(abort__sends_nothing_more),
		CASE(each__child_leaves_the_parents_alone),
		CASE(poll__looks_at_no_qp_without_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
