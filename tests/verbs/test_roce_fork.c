// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The roce persona over a fork: parent and child each have ports and QPs of their own, and connect to one
// another as any two processes do.
#include "walk.h"

#include "net/base/bounds.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../lib/limit.h"

enum {
	CHILD_S = 30,
	POST_WAIT_MS = 300,
};

static struct two parent_s;
static int to_child[2], to_parent[2]; /* pipes: QP numbers */

static void tell(int fd, uint32_t number)
{
	assert_int_equal(write(fd, &number, sizeof(number)), sizeof(number));
}

static uint32_t hear(int fd)
{
	uint32_t number;

	assert_int_equal(read(fd, &number, sizeof(number)), sizeof(number));
	return number;
}

/* An assertion that fails in the child ends it, and fails the parent's. */
static pid_t child_start(void (*job)(void))
{
	pid_t pid;

	assert_int_equal(pipe(to_child), 0);
	assert_int_equal(pipe(to_parent), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		alarm(limit_s(CHILD_S));
		job();
		_exit(0);
	}
	close(to_child[0]);
	close(to_parent[1]);
	return pid;
}

static int child_end(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	close(to_child[1]);
	close(to_parent[0]);
	return status;
}

static void child_is_on_its_own(void)
{
	struct ibv_qp_attr init = walk_attr_init(), rtr;
	struct route route;
	struct two t;
	void *state;

	fixture_setup(&state);
	route = route_loopback(state);
	two_connect(&t, state);
	/* The parent's ports are not the child's. */
	assert_int_not_equal(t.a.qp->qp_num >> 8, parent_s.a.qp->qp_num >> 8);
	two_destroy(&t);
	fixture_teardown(&state);
	/* And its QPs are dead here: they can be destroyed, and not connected. */
	walk_reset(&parent_s.b);
	rtr = walk_attr_rtr(&route, parent_s.a.qp->qp_num);
	assert_int_equal(ibv_modify_qp(parent_s.b.qp, &init, WALK_INIT), 0);
	assert_int_equal(ibv_modify_qp(parent_s.b.qp, &rtr, WALK_RTR), EINVAL);
	assert_int_equal(ibv_destroy_qp(parent_s.a.qp), 0);
	assert_int_equal(ibv_destroy_qp(parent_s.b.qp), 0);
}

static void fork__child_is_on_its_own(void **state)
{
	struct route route = route_loopback(*state);

	two_connect(&parent_s, *state);
	assert_int_equal(child_end(child_start(child_is_on_its_own)), 0);
	two_talk(&parent_s);
	walk_reset(&parent_s.a);
	walk_reset(&parent_s.b);
	two_walk(&parent_s, &route);
	two_talk(&parent_s);
	two_destroy(&parent_s);
}

static void child_connects_to_parent(void)
{
	struct route route;
	struct walker w;
	void *state;

	fixture_setup(&state);
	route = route_loopback(state);
	walker_make(&w, state);
	tell(to_parent[1], w.qp->qp_num);
	walk_init(&w);
	walker_recv(&w, 1);
	walk_rtr(&w, &route, hear(to_child[0]));
	walk_rts(&w);
	walker_received(&w, IBV_WC_SUCCESS);
	walker_post(&w, IBV_WR_SEND, 16, NULL);
	walker_sent(&w, IBV_WC_SUCCESS);
	walker_destroy(&w);
	fixture_teardown(&state);
}

static void fork__parent_and_child_connect(void **state)
{
	struct route route = route_loopback(*state);
	pid_t pid = child_start(child_connects_to_parent);
	struct walker w;

	walker_make(&w, *state);
	walk(&w, &route, hear(to_parent[0]));
	walker_recv(&w, 1);
	walker_post(&w, IBV_WR_SEND, 16, NULL);
	tell(to_child[1], w.qp->qp_num);
	walker_sent(&w, IBV_WC_SUCCESS);
	walker_received(&w, IBV_WC_SUCCESS);
	assert_int_equal(child_end(pid), 0);
	walker_destroy(&w);
}

/* It has a QP, to which the parent's call comes, and never says whom it is for. */
static void child_is_killed(void)
{
	struct walker w;
	void *state;

	fixture_setup(&state);
	walker_make(&w, state);
	tell(to_parent[1], w.qp->qp_num);
	hear(to_child[0]);
	raise(SIGKILL);
}

static void fork__peer_is_killed_before_it_answers(void **state)
{
	struct route route = route_loopback(*state);
	pid_t pid = child_start(child_is_killed);
	struct walker w;
	int status;

	walker_make(&w, *state);
	walk(&w, &route, hear(to_parent[0]));
	tell(to_child[1], 0);
	status = child_end(pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	aw_bounds.post_wait_ms = POST_WAIT_MS;
	walker_post(&w, IBV_WR_SEND, 16, NULL);
	walker_sent(&w, IBV_WC_RETRY_EXC_ERR);
	walker_destroy(&w);
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH(fork__child_is_on_its_own),
		WITH(fork__parent_and_child_connect),
		WITH(fork__peer_is_killed_before_it_answers),
	};

	walk_persona();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
