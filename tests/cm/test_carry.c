// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// anywarp_fork_take under load: connections go on in the child of a fork in the midst of everything,
// whatever becomes of the parent, and nothing is lost, doubled or spoiled.
#include "anywarp/cm.h"
#include "echo.h"

#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MESSAGES 120
#define FORK_EVERY 12 /* messages */

/* What a parent does once it has forked. */
enum then {
	KILLED_AT_ONCE, /* before it has forgotten */
	KILLED_LATER, /* when it has released */
	EXITS, /* with exit(3) */
	GOES_ON, /* with its other connection */
};

struct plan {
	int ports; /* a pipe that tells them */
	enum then then;
	bool sleeps;
	unsigned int forks; /* child of child of child ... */
	int done; /* a pipe: who has come to its end well says so */
};

static void connect_next(const struct plan *plan, struct echo *e)
{
	struct sockaddr_storage ss;
	struct rdma_cm_id *id;
	uint16_t port;

	assert_int_equal(read(plan->ports, &port, sizeof(port)), sizeof(port));
	ss = cm_address("127.0.0.1", port);
	assert_int_equal(rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP), 0);
	assert_int_equal(rdma_resolve_addr(id, NULL, (struct sockaddr *)&ss, 1000), 0);
	assert_int_equal(rdma_resolve_route(id, 1000), 0);
	echo_open(e, id);
	assert_int_equal(rdma_connect(id, NULL), 0);
}

static void say_done(const struct plan *plan)
{
	assert_int_equal(write(plan->done, "d", 1), 1);
}

static void answer_all(const struct plan *plan, struct echo *e)
{
	while (echo_answer(e, plan->sleeps))
		continue;
	assert_int_equal(rdma_disconnect(e->id), 0);
	echo_close(e);
	say_done(plan);
}

/* The parent's part: e is the child's. */
static void let_go(const struct plan *plan, struct echo *e, struct echo *other)
{
	if (plan->then == KILLED_AT_ONCE)
		raise(SIGKILL);
	assert_int_equal(anywarp_cm_forget(e->id), 0);
	assert_int_equal(anywarp_fork_release(), 0);
	echo_free(e);
	if (plan->then == KILLED_LATER)
		raise(SIGKILL);
	if (plan->then == GOES_ON && other->id)
		answer_all(plan, other);
	exit(0);
}

static void take(struct echo *e, struct echo *other)
{
	struct rdma_cm_id *ids[] = { e->id };

	assert_int_equal(anywarp_fork_take(ids, 1), 0);
	if (!other->id)
		return;
	echo_close(other);
	other->id = NULL;
}

static void answer_and_fork(const struct plan *plan, struct echo *e, struct echo *other)
{
	uint32_t next = FORK_EVERY;

	for (unsigned int i = 0; i < plan->forks; i++, next += FORK_EVERY) {
		while (e->received < next)
			assert_true(echo_answer(e, plan->sleeps));
		assert_int_equal(anywarp_fork_hold(), 0);
		if (fork() > 0)
			let_go(plan, e, other);
		take(e, other);
	}
	answer_all(plan, e);
	_exit(0);
}

static void hold_and_carry(const struct plan *plan)
{
	struct echo e, other = { 0 };

	setenv("CMOCKA_TEST_ABORT", "1", 1);
	signal(SIGABRT, SIG_DFL);
	connect_next(plan, &e);
	if (plan->then == GOES_ON)
		connect_next(plan, &other);
	answer_and_fork(plan, &e, &other);
}

/* The asking end of one connection. */
struct asker {
	struct rdma_event_channel *channel;
	struct rdma_cm_id *listener;
	struct echo echo;
};

static void listen_for_one(struct asker *a, int ports)
{
	uint16_t port;

	a->channel = rdma_create_event_channel();
	a->listener = cm_listener(a->channel, "127.0.0.1", 1);
	port = cm_port(a->listener);
	assert_int_equal(write(ports, &port, sizeof(port)), sizeof(port));
}

static void accept_one(struct asker *a)
{
	struct rdma_cm_event *event = cm_expect(a->channel, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
	struct rdma_cm_id *id = event->id;

	rdma_ack_cm_event(event);
	echo_open(&a->echo, id);
	assert_int_equal(rdma_accept(id, NULL), 0);
	cm_expect_ack(a->channel, RDMA_CM_EVENT_ESTABLISHED, 0);
}

static void disconnect(struct asker *a)
{
	assert_int_equal(rdma_disconnect(a->echo.id), 0);
	cm_expect_ack(a->channel, RDMA_CM_EVENT_DISCONNECTED, 0);
	echo_close(&a->echo);
	rdma_destroy_id(a->listener);
	rdma_destroy_event_channel(a->channel);
}

static void ask_all(struct asker *a, int count)
{
	time_t end = time(NULL) + 3 * EVENT_MS / 1000;
	bool more;

	do {
		more = false;
		for (int i = 0; i < count; i++)
			more |= echo_ask(&a[i].echo, MESSAGES);
		assert_true(time(NULL) < end);
		sched_yield();
	} while (more);
}

/* Until all processes that have the pipe are gone. */
static int count_done(int fd)
{
	char octet;
	int n = 0;

	while (read(fd, &octet, 1) == 1)
		n++;
	return n;
}

static void run(enum then then, bool sleeps, unsigned int forks)
{
	int count = then == GOES_ON ? 2 : 1, fds[2], ports[2], status;
	struct asker askers[2];

	assert_int_equal(pipe(fds), 0);
	assert_int_equal(pipe(ports), 0);
	struct plan plan = { ports[0], then, sleeps, forks, fds[1] };
	/* Before anything else: sanitizers do not like threads that have just begun at a fork. */
	pid_t pid = fork();

	if (pid == 0)
		hold_and_carry(&plan);
	close(fds[1]);
	for (int i = 0; i < count; i++)
		listen_for_one(&askers[i], ports[1]);
	for (int i = 0; i < count; i++)
		accept_one(&askers[i]);
	ask_all(askers, count);
	for (int i = 0; i < count; i++)
		disconnect(&askers[i]);
	assert_int_equal(count_done(fds[0]), count);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(then <= KILLED_LATER ? WIFSIGNALED(status) : WIFEXITED(status));
	close(fds[0]);
	close(ports[0]);
	close(ports[1]);
}

static void carry__parent_is_killed_at_once(void **state)
{
	(void)state;
	run(KILLED_AT_ONCE, true, 1);
	run(KILLED_AT_ONCE, false, 1);
}

static void carry__parent_is_killed_later(void **state)
{
	(void)state;
	run(KILLED_LATER, true, 1);
	run(KILLED_LATER, false, 1);
}

static void carry__parent_exits(void **state)
{
	(void)state;
	run(EXITS, true, 1);
	run(EXITS, false, 1);
}

static void carry__parent_goes_on(void **state)
{
	(void)state;
	run(GOES_ON, true, 1);
	run(GOES_ON, false, 1);
}

static void carry__child_of_child(void **state)
{
	(void)state;
	run(EXITS, true, 8);
	run(KILLED_AT_ONCE, false, 8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(carry__parent_is_killed_at_once),
		cmocka_unit_test(carry__parent_is_killed_later),
		cmocka_unit_test(carry__parent_exits),
		cmocka_unit_test(carry__parent_goes_on),
		cmocka_unit_test(carry__child_of_child),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
