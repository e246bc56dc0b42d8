// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Two QPs of one process over loopback TCP: posts, progress from pollers and from the progress
// thread, close, loss, limits.
#include "net/uqp.h"

#include "net/engine.h"
#include "net/mrtab.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define BUF_OCTETS (3u << 20)
#define WAIT_NS 20000000000ull

struct end {
	struct aw_cq cq;
	struct aw_uqp *qp;
	uint8_t *buf;
	struct aw_mr mr;
	_Atomic uint32_t events;
};

struct pair {
	struct end a, b; /* a is the initiator */
	int pd;
};

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

static void on_event(void *arg, uint32_t events)
{
	atomic_fetch_or(&((struct end *)arg)->events, events);
}

static void make_end(struct end *e, const void *pd, struct aw_srq *srq)
{
	assert_int_equal(aw_cq_init(&e->cq, 1024, NULL, NULL), 0);
	struct aw_uqp_attr attr = {
		.send_cq = &e->cq,
		.recv_cq = &e->cq,
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

static void end_end(struct end *e)
{
	aw_uqp_destroy(e->qp);
	aw_cq_fini(&e->cq);
	aw_mr_remove(&e->mr);
	free(e->buf);
}

static void attach(struct pair *p)
{
	struct aw_stream s = { .initiator = true, .crc = true, .ird = 16, .ord = 16 };
	int fd[2];

	tcp_pair(fd);
	s.initiator = false;
	assert_int_equal(aw_uqp_attach(p->b.qp, fd[1], &s), 0);
	s.initiator = true;
	assert_int_equal(aw_uqp_attach(p->a.qp, fd[0], &s), 0);
}

static int setup(void **state)
{
	struct pair *p = calloc(1, sizeof(*p));

	assert_int_equal(aw_engine_get(), 0);
	make_end(&p->a, &p->pd, NULL);
	make_end(&p->b, &p->pd, NULL);
	attach(p);
	*state = p;
	return 0;
}

static int teardown(void **state)
{
	struct pair *p = *state;

	end_end(&p->a);
	end_end(&p->b);
	aw_engine_put();
	free(p);
	return 0;
}

static struct aw_cq_entry wait_cqe(struct end *e)
{
	struct aw_cq_entry entry;
	uint64_t start = aw_now_ns();

	while (aw_cq_poll(&e->cq, &entry, 1) != 1) {
		assert_true(aw_now_ns() - start < WAIT_NS);
		sched_yield();
	}
	return entry;
}

static void wait_event(struct end *e, uint32_t event)
{
	uint64_t start = aw_now_ns();

	while (!(atomic_load(&e->events) & event)) {
		assert_true(aw_now_ns() - start < WAIT_NS);
		sched_yield();
	}
}

static struct aw_sge sge_of(struct end *e, size_t offset, uint32_t len)
{
	return (struct aw_sge){ (uintptr_t)e->buf + offset, len, e->mr.stag };
}

static void post(struct end *e, enum aw_op op, struct end *peer, uint32_t len)
{
	aw_uqp_send_begin(e->qp);
	struct aw_swqe *w = aw_uqp_send_slot(e->qp);

	assert_non_null(w);
	*w = (struct aw_swqe){ .wr_id = 7,
			       .op = op,
			       .flags = AW_WR_SIGNALED,
			       .len = len,
			       .sge_count = 1,
			       .stag = peer->mr.stag,
			       .to = (uintptr_t)peer->buf,
			       .sge = { sge_of(e, 0, len) } };
	aw_uqp_send_commit(e->qp);
	aw_uqp_send_end(e->qp);
}

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
		struct aw_sge sge = sge_of(&p->b, 0, BUF_OCTETS);

		fill(p->a.buf, sizes[i], i);
		assert_int_equal(aw_uqp_recv(p->b.qp, 9, &sge, 1), 0);
		post(&p->a, AW_OP_SEND, &p->b, sizes[i]);
		struct aw_cq_entry r = wait_cqe(&p->b), s = wait_cqe(&p->a);

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
	volatile uint8_t *last = p->b.buf + 99999;
	uint64_t start = aw_now_ns();

	fill(p->a.buf, 100000, 1);
	p->a.buf[99999] = 0x5a;
	post(&p->a, AW_OP_WRITE, &p->b, 100000);
	while (*last != 0x5a) {
		assert_true(aw_now_ns() - start < WAIT_NS);
		sched_yield();
	}
	assert_memory_equal(p->a.buf, p->b.buf, 100000);
}

static void post_read__fetches_though_the_source_calls_nothing(void **state)
{
	struct pair *p = *state;

	fill(p->b.buf, BUF_OCTETS, 3);
	post(&p->a, AW_OP_READ, &p->b, BUF_OCTETS);
	struct aw_cq_entry e = wait_cqe(&p->a);

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
	struct aw_sge sge = sge_of(&p->b, 0, 16);

	assert_int_equal(aw_uqp_recv(p->b.qp, 1, &sge, 1), 0);
	assert_int_equal(aw_uqp_recv(p->b.qp, 2, &sge, 1), 0);
	post(&p->a, AW_OP_SEND, &p->b, 16);
	aw_uqp_close(p->a.qp);
	wait_event(&p->b, AW_UQP_CLOSED);
	wait_event(&p->a, AW_UQP_CLOSED);
	struct aw_cq_entry first = wait_cqe(&p->b), second = wait_cqe(&p->b);

	assert_int_equal(first.cqe.wr_id, 1);
	assert_int_equal(first.cqe.status, AW_WC_SUCCESS);
	assert_int_equal(second.cqe.wr_id, 2);
	assert_int_equal(second.cqe.status, AW_WC_WR_FLUSH_ERR);
	assert_int_equal(aw_uqp_state(p->a.qp), AW_QP_ERROR);
	assert_false(p->a.events & AW_UQP_FATAL);
	assert_false(p->b.events & AW_UQP_FATAL);
}

static void no_receive__terminates_both_ends(void **state)
{
	struct pair *p = *state;

	post(&p->a, AW_OP_SEND, &p->b, 0); /* no receive is posted there */
	wait_event(&p->b, AW_UQP_FATAL);
	wait_event(&p->a, AW_UQP_FATAL);
	assert_int_equal(p->b.qp->core.error, AW_E_DDP_NO_BUFFER);
	assert_int_equal(p->a.qp->core.peer_error, AW_E_DDP_NO_BUFFER);
}

static void reset__makes_it_usable_again(void **state)
{
	struct pair *p = *state;

	for (int round = 0; round < 3; round++) {
		struct aw_sge sge = sge_of(&p->b, 0, 16);

		aw_uqp_reset(p->a.qp);
		aw_uqp_reset(p->b.qp);
		assert_int_equal(aw_uqp_recv(p->b.qp, 5, &sge, 1), 0);
		attach(p);
		post(&p->a, AW_OP_SEND, &p->b, 16);
		assert_int_equal(wait_cqe(&p->b).cqe.status, AW_WC_SUCCESS);
		assert_int_equal(wait_cqe(&p->a).cqe.status, AW_WC_SUCCESS);
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

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(post_send__delivers_every_size),
		CASE(post_write__arrives_though_the_target_calls_nothing),
		CASE(post_read__fetches_though_the_source_calls_nothing),
		CASE(send_slot__holds_until_polled),
		CASE(close__flushes_both_ends),
		CASE(no_receive__terminates_both_ends),
		CASE(reset__makes_it_usable_again),
		CASE(create__refuses_what_is_over_a_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
