// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Orders that no library of ours would give, to a proxy process as it is started: it refuses them, and goes on. Who gives
// them is what root's program has become, where this runs as root.
#include "requests.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "xsock/framed/layout.h"

#ifndef SO_NETNS_COOKIE
#define SO_NETNS_COOKIE 71
#endif

/* The number is no secret: /proc tells it. */
static void request_by_number(const struct scene *s)
{
	static const enum aw_request_kind kinds[] = { AW_REQUEST_GET_OPTION, AW_REQUEST_SET_OPTION,
						      AW_REQUEST_SOCKET, AW_REQUEST_DRAINED,
						      AW_REQUEST_ERROR };
	struct aw_request request;
	struct aw_reply answer;
	struct stat file;
	int other[2];

	CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, other) == 0 && fstat(s->near, &file) == 0);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		request = new_request(kinds[i]);
		request.ino = file.st_ino;
		request.level = SOL_SOCKET;
		request.name = SO_KEEPALIVE;
		request.len = sizeof(int);
		request.value[0] = 1;
		CHECK(ask(s, &request, other, 0, &answer) == NO_ANSWER);
		if (kinds[i] != AW_REQUEST_SET_OPTION && kinds[i] != AW_REQUEST_DRAINED &&
		    kinds[i] != AW_REQUEST_ERROR)
			CHECK(ask(s, &request, other, 1, &answer) == ENOTCONN);
		else
			(void)ask(s, &request, other, 1, &answer);
	}
}

static void number__opens_nothing(void **state)
{
	as_another(request_by_number, *state);
}

/* Its far end, and so its orders, would be another's from there on. */
static void take_name(const struct scene *s)
{
	struct aw_request request = new_request(AW_REQUEST_START);
	struct stat file;
	int ends[2];

	CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0 && fstat(s->near, &file) == 0);
	request.role = 1;
	request.ino = file.st_ino;
	tell(s, &request, (int[]){ dial(s->listener), ends[1] }, 2);
	tell(s, &request, (int[]){ dial(s->listener), ends[1], s->near }, 3);
}

static void name__is_not_given_twice(void **state)
{
	struct scene *s = *state;
	struct aw_reply answer;

	assert_int_equal(option(s, AW_REQUEST_SET_OPTION, s->near, 1, &answer), 0);
	as_another(take_name, s);
	assert_int_equal(keepalive(s), 1);
	assert_int_equal(option(s, AW_REQUEST_SET_OPTION, s->near, 0, &answer), 0);
}

/* A file whose reads wait, or that is no file at all, in each place. */
static void request_with_odd_fds(const struct scene *s)
{
	struct aw_reply answer;
	int pipes[2], pair[2];

	CHECK(pipe(pipes) == 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
	const int odd[] = { pipes[0],
			    pair[0],
			    open("/dev/null", O_RDWR),
			    memfd_create("odd", 0),
			    socket(AF_INET, SOCK_DGRAM, 0),
			    s->control };

	for (int kind = 0; kind < 256; kind++) {
		struct aw_request request = new_request((enum aw_request_kind)kind);

		if (kind == AW_REQUEST_SET_OPTION)
			continue;
		for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
			int fds[] = { odd[i], odd[i], odd[i], odd[i], odd[i] };

			for (int count = 0; count <= 5; count++)
				tell(s, &request, fds, count);
		}
	}
	CHECK(option(s, AW_REQUEST_GET_OPTION, s->near, 0, &answer) == 0);
}

static void fds__are_looked_at(void **state)
{
	as_another(request_with_odd_fds, *state);
}

static void request_with_odd_numbers(const struct scene *s)
{
	static const int32_t odd[] = { -1, INT32_MIN, INT32_MAX, AW_REQUEST_VALUE_MAX + 1 };
	struct aw_reply answer;

	for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
		struct aw_request request = new_request(AW_REQUEST_SET_OPTION);

		request.level = SOL_SOCKET;
		request.name = SO_KEEPALIVE;
		request.len = odd[i];
		request.value[0] = 1;
		CHECK(ask(s, &request, &s->near, 1, &answer) == NO_ANSWER);
		request.kind = AW_REQUEST_GET_OPTION;
		CHECK(ask(s, &request, &s->near, 1, &answer) == NO_ANSWER);
		request = new_request(AW_REQUEST_START);
		request.role = (uint8_t)(3 + i);
		tell(s, &request, NULL, 0);
	}
	CHECK(send(s->control, "", 0, 0) == 0); /* it is no end */
	CHECK(send(s->control, "short", 5, 0) == 5);
}

static void numbers__are_looked_at(void **state)
{
	as_another(request_with_odd_numbers, *state);
}

/* The status of a process would be told by who has not its connections. */
static void tell_of_another(const struct scene *s)
{
	struct aw_request request = new_request(AW_REQUEST_PRESENT);

	request.pid = 1;
	tell(s, &request, NULL, 0);
}

static void presence__is_ones_own(void **state)
{
	struct scene *s = *state;
	char name[64];

	sprintf(name, "/tmp/anywarp-%u/sockets.1", (unsigned)geteuid());
	unlink(name);
	as_another(tell_of_another, s);
	(void)keepalive(s); /* by now it was read */
	assert_int_not_equal(access(name, F_OK), 0);
}

static int make_arena(uint64_t ino, unsigned number, bool sealed)
{
	struct aw_arena_table *table;
	int fd = memfd_create("arena", MFD_ALLOW_SEALING);

	CHECK(fd >= 0 && ftruncate(fd, (off_t)aw_arena_size()) == 0);
	table = mmap(NULL, sizeof(*table), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CHECK(table != MAP_FAILED);
	atomic_store(&table->entries[number].ino, ino);
	atomic_store(&table->entries[number].word, 1);
	munmap(table, sizeof(*table));
	CHECK(!sealed || fcntl(fd, F_ADD_SEALS, AW_ARENA_SEALS) == 0);
	return fd;
}

/* The answer where slot is asked for in an arena that has one, number, of a socket; of another one's if wrong. */
static int bridge(const struct scene *s, unsigned slot, unsigned number, bool wrong, bool sealed)
{
	struct aw_request request = new_request(AW_REQUEST_RECORD);
	struct aw_reply answer;
	struct stat file;
	int pair[2], fds[4], err;

	CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
	fds[0] = dial(s->listener);
	fds[1] = pair[0];
	fds[2] = pair[1];
	CHECK(fstat(fds[0], &file) == 0);
	fds[3] = make_arena(file.st_ino + wrong, number, sealed);
	request.slot = slot;
	err = ask(s, &request, fds, 4, &answer);
	for (int i = 0; i < 4; i++)
		close(fds[i]);
	return err;
}

static void bridge_as_another(const struct scene *s)
{
	CHECK(bridge(s, 7, 7, false, true) == EPERM);
}

static void record__is_its_sockets_own(void **state)
{
	const struct scene *s = *state;

	assert_int_equal(bridge(s, 7, 7, false, true), 0);
	assert_int_equal(bridge(s, AW_ARENA_SLOTS - 1, AW_ARENA_SLOTS - 1, false, true), 0);
	assert_int_equal(bridge(s, AW_ARENA_SLOTS, 7, false, true), EINVAL);
	assert_int_equal(bridge(s, UINT32_MAX, 7, false, true), EINVAL);
	assert_int_equal(bridge(s, 6, 7, false, true), ENOENT);
	assert_int_equal(bridge(s, 7, 7, true, true), ENOENT);
	assert_int_equal(bridge(s, 7, 7, false, false), EPERM);
}

static void record__is_of_the_proxys_user(void **state)
{
	if (geteuid() != 0)
		skip();
	as_another(bridge_as_another, *state);
}

int main(void)
{
#define REQUESTS_TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
	const struct CMUnitTest tests[] = {
		REQUESTS_TEST(number__opens_nothing),
		REQUESTS_TEST(name__is_not_given_twice),
		REQUESTS_TEST(fds__are_looked_at),
		REQUESTS_TEST(numbers__are_looked_at),
		REQUESTS_TEST(presence__is_ones_own),
		REQUESTS_TEST(record__is_its_sockets_own),
		REQUESTS_TEST(record__is_of_the_proxys_user),
	};

	return cmocka_run_group_tests_name("orders", tests, NULL, NULL);
}
