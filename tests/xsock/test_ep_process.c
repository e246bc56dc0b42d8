// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Ends in two processes, and how the one notices what became of the other.
#include "ends.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define EXIT_S 60

static bool is_child;
static bool exits; /* the only thread of the child that may wait for a condition now */

int __real_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex);
int __wrap_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex);
int __real_pthread_cond_clockwait(pthread_cond_t *cond, pthread_mutex_t *mutex, clockid_t clock,
				  const struct timespec *end);
int __wrap_pthread_cond_clockwait(pthread_cond_t *cond, pthread_mutex_t *mutex, clockid_t clock,
				  const struct timespec *end);

int __wrap_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex)
{
	if (exits)
		_exit(1);
	return __real_pthread_cond_wait(cond, mutex);
}

/* At exit the time is over at once. */
int __wrap_pthread_cond_clockwait(pthread_cond_t *cond, pthread_mutex_t *mutex, clockid_t clock,
				  const struct timespec *end)
{
	struct timespec now;

	if (!exits)
		return __real_pthread_cond_clockwait(cond, mutex, clock, end);
	clock_gettime(clock, &now);
	return end->tv_sec <= now.tv_sec + EXIT_S ? ETIMEDOUT : 0;
}

/* The leak checker asks: it takes the threads of a child of a fork for ended ones. */
__attribute__((visibility("default"))) int __lsan_is_turned_off(void);

int __lsan_is_turned_off(void)
{
	return is_child;
}

/* The peer that is killed is no end in order. */
static void ep_wait__peer_is_killed(void **state)
{
	int fd[2];

	(void)state;
	ends_sockets(fd);
	pid_t child = fork();

	if (child == 0) {
		struct aw_xs_ep *ep = ends_create(NULL);

		aw_xs_ep_initiate(ep, fd[0]);
		ends_recv_text(ep, "die", 0);
		kill(getpid(), SIGKILL);
	}
	close(fd[0]);
	struct aw_xs_ep *ep = ends_create(NULL);

	assert_int_equal(aw_xs_ep_respond(ep, fd[1]), 0);
	ends_send_text(ep, "die", 0);
	ends_wait(ep, POLLERR);
	ends_expect(ep, -ECONNRESET);
	waitpid(child, NULL, 0);
	aw_xs_ep_close(ep, false);
}

/* exit(3) without a close, as programs do it. */
static void ep_exit__what_was_taken_arrives(void **state)
{
	int fd[2], status;

	(void)state;
	ends_sockets(fd);
	pid_t child = fork();

	if (child == 0) {
		struct aw_xs_ep *ep = ends_create(&(struct aw_xs_options){ .sndbuf = 1 << 20 });

		is_child = true;
		ends_create(NULL);
		aw_xs_ep_initiate(ep, fd[0]);
		ends_send(ep, 0, 1 << 20);
		exit(0);
	}
	close(fd[0]);
	struct aw_xs_ep *ep = ends_create(NULL);

	assert_int_equal(aw_xs_ep_respond(ep, fd[1]), 0);
	ends_recv(ep, 0, 1 << 20);
	ends_wait(ep, POLLHUP);
	ends_expect(ep, 0);
	aw_xs_ep_close(ep, false);
	waitpid(child, &status, 0);
	assert_int_equal(status, 0);
}

/* The peer takes nothing, and says nothing of how long. */
static void ep_exit__is_bounded_on_the_whole(void **state)
{
	int fd[2], status;

	(void)state;
	ends_sockets(fd);
	pid_t child = fork();

	if (child == 0) {
		struct aw_xs_ep *ep = ends_create(&(struct aw_xs_options){ .sndbuf = 1 << 20 });

		is_child = true;
		aw_xs_ep_initiate(ep, fd[0]);
		ends_wait(ep, POLLOUT);
		ends_send(ep, 0, 1 << 20);
		exits = true;
		exit(0);
	}
	close(fd[0]);
	struct aw_xs_ep *ep = ends_create(&(struct aw_xs_options){ .rcvbuf = 4096 });

	assert_int_equal(aw_xs_ep_respond(ep, fd[1]), 0);
	ends_wait(ep, POLLIN);
	waitpid(child, &status, 0);
	assert_int_equal(status, 0);
	ends_wait(ep, POLLERR);
	aw_xs_ep_close(ep, false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ep_wait__peer_is_killed),
		cmocka_unit_test(ep_exit__what_was_taken_arrives),
		cmocka_unit_test(ep_exit__is_bounded_on_the_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
