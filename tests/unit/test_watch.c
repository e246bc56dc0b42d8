// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Watches, deadlines, the tick and the engine under them: what fires, what does not any more, and
// what is left when all is over.
#include "net/progress/engine.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../lib/emulated.h"
#include "../lib/proc.h"
#include "../lib/pwait2.h"
#include "../lib/watch_probe.h"
#include "base/clock.h"
#include "net/base/fork.h"

/* Linked in by the thread sanitizer, which cannot follow threads that a forked child starts. */
extern void __tsan_init(void) __attribute__((weak));

static _Atomic int refusal; /* errno of a kernel or a sandbox that has no epoll_pwait2, or 0 */
static _Atomic uint32_t refused; /* calls, then */

/* Before the C library's. */
int epoll_pwait2(int epfd, struct epoll_event *events, int max, const struct timespec *timeout,
		 const sigset_t *mask)
{
	if (refusal) {
		refused++;
		errno = refusal;
		return -1;
	}
	return pwait2_call(epfd, events, max, timeout, mask);
}

static int readable_fd(void)
{
	return eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);
}

static void watch_add__event_arrives(void **state)
{
	struct probe *p = *state;
	int fd = readable_fd();

	assert_int_equal(aw_watch_add(&p->watch, fd, EPOLLIN, on_watch, on_release), 0);
	await(&p->calls, 1);
	assert_int_equal(p->events, EPOLLIN);
	aw_watch_remove_wait(&p->watch);
	assert_int_equal(p->released, 1);
	close(fd);
}

static void watch_add__bad_fds(void **state)
{
	struct probe *p = *state;
	int fd = eventfd(0, EFD_CLOEXEC);

	assert_int_equal(aw_watch_add(&p->watch, 1000000, EPOLLIN, on_watch, on_release), EBADF);
	assert_int_equal(aw_watch_add(&p->watch, fd, EPOLLIN, on_watch, on_release), 0);
	struct probe second = { .calls = 0 };

	assert_int_equal(aw_watch_add(&second.watch, fd, EPOLLIN, on_watch, on_release), EEXIST);
	aw_watch_remove_wait(&p->watch);
	assert_int_equal(second.released, 0);
	close(fd);
}

static void watch_events__none_and_again(void **state)
{
	struct probe *p = *state;
	int ends[2];

	assert_int_equal(pipe(ends), 0);
	assert_int_equal(aw_watch_add(&p->watch, ends[0], 0, on_watch, on_release), 0);
	close(ends[1]); /* a hang-up, which nobody asked for */
	aw_watch_deadline(&p->watch, 5);
	await(&p->calls, 1);
	assert_int_equal(p->events, AW_WATCH_TIMEOUT);
	aw_watch_events(&p->watch, EPOLLIN);
	await(&p->calls, 2);
	assert_int_equal(p->events, AW_WATCH_TIMEOUT | EPOLLHUP);
	aw_watch_remove_wait(&p->watch);
	close(ends[0]);
}

static void watch_drop_fd__fd_is_free_and_deadline_runs(void **state)
{
	struct probe *p = *state;
	struct probe second = { .calls = 0 };
	int fd = readable_fd();

	assert_int_equal(aw_watch_add(&p->watch, fd, EPOLLPRI, on_watch, on_release), 0);
	aw_watch_drop_fd(&p->watch);
	assert_int_equal(aw_watch_add(&second.watch, fd, EPOLLIN, on_watch, NULL), 0);
	await(&second.calls, 1);
	uint32_t before = p->calls;

	aw_watch_deadline(&p->watch, 1);
	await(&p->calls, before + 1);
	assert_true(p->events & AW_WATCH_TIMEOUT);
	aw_watch_remove_wait(&p->watch);
	/* That did not touch the fd of the second. */
	before = second.calls;
	aw_watch_events(&second.watch, EPOLLIN);
	await(&second.calls, before + 1);
	aw_watch_remove_wait(&second.watch);
	close(fd);
}

static void watch_deadline__fires_not_early(void **state)
{
	struct probe *p = *state;
	uint64_t start = aw_now_ns();

	assert_int_equal(aw_watch_add(&p->watch, -1, 0, on_watch, on_release), 0);
	aw_watch_deadline(&p->watch, 20);
	await(&p->calls, 1);
	assert_true(aw_now_ns() - start >= 20000000);
	aw_watch_remove_wait(&p->watch);
}

static void watch_deadline__order_cancel_and_replace(void **state)
{
	struct probe late = { .calls = 0 }, off = { .calls = 0 }, soon = { .calls = 0 };

	(void)state;
	assert_int_equal(aw_watch_add(&late.watch, -1, 0, on_watch, on_release), 0);
	assert_int_equal(aw_watch_add(&off.watch, -1, 0, on_watch, on_release), 0);
	assert_int_equal(aw_watch_add(&soon.watch, -1, 0, on_watch, on_release), 0);
	aw_engine_fork_prepare(); /* however long this thread takes, none comes meanwhile */
	aw_watch_deadline(&late.watch, 60000);
	aw_watch_deadline(&off.watch, 3);
	aw_watch_deadline(&off.watch, 0);
	aw_watch_deadline(&soon.watch, 10);
	aw_engine_fork_done();
	await(&soon.calls, 1);
	assert_int_equal(late.calls, 0);
	assert_int_equal(off.calls, 0);
	aw_watch_deadline(&late.watch, 1);
	await(&late.calls, 1);
	aw_watch_remove_wait(&late.watch);
	aw_watch_remove_wait(&off.watch);
	aw_watch_remove_wait(&soon.watch);
	assert_int_equal(late.released + off.released + soon.released, 3);
}

static void watch_deadline__set_again_by_the_handler(void **state)
{
	struct probe *p = *state;

	p->again_ms = 1;
	assert_int_equal(aw_watch_add(&p->watch, -1, 0, on_watch, on_release), 0);
	aw_watch_deadline(&p->watch, 1);
	await(&p->calls, 3);
	aw_watch_remove_wait(&p->watch);
}

static void watch_remove__from_the_handler(void **state)
{
	struct probe *p = *state;
	int fd = readable_fd();

	p->remove_self = true;
	assert_int_equal(aw_watch_add(&p->watch, fd, EPOLLIN, on_watch, on_release), 0);
	await(&p->released, 1);
	assert_int_equal(p->calls, 1);
	close(fd);
}

static void watch_remove__release_waits_for_the_handler(void **state)
{
	struct probe *p = *state;
	int fd = readable_fd();

	p->hold = true;
	assert_int_equal(aw_watch_add(&p->watch, fd, EPOLLIN, on_watch, on_release), 0);
	until(p->holding);
	aw_watch_remove(&p->watch);
	assert_int_equal(p->released, 0);
	p->hold = false;
	await(&p->released, 1);
	close(fd);
}

static void *let_go(void *arg)
{
	struct probe *p = arg;

	for (int i = 0; i < 100; i++)
		sched_yield();
	p->hold = false;
	return NULL;
}

static void watch_remove_wait__waits_for_the_handler(void **state)
{
	struct probe *p = *state;
	int fd = readable_fd();
	pthread_t thread;

	p->hold = true;
	assert_int_equal(aw_watch_add(&p->watch, fd, EPOLLIN, on_watch, on_release), 0);
	until(p->holding);
	pthread_create(&thread, NULL, let_go, p);
	aw_watch_remove_wait(&p->watch);
	assert_int_equal(p->calls, 1);
	assert_int_equal(p->released, 1);
	pthread_join(thread, NULL);
	close(fd);
}

/* The engine. */

static _Atomic uint32_t ticks;

static uint64_t three_ticks(uint64_t now_ns)
{
	return ++ticks % 3 != 0 ? now_ns + 1 : 0;
}

static void engine_tick__runs_when_it_says(void **state)
{
	(void)state;
	ticks = 0;
	aw_engine_fork_prepare(); /* a new thread runs its ticks once without a kick */
	aw_engine_set_tick(AW_TICK_SERVE, three_ticks);
	aw_engine_kick_tick();
	aw_engine_fork_done();
	await(&ticks, 3);
	aw_engine_set_tick(AW_TICK_SERVE, NULL);
	assert_int_equal(ticks, 3);
}

static uint64_t three_slow_ticks(uint64_t now_ns)
{
	return ++ticks % 3 != 0 ? now_ns + 5000000 : 0;
}

static void expect_slow_ticks_without_pwait2(int err)
{
	ticks = refused = 0;
	refusal = err;
	aw_engine_set_tick(AW_TICK_SERVE, three_slow_ticks);
	aw_engine_kick_tick();
	await(&ticks, 3);
	aw_engine_set_tick(AW_TICK_SERVE, NULL);
	refusal = 0;
	assert_int_equal(refused, 1);
}

static void engine_tick__sleeps_before_5_11_as_well(void **state)
{
	(void)state;
	expect_slow_ticks_without_pwait2(ENOSYS);
}

/* Old seccomp profiles of containers answer so to system calls they do not know. */
static void engine_tick__sleeps_in_an_old_sandbox_as_well(void **state)
{
	(void)state;
	expect_slow_ticks_without_pwait2(EPERM);
}

static int base_threads; /* without an engine */

static void *tell_tid(void *tid)
{
	*(long *)tid = syscall(SYS_gettid);
	return NULL;
}

/* The thread sanitizer starts a thread of its own beside the program's first, which must leave the list. */
static void count_base_threads(void)
{
	pthread_t thread;
	char path[64];
	long tid = 0;

	pthread_create(&thread, NULL, tell_tid, &tid);
	pthread_join(thread, NULL);
	snprintf(path, sizeof(path), "/proc/self/task/%ld", tid);
	until(access(path, F_OK) != 0);
	base_threads = proc_threads();
}

/* A joined thread leaves the list a moment later. */
static void await_base_threads(void)
{
	until(proc_threads() == base_threads);
}

static void engine_put__leaves_nothing(void **state)
{
	(void)state;
	await_base_threads();
	for (int i = 0; i < 50; i++) {
		int fds = proc_fds();

		assert_int_equal(aw_engine_get(), 0);
		assert_int_equal(aw_engine_get(), 0);
		assert_int_equal(proc_fds(), fds + 2);
		assert_int_equal(proc_threads(), base_threads + 1);
		aw_engine_put();
		aw_engine_put();
		assert_int_equal(proc_fds(), fds);
		await_base_threads();
	}
}

/* Not before the call is over that set the deadline: until then somebody must hold a reference. */
static void put_in_handler(struct aw_watch *w, uint32_t events)
{
	struct probe *p = (struct probe *)w;

	(void)events;
	while (p->hold)
		sched_yield();
	aw_watch_remove(w);
	aw_engine_put();
}

static void engine_put__on_the_progress_thread(void **state)
{
	struct probe probe = { .hold = true }, *p = &probe;

	(void)state;
	assert_int_equal(aw_engine_get(), 0);
	assert_int_equal(aw_watch_add(&p->watch, -1, 0, put_in_handler, on_release), 0);
	aw_watch_deadline(&p->watch, 1);
	p->hold = false;
	await(&p->released, 1);
	await_base_threads();
	/* And it starts again. */
	assert_int_equal(aw_engine_get(), 0);
	aw_engine_put();
}

static _Atomic bool putting;

static void *put_last(void *unused)
{
	putting = true;
	aw_engine_put();
	putting = false;
	return unused;
}

/* The thread that puts the last reference waits for the progress thread's end, which does not come. */
static void engine_put__while_another_thread_gets(void **state)
{
	pthread_t thread;

	(void)state;
	assert_int_equal(aw_engine_get(), 0);
	aw_engine_fork_prepare();
	assert_int_equal(pthread_create(&thread, NULL, put_last, NULL), 0);
	until(putting && proc_others_sleep());
	assert_int_equal(aw_engine_get(), 0);
	aw_engine_fork_done();
	until(!putting);
	assert_int_equal(pthread_join(thread, NULL), 0);
	aw_engine_put();
}

static void *get_and_put(void *arg)
{
	int *failed = arg;

	for (int i = 0; i < 200; i++) {
		struct probe p = { .calls = 0 };

		*failed |= aw_engine_get();
		*failed |= aw_watch_add(&p.watch, -1, 0, on_watch, on_release);
		aw_watch_deadline(&p.watch, 10000);
		aw_watch_remove_wait(&p.watch);
		aw_engine_put();
	}
	return NULL;
}

static void engine_threads__start_and_stop(void **state)
{
	pthread_t threads[3];
	int failed[3] = { 0 };
	int fds = proc_fds();

	(void)state;
	for (int i = 0; i < 3; i++)
		pthread_create(&threads[i], NULL, get_and_put, &failed[i]);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(failed[0] | failed[1] | failed[2], 0);
	assert_int_equal(proc_fds(), fds);
}

/* Exit status: the number of the step that went wrong. */
static int in_child(struct probe *inherited, uint32_t generation)
{
	struct probe own = { .calls = 0 };
	int threads = proc_threads();

	if (aw_fork_generation() == generation)
		return 1;
	aw_watch_remove_wait(&inherited->watch);
	if (inherited->released != 1 || inherited->calls != 0)
		return 2;
	/* The parent's reference, which the child has too, starts the thread. */
	if (aw_watch_add(&own.watch, -1, 0, on_watch, on_release) != 0)
		return 3;
	aw_watch_deadline(&own.watch, 1);
	await(&own.calls, 1);
	aw_watch_remove_wait(&own.watch);
	aw_engine_put();
	while (proc_threads() != threads)
		sched_yield();
	return 0;
}

static void engine_fork__child_starts_afresh(void **state)
{
	struct probe *p = *state;
	uint32_t generation = aw_fork_generation();
	int status;

	if (__tsan_init || is_emulated())
		skip();
	assert_int_equal(aw_watch_add(&p->watch, -1, 0, on_watch, on_release), 0);
	aw_watch_deadline(&p->watch, 60000);
	pid_t child = fork();

	if (child == 0)
		_exit(in_child(p, generation));
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	/* The parent's engine did not notice. */
	aw_watch_deadline(&p->watch, 1);
	await(&p->calls, 1);
	aw_watch_remove_wait(&p->watch);
}

/* A handler that was due meanwhile runs afterwards. */
static void engine_fork_prepare__no_handler_runs(void **state)
{
	struct probe *p = *state;
	int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

	assert_int_equal(aw_watch_add(&p->watch, fd, EPOLLIN, on_watch, on_release), 0);
	for (int i = 0; i < 100; i++) {
		aw_engine_fork_prepare();

		uint32_t calls = p->calls; /* of the turn before there may be one more until here */

		aw_watch_events(&p->watch, EPOLLIN);
		eventfd_write(fd, 1);
		aw_watch_deadline(&p->watch, 1);
		for (int turn = 0; turn < 100; turn++)
			sched_yield();
		assert_int_equal(p->calls, calls);
		aw_engine_fork_done();
		await(&p->calls, calls + 1);
	}
	aw_watch_remove_wait(&p->watch);
	close(fd);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(watch_add__event_arrives),
		TEST(watch_add__bad_fds),
		TEST(watch_events__none_and_again),
		TEST(watch_drop_fd__fd_is_free_and_deadline_runs),
		TEST(watch_deadline__fires_not_early),
		TEST(watch_deadline__order_cancel_and_replace),
		TEST(watch_deadline__set_again_by_the_handler),
		TEST(watch_remove__from_the_handler),
		TEST(watch_remove__release_waits_for_the_handler),
		TEST(watch_remove_wait__waits_for_the_handler),
		TEST(engine_tick__runs_when_it_says),
		TEST(engine_tick__sleeps_before_5_11_as_well),
		TEST(engine_tick__sleeps_in_an_old_sandbox_as_well),
		cmocka_unit_test(engine_put__leaves_nothing),
		cmocka_unit_test(engine_put__on_the_progress_thread),
		cmocka_unit_test(engine_put__while_another_thread_gets),
		cmocka_unit_test(engine_threads__start_and_stop),
		TEST(engine_fork__child_starts_afresh),
		TEST(engine_fork_prepare__no_handler_runs),
	};

	count_base_threads();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
