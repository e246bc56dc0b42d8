// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Posts that wait for the program's next call: which, by what they leave, and that they leave without it too.
#include "net/qp/flush.h"

#include "../lib/uqp_pair.h"
#include "base/clock.h"
#include "net/progress/engine.h"
#include "net/qp/channel_wait.h"
#include "net/qp/cq_poll.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* Linked in by the thread sanitizer, which cannot follow threads that a forked child starts. */
extern void __tsan_init(void) __attribute__((weak));

enum {
	OCTET_FPDU = 24, /* a Write of one octet on the wire */
};

static bool has_waiting(struct end *e)
{
	aw_lock(&e->qp->lock);
	bool waits = e->qp->deferral.posts.waits;

	aw_unlock(&e->qp->lock);
	return waits;
}

static uint32_t credits(struct end *e)
{
	aw_lock(&e->qp->lock);
	uint32_t n = e->qp->deferral.posts.credits;

	aw_unlock(&e->qp->lock);
	return n;
}

static void set_credits(struct end *e, uint32_t n)
{
	aw_lock(&e->qp->lock);
	e->qp->deferral.posts.credits = n;
	aw_unlock(&e->qp->lock);
}

static void drain(struct end *e)
{
	struct aw_cq_entry entry[64];

	while (aw_cq_poll(&e->cq, entry, 64) > 0)
		;
}

/* This thread's clock stands still at that time; 0: it runs. Calls that are 2 us apart are so on any machine. */
static _Thread_local int64_t stopped_ns;

extern int64_t __real_aw_now_ns(void);
extern int64_t __wrap_aw_now_ns(void);

int64_t __wrap_aw_now_ns(void)
{
	return stopped_ns ? stopped_ns : __real_aw_now_ns();
}

/* Posts Writes of one octet, its number: the first leaves and has its CQE; the second waits. */
static uint8_t defer_one_of(struct end *e, struct end *peer)
{
	uint8_t number = e->buf[0] + 1;

	drain(e);
	stopped_ns = aw_now_ns();
	end_post(e, AW_OP_WRITE, peer, 1);
	set_credits(e, AW_CREDIT_MAX);
	e->buf[0] = number;
	end_post(e, AW_OP_WRITE, peer, 1);
	stopped_ns = 0;
	assert_true(has_waiting(e));
	return number;
}

static uint8_t defer_one(struct pair *p)
{
	pair_stop_progress();
	return defer_one_of(&p->a, &p->b);
}

static void expect_arrival(struct pair *p, uint8_t number)
{
	uint64_t start = aw_now_ns();

	pair_start_progress();
	while (octet_at(p->b.buf) != number) {
		assert_true(aw_now_ns() - start < UQP_PAIR_WAIT_NS);
		sched_yield();
	}
}

/* It left by what was just done. */
static void expect_gone(struct pair *p, uint8_t number)
{
	assert_false(has_waiting(&p->a));
	assert_int_equal(p->a.cq.posts_waiting, 0);
	expect_arrival(p, number);
}

static void lone__leaves_at_once(void **state)
{
	struct pair *p = *state;

	for (int i = 0; i < 100; i++) {
		set_credits(&p->a, AW_CREDIT_MAX);
		end_post(&p->a, AW_OP_WRITE, &p->b, 1);
		assert_false(has_waiting(&p->a));
		drain(&p->a);
	}
}

static void lone__leaves_at_once_without_polls(void **state)
{
	struct pair *p = *state;

	for (int i = 0; i < 50; i++) {
		set_credits(&p->a, AW_CREDIT_MAX);
		end_post(&p->a, AW_OP_WRITE, &p->b, 1);
		assert_false(has_waiting(&p->a));
		for (uint64_t start = aw_now_ns(); aw_now_ns() - start < AW_BURST_GAP_NS;)
			;
	}
}

static void waiting__leaves_at_a_poll(void **state)
{
	struct pair *p = *state;
	struct aw_cq_entry entry;
	uint8_t number = defer_one(p);

	/* It finds a CQE, and so has no other cause to serve the QP. */
	assert_int_equal(aw_cq_poll(&p->a.cq, &entry, 1), 1);
	expect_gone(p, number);
}

/* The pair with another QP at a. */
static void remake(struct pair *p, const struct aw_uqp_attr *attr)
{
	aw_uqp_destroy(p->a.qp);
	aw_uqp_reset(p->b.qp);
	assert_int_equal(aw_uqp_create(attr, &p->a.qp), 0);
	pair_attach(p);
}

static void waiting__leaves_at_a_poll_of_the_other_cq(void **state)
{
	struct pair *p = *state;
	struct aw_uqp_attr attr = p->a.qp->attr;
	const struct aw_cq_from from = { .queue = AW_RQ };
	const struct aw_cqe cqe = { 0 };
	struct aw_cq_entry entry;
	struct aw_cq other;
	uint8_t number;

	assert_int_equal(aw_cq_init(&other, 1, NULL, NULL), 0);
	attr.recv_cq = &other;
	remake(p, &attr);
	aw_cq_push(&other, &cqe, &from);
	number = defer_one(p);
	assert_int_equal(aw_cq_poll(&other, &entry, 1), 1);
	expect_gone(p, number);
	attr.recv_cq = &p->a.cq;
	remake(p, &attr);
	aw_cq_fini(&other);
}

static void waiting__leaves_as_the_cq_is_armed(void **state)
{
	struct pair *p = *state;
	uint8_t number = defer_one(p);

	aw_cq_arm(&p->a.cq, AW_ARM_NEXT);
	expect_gone(p, number);
}

static void armed__nothing_waits(void **state)
{
	struct pair *p = *state;

	aw_cq_arm(&p->a.cq, AW_ARM_SOLICITED);
	for (int i = 0; i < 60; i++) {
		set_credits(&p->a, AW_CREDIT_MAX);
		end_post(&p->a, AW_OP_WRITE, &p->b, 1);
		assert_false(has_waiting(&p->a));
	}
	assert_int_equal(p->a.cq.posts_waiting, 0);
}

static void waiting__leaves_before_a_sleep_on_a_channel(void **state)
{
	struct pair *p = *state;
	struct aw_channel ch;
	uint8_t number;
	void *object;
	int kind;

	assert_int_equal(aw_channel_init(&ch), 0);
	fcntl(ch.fd, F_SETFL, O_NONBLOCK);
	number = defer_one(p);
	assert_int_equal(aw_channel_await(&ch, &object, &kind), EAGAIN);
	expect_gone(p, number);
	aw_channel_fini(&ch);
}

/* A list without CQEs, as if it had taken no time: neither is it late, nor what waits old. */
static void post_silently(struct end *e, uint32_t count)
{
	aw_uqp_send_begin(e->qp);
	while (count-- > 0) {
		struct aw_swqe *w = aw_uqp_send_slot(e->qp);

		assert_non_null(w);
		*w = (struct aw_swqe){ .op = AW_OP_WRITE };
		aw_uqp_send_commit(e->qp);
	}
	e->qp->deferral.posts.posted_ns = e->qp->deferral.posts.since_ns = aw_now_ns();
	aw_uqp_send_end(e->qp);
}

static void waiting__is_bounded_in_posts(void **state)
{
	struct pair *p = *state;
	struct aw_uqp_attr attr = p->a.qp->attr;
	uint64_t start = aw_now_ns();

	attr.send_wr_max = 4 * AW_WAITING_POSTS_MAX;
	remake(p, &attr);
	/* A thread that is interrupted in between begins another burst. */
	do {
		assert_true(aw_now_ns() - start < UQP_PAIR_WAIT_NS);
		defer_one(p);
		post_silently(&p->a, AW_WAITING_POSTS_MAX - 2);
	} while (!has_waiting(&p->a));
	defer_one(p);
	post_silently(&p->a, AW_WAITING_POSTS_MAX - 1);
	assert_false(has_waiting(&p->a));
}

static void waiting__leaves_at_the_post_that_finds_it_old(void **state)
{
	struct pair *p = *state;

	defer_one(p);
	aw_lock(&p->a.qp->lock);
	p->a.qp->deferral.posts.since_ns -= AW_WAIT_NS;
	aw_unlock(&p->a.qp->lock);
	end_post(&p->a, AW_OP_WRITE, &p->b, 1);
	assert_false(has_waiting(&p->a));
}

static void waiting__leaves_at_a_large_post(void **state)
{
	struct pair *p = *state;
	uint8_t number = defer_one(p);

	end_post(&p->a, AW_OP_WRITE, &p->b, AW_WAITING_BYTES_MAX);
	expect_gone(p, number);
	defer_one(p); /* it counts no more */
}

/* Without their requests the peer has nothing to do. */
static void waiting__leaves_at_fewer_bytes_of_reads(void **state)
{
	struct pair *p = *state;

	pair_stop_progress();
	drain(&p->a);
	stopped_ns = aw_now_ns();
	end_post(&p->a, AW_OP_WRITE, &p->b, 1);
	set_credits(&p->a, AW_CREDIT_MAX);
	end_post(&p->a, AW_OP_READ, &p->b, AW_WAITING_BYTES_MAX / AW_WAITING_READ_WEIGHT - 1);
	assert_true(has_waiting(&p->a));
	end_post(&p->a, AW_OP_READ, &p->b, 1);
	stopped_ns = 0;
	assert_false(has_waiting(&p->a));
	pair_start_progress();
}

/* The next call of such a program may well be no post. */
static void waiting__leaves_at_the_post_that_fills_the_queue(void **state)
{
	struct pair *p = *state;
	struct aw_uqp *qp = p->a.qp;

	defer_one(p);
	while (aw_sq_count(&qp->core.sq) + qp->of_cq.unpolled < qp->attr.send_wr_max)
		end_post(&p->a, AW_OP_WRITE, &p->b, 1);
	assert_false(has_waiting(&p->a));
}

/* Those that waited need no slot any more once they left. */
static void waiting__leaves_where_a_list_needs_its_slots(void **state)
{
	struct pair *p = *state;
	uint32_t room = p->a.qp->attr.send_wr_max - 1;

	defer_one(p);
	drain(&p->a);
	for (int i = 0; i < 10 || !has_waiting(&p->a); i++)
		post_silently(&p->a, 1);
	aw_uqp_send_begin(p->a.qp);
	assert_non_null(aw_uqp_send_slot_ahead(p->a.qp, room));
	aw_uqp_send_end(p->a.qp);
	assert_false(has_waiting(&p->a));
}

static void waiting__leaves_with_the_close(void **state)
{
	struct pair *p = *state;
	uint8_t number = defer_one(p);

	aw_uqp_close(p->a.qp);
	expect_gone(p, number);
}

static void waiting__leaves_before_the_reset(void **state)
{
	struct pair *p = *state;
	uint8_t number = defer_one(p);

	aw_uqp_reset(p->a.qp);
	expect_gone(p, number);
}

static void waiting__leaves_before_the_abort(void **state)
{
	struct pair *p = *state;
	uint8_t number = defer_one(p);

	aw_uqp_abort(p->a.qp);
	expect_gone(p, number);
}

static void waiting__leaves_before_the_destruction(void **state)
{
	struct pair *p = *state;
	uint8_t number = defer_one(p);

	end_destroy(&p->a);
	expect_arrival(p, number);
	end_make(&p->a, &p->pd, NULL);
}

static void waiting__leaves_though_the_program_calls_nothing(void **state)
{
	struct pair *p = *state;

	for (int i = 0; i < 20; i++) {
		uint8_t number = defer_one(p);

		expect_arrival(p, number);
		assert_int_equal(credits(&p->a), AW_CREDIT_MAX - AW_CREDIT_PRICE);
	}
}

/* The child destroys what it inherited; nothing of it is sent, and nothing hangs. */
static void fork__leaves_what_waits_to_the_parent(void **state)
{
	struct pair *p = *state;
	struct aw_cq_entry entry;
	uint8_t number = defer_one(p);
	int status;

	pair_start_progress();
	pid_t child = fork();

	if (child == 0) {
		bool waits = p->a.qp->deferral.posts.waits || p->a.cq.posts_waiting > 0;

		aw_cq_poll(&p->a.cq, &entry, 1);
		aw_uqp_destroy(p->a.qp);
		_exit(waits);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	expect_arrival(p, number);
	assert_int_equal(aw_uqp_state(p->a.qp), AW_QP_RTS);
	assert_int_equal(aw_uqp_state(p->b.qp), AW_QP_RTS);
}

/* Another thread destroys this one as soon as the exit has found it, and given the lock of what it looked at back. */
static struct aw_uqp *doomed;
static uint32_t doomed_handle;
static pthread_mutex_t *looked_at;

extern int __real_pthread_mutex_trylock(pthread_mutex_t *mutex);
extern int __wrap_pthread_mutex_trylock(pthread_mutex_t *mutex);
extern int __real_pthread_mutex_unlock(pthread_mutex_t *mutex);
extern int __wrap_pthread_mutex_unlock(pthread_mutex_t *mutex);
extern void __real_aw_uqp_on_exit(uint32_t handle);
extern void __wrap_aw_uqp_on_exit(uint32_t handle);

int __wrap_pthread_mutex_trylock(pthread_mutex_t *mutex)
{
	if (doomed)
		looked_at = mutex;
	return __real_pthread_mutex_trylock(mutex);
}

int __wrap_pthread_mutex_unlock(pthread_mutex_t *mutex)
{
	struct aw_uqp *qp = doomed;
	int err = __real_pthread_mutex_unlock(mutex);

	if (qp && mutex == looked_at) {
		doomed = NULL;
		aw_uqp_destroy(qp);
	}
	return err;
}

void __wrap_aw_uqp_on_exit(uint32_t handle)
{
	__real_aw_uqp_on_exit(handle);
	if (doomed_handle)
		_exit(handle == doomed_handle ? 0 : 2);
}

static void doom(struct aw_uqp *qp)
{
	mallopt(M_PERTURB, 0xa5); /* what is freed is not what it was */
	doomed_handle = qp->handle;
	doomed = qp;
}

/* A process of its own, of which only the socket is seen: it writes how much it posted. */
static void post_and_exit(int lfd, int told, bool destroys)
{
	struct aw_stream s = { .initiator = true, .crc = true, .ird = 1, .ord = 1 };
	int fd = socket(AF_INET, SOCK_STREAM, 0), pd;
	struct sockaddr_in addr;
	socklen_t len = sizeof(addr);
	struct end e;
	uint8_t number;

	getsockname(lfd, (struct sockaddr *)&addr, &len);
	if (connect(fd, (struct sockaddr *)&addr, len) != 0 || aw_engine_get() != 0)
		_exit(1);
	end_make(&e, &pd, NULL);
	if (aw_uqp_attach(e.qp, fd, &s) != 0)
		_exit(1);
	pair_stop_progress();
	number = defer_one_of(&e, &e);
	if (write(told, &number, 1) != 1)
		_exit(1);
	if (destroys)
		doom(e.qp);
	exit(destroys); /* never with this status: it was looked for */
}

static size_t octets_until_end(int fd)
{
	uint8_t buf[4096];
	size_t total = 0;
	ssize_t n;

	while ((n = read(fd, buf, sizeof(buf))) > 0)
		total += (size_t)n;
	close(fd);
	return total;
}

static void expect_all_at_exit(bool destroys)
{
	struct sockaddr_in addr = { .sin_family = AF_INET,
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int lfd = socket(AF_INET, SOCK_STREAM, 0), told[2], status;
	uint8_t number = 0;
	pid_t child;

	if (__tsan_init)
		skip();
	assert_int_equal(bind(lfd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	assert_int_equal(listen(lfd, 1), 0);
	assert_int_equal(pipe(told), 0);
	child = fork();
	if (child == 0)
		post_and_exit(lfd, told[1], destroys);
	close(told[1]);
	assert_int_equal(read(told[0], &number, 1), 1);
	/* Two at a time: the lone one and the one that waited. */
	assert_int_equal(octets_until_end(accept(lfd, NULL, NULL)), 2 * number * OCTET_FPDU);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	close(told[0]);
	close(lfd);
}

static void exit__flushes(void **state)
{
	(void)state;
	expect_all_at_exit(false);
}

static void exit__finds_what_another_thread_destroys(void **state)
{
	(void)state;
	expect_all_at_exit(true);
}

int main(void)
{
#define FLUSH_TEST(test) cmocka_unit_test_setup_teardown(test, pair_setup, pair_teardown_stopped)
	const struct CMUnitTest tests[] = {
		FLUSH_TEST(lone__leaves_at_once),
		FLUSH_TEST(lone__leaves_at_once_without_polls),
		FLUSH_TEST(waiting__leaves_at_a_poll),
		FLUSH_TEST(waiting__leaves_at_a_poll_of_the_other_cq),
		FLUSH_TEST(waiting__leaves_as_the_cq_is_armed),
		FLUSH_TEST(armed__nothing_waits),
		FLUSH_TEST(waiting__leaves_before_a_sleep_on_a_channel),
		FLUSH_TEST(waiting__is_bounded_in_posts),
		FLUSH_TEST(waiting__leaves_at_the_post_that_finds_it_old),
		FLUSH_TEST(waiting__leaves_at_a_large_post),
		FLUSH_TEST(waiting__leaves_at_fewer_bytes_of_reads),
		FLUSH_TEST(waiting__leaves_at_the_post_that_fills_the_queue),
		FLUSH_TEST(waiting__leaves_where_a_list_needs_its_slots),
		FLUSH_TEST(waiting__leaves_with_the_close),
		FLUSH_TEST(waiting__leaves_before_the_reset),
		FLUSH_TEST(waiting__leaves_before_the_abort),
		FLUSH_TEST(waiting__leaves_before_the_destruction),
		FLUSH_TEST(waiting__leaves_though_the_program_calls_nothing),
		FLUSH_TEST(fork__leaves_what_waits_to_the_parent),
		cmocka_unit_test(exit__flushes),
		cmocka_unit_test(exit__finds_what_another_thread_destroys),
	};

	return cmocka_run_group_tests_name("flush", tests, NULL, NULL);
}
