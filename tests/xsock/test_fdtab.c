// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The table of fds: what it forgets, shares and notices.
#include "xsock/process/fdtab.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static int settled;

/* The table calls it before a fork. */
static void count_settled(void)
{
	settled++;
}

static int told; /* by note_step: 1: no thread was in a step, 2: one was */

/* The table calls it in the child of a fork. */
static void note_step(bool in_step)
{
	told = in_step ? 2 : 1;
}

const struct aw_fdtab_hooks aw_fdtab_hooks = { .settle = count_settled, .renew_locks = note_step };

static int new_socket(enum aw_fd_state state)
{
	bool starts = state == AW_FD_STARTING; /* a socket does not begin so */
	struct aw_sock like = { .state = starts ? AW_FD_PENDING : state, .mode = AW_XS_ON };
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	assert_true(fd >= 0);
	assert_true(aw_fdtab_add(fd, &like));
	aw_fdtab_lock();
	if (starts)
		aw_fdtab_set_state(aw_fdtab_get(fd), AW_FD_STARTING);
	aw_fdtab_unlock();
	return fd;
}

static void end_socket(int fd)
{
	aw_fdtab_forget(fd);
	close(fd);
}

/* As dup2(2). */
static int change_number(int fd, int from)
{
	struct aw_change change;

	aw_fdtab_begin_change(&change, fd, from);
	return aw_fdtab_end_change(&change, fd < AW_FDTAB_MAX ? dup2(from, fd) : fd);
}

/* As dup(2). */
static int copy_number(int from)
{
	struct aw_change change;

	aw_fdtab_begin_change(&change, -1, from);
	return aw_fdtab_end_change(&change, dup(from));
}

static struct aw_sock *get(int fd)
{
	struct aw_sock *sock;

	aw_fdtab_lock();
	sock = aw_fdtab_get(fd);
	aw_fdtab_unlock();
	return sock;
}

static void fdtab__knows_nothing_of_other_fds(void **state)
{
	(void)state;
	assert_int_equal(aw_fdtab_state(0), AW_FD_NONE);
	assert_int_equal(aw_fdtab_state(-1), AW_FD_NONE);
	assert_int_equal(aw_fdtab_state(AW_FDTAB_MAX), AW_FD_NONE);
	assert_null(get(0));
	assert_null(get(-1));
	assert_null(get(AW_FDTAB_MAX));
}

/* A handler of a signal may open and close connections while its program is in malloc. */
static void fdtab__is_not_in_mallocs_memory(void **state)
{
	struct mallinfo2 before, after;
	int fds[100];

	(void)state;
	before = mallinfo2();
	for (int i = 0; i < 100; i++)
		fds[i] = new_socket(AW_FD_PENDING);
	after = mallinfo2();
	assert_int_equal(before.uordblks, after.uordblks);
	for (int i = 0; i < 100; i++)
		end_socket(fds[i]);
	assert_false(aw_fdtab_any_undecided());
}

static void fdtab__refuses_a_number_beyond_it(void **state)
{
	struct aw_sock like = { .state = AW_FD_PENDING };

	(void)state;
	assert_false(aw_fdtab_add(AW_FDTAB_MAX, &like));
	assert_false(aw_fdtab_add(-1, &like));
	aw_fdtab_mark(AW_FDTAB_MAX);
	aw_fdtab_forget(AW_FDTAB_MAX);
	assert_int_equal(change_number(AW_FDTAB_MAX, 0), AW_FDTAB_MAX);
	assert_false(aw_fdtab_any_undecided());
}

static void fdtab__counts_what_is_undecided(void **state)
{
	int first = new_socket(AW_FD_PENDING), second = new_socket(AW_FD_CANDIDATE);

	(void)state;
	assert_true(aw_fdtab_any_undecided());
	assert_true(aw_fdtab_is_undecided(first));
	assert_false(aw_fdtab_is_undecided(second));
	end_socket(first);
	assert_false(aw_fdtab_any_undecided());
	end_socket(second);
}

static void fdtab__shares_a_socket_among_its_fds(void **state)
{
	int fd = new_socket(AW_FD_PENDING), other = copy_number(fd);
	struct aw_sock *sock;

	(void)state;
	sock = get(fd);
	assert_ptr_equal(get(other), sock);
	aw_fdtab_lock();
	aw_fdtab_set_state(sock, AW_FD_STARTING);
	aw_fdtab_unlock();
	aw_fdtab_lock();
	assert_int_equal(aw_fdtab_next_fd(sock, -1), fd);
	assert_int_equal(aw_fdtab_next_fd(sock, fd), other);
	assert_int_equal(aw_fdtab_next_fd(sock, other), -1);
	aw_fdtab_set_state(sock, AW_FD_BRIDGED);
	aw_fdtab_unlock();
	assert_int_equal(aw_fdtab_state(other), AW_FD_BRIDGED);
	end_socket(fd);
	assert_ptr_equal(get(other), sock);
	end_socket(other);
}

static void fdtab__a_copy_of_a_plain_fd_forgets(void **state)
{
	int fd = new_socket(AW_FD_PENDING), plain = socket(AF_INET, SOCK_STREAM, 0);

	(void)state;
	assert_int_equal(change_number(fd, plain), fd);
	assert_int_equal(aw_fdtab_state(fd), AW_FD_NONE);
	assert_false(aw_fdtab_any_undecided());
	close(fd);
	close(plain);
}

/* Another thread has made the socket plain TCP between the kernel's dup(2) and the end of the wrapper. */
static void fdtab__a_copy_of_what_is_plain_by_now_is_plain(void **state)
{
	int fd = new_socket(AW_FD_PENDING), copy;
	struct aw_change change;

	(void)state;
	aw_fdtab_begin_change(&change, -1, fd);
	copy = dup(fd);
	aw_fdtab_lock();
	aw_fdtab_drop(aw_fdtab_get(fd));
	aw_fdtab_unlock();
	assert_int_equal(aw_fdtab_end_change(&change, copy), copy);
	assert_int_equal(aw_fdtab_state(copy), AW_FD_NONE);
	assert_null(get(copy));
	close(copy);
	close(fd);
}

static void fdtab__a_number_that_leaves_comes_back_where_the_call_fails(void **state)
{
	int fd = new_socket(AW_FD_PENDING);
	struct aw_sock *sock = get(fd);
	struct aw_change change;

	(void)state;
	aw_fdtab_begin_change(&change, fd, -1);
	assert_int_equal(aw_fdtab_state(fd), AW_FD_LEAVING);
	assert_null(get(fd));
	assert_int_equal(aw_fdtab_end_change(&change, -1), -1);
	assert_int_equal(aw_fdtab_state(fd), AW_FD_PENDING);
	assert_ptr_equal(get(fd), sock);
	end_socket(fd);
}

/* The first thread is in close(2) yet, whose SO_LINGER waits, when the number is free, and when it is another socket's. */
static void fdtab__a_change_is_over_when_the_kernel_s_is(void **state)
{
	int fd = new_socket(AW_FD_PENDING);
	struct aw_change change;

	(void)state;
	aw_fdtab_begin_change(&change, fd, -1);
	close(fd);
	aw_fdtab_await_left(fd);
	assert_int_equal(aw_fdtab_state(fd), AW_FD_NONE);
	assert_int_equal(new_socket(AW_FD_CANDIDATE), fd);
	(void)aw_fdtab_end_change(&change, 0);
	assert_int_equal(aw_fdtab_state(fd), AW_FD_CANDIDATE);
	end_socket(fd);
	assert_false(aw_fdtab_any_undecided());
}

/* The parent's thread does not end its change in the child: there the call came before the fork. */
static void fdtab__a_number_that_leaves_is_closed_in_a_child(void **state)
{
	int fd = new_socket(AW_FD_PENDING), status;
	struct aw_change change;
	pid_t pid;

	(void)state;
	aw_fdtab_begin_change(&change, fd, -1);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		_exit(aw_fdtab_state(fd) != AW_FD_NONE || fcntl(fd, F_GETFD) >= 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(aw_fdtab_state(fd), AW_FD_LEAVING);
	close(fd);
	(void)aw_fdtab_end_change(&change, 0);
	assert_int_equal(aw_fdtab_state(fd), AW_FD_NONE);
	assert_false(aw_fdtab_any_undecided());
}

/* libc closes an fd by itself, and the number comes back as another file. */
static void fdtab__notices_a_number_used_again(void **state)
{
	int fd = new_socket(AW_FD_PENDING), other = socket(AF_INET, SOCK_STREAM, 0);

	(void)state;
	dup2(other, fd);
	assert_null(get(fd));
	assert_int_equal(aw_fdtab_state(fd), AW_FD_NONE);
	assert_false(aw_fdtab_any_undecided());
	close(fd);
	close(other);
}

static void fdtab__hides_its_own(void **state)
{
	int fd = dup(0);

	(void)state;
	aw_fdtab_hide(fd);
	assert_int_equal(aw_fdtab_state(fd), AW_FD_INTERNAL);
	end_socket(fd);
}

/* Who holds a socket has it after its last fd is gone. */
static void fdtab__a_held_socket_stays(void **state)
{
	int fd = new_socket(AW_FD_STARTING);
	struct aw_sock *sock;

	(void)state;
	aw_fdtab_lock();
	sock = aw_fdtab_get(fd);
	aw_fdtab_hold(sock);
	aw_fdtab_unlock();
	end_socket(fd);
	assert_true(aw_fdtab_any_undecided());
	aw_fdtab_lock();
	aw_fdtab_set_state(sock, AW_FD_BRIDGED);
	aw_fdtab_release(sock);
	aw_fdtab_unlock();
	assert_false(aw_fdtab_any_undecided());
}

/* The child of vfork has our memory and other fds. */
static void fdtab__a_child_of_vfork_changes_nothing(void **state)
{
	int fd = new_socket(AW_FD_PENDING), status;
	pid_t pid = vfork();

	(void)state;
	if (pid == 0) {
		aw_fdtab_forget(fd);
		(void)change_number(fd, 0);
		aw_fdtab_mark(fd);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(aw_fdtab_state(fd), AW_FD_PENDING);
	end_socket(fd);
}

static uint64_t ino_of(int fd)
{
	struct stat file;

	return fstat(fd, &file) == 0 ? file.st_ino : 0;
}

/* The steps of a test of forks, in the order in which its threads have made them. */
static _Atomic(int) places;
static int ended_at, forked_at, began_at;

static void *step_behind_fork(void *unused)
{
	(void)unused;
	aw_fdtab_begin_step();
	began_at = ++places;
	aw_fdtab_end_step();
	return NULL;
}

static void *fork_beside_step(void *status)
{
	pthread_t stepper;
	pid_t pid;

	aw_fdtab_fork_begin();
	forked_at = ++places;
	assert_int_equal(pthread_create(&stepper, NULL, step_behind_fork, NULL), 0);
	pid = fork();
	if (pid == 0)
		_exit(told);
	for (int i = 0; i < 1000; i++)
		sched_yield();
	assert_int_equal(waitpid(pid, status, 0), pid);
	places++;
	aw_fdtab_fork_end();
	assert_int_equal(pthread_join(stepper, NULL), 0);
	return NULL;
}

static void fdtab__a_fork_waits_for_a_step_and_it_for_the_fork(void **state)
{
	pthread_t forker;
	int status;

	(void)state;
	aw_fdtab_begin_step();
	assert_int_equal(pthread_create(&forker, NULL, fork_beside_step, &status), 0);
	for (int i = 0; i < 1000; i++)
		sched_yield();
	ended_at = ++places;
	aw_fdtab_end_step();
	assert_int_equal(pthread_join(forker, NULL), 0);
	assert_int_equal(WEXITSTATUS(status), 1);
	assert_int_equal(ended_at, 1);
	assert_int_equal(forked_at, 2);
	assert_int_equal(began_at, 4);
}

static void fdtab__a_child_is_told_of_a_step_that_was_under_way(void **state)
{
	int status;
	pid_t pid;

	(void)state;
	aw_fdtab_begin_step();
	pid = fork();
	if (pid == 0) {
		aw_fdtab_fork_begin(); /* does not wait for the parent's thread */
		_exit(told);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	aw_fdtab_end_step();
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 2);
}

/* What connects is who forks's: the child's fds are of a socket that never was connected. */
static void expect_child(int fd, int copy, bool connects)
{
	uint64_t ino = ino_of(fd);
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (pid == 0) {
		bool same = ino_of(fd) == ino && ino_of(copy) == ino, known = get(fd) && get(copy);
		bool alike = ino_of(fd) && ino_of(fd) == ino_of(copy);

		_exit(connects ? !(same && known) : same || known || !alike);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(ino_of(fd), ino);
	assert_non_null(get(fd));
}

static void fdtab__what_connects_stays_with_who_forks(void **state)
{
	int fd = new_socket(AW_FD_CONNECTING), copy = copy_number(fd);

	(void)state;
	expect_child(fd, copy, false);
	aw_fdtab_set_parent_exits(true); /* daemon(3) */
	expect_child(fd, copy, true);
	aw_fdtab_set_parent_exits(false);
	expect_child(fd, copy, false);
	end_socket(copy);
	end_socket(fd);
}

static void fdtab__a_forked_child_has_its_own(void **state)
{
	int fd = new_socket(AW_FD_PENDING), status, before = settled;
	pid_t pid = fork();

	(void)state;
	if (pid == 0) {
		aw_fdtab_forget(fd);
		_exit(aw_fdtab_state(fd) == AW_FD_NONE && !aw_fdtab_any_undecided() ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(aw_fdtab_state(fd), AW_FD_PENDING);
	assert_true(settled > before);
	end_socket(fd);
}

static void *wait_for_start(void *arg)
{
	struct aw_sock *sock = arg;

	aw_fdtab_lock();
	while (sock->state == AW_FD_STARTING)
		aw_fdtab_await_change();
	aw_fdtab_unlock();
	return arg;
}

static void fdtab__wakes_who_waits_for_a_start(void **state)
{
	int fd = new_socket(AW_FD_STARTING);
	struct aw_sock *sock = get(fd);
	pthread_t thread;
	void *result;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, wait_for_start, sock), 0);
	aw_fdtab_lock();
	aw_fdtab_set_state(sock, AW_FD_BRIDGED);
	aw_fdtab_unlock();
	assert_int_equal(pthread_join(thread, &result), 0);
	assert_ptr_equal(result, sock);
	end_socket(fd);
}

/* A child has what its parent has accepted, where both have its slot. */
static void fdtab__an_accepted_socket_is_shared_by_a_fork(void **state)
{
	int fd = new_socket(AW_FD_PENDING), copy = copy_number(fd);

	(void)state;
	expect_child(fd, copy, false);
	get(fd)->shared = true;
	expect_child(fd, copy, true);
	end_socket(copy);
	end_socket(fd);
}

static bool is_pending(const struct aw_sock *sock, int fd, const void *arg)
{
	(void)fd;
	(void)arg;
	return sock->state == AW_FD_PENDING;
}

static void fdtab__finds_the_next_that_is_wanted(void **state)
{
	int first = new_socket(AW_FD_PENDING), other = new_socket(AW_FD_BRIDGED),
	    second = new_socket(AW_FD_PENDING);

	(void)state;
	assert_true(first < other && other < second);
	assert_int_equal(aw_fdtab_find(0, is_pending, NULL), first);
	assert_int_equal(aw_fdtab_find(first, is_pending, NULL), first);
	assert_int_equal(aw_fdtab_find(first + 1, is_pending, NULL), second);
	assert_int_equal(aw_fdtab_find(second + 1, is_pending, NULL), -1);
	end_socket(first);
	end_socket(other);
	end_socket(second);
}

/* What follows each state, told once more than in fd_state.h; from NONE: in what a socket may begin. */
static const char *const follows[AW_FD_STATES] = {
	[AW_FD_NONE] = "candidate listener bridged framed connecting pending",
	[AW_FD_CANDIDATE] = "none connecting pending starting",
	[AW_FD_LISTENER] = "none pending starting",
	[AW_FD_BRIDGED] = "none",
	[AW_FD_INTERNAL] = "",
	[AW_FD_FRAMED] = "none starting",
	[AW_FD_CONNECTING] = "none candidate pending starting",
	[AW_FD_PENDING] = "none pending starting",
	[AW_FD_STARTING] = "none candidate bridged framed pending",
	[AW_FD_LEAVING] = "",
};
static const char *const names[AW_FD_STATES] = {
	"none",	  "candidate",	"listener", "bridged",	"internal",
	"framed", "connecting", "pending",  "starting", "leaving",
};

static void fd_state__has_these_arrows_and_no_other(void **state)
{
	(void)state;
	for (int from = 0; from < AW_FD_STATES; from++)
		for (int to = 0; to < AW_FD_STATES; to++)
			assert_int_equal(aw_fd_state_leads_to((enum aw_fd_state)from,
							      (enum aw_fd_state)to),
					 strstr(follows[from], names[to]) != NULL);
}

/* Returns how a child ends that takes a socket from one state to another; from NONE: that adds one. */
static int status_of_arrow(enum aw_fd_state from, enum aw_fd_state to)
{
	pid_t pid = fork();
	int status = 0;

	if (pid == 0) {
		setrlimit(RLIMIT_CORE, &(struct rlimit){ 0 });
		signal(SIGABRT, SIG_DFL);
		dup2(open("/dev/null", O_WRONLY), STDERR_FILENO);
		if (from == AW_FD_NONE)
			_exit(new_socket(to) < 0);
		aw_fdtab_set_state(get(new_socket(from)), to);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static bool is_aborted(int status)
{
	return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

static void fdtab__asserts_the_arrow(void **state)
{
	(void)state;
	assert_int_equal(status_of_arrow(AW_FD_NONE, AW_FD_BRIDGED), 0);
	assert_true(is_aborted(status_of_arrow(AW_FD_NONE, AW_FD_LEAVING)));
	assert_int_equal(status_of_arrow(AW_FD_STARTING, AW_FD_FRAMED), 0);
	assert_true(is_aborted(status_of_arrow(AW_FD_PENDING, AW_FD_FRAMED)));
	assert_true(is_aborted(status_of_arrow(AW_FD_BRIDGED, AW_FD_FRAMED)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fdtab__knows_nothing_of_other_fds),
		cmocka_unit_test(fdtab__is_not_in_mallocs_memory),
		cmocka_unit_test(fdtab__refuses_a_number_beyond_it),
		cmocka_unit_test(fdtab__counts_what_is_undecided),
		cmocka_unit_test(fdtab__shares_a_socket_among_its_fds),
		cmocka_unit_test(fdtab__a_copy_of_a_plain_fd_forgets),
		cmocka_unit_test(fdtab__a_copy_of_what_is_plain_by_now_is_plain),
		cmocka_unit_test(fdtab__a_number_that_leaves_comes_back_where_the_call_fails),
		cmocka_unit_test(fdtab__a_change_is_over_when_the_kernel_s_is),
		cmocka_unit_test(fdtab__a_number_that_leaves_is_closed_in_a_child),
		cmocka_unit_test(fdtab__notices_a_number_used_again),
		cmocka_unit_test(fdtab__hides_its_own),
		cmocka_unit_test(fdtab__a_held_socket_stays),
		cmocka_unit_test(fdtab__a_child_of_vfork_changes_nothing),
		cmocka_unit_test(fdtab__a_forked_child_has_its_own),
		cmocka_unit_test(fdtab__what_connects_stays_with_who_forks),
		cmocka_unit_test(fdtab__a_fork_waits_for_a_step_and_it_for_the_fork),
		cmocka_unit_test(fdtab__a_child_is_told_of_a_step_that_was_under_way),
		cmocka_unit_test(fdtab__wakes_who_waits_for_a_start),
		cmocka_unit_test(fdtab__an_accepted_socket_is_shared_by_a_fork),
		cmocka_unit_test(fdtab__finds_the_next_that_is_wanted),
		cmocka_unit_test(fd_state__has_these_arrows_and_no_other),
		cmocka_unit_test(fdtab__asserts_the_arrow),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
