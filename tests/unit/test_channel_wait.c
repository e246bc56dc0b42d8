// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A thread that sleeps on a completion channel serves the QPs left to it; for all others it is in read(2).
#include "net/qp/channel_wait.h"

#include "../lib/emulated.h"
#include "../lib/proc.h"
#include "../lib/pwait2.h"
#include "../lib/stopped.h"
#include "../lib/uqp_pair.h"
#include "base/clock.h"
#include "net/cq/sets.h"
#include "net/progress/engine.h"
#include "net/qp/cq_poll.h"
#include "net/qp/uqp_progress.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

enum {
	RECVS = 32, /* posted at b */
	WAITERS = 3,
	MESSAGES = 300,
	LATELY_NS = 10000000,
	LIMIT_NS = 50000000,
};

#define INTERRUPTED_NS INT64_C(60000000000) /* a signal comes before */

static struct aw_channel ch, other_ch;
static struct aw_source wake; /* raised to end waiters */
static _Atomic bool engine_ticks; /* the progress thread last chose to sleep for a time */

/* Before the C library's: how long the progress thread sleeps says whether there is a tick. */
int epoll_pwait2(int epfd, struct epoll_event *ev, int max, const struct timespec *timeout,
		 const sigset_t *mask)
{
	if (epfd == aw_engine_epfd())
		engine_ticks = timeout != NULL;
	return pwait2_call(epfd, ev, max, timeout, mask);
}

struct waiter {
	pthread_t thread;
	_Atomic long id; /* the thread's */
	struct end *end;
	_Atomic uint32_t cqes;
	_Atomic bool stop;
	_Atomic int err; /* what ended it */
};

/* All that is there, each receive posted anew. */
static void drain(struct waiter *w)
{
	struct aw_cq_entry entry;
	struct aw_sge sge = end_sge(w->end, 0, 16);

	while (aw_cq_poll(&w->end->cq, &entry, 1) == 1) {
		assert_int_equal(aw_uqp_recv(w->end->qp, 1, &sge, 1), 0);
		w->cqes++;
	}
}

static void *work_by_events(void *arg)
{
	struct waiter *w = arg;
	void *object;
	int kind;

	w->id = syscall(SYS_gettid);
	while (!w->stop) {
		aw_cq_arm(&w->end->cq, AW_ARM_NEXT);
		drain(w);
		w->err = aw_channel_await(&ch, &object, &kind);
		if (w->err)
			break;
		drain(w);
	}
	return NULL;
}

static void begin(struct waiter *w, struct end *e)
{
	*w = (struct waiter){ .end = e };
	assert_int_equal(pthread_create(&w->thread, NULL, work_by_events, w), 0);
}

static void end(struct waiter *w)
{
	w->stop = true;
	aw_channel_raise(&ch, &wake);
	pthread_join(w->thread, NULL);
	assert_int_equal(w->err, 0);
}

static void until_asleep(uint32_t count)
{
	uint64_t start = aw_now_ns();

	while (ch.waiters != count) {
		assert_true(aw_now_ns() - start < UQP_PAIR_WAIT_NS);
		sched_yield();
	}
}

static void until_received(struct waiter *w, uint32_t cqes)
{
	uint64_t start = aw_now_ns();

	while (w->cqes < cqes) {
		assert_true(aw_now_ns() - start < UQP_PAIR_WAIT_NS);
		sched_yield();
	}
}

static void send_one(struct pair *p)
{
	end_post(&p->a, AW_OP_SEND, &p->b, 4);
	end_wait_cqe(&p->a);
}

/*
 * Messages come until b's QP is left to the channel's waiters. From then on the progress thread, and its tick,
 * stand still until thaw.
 */
static void leave_and_freeze(struct pair *p, struct waiter *w)
{
	uint64_t start = aw_now_ns();

	for (;;) {
		uint32_t had = w->cqes;

		assert_true(aw_now_ns() - start < UQP_PAIR_WAIT_NS);
		until_asleep(1);
		send_one(p);
		until_received(w, had + 1);
		until_asleep(1);
		aw_engine_fork_prepare();
		if (uqp_is_away(p->b.qp, &ch))
			return;
		aw_engine_fork_done();
	}
}

static void thaw(void)
{
	aw_engine_fork_done();
}

static int setup(void **state)
{
	assert_int_equal(pair_setup(state), 0);
	struct pair *p = *state;
	struct aw_sge sge = end_sge(&p->b, 0, 16);

	aw_source_init(&wake, &wake, 0);
	assert_int_equal(aw_channel_init(&ch), 0);
	assert_int_equal(aw_channel_init(&other_ch), 0);
	end_set_channel(&p->b, &ch);
	for (int i = 0; i < RECVS; i++)
		assert_int_equal(aw_uqp_recv(p->b.qp, 1, &sge, 1), 0);
	return 0;
}

static int teardown(void **state)
{
	pair_teardown(state);
	aw_channel_fini(&ch);
	aw_channel_fini(&other_ch);
	return 0;
}

/* The progress thread stands still, and arming changes nothing: each message is the waiter's. */
static void channel_await__serves(void **state)
{
	struct pair *p = *state;
	struct waiter w;

	begin(&w, &p->b);
	leave_and_freeze(p, &w);
	uint32_t had = w.cqes;

	for (uint32_t i = 1; i <= MESSAGES; i++) {
		send_one(p);
		until_received(&w, had + i);
	}
	until_asleep(1);
	assert_true(uqp_is_away(p->b.qp, &ch));
	assert_int_equal(p->b.cq.qps_away, 0);
	thaw();
	end(&w);
}

static void watch_memory(struct end *e, struct end *peer)
{
	const uint8_t *last = e->buf + 99;
	uint64_t start = aw_now_ns();

	peer->buf[99] = (uint8_t)(octet_at(last) + 1);
	end_post(peer, AW_OP_WRITE, e, 100);
	while (octet_at(last) != peer->buf[99]) {
		assert_true(aw_now_ns() - start < UQP_PAIR_WAIT_NS);
		sched_yield();
	}
	end_wait_cqe(peer);
}

static void channel_await__no_waiter_any_more(void **state)
{
	struct pair *p = *state;
	struct waiter w;

	begin(&w, &p->b);
	leave_and_freeze(p, &w);
	end(&w);
	assert_true(uqp_is_away(p->b.qp, &ch));
	thaw();
	watch_memory(&p->b, &p->a);
	uqp_wait_taken_back(p->b.qp, &ch);
}

/* Who woke a moment ago and is busy is expected back, armed or not; who woke long ago is not. */
static void channel_await__busy(void **state)
{
	struct pair *p = *state;
	struct waiter w;

	begin(&w, &p->b);
	until_asleep(1);
	end(&w);
	p->b.cq.armed = AW_ARM_NONE;
	aw_engine_fork_prepare();
	struct aw_channel *lately;
	uint64_t start;

	do { /* once more, where this thread lost its CPU in between: then it was not lately */
		start = ch.woke_ns = aw_now_ns();
		uqp_waiters_next(p->b.qp); /* the first of two that come soon after each other */
		ch.woke_ns = aw_now_ns();
		lately = uqp_waiters_next(p->b.qp);
	} while (!lately && aw_now_ns() - start >= LATELY_NS);
	ch.woke_ns = aw_now_ns() - 1000000000u;
	struct aw_channel *long_ago = uqp_waiters_next(p->b.qp);

	thaw();
	assert_ptr_equal(lately, &ch);
	assert_null(long_ago);
}

static void *just_wait(void *unused)
{
	void *object;
	int kind;

	aw_channel_await(&ch, &object, &kind);
	return unused;
}

static void channel_await__cancelled(void **state)
{
	struct pair *p = *state;
	struct waiter w;
	pthread_t thread;
	void *result;

	begin(&w, &p->b);
	leave_and_freeze(p, &w);
	end(&w);
	assert_int_equal(pthread_create(&thread, NULL, just_wait, NULL), 0);
	until_asleep(1);
	pthread_cancel(thread);
	pthread_join(thread, &result);
	assert_ptr_equal(result, PTHREAD_CANCELED);
	assert_int_equal(ch.waiters, 0);
	thaw();
	watch_memory(&p->b, &p->a);
}

/* Somebody sleeps there, but nothing comes: the QP goes back, and the tick ends. */
static void channel_await__idle(void **state)
{
	struct pair *p = *state;
	struct waiter w;
	uint64_t start = aw_now_ns();

	begin(&w, &p->b);
	leave_and_freeze(p, &w);
	thaw();
	uqp_wait_taken_back(p->b.qp, &ch);
	while (engine_ticks) {
		assert_true(aw_now_ns() - start < UQP_PAIR_WAIT_NS);
		sched_yield();
	}
	assert_int_equal(ch.waiters, 1);
	end(&w);
}

static void channel_await__beside_a_poller(void **state)
{
	struct pair *p = *state;
	struct waiter w, poller = { .end = &p->b };
	uint64_t start = aw_now_ns();

	begin(&w, &p->b);
	for (int i = 0; i < MESSAGES; i++) {
		end_post(&p->a, AW_OP_SEND, &p->b, 4);
		end_wait_cqe(&p->a);
		if (i % 3)
			drain(&poller);
	}
	while (w.cqes + poller.cqes < MESSAGES) {
		assert_true(aw_now_ns() - start < UQP_PAIR_WAIT_NS);
		sched_yield();
	}
	end(&w);
}

static void channel_await__several(void **state)
{
	struct pair *p = *state;
	struct waiter w[WAITERS];
	uint64_t start = aw_now_ns();
	uint32_t sum = 0;

	for (int i = 0; i < WAITERS; i++)
		begin(&w[i], &p->b);
	for (int i = 0; i < MESSAGES; i++)
		send_one(p);
	while (sum != MESSAGES) {
		assert_true(aw_now_ns() - start < UQP_PAIR_WAIT_NS);
		sched_yield();
		sum = 0;
		for (int i = 0; i < WAITERS; i++)
			sum += w[i].cqes;
	}
	/* Any of them takes it. */
	for (int i = 0; i < WAITERS; i++)
		w[i].stop = true;
	for (int i = 0; i < WAITERS; i++)
		aw_channel_raise(&ch, &wake);
	for (int i = 0; i < WAITERS; i++)
		end(&w[i]);
}

static void channel_await__nonblocking(void **state)
{
	struct pair *p = *state;
	struct waiter w;
	struct epoll_event none;
	void *object;
	int kind;

	begin(&w, &p->b);
	leave_and_freeze(p, &w);
	end(&w);
	assert_int_equal(fcntl(ch.fd, F_SETFL, fcntl(ch.fd, F_GETFL) | O_NONBLOCK), 0);
	assert_int_equal(aw_channel_await(&ch, &object, &kind), EAGAIN);
	aw_channel_raise(&ch, &wake);
	assert_int_equal(aw_channel_await(&ch, &object, &kind), 0);
	assert_ptr_equal(object, &wake);
	assert_int_equal(aw_channel_await(&ch, &object, &kind), EAGAIN);
	assert_int_equal(epoll_wait(ch.epfd, &none, 1, 0), 0);
	thaw();
}

static void channel_await__ends_with_the_qp(void **state)
{
	struct pair *p = *state;
	struct waiter w;

	begin(&w, &p->b);
	leave_and_freeze(p, &w);
	aw_uqp_reset(p->b.qp);
	assert_int_equal(p->b.qp->serving.server, AW_SERVER_NONE);
	assert_null(p->b.qp->serving.channel);
	assert_int_equal(p->b.cq.qps_away, 0);
	thaw();
	end(&w);
}

/* b's sends complete on a CQ of another channel. */
static void add_send_cq(struct pair *p, struct aw_cq *send_cq)
{
	struct aw_uqp_attr attr = p->b.qp->attr;
	struct aw_sge sge = end_sge(&p->b, 0, 16);

	assert_int_equal(aw_cq_init(send_cq, 16, &other_ch, send_cq), 0);
	attr.send_cq = send_cq;
	aw_uqp_reset(p->a.qp);
	aw_uqp_destroy(p->b.qp);
	assert_int_equal(aw_uqp_create(&attr, &p->b.qp), 0);
	for (int i = 0; i < RECVS; i++)
		assert_int_equal(aw_uqp_recv(p->b.qp, 1, &sge, 1), 0);
	pair_attach(p);
}

static void end_send_cq(struct pair *p, struct aw_cq *send_cq)
{
	struct aw_uqp_attr attr = p->b.qp->attr;

	attr.send_cq = &p->b.cq;
	aw_uqp_destroy(p->b.qp);
	assert_int_equal(aw_uqp_create(&attr, &p->b.qp), 0);
	aw_cq_fini(send_cq);
}

/* The waiter here would not know of an event there. */
static void channel_await__armed_elsewhere(void **state)
{
	struct pair *p = *state;
	struct aw_cq send_cq;
	struct waiter w;

	add_send_cq(p, &send_cq);
	begin(&w, &p->b);
	leave_and_freeze(p, &w);
	assert_int_equal(send_cq.qps_away, 1);
	aw_cq_arm(&send_cq, AW_ARM_NEXT);
	assert_false(uqp_is_away(p->b.qp, &ch));
	assert_int_equal(send_cq.qps_away, 0);
	thaw();
	for (uint32_t had = w.cqes, i = 1; i <= 20; i++) {
		send_one(p);
		until_received(&w, had + i);
	}
	assert_false(uqp_is_away(p->b.qp, &ch));
	end(&w);
	end_send_cq(p, &send_cq);
}

static _Atomic int signals;

static void on_signal(int sig)
{
	(void)sig;
	signals++;
}

static void handle(int flags)
{
	struct sigaction sa = { .sa_handler = on_signal, .sa_flags = flags };

	assert_int_equal(sigaction(SIGUSR1, &sa, NULL), 0);
	signals = 0;
}

/* Only while it sleeps: the thread sanitizer blocks signals for good where one meets the handler of one that it has put off. */
static void strike(struct waiter *w)
{
	if (proc_sleeps(w->id))
		pthread_kill(w->thread, SIGUSR1);
	sched_yield();
}

static void channel_await__interrupted(void **state)
{
	struct pair *p = *state;
	struct waiter w;

	handle(0);
	begin(&w, &p->b);
	until_asleep(1);
	/* One that comes just before it sleeps is lost, as with read(2). */
	while (!w.err)
		strike(&w);
	pthread_join(w.thread, NULL);
	assert_int_equal(w.err, EINTR);
}

static void channel_await__restarted(void **state)
{
	struct pair *p = *state;
	struct waiter w;

	handle(SA_RESTART);
	begin(&w, &p->b);
	for (int i = 1; i <= 20; i++) {
		until_asleep(1);
		/* The thread sanitizer may put one off that comes just before the sleep. */
		while (signals < i)
			strike(&w);
	}
	until_asleep(1);
	end(&w);
}

/* A handler that does not run ends no sleep, whatever its flags. */
static void channel_await__stopped_and_continued(void **state)
{
	struct pair *p = *state;
	struct waiter w;

	handle(0);
	begin(&w, &p->b);
	for (int i = 0; i < 5; i++) {
		until_asleep(1);
		assert_true(stopped_and_continued());
	}
	until_asleep(1);
	assert_int_equal(signals, 0);
	end(&w);
}

/* In the child the connection and the set are the parent's: the channel is a plain fd. */
static int child(struct pair *p)
{
	void *object;
	int kind;

	if (aw_serving_is_away(&p->b.qp->serving) || p->b.cq.qps_away || aw_channel_has_waiter(&ch))
		return 1;
	aw_channel_raise(&ch, &wake);
	if (aw_channel_await(&ch, &object, &kind) != 0 || object != &wake)
		return 2;
	return 0;
}

static void channel_await__fork(void **state)
{
	struct pair *p = *state;
	struct waiter w;
	int status;

	begin(&w, &p->b);
	leave_and_freeze(p, &w);
	thaw();
	end(&w);
	pid_t pid = fork();

	if (pid == 0)
		_exit(child(p));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	watch_memory(&p->b, &p->a);
}

/* Where others have all the sets that there may be: signals and the limit end a sleep as well. */
static void channel_await__without_a_set(void **state)
{
	int sets[AW_SETS_CHANNEL_MAX + 1], count = 0, kind;
	void *object;

	(void)state;
	if (is_emulated() && sizeof(void *) == 4)
		skip(); /* qemu-i386 itself ends here, with status 255 */
	while ((sets[count] = aw_sets_open(AW_SETS_CHANNEL, false)) >= 0)
		assert_true(++count <= AW_SETS_CHANNEL_MAX);
	sigaction(SIGALRM, &(struct sigaction){ .sa_handler = on_signal }, NULL);
	setitimer(ITIMER_REAL, &(struct itimerval){ { 0, 1000 }, { 0, 1000 } }, NULL);
	aw_channel_limit(INTERRUPTED_NS);
	assert_int_equal(aw_channel_await(&ch, &object, &kind), EINTR);
	setitimer(ITIMER_REAL, &(struct itimerval){ 0 }, NULL);
	aw_channel_limit(LIMIT_NS);
	assert_int_equal(aw_channel_await(&ch, &object, &kind), ETIMEDOUT);
	aw_channel_limit(-1);
	aw_channel_raise(&ch, &wake);
	assert_int_equal(aw_channel_await(&ch, &object, &kind), 0);
	assert_true(ch.epfd < 0);
	while (count-- > 0)
		aw_sets_close(AW_SETS_CHANNEL, sets[count]);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(channel_await__serves),
		CASE(channel_await__no_waiter_any_more),
		CASE(channel_await__busy),
		CASE(channel_await__cancelled),
		CASE(channel_await__idle),
		CASE(channel_await__beside_a_poller),
		CASE(channel_await__several),
		CASE(channel_await__nonblocking),
		CASE(channel_await__ends_with_the_qp),
		CASE(channel_await__armed_elsewhere),
		CASE(channel_await__interrupted),
		CASE(channel_await__restarted),
		CASE(channel_await__stopped_and_continued),
		CASE(channel_await__fork),
		CASE(channel_await__without_a_set),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
