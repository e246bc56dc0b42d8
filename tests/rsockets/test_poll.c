// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// rpoll and rselect over rsockets and the kernel's fds.
#define _GNU_SOURCE // POLLRDHUP
#include "lib/until.h"
#include "rs.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static int poll_now(int fd, short events, short *revents)
{
	struct pollfd one = { .fd = fd, .events = events };
	int got = rpoll(&one, 1, 0);

	*revents = one.revents;
	return got;
}

static void rpoll__of_one(void **state)
{
	struct rs_ends ends;
	short revents;
	char octet;

	(void)state;
	rs_open(&ends);
	assert_int_equal(rs_poll_one(ends.server, POLLIN | POLLOUT), POLLOUT);
	assert_int_equal(poll_now(ends.server, POLLIN, &revents), 0);
	rs_send_all(ends.client, "x", 1);
	assert_int_equal(rs_poll_one(ends.server, POLLIN | POLLRDNORM), POLLIN | POLLRDNORM);
	rs_recv_all(ends.server, &octet, 1);
	assert_int_equal(poll_now(ends.server, POLLIN, &revents), 0);
	rs_close(&ends);
}

static void rpoll__of_the_end(void **state)
{
	struct rs_ends ends;

	(void)state;
	rs_open(&ends);
	assert_int_equal(rshutdown(ends.client, SHUT_WR), 0);
	assert_int_equal(rs_poll_one(ends.server, POLLIN | POLLRDHUP), POLLIN | POLLRDHUP);
	assert_int_equal(rclose(ends.client), 0);
	until(rs_poll_one(ends.server, POLLIN) & POLLHUP);
	assert_int_equal(rclose(ends.server), 0);
	assert_int_equal(rclose(ends.listener), 0);
}

/* A thread of the library may take a number as soon as it is closed: returns once one has stayed free. */
static void poll_closed(short *revents)
{
	int fd;

	do {
		fd = rs_socket();
		assert_int_equal(rclose(fd), 0);
		assert_int_equal(poll_now(fd, POLLIN, revents), 1);
	} while (fcntl(fd, F_GETFD) >= 0);
}

static void rpoll__before_a_connection(void **state)
{
	int fd = rs_socket();
	short revents;

	(void)state;
	assert_int_equal(poll_now(fd, POLLIN | POLLOUT, &revents), 1);
	assert_int_equal(revents, POLLOUT | POLLHUP);
	assert_int_equal(rlisten(fd, 1), 0);
	assert_int_equal(poll_now(fd, POLLIN | POLLOUT, &revents), 0);
	assert_int_equal(rclose(fd), 0);
	poll_closed(&revents);
	assert_int_equal(revents, POLLNVAL);
	assert_int_equal(poll_now(-1, POLLIN, &revents), 0);
	assert_int_equal(revents, 0);
}

enum {
	PIPE,
	LISTENER,
	CLIENT,
	SERVER,
	COUNT
};

static void fill(struct pollfd fds[COUNT], const struct rs_ends *ends, int pipe_fd)
{
	fds[PIPE] = (struct pollfd){ .fd = pipe_fd, .events = POLLIN };
	fds[LISTENER] = (struct pollfd){ .fd = ends->listener, .events = POLLIN };
	fds[CLIENT] = (struct pollfd){ .fd = ends->client, .events = POLLIN };
	fds[SERVER] = (struct pollfd){ .fd = ends->server, .events = POLLIN };
}

/* What thread does after a while has to wake the sleeper, and set this one of its fds. */
static void wakes(int which, void *(*thread)(void *), void *arg, struct rs_ends *ends, int pipe_fd)
{
	struct pollfd fds[COUNT];
	pthread_t id;

	fill(fds, ends, pipe_fd);
	pthread_create(&id, NULL, thread, arg);
	assert_int_equal(rpoll(fds, COUNT, RS_WAIT_MS), 1);
	for (int i = 0; i < COUNT; i++)
		assert_int_equal(fds[i].revents, i == which ? POLLIN : 0);
	pthread_join(id, NULL);
}

static void *write_late(void *fd)
{
	rs_until_others_sleep();
	assert_int_equal(write(*(int *)fd, "x", 1), 1);
	return NULL;
}

static void *send_late(void *fd)
{
	rs_until_others_sleep();
	rs_send_all(*(int *)fd, "x", 1);
	return NULL;
}

static void *connect_late(void *listener)
{
	rs_until_others_sleep();
	return (void *)(intptr_t)rs_client(*(int *)listener);
}

static void rpoll__of_a_mixed_set(void **state)
{
	struct rs_ends ends;
	char octet;
	int pipe_fds[2];

	(void)state;
	rs_open(&ends);
	assert_int_equal(pipe(pipe_fds), 0);
	for (int i = 0; i < 3; i++) {
		wakes(PIPE, write_late, &pipe_fds[1], &ends, pipe_fds[0]);
		assert_int_equal(read(pipe_fds[0], &octet, 1), 1);
		wakes(SERVER, send_late, &ends.client, &ends, pipe_fds[0]);
		rs_recv_all(ends.server, &octet, 1);
		wakes(CLIENT, send_late, &ends.server, &ends, pipe_fds[0]);
		rs_recv_all(ends.client, &octet, 1);
		wakes(LISTENER, connect_late, &ends.listener, &ends, pipe_fds[0]);
		assert_int_equal(rclose(raccept(ends.listener, NULL, NULL)), 0);
	}
	close(pipe_fds[0]);
	close(pipe_fds[1]);
	rs_close(&ends);
}

static void rpoll__of_more_than_fit_the_stack(void **state)
{
	struct rs_ends ends;
	struct pollfd fds[100];

	(void)state;
	rs_open(&ends);
	for (int i = 0; i < 100; i++)
		fds[i] = (struct pollfd){ .fd = ends.server, .events = POLLIN };
	assert_int_equal(rpoll(fds, 100, 1), 0);
	rs_send_all(ends.client, "x", 1);
	assert_true(rpoll(fds, 100, RS_WAIT_MS) > 0);
	assert_int_equal(rpoll(fds, 100, RS_WAIT_MS), 100);
	rs_close(&ends);
}

static int64_t now_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

/* poll(2) allows it: each entry has its own answer, and the thread sleeps until there is one. */
static void rpoll__of_one_that_is_there_twice(void **state)
{
	struct rs_ends ends;
	struct pollfd fds[2];
	int64_t start;

	(void)state;
	rs_open(&ends);
	fds[0] = fds[1] = (struct pollfd){ .fd = ends.server, .events = POLLIN };
	start = now_ns(CLOCK_THREAD_CPUTIME_ID);
	assert_int_equal(rpoll(fds, 2, 500), 0);
	assert_true(now_ns(CLOCK_THREAD_CPUTIME_ID) - start < 100000000);
	fds[1].events = POLLOUT;
	assert_int_equal(rpoll(fds, 2, RS_WAIT_MS), 1);
	assert_int_equal(fds[1].revents, POLLOUT);
	rs_send_all(ends.client, "x", 1);
	rs_poll_one(ends.server, POLLIN);
	assert_int_equal(rpoll(fds, 2, RS_WAIT_MS), 2);
	assert_int_equal(fds[0].revents, POLLIN);
	rs_close(&ends);
}

/* The library's own thread takes events of set-up, too: it must not leave the caller asleep. */
static void rpoll__of_several_while_one_connects(void **state)
{
	int listener = rs_listener(1);
	struct sockaddr_in addr = rs_address(rs_port(listener));
	struct pollfd fds[2] = { { .fd = listener } };

	(void)state;
	for (int round = 0; round < 200; round++) {
		int64_t start = now_ns(CLOCK_MONOTONIC);

		fds[1] = (struct pollfd){ .fd = rs_socket(), .events = POLLOUT };
		rs_unblock(fds[1].fd);
		rs_fails(rconnect(fds[1].fd, (struct sockaddr *)&addr, sizeof(addr)), EINPROGRESS);
		assert_int_equal(rpoll(fds, 2, RS_WAIT_MS), 1);
		assert_int_equal(fds[1].revents, POLLOUT);
		/* rpoll sleeps for 5 s at most. */
		assert_true(now_ns(CLOCK_MONOTONIC) - start < 4500000000);
		assert_int_equal(rclose(raccept(listener, NULL, NULL)), 0);
		assert_int_equal(rclose(fds[1].fd), 0);
	}
	assert_int_equal(rclose(listener), 0);
}

static void *poll_both_kinds(void *arg)
{
	struct pollfd fds[2] = { { .fd = *(int *)arg, .events = POLLIN }, { .fd = -1 } };

	assert_int_equal(rpoll(fds, 2, RS_WAIT_MS), 1);
	assert_int_equal(fds[0].revents, POLLIN);
	return NULL;
}

static void *poll_alone(void *arg)
{
	assert_int_equal(rs_poll_one(*(int *)arg, POLLIN), POLLIN);
	return NULL;
}

/* Nobody may take another's wake-up away. */
static void rpoll__by_many_threads(void **state)
{
	struct rs_ends ends;
	pthread_t threads[8];
	char octet;

	(void)state;
	rs_open(&ends);
	for (int round = 0; round < 20; round++) {
		for (int i = 0; i < 8; i++)
			pthread_create(&threads[i], NULL, i % 2 ? poll_alone : poll_both_kinds,
				       &ends.server);
		rs_until_others_sleep();
		rs_send_all(ends.client, "x", 1);
		for (int i = 0; i < 8; i++)
			pthread_join(threads[i], NULL);
		rs_recv_all(ends.server, &octet, 1);
	}
	rs_close(&ends);
}

static void *close_late(void *fd)
{
	rs_until_others_sleep();
	assert_int_equal(rclose(*(int *)fd), 0);
	return NULL;
}

static void rpoll__of_one_that_is_closed(void **state)
{
	struct rs_ends ends;
	struct pollfd fds[2];
	pthread_t id;

	(void)state;
	rs_open(&ends);
	fds[0] = (struct pollfd){ .fd = ends.server, .events = POLLIN };
	fds[1] = (struct pollfd){ .fd = ends.listener, .events = POLLIN };
	pthread_create(&id, NULL, close_late, &ends.server);
	assert_int_equal(rpoll(fds, 2, RS_WAIT_MS), 1);
	assert_int_equal(fds[0].revents, POLLNVAL);
	pthread_join(id, NULL);
	assert_int_equal(rclose(ends.client), 0);
	assert_int_equal(rclose(ends.listener), 0);
}

static void on_signal(int number)
{
	(void)number;
}

static void rpoll__is_interrupted(void **state)
{
	struct sigaction action = { .sa_handler = on_signal }, before;
	struct itimerval timer = { .it_value.tv_usec = 20000, .it_interval.tv_usec = 20000 };
	struct rs_ends ends;
	struct pollfd fds[2];

	(void)state;
	rs_open(&ends);
	fds[0] = (struct pollfd){ .fd = ends.server, .events = POLLIN };
	fds[1] = (struct pollfd){ .fd = ends.client, .events = POLLIN };
	sigaction(SIGALRM, &action, &before);
	setitimer(ITIMER_REAL, &timer, NULL);
	rs_fails(rpoll(fds, 1, -1), EINTR);
	rs_fails(rpoll(fds, 2, -1), EINTR);
	setitimer(ITIMER_REAL, &(struct itimerval){ 0 }, NULL);
	sigaction(SIGALRM, &before, NULL);
	rs_close(&ends);
}

static void rselect__tells_what_holds(void **state)
{
	struct timeval none = { 0 };
	fd_set read_set, write_set;
	struct rs_ends ends;

	(void)state;
	rs_open(&ends);
	rs_send_all(ends.client, "x", 1);
	rs_poll_one(ends.server, POLLIN);
	FD_ZERO(&read_set);
	FD_ZERO(&write_set);
	FD_SET(ends.server, &read_set);
	FD_SET(ends.client, &read_set);
	FD_SET(ends.listener, &read_set);
	FD_SET(ends.server, &write_set);
	assert_int_equal(rselect(FD_SETSIZE, &read_set, &write_set, NULL, &none), 2);
	assert_true(FD_ISSET(ends.server, &read_set) && FD_ISSET(ends.server, &write_set));
	assert_false(FD_ISSET(ends.client, &read_set) || FD_ISSET(ends.listener, &read_set));
	FD_ZERO(&read_set);
	FD_SET(ends.client, &read_set);
	none.tv_usec = 20000;
	assert_int_equal(rselect(ends.client + 1, &read_set, NULL, NULL, &none), 0);
	assert_false(FD_ISSET(ends.client, &read_set));
	rs_fails(rselect(-1, NULL, NULL, NULL, &none), EINVAL);
	FD_SET(ends.client, &read_set);
	rs_close(&ends);
	rs_fails(rselect(ends.client + 1, &read_set, NULL, NULL, &none), EBADF);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(rpoll__of_one, rs_guard),
		cmocka_unit_test_setup(rpoll__of_the_end, rs_guard),
		cmocka_unit_test_setup(rpoll__before_a_connection, rs_guard),
		cmocka_unit_test_setup(rpoll__of_a_mixed_set, rs_guard),
		cmocka_unit_test_setup(rpoll__of_more_than_fit_the_stack, rs_guard),
		cmocka_unit_test_setup(rpoll__of_one_that_is_there_twice, rs_guard),
		cmocka_unit_test_setup(rpoll__of_several_while_one_connects, rs_guard),
		cmocka_unit_test_setup(rpoll__by_many_threads, rs_guard),
		cmocka_unit_test_setup(rpoll__of_one_that_is_closed, rs_guard),
		cmocka_unit_test_setup(rpoll__is_interrupted, rs_guard),
		cmocka_unit_test_setup(rselect__tells_what_holds, rs_guard),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
