// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The end of a connection behind bytes that the program does not read. The line has more of them than a socket pair takes;
// the kernel may let the pump make room for them, or not.
#include "xsock/endpoint/pump.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#define ROOM 65536 /* of the pair; the kernel doubles it */
#define TOTAL \
	((size_t)300000) /* more than the pair and the pump hold, and less than any program may make room for */
#define WMEM_MAX \
	212992 /* what Linux lets any program ask for, unless an administrator has changed it */
#define ROUNDS_MAX 1000

static struct {
	struct aw_line line;
	size_t given; /* of TOTAL */
	bool ends; /* behind TOTAL bytes */
	int error; /* 0: the end is a stream's */
} peer;
static struct aw_pump pump;
static int near;
static bool has_right, may_make_room;

static uint8_t byte_at(size_t at)
{
	return (uint8_t)(at * 2654435761u >> 13);
}

static ssize_t peer_send(struct aw_line *line, const struct iovec *iov, int flags)
{
	(void)line;
	(void)iov;
	(void)flags;
	return -EAGAIN;
}

static ssize_t peer_recv(struct aw_line *line, const struct iovec *iov, int flags)
{
	size_t n = TOTAL - peer.given;

	(void)line;
	(void)flags;
	if (n > iov->iov_len)
		n = iov->iov_len;
	for (size_t i = 0; i < n; i++)
		((uint8_t *)iov->iov_base)[i] = byte_at(peer.given + i);
	peer.given += n;
	if (n > 0)
		return (ssize_t)n;
	return !peer.ends ? -EAGAIN : -peer.error;
}

static size_t peer_count(struct aw_line *line)
{
	(void)line;
	return 0;
}

static short ready(void)
{
	if (!peer.ends)
		return POLLIN;
	return peer.error ? POLLIN | POLLRDHUP | POLLHUP | POLLERR : POLLIN | POLLRDHUP;
}

/* In place of libc's, so that this system's bounds and this process's rights do not matter. */
int setsockopt(int fd, int level, int name, const void *value, socklen_t len)
{
	int (*next)(int, int, int, const void *, socklen_t) =
		(int (*)(int, int, int, const void *, socklen_t))dlsym(RTLD_NEXT, "setsockopt");

	if (name == SO_SNDBUFFORCE && !has_right) {
		errno = EPERM;
		return -1;
	}
	if (name == SO_SNDBUFFORCE || name == SO_SNDBUF) {
		const int *room = value, most = WMEM_MAX;

		return may_make_room ? next(fd, level, SO_SNDBUF, *room < most ? room : &most, len)
				     : 0;
	}
	return next(fd, level, name, value, len);
}

static int set_up(void **state)
{
	static const struct aw_line_ops ops = {
		.send = peer_send, .recv = peer_recv, .unsent = peer_count, .owed = peer_count
	};
	int ends[2], room = ROOM;

	(void)state;
	memset(&peer, 0, sizeof(peer));
	peer.line.ops = &ops;
	has_right = may_make_room = true;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
	assert_int_equal(setsockopt(ends[1], SOL_SOCKET, SO_SNDBUF, &room, sizeof(room)), 0);
	near = ends[0];
	pump = (struct aw_pump){ .far = ends[1], .line = &peer.line };
	return aw_pump_init(&pump);
}

static int tear_down(void **state)
{
	(void)state;
	aw_pump_close_far(&pump);
	aw_pump_fini(&pump);
	return close(near);
}

static void move_all(void)
{
	int rounds = 0;

	while (aw_pump_in(&pump, ready()))
		assert_true(++rounds < ROUNDS_MAX);
}

static short poll_near(short events)
{
	struct pollfd pollfd = { .fd = near, .events = events };

	assert_true(poll(&pollfd, 1, 0) >= 0);
	return pollfd.revents;
}

/* Reads what is there, which begins at a position. Returns the position behind it. */
static size_t read_from(size_t at)
{
	uint8_t got[65536];
	ssize_t n;

	while ((n = recv(near, got, sizeof(got), 0)) > 0)
		for (ssize_t i = 0; i < n; i++, at++)
			assert_int_equal(got[i], byte_at(at));
	return at;
}

static int buffer_len(void)
{
	int len = 0;
	socklen_t size = sizeof(len);

	assert_int_equal(getsockopt(pump.far, SOL_SOCKET, SO_SNDBUF, &len, &size), 0);
	return len;
}

/* A peer that goes on is held, and the pair stays as large as it was. */
static void pump_in__holds_a_peer_whose_bytes_nobody_reads(void **state)
{
	int before = buffer_len();

	(void)state;
	move_all();
	assert_true(pump.in.len > 0 && peer.given < TOTAL);
	assert_int_equal(buffer_len(), before);
	assert_false(poll_near(POLLRDHUP));
}

/* Fills the pair; then the peer ends. */
static void end_behind_a_full_pair(int error)
{
	move_all();
	assert_true(pump.in.len > 0);
	peer.ends = true;
	peer.error = error;
	move_all();
}

static void pump_in__tells_a_reset_before_the_bytes_are_read(void **state)
{
	(void)state;
	end_behind_a_full_pair(ECONNRESET);
	assert_true(aw_pump_is_finished(&pump));
	assert_int_equal(pump.error, ECONNRESET);
	shutdown(pump.far, SHUT_RDWR);
	assert_true(poll_near(POLLIN) & POLLHUP);
	assert_int_equal(read_from(0), TOTAL);
}

static void pump_in__tells_a_streams_end_before_the_bytes_are_read(void **state)
{
	(void)state;
	end_behind_a_full_pair(0);
	assert_false(aw_pump_is_finished(&pump));
	assert_true(poll_near(POLLRDHUP) & POLLRDHUP);
	assert_int_equal(read_from(0), TOTAL);
}

/* Without the right to more, the kernel's bound holds. */
static void pump_in__makes_the_room_that_any_program_may_make(void **state)
{
	(void)state;
	has_right = false;
	end_behind_a_full_pair(ECONNRESET);
	assert_int_equal(buffer_len(), 2 * WMEM_MAX);
	assert_true(aw_pump_is_finished(&pump));
	assert_int_equal(read_from(0), TOTAL);
}

/* Where there is no room, no byte is lost, and the end comes behind them. */
static void pump_in__keeps_what_has_no_room(void **state)
{
	size_t at = 0;

	(void)state;
	may_make_room = false;
	end_behind_a_full_pair(ECONNRESET);
	assert_true(pump.in.len > 0);
	for (int i = 0; i < ROUNDS_MAX && !aw_pump_is_finished(&pump); i++) {
		at = read_from(at);
		move_all();
	}
	assert_true(aw_pump_is_finished(&pump));
	assert_int_equal(read_from(at), TOTAL);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(pump_in__holds_a_peer_whose_bytes_nobody_reads),
		TEST(pump_in__tells_a_reset_before_the_bytes_are_read),
		TEST(pump_in__tells_a_streams_end_before_the_bytes_are_read),
		TEST(pump_in__makes_the_room_that_any_program_may_make),
		TEST(pump_in__keeps_what_has_no_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
