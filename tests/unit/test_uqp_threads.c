// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// QPs whose threads are gone: cancelled ones, and in the child of a fork those that only the parent has.
#include "net/qp/uqp.h"

#include "../lib/proc.h"
#include "../lib/until.h"
#include "../lib/uqp_pair.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "../lib/limit.h"

static void await_success(pid_t child)
{
	int status;

	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

static void assert_works(struct pair *p)
{
	struct aw_sge sge = end_sge(&p->b, 0, 16);

	assert_int_equal(aw_uqp_recv(p->b.qp, 1, &sge, 1), 0);
	end_post(&p->a, AW_OP_SEND, &p->b, 16);
	assert_int_equal(end_wait_cqe(&p->b).cqe.status, AW_WC_SUCCESS);
}

/* Threads of the parent hold the locks, and one delivers an event. */
static void destroy__child_waits_for_no_thread_of_the_parent(void **state)
{
	struct pair *p = *state;
	struct end *a = &p->a;
	struct aw_channel channel, async;
	pid_t child;

	assert_int_equal(aw_channel_init(&channel), 0);
	assert_int_equal(aw_channel_init(&async), 0);
	end_set_channel(a, &channel);
	a->cq.async = &async;
	aw_lock(&a->cq.qps_lock);
	aw_lock(&a->qp->lock);
	aw_lock(&a->cq.lock);
	pthread_mutex_lock(&channel.lock);
	pthread_mutex_lock(&async.lock);
	a->qp->delivering = true;
	aw_locks_held = 0; /* this thread stands for others */
	child = fork();
	if (child == 0) {
		alarm(limit_s(30));
		aw_uqp_destroy(a->qp);
		aw_cq_fini(&a->cq);
		_exit(0);
	}
	aw_locks_held = 3;
	a->qp->delivering = false;
	pthread_mutex_unlock(&async.lock);
	pthread_mutex_unlock(&channel.lock);
	aw_unlock(&a->cq.lock);
	aw_unlock(&a->qp->lock);
	aw_unlock(&a->cq.qps_lock);
	await_success(child);
	assert_works(p);
	end_set_channel(a, NULL);
	a->cq.async = NULL;
	aw_channel_fini(&channel);
	aw_channel_fini(&async);
}

static struct {
	struct aw_uqp *qp;
	_Atomic long tid;
	_Atomic bool done; /* it came to its end */
	_Atomic bool ended; /* likewise, or was cancelled before */
} cancelled;

static void note_end(void *unused)
{
	(void)unused;
	cancelled.ended = true;
}

static void *run_cancelled(void *arg)
{
	void (*const *run)(void) = arg;

	pthread_cleanup_push(note_end, NULL);
	cancelled.tid = syscall(SYS_gettid);
	pthread_cancel(pthread_self());
	(*run)();
	cancelled.done = true;
	pthread_testcancel();
	pthread_cleanup_pop(1);
	return NULL;
}

static void begin_cancelled(pthread_t *thread, struct aw_uqp *qp, void (*const *run)(void))
{
	cancelled.qp = qp;
	cancelled.tid = 0;
	cancelled.done = cancelled.ended = false;
	assert_int_equal(pthread_create(thread, NULL, run_cancelled, (void *)(uintptr_t)run), 0);
}

static void end_cancelled(pthread_t thread)
{
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_true(cancelled.done);
}

enum {
	CHILDS_STATUS = 7,
};

static pid_t child_of_cancelled;

static void fork_once(void)
{
	child_of_cancelled = fork();
	if (child_of_cancelled == 0)
		_exit(CHILDS_STATUS);
}

/* A child that was cancelled in the library's handlers would end with status 0. */
static void fork__is_no_cancellation_point(void **state)
{
	static void (*const run)(void) = fork_once;
	struct pair *p = *state;
	pthread_t thread;
	int status;

	begin_cancelled(&thread, p->a.qp, &run);
	end_cancelled(thread);
	assert_int_equal(waitpid(child_of_cancelled, &status, 0), child_of_cancelled);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), CHILDS_STATUS);
	assert_works(p);
}

static _Atomic bool listener_waits, listener_holds;

static void hear_slowly(void *arg, uint32_t events)
{
	(void)arg;
	(void)events;
	listener_waits = true;
	while (listener_holds)
		sched_yield();
}

static void reset(void)
{
	aw_uqp_reset(cancelled.qp);
}

static void listen_to_none(void)
{
	aw_uqp_listen(cancelled.qp, AW_UQP_VERBS, NULL, NULL);
}

/* The thread waits for the end of a delivery: one that was cancelled then would leave the QP's lock taken. */
static void wait_cancelled(struct pair *p, void (*const *run)(void))
{
	pthread_t thread;

	listener_waits = false;
	listener_holds = true;
	aw_uqp_listen(p->a.qp, AW_UQP_VERBS, hear_slowly, NULL);
	aw_uqp_close(p->b.qp);
	until(listener_waits);
	begin_cancelled(&thread, p->a.qp, run);
	until(cancelled.ended || (cancelled.tid && proc_sleeps(cancelled.tid)));
	listener_holds = false;
	end_cancelled(thread);
}

static void reset__is_no_cancellation_point(void **state)
{
	static void (*const run)(void) = reset;

	wait_cancelled(*state, &run);
}

static void listen__is_no_cancellation_point(void **state)
{
	static void (*const run)(void) = listen_to_none;

	wait_cancelled(*state, &run);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, pair_setup, pair_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(destroy__child_waits_for_no_thread_of_the_parent),
		CASE(fork__is_no_cancellation_point),
		CASE(reset__is_no_cancellation_point),
		CASE(listen__is_no_cancellation_point),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
