// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// fork: the child may use the library afresh, and the parent's connections go on.
#define _GNU_SOURCE /* RTLD_NEXT */
#include "pair.h"

#include "verbs/private.h"

#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../lib/limit.h"

static void octet_send(struct pair *p, uint8_t octet)
{
	struct ibv_sge sge = side_sge(&p->a, 0, 1);
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND, .sg_list = &sge, .num_sge = 1 }, *bad;

	p->a.memory[0] = octet;
	side_recv(&p->b, 1, 0, 1);
	wr.send_flags = IBV_SEND_SIGNALED;
	assert_int_equal(ibv_post_send(p->a.qp, &wr, &bad), 0);
	assert_int_equal(wc_wait(p->b.recv_cq).status, IBV_WC_SUCCESS);
	assert_int_equal(wc_wait(p->a.send_cq).status, IBV_WC_SUCCESS);
	assert_int_equal(p->b.memory[0], octet);
}

/* Runs the job in a child. Returns 0 when it was done, something else when an assertion failed. */
static int child_end(void (*job)(void))
{
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (!pid) {
		alarm(limit_s(30));
		job();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static void child_run(void (*job)(void))
{
	assert_int_equal(child_end(job), 0);
}

static struct ibv_context *parents_shared;

static void child_connects(void)
{
	void *state;
	struct pair p;

	fixture_setup(&state);
	pair_make(&p, state, NULL);
	octet_send(&p, 3);
	pair_destroy(&p);
	fixture_teardown(&state);
}

static void child_shares_anew(void)
{
	struct ibv_context *a, *b;

	if (avb_context_shared_get(&a) || avb_context_shared_get(&b) || a != b)
		_exit(2);
	if (a == parents_shared)
		_exit(3);
	avb_context_shared_put(a);
	avb_context_shared_put(b);
}

static void fork__child_connects_while_the_parent_goes_on(void **state)
{
	struct pair p;

	pair_make(&p, *state, NULL);
	octet_send(&p, 1);
	child_run(child_connects);
	octet_send(&p, 2);
	pair_destroy(&p);
}

static void context_shared_get__one_for_all_and_another_in_the_child(void **state)
{
	struct ibv_context *again;
	struct ibv_pd *pd;

	(void)state;
	assert_int_equal(avb_context_shared_get(&parents_shared), 0);
	assert_int_equal(avb_context_shared_get(&again), 0);
	assert_ptr_equal(parents_shared, again);
	avb_context_shared_put(again);
	child_run(child_shares_anew);
	pd = ibv_alloc_pd(again);
	avb_context_shared_put(again);
	/* The PD keeps it where it is. */
	assert_int_equal(avb_context_shared_get(&again), 0);
	assert_ptr_equal(parents_shared, again);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
	avb_context_shared_put(again);
}

static struct fixture *inherited;
static struct pair *inherited_pair;

static void child_destroys(void)
{
	void *state = inherited;

	pair_destroy(inherited_pair);
	assert_int_equal(fixture_teardown(&state), 0);
}

/* A thread that only the parent has would acknowledge it. */
static void fork__child_destroys_what_has_an_event_that_the_parent_has_read(void **state)
{
	struct ibv_cq *cq;
	struct pair p;
	void *arg;

	inherited = *state;
	inherited_pair = &p;
	pair_make(&p, inherited, NULL);
	assert_int_equal(ibv_req_notify_cq(inherited->cq, 0), 0);
	struct ibv_qp *qp = qp_make(inherited);
	struct ibv_recv_wr wr = { .wr_id = 1 }, *bad;

	assert_int_equal(qp_move(qp, IBV_QPS_INIT), 0);
	assert_int_equal(ibv_post_recv(qp, &wr, &bad), 0);
	assert_int_equal(qp_move(qp, IBV_QPS_ERR), 0);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_get_cq_event(inherited->channel, &cq, &arg), 0);
	int status = child_end(child_destroys);

	ibv_ack_cq_events(cq, 1);
	assert_int_equal(status, 0);
	octet_send(&p, 2);
	pair_destroy(&p);
}

/* As would a thread that asks for a QP's attributes, say, and that only the parent has. */
static void fork__child_destroys_what_a_thread_of_the_parent_has_locked(void **state)
{
	struct pair p;

	inherited = *state;
	inherited_pair = &p;
	pair_make(&p, inherited, NULL);
	pthread_mutex_t *const locks[] = { &p.a.qp->mutex, &inherited->cq->mutex,
					   &inherited->context->mutex };

	for (size_t i = 0; i < 3; i++)
		assert_int_equal(pthread_mutex_lock(locks[i]), 0);
	int status = child_end(child_destroys);

	for (size_t i = 0; i < 3; i++)
		assert_int_equal(pthread_mutex_unlock(locks[i]), 0);
	assert_int_equal(status, 0);
	octet_send(&p, 2);
	pair_destroy(&p);
}

static struct ibv_device *some_device;
static volatile sig_atomic_t forks_due, forks_done;

/* Of a process that was forked where a lock of the library was taken: whoever wants a device is told, and does not hang. */
static void torn_child_is_refused(void)
{
	alarm(30);
	errno = 0;
	if (ibv_get_device_list(NULL) || errno != EDEADLK)
		_exit(2);
	errno = 0;
	if (ibv_open_device(some_device) || errno != EDEADLK)
		_exit(3);
	_exit(0);
}

static void fork_in_handler(int number)
{
	int status = -1, saved = errno;
	pid_t pid = fork();

	(void)number;
	if (!pid)
		torn_child_is_refused();
	if (waitpid(pid, &status, 0) == pid && status == 0)
		forks_done++;
	errno = saved;
}

/* The library makes the file of its statistics while it holds their lock. */
#pragma GCC visibility push(default)
int memfd_create(const char *name, unsigned int flags)
{
	static int (*real)(const char *, unsigned int);

	if (forks_due > 0 && strcmp(name, "anywarp-stat") == 0) {
		forks_due--;
		raise(SIGUSR1);
	}
	*(void **)&real = dlsym(RTLD_NEXT, "memfd_create");
	return real(name, flags);
}
#pragma GCC visibility pop

static void child_is_interrupted(void)
{
	struct sigaction action = { .sa_handler = fork_in_handler };
	struct ibv_device **list = ibv_get_device_list(NULL);

	some_device = list[0];
	ibv_free_device_list(list);
	if (sigaction(SIGUSR1, &action, NULL) != 0)
		_exit(4);
	forks_due = 1;
	child_connects();
	if (forks_done != 1)
		_exit(5);
	child_run(child_connects);
}

/* In a child, which has made no statistics yet. */
static void fork__in_a_signal_handler_that_has_interrupted_the_library(void **state)
{
	(void)state;
	child_run(child_is_interrupted);
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH(fork__child_connects_while_the_parent_goes_on),
		WITH(fork__child_destroys_what_has_an_event_that_the_parent_has_read),
		WITH(fork__child_destroys_what_a_thread_of_the_parent_has_locked),
		cmocka_unit_test(fork__in_a_signal_handler_that_has_interrupted_the_library),
		cmocka_unit_test(context_shared_get__one_for_all_and_another_in_the_child),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
