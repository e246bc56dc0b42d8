// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The signals that a library's own thread blocks, and its stack.
#define _GNU_SOURCE /* pthread_getattr_np */
#include "base/thread.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define EXIT_SKIPPED 77

static int create_error;

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *arg),
			  void *arg);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *arg),
			  void *arg);

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *arg),
			  void *arg)
{
	return create_error ? create_error : __real_pthread_create(thread, attr, fn, arg);
}

static sem_t ended;

static void *read_mask(void *mask)
{
	pthread_sigmask(SIG_SETMASK, NULL, mask);
	sem_post(&ended);
	return mask;
}

static void await(void)
{
	while (sem_wait(&ended) != 0)
		;
}

static void check_mask(const sigset_t *mask)
{
	static const int open[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS };
	static const int blocked[] = { SIGINT, SIGTERM, SIGUSR1, SIGALRM, SIGCHLD, SIGURG };

	for (size_t i = 0; i < sizeof(open) / sizeof(open[0]); i++)
		assert_false(sigismember(mask, open[i]));
	for (size_t i = 0; i < sizeof(blocked) / sizeof(blocked[0]); i++)
		assert_true(sigismember(mask, blocked[i]));
}

/* The caller blocks SIGUSR2 alone, before a call and behind it. */
static int setup(void **state)
{
	sigset_t mask;

	(void)state;
	sigemptyset(&mask);
	sigaddset(&mask, SIGUSR2);
	create_error = 0;
	return sem_init(&ended, 0, 0) || pthread_sigmask(SIG_SETMASK, &mask, NULL);
}

static void check_caller(void)
{
	sigset_t mask;

	pthread_sigmask(SIG_SETMASK, NULL, &mask);
	assert_true(sigismember(&mask, SIGUSR2));
	assert_false(sigismember(&mask, SIGUSR1));
}

static void thread__signals_are_the_programs(void **state)
{
	pthread_t thread;
	sigset_t mask;
	void *result;

	(void)state;
	assert_int_equal(aw_thread_create(&thread, read_mask, &mask), 0);
	check_caller();
	assert_int_equal(pthread_join(thread, &result), 0);
	assert_ptr_equal(result, &mask);
	check_mask(&mask);
	await();
	assert_int_equal(aw_thread_start(read_mask, &mask), 0);
	await();
	check_mask(&mask);
}

static void thread__error_leaves_the_callers_signals(void **state)
{
	pthread_t thread;

	(void)state;
	create_error = EAGAIN;
	assert_int_equal(aw_thread_create(&thread, read_mask, NULL), EAGAIN);
	assert_int_equal(aw_thread_start(read_mask, NULL), EAGAIN);
	check_caller();
}

#define ROOM_MIN (192u << 10)
#define STACK_MAX (1u << 20)

static _Thread_local volatile char large[2u << 20]; /* in the stack of each thread */

struct stack {
	size_t bytes, room; /* as made; and below this thread's first frame */
};

static void *measure(void *arg)
{
	struct stack *stack = arg;
	pthread_attr_t attr;
	void *lowest;

	assert_int_equal(pthread_getattr_np(pthread_self(), &attr), 0);
	assert_int_equal(pthread_attr_getstack(&attr, &lowest, &stack->bytes), 0);
	stack->room = (size_t)((char *)&attr - (char *)lowest);
	large[0] = 1;
	pthread_attr_destroy(&attr);
	return NULL;
}

/* Small, and yet with room for a program's handler of a fault, whatever thread-local variables the program has. */
static void thread__stack_is_small_and_has_room(void **state)
{
	struct stack stack;
	pthread_t thread;

	(void)state;
	assert_int_equal(aw_thread_create(&thread, measure, &stack), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_in_range(stack.room, ROOM_MIN, STACK_MAX);
	assert_in_range(stack.bytes, sizeof(large), sizeof(large) + STACK_MAX);
}

/* As systemd's SystemCallFilter=~@resources: the kernel ends the process for the call. */
static void filter_resources(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_sched_setattr, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog filter = { .len = sizeof(code) / sizeof(code[0]), .filter = code };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0)
		_exit(EXIT_SKIPPED);
}

static void thread__a_filter_does_not_end_the_process_for_its_slice(void **state)
{
	pid_t child = fork();
	int status;

	(void)state;
	if (child == 0) {
		filter_resources();
		aw_thread_shorten_slice();
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == EXIT_SKIPPED)
		skip();
	assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(thread__signals_are_the_programs, setup),
		cmocka_unit_test_setup(thread__error_leaves_the_callers_signals, setup),
		cmocka_unit_test_setup(thread__stack_is_small_and_has_room, setup),
		cmocka_unit_test(thread__a_filter_does_not_end_the_process_for_its_slice),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
