// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// fork: the child may use UD afresh, and the parent's QPs and groups go on.
#include "ud_scene.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../lib/limit.h"

static void child(struct ud_scene *parents)
{
	struct ud_scene *s;
	void *state;

	alarm(limit_s(30));
	ud_setup(&state);
	s = state;
	ud_check_way(s, &s->a, &s->b);
	ud_teardown(&state);
	/* What it inherited it may destroy. */
	state = parents;
	ud_teardown(&state);
	_exit(0);
}

static void fork__child_begins_afresh_and_the_parent_goes_on(void **state)
{
	union ibv_gid gid = { .raw = { [10] = 0xff, 0xff, 239, 77, 2, 1 } };
	struct ud_scene *s = *state;
	pid_t pid;
	int status;

	assert_int_equal(ibv_attach_mcast(s->a.qp, &gid, 0), 0);
	ud_check_way(s, &s->a, &s->b);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		child(s);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	ud_check_way(s, &s->a, &s->b);
	assert_int_equal(ibv_detach_mcast(s->a.qp, &gid, 0), 0);
}

static atomic_bool polls;

static void *poll_all_the_while(void *arg)
{
	struct ibv_wc wc;

	while (atomic_load(&polls))
		ibv_poll_cq(arg, 1, &wc);
	return NULL;
}

/* The parent's poller may have had a lock of the CQ when the process forked. */
static void fork__child_arms_and_destroys_beside_the_parent_s_poller(void **state)
{
	struct ud_scene *s = *state;
	pthread_t poller;
	int status;

	atomic_store(&polls, true);
	assert_int_equal(pthread_create(&poller, NULL, poll_all_the_while, s->f->cq), 0);
	for (int i = 0; i < 20; i++) {
		pid_t pid = fork();

		assert_true(pid >= 0);
		if (pid == 0) {
			alarm(limit_s(30));
			ibv_req_notify_cq(s->f->cq, 0);
			ibv_destroy_qp(s->a.qp);
			_exit(0);
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
	}
	atomic_store(&polls, false);
	pthread_join(poller, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(fork__child_begins_afresh_and_the_parent_goes_on,
						ud_setup, ud_teardown),
		cmocka_unit_test_setup_teardown(
			fork__child_arms_and_destroys_beside_the_parent_s_poller, ud_setup,
			ud_teardown),
	};

	setenv("ANYWARP_PERSONA", "roce", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
