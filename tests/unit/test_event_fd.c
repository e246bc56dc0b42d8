// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The fd of events: never writable, an edge for every raise, and the same on a kernel without the ioctl that
// raises it.
#include "net/base/event_fd.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../lib/emulated.h"

static int fd;
static bool lacks_ioctl;
static int ioctls;

int __real_ioctl(int number, unsigned long request, void *arg);
int __wrap_ioctl(int number, unsigned long request, void *arg);
int __wrap_ioctl(int number, unsigned long request, void *arg)
{
	ioctls++;
	if (!lacks_ioctl)
		return __real_ioctl(number, request, arg);
	errno = ENOTTY;
	return -1;
}

static int setup(void **state)
{
	(void)state;
	fd = aw_event_fd_open(true);
	return fd < 0;
}

static int teardown(void **state)
{
	(void)state;
	return close(fd);
}

/* What poll reports within wait_ms. */
static short reported(int wait_ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN | POLLOUT | POLLPRI };

	return poll(&p, 1, wait_ms) == 1 ? p.revents : 0;
}

static void event_fd_open__flags(void **state)
{
	int blocking = aw_event_fd_open(false);

	(void)state;
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	assert_true(fcntl(fd, F_GETFL) & O_NONBLOCK);
	assert_true(fcntl(blocking, F_GETFD) & FD_CLOEXEC);
	assert_false(fcntl(blocking, F_GETFL) & O_NONBLOCK);
	close(blocking);
}

/* A raise by an expired timer is there a moment later. */
static void check_raise_and_lower(void)
{
	assert_int_equal(reported(0), 0);
	assert_int_equal(aw_event_fd_await(fd), EAGAIN);
	aw_event_fd_raise(fd);
	assert_int_equal(reported(-1), POLLIN);
	aw_event_fd_raise(fd);
	aw_event_fd_lower(fd);
	assert_int_equal(reported(0), 0);
	aw_event_fd_lower(fd);
	assert_int_equal(reported(0), 0);
	aw_event_fd_raise(fd);
	assert_int_equal(reported(-1), POLLIN);
	assert_int_equal(aw_event_fd_await(fd), 0);
	assert_int_equal(reported(0), 0);
	assert_int_equal(write(fd, &(uint64_t){ 1 }, sizeof(uint64_t)), -1);
}

static void event_fd_raise__readable_until_lowered(void **state)
{
	(void)state;
	check_raise_and_lower();
}

static void event_fd_raise__every_one_is_an_edge(void **state)
{
	struct epoll_event want = { .events = EPOLLIN | EPOLLOUT | EPOLLET }, got;
	int epfd = epoll_create1(EPOLL_CLOEXEC);

	(void)state;
	assert_int_equal(epoll_ctl(epfd, EPOLL_CTL_ADD, fd, &want), 0);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(epoll_wait(epfd, &got, 1, 0), 0);
		aw_event_fd_raise(fd);
		assert_int_equal(epoll_wait(epfd, &got, 1, -1), 1);
		assert_int_equal(got.events, EPOLLIN);
	}
	close(epfd);
}

static void *await(void *blocking)
{
	return aw_event_fd_await(*(int *)blocking) ? NULL : blocking;
}

static void event_fd_await__blocks(void **state)
{
	int blocking = aw_event_fd_open(false);
	pthread_t thread;
	void *ret;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, await, &blocking), 0);
	aw_event_fd_raise(blocking);
	assert_int_equal(pthread_join(thread, &ret), 0);
	assert_ptr_equal(ret, &blocking);
	close(blocking);
}

/* A program may hand a copy of the fd to another process, whose epoll set it is in. */
static void event_fd_raise__seen_by_copies(void **state)
{
	int copy = dup(fd), status;
	pid_t pid;

	(void)state;
	aw_event_fd_raise(copy);
	assert_int_equal(reported(-1), POLLIN);
	pid = fork();
	if (pid == 0) {
		aw_event_fd_lower(fd);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(reported(0), 0);
	close(copy);
	aw_event_fd_raise(fd);
	assert_int_equal(reported(-1), POLLIN);
}

static bool set_is_readable(int set)
{
	struct pollfd p = { .fd = set, .events = POLLIN | POLLOUT | POLLPRI };

	return poll(&p, 1, 0) == 1 && p.revents == POLLIN;
}

/* The program has the set's number, in sets of its own. */
static void event_fd_open_set__readable_with_an_edge_for_every_raise(void **state)
{
	struct epoll_event want = { .events = EPOLLIN | EPOLLOUT | EPOLLET }, got;
	int epfd = epoll_create1(EPOLL_CLOEXEC), set = aw_event_fd_open_set(fd);

	(void)state;
	assert_true(set >= 0 && fcntl(set, F_GETFD) & FD_CLOEXEC);
	assert_int_equal(epoll_ctl(epfd, EPOLL_CTL_ADD, set, &want), 0);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(epoll_wait(epfd, &got, 1, 0), 0);
		aw_event_fd_raise(fd);
		assert_int_equal(epoll_wait(epfd, &got, 1, -1), 1);
		assert_int_equal(got.events, EPOLLIN);
		assert_true(set_is_readable(set));
	}
	aw_event_fd_lower(fd);
	assert_false(set_is_readable(set));
	close(set);
	close(epfd);
}

static void inherit_nothing(struct aw_event_owner *owner)
{
	(void)owner;
}

static int use_set_of_the_child(int set)
{
	bool blocks = !(fcntl(set, F_GETFL) & O_NONBLOCK), readable = set_is_readable(set);

	aw_event_fd_raise(fd);
	return blocks || readable || !set_is_readable(set) || !(fcntl(set, F_GETFD) & FD_CLOEXEC);
}

/* Neither process raises the other's, and where the program has closed the set its number is left alone. */
static void event_owner__a_child_has_a_set_of_its_own(void **state)
{
	struct aw_event_owner owner = { .fd = fd,
					.set = aw_event_fd_open_set(fd),
					.inherit = inherit_nothing };
	int status;
	pid_t pid;

	(void)state;
	assert_int_equal(fcntl(owner.set, F_SETFL, O_NONBLOCK), 0);
	aw_event_owner_add(&owner);
	aw_event_fd_raise(fd);
	pid = fork();
	if (pid == 0) {
		status = use_set_of_the_child(owner.set);
		aw_event_fd_lower(fd);
		_exit(status);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_true(set_is_readable(owner.set));
	assert_int_equal(dup2(STDIN_FILENO, owner.set), owner.set);
	pid = fork();
	if (pid == 0)
		_exit(epoll_wait(owner.set, &(struct epoll_event){ 0 }, 1, 0) == 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	aw_event_owner_remove(&owner);
	close(owner.set);
}

/* The last test: it is found out once a process. */
static void event_fd_raise__by_the_timer_without_the_ioctl(void **state)
{
	(void)state;
	lacks_ioctl = true;
	ioctls = 0;
	check_raise_and_lower();
	event_fd_raise__every_one_is_an_edge(state);
	event_fd_await__blocks(state);
	/* An emulator without the ioctl has shown that at the first raise of all. */
	assert_int_equal(ioctls, is_emulated() ? 0 : 1);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(event_fd_open__flags),
		TEST(event_fd_raise__readable_until_lowered),
		TEST(event_fd_raise__every_one_is_an_edge),
		TEST(event_fd_await__blocks),
		TEST(event_fd_raise__seen_by_copies),
		TEST(event_fd_open_set__readable_with_an_edge_for_every_raise),
		TEST(event_owner__a_child_has_a_set_of_its_own),
		TEST(event_fd_raise__by_the_timer_without_the_ioctl),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
