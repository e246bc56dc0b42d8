// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// QPs whose threads are gone: in the child of a fork, those that only the parent has.
#include "net/qp/uqp.h"

#include "../lib/uqp_pair.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

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
	pthread_mutex_lock(&a->cq.qps_lock);
	pthread_mutex_lock(&a->qp->lock);
	pthread_mutex_lock(&a->cq.lock);
	pthread_mutex_lock(&channel.lock);
	pthread_mutex_lock(&async.lock);
	a->qp->delivering = true;
	child = fork();
	if (child == 0) {
		alarm(30);
		aw_uqp_destroy(a->qp);
		aw_cq_fini(&a->cq);
		_exit(0);
	}
	a->qp->delivering = false;
	pthread_mutex_unlock(&async.lock);
	pthread_mutex_unlock(&channel.lock);
	pthread_mutex_unlock(&a->cq.lock);
	pthread_mutex_unlock(&a->qp->lock);
	pthread_mutex_unlock(&a->cq.qps_lock);
	await_success(child);
	assert_works(p);
	end_set_channel(a, NULL);
	a->cq.async = NULL;
	aw_channel_fini(&channel);
	aw_channel_fini(&async);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, pair_setup, pair_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(destroy__child_waits_for_no_thread_of_the_parent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
