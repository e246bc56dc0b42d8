// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The pipes of the bells: which file is taken for one, what the other end's end does, and that nothing is left behind.
#define _GNU_SOURCE /* unshare */
#include "../lib/proc.h"
#include "net/qp/bells.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define FLOOD 100000 /* more than a pipe holds */
#define READS_MAX 16 /* of 64 KiB */

/* Both ends, which are one process. */
struct scene {
	struct aw_bells responder, initiator;
	struct aw_bells_name names[2];
	int fds;
};

static int setup(void **state)
{
	struct scene *s = calloc(1, sizeof(*s));

	s->fds = proc_fds();
	aw_bells_make(&s->responder, s->names);
	*state = s;
	return s->responder.own < 0 || !aw_bells_open(&s->initiator, (uint32_t)getpid(), s->names);
}

static int teardown(void **state)
{
	struct scene *s = *state;
	int left;

	aw_bells_close(&s->responder);
	aw_bells_close(&s->initiator);
	left = proc_fds() - s->fds;
	free(s);
	return left;
}

static void bells__each_end_hears_the_other(void **state)
{
	struct scene *s = *state;

	aw_bells_ring(&s->initiator);
	assert_false(aw_bells_drain(&s->initiator));
	assert_true(aw_bells_drain(&s->responder));
	assert_false(aw_bells_drain(&s->responder));
	aw_bells_ring(&s->responder);
	assert_false(aw_bells_drain(&s->responder));
	assert_true(aw_bells_drain(&s->initiator));
	assert_int_equal(proc_fds() - s->fds, 4);
}

/* A ring of a full pipe does not wait. */
static void bells__a_flood(void **state)
{
	struct scene *s = *state;
	int reads = 0;

	for (int i = 0; i < FLOOD; i++)
		aw_bells_ring(&s->initiator);
	while (aw_bells_drain(&s->responder))
		reads++;
	assert_in_range(reads, 1, FLOOD / 256);
	aw_bells_ring(&s->initiator);
	assert_true(aw_bells_drain(&s->responder));
}

/* The other end may make the pipe larger. */
static void bells__a_flood_in_bulk(void **state)
{
	static const uint8_t flood[65536];
	struct scene *s = *state;
	int reads = 0;

	assert_int_equal(fcntl(s->initiator.peers, F_SETPIPE_SZ, sizeof(flood)), sizeof(flood));
	assert_int_equal(write(s->initiator.peers, flood, sizeof(flood)), sizeof(flood));
	while (aw_bells_drain(&s->responder))
		reads++;
	assert_in_range(reads, 1, READS_MAX);
}

/* SIGPIPE would end the process. */
static void bells__the_other_end_is_gone(void **state)
{
	struct scene *s = *state;

	assert_ptr_equal(signal(SIGPIPE, SIG_DFL), SIG_DFL);
	aw_bells_close(&s->initiator);
	aw_bells_ring(&s->responder);
	assert_false(aw_bells_drain(&s->responder));
}

static void assert_refused_of(uint32_t pid, const struct aw_bells_name names[2])
{
	struct aw_bells bells;
	int before = proc_fds();

	assert_false(aw_bells_open(&bells, pid, names));
	assert_int_equal(bells.own, -1);
	assert_int_equal(bells.peers, -1);
	assert_int_equal(proc_fds(), before);
}

static void assert_refused(const struct scene *s)
{
	assert_refused_of((uint32_t)getpid(), s->names);
}

static void bells_open__another_file(void **state)
{
	struct scene *s = *state;
	struct aw_bells_name names[2] = { s->names[0], s->names[1] };
	struct stat st;

	for (int i = 0; i < 2; i++) {
		s->names[i].inode++;
		assert_refused(s);
		s->names[i].inode--;
		s->names[i].fd = 123456;
		assert_refused(s);
		/* A file that is no pipe, under its own inode's number. */
		s->names[i].fd = (uint32_t)open("/dev/null", O_RDWR | O_CLOEXEC);
		assert_int_equal(fstat((int)s->names[i].fd, &st), 0);
		s->names[i].inode = st.st_ino;
		assert_refused(s);
		close((int)s->names[i].fd);
		s->names[i] = names[i];
	}
	assert_refused_of(UINT32_MAX, s->names);
}

/* What the process in the other namespace says of itself, as the test's namespace sees it. */
struct stranger {
	uint32_t pid;
	struct aw_bells_name names[2];
};

/* Makes pipes in a process of a new PID namespace, which lives until the test's end of hold is closed. */
static void run_stranger(int tell, int hold)
{
	struct stranger told = { 0 };
	struct aw_bells bells;
	int ready[2];
	uint8_t octet;

	if (unshare(CLONE_NEWUSER | CLONE_NEWPID) != 0 && unshare(CLONE_NEWPID) != 0)
		_exit(1);
	if (pipe(ready) != 0)
		_exit(1);
	told.pid = (uint32_t)fork();
	if (told.pid == 0) {
		aw_bells_make(&bells, told.names);
		(void)!write(ready[1], told.names, sizeof(told.names));
		(void)!read(hold, &octet, 1);
		_exit(0);
	}
	if (read(ready[0], told.names, sizeof(told.names)) == sizeof(told.names))
		(void)!write(tell, &told, sizeof(told));
	_exit(0);
}

static void bells_open__another_pid_namespace(void **state)
{
	struct stranger told;
	int tell[2], hold[2];
	pid_t child;
	ssize_t n;

	(void)state;
	assert_int_equal(pipe(tell), 0);
	assert_int_equal(pipe(hold), 0);
	child = fork();
	if (child == 0) {
		close(hold[1]);
		run_stranger(tell[1], hold[0]);
	}
	close(tell[1]);
	n = read(tell[0], &told, sizeof(told));
	if (n == sizeof(told))
		assert_refused_of(told.pid, told.names);
	close(tell[0]);
	close(hold[0]);
	close(hold[1]);
	waitpid(child, NULL, 0);
	if (n != sizeof(told))
		skip();
}

static void bells__as_many_as_there_are_places(void **state)
{
	struct scene *s = *state;
	struct aw_bells more[AW_BELLS_MAX];
	struct aw_bells_name names[2];
	int made = 2; /* the scene's */

	for (; made < (int)aw_bells_places(); made++) {
		aw_bells_make(&more[made], names);
		assert_true(more[made].own >= 0);
	}
	aw_bells_make(&more[0], names);
	assert_int_equal(more[0].own, -1);
	assert_refused(s);
	aw_bells_close(&more[--made]);
	assert_true(aw_bells_open(&more[made], (uint32_t)getpid(), s->names));
	while (made >= 2)
		aw_bells_close(&more[made--]);
}

/* Of the fds that the process may have a quarter is pipes at the most. */
static void bells__fewer_where_fds_are_few(void **state)
{
	struct rlimit before, few;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	few = (struct rlimit){ .rlim_cur = 64, .rlim_max = before.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	assert_int_equal(aw_bells_places(), 64 / 8);
	few.rlim_cur = before.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	assert_true(aw_bells_places() <= AW_BELLS_MAX);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(bells__each_end_hears_the_other, setup, teardown),
		cmocka_unit_test_setup_teardown(bells__a_flood, setup, teardown),
		cmocka_unit_test_setup_teardown(bells__a_flood_in_bulk, setup, teardown),
		cmocka_unit_test_setup_teardown(bells__the_other_end_is_gone, setup, teardown),
		cmocka_unit_test_setup_teardown(bells_open__another_file, setup, teardown),
		cmocka_unit_test_setup_teardown(bells_open__another_pid_namespace, setup, teardown),
		cmocka_unit_test_setup_teardown(bells__as_many_as_there_are_places, setup,
						teardown),
		cmocka_unit_test(bells__fewer_where_fds_are_few),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
