// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Closing without losing what TCP holds: the peer reads all of it, however much it sends itself.
#include "net/linger.h"

#include "../lib/proc.h"
#include "../lib/tcp.h"
#include "net/bounds.h"
#include "net/engine.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	UNREAD = 20000,
};

struct scene {
	int fds;
	int fd, peer;
};

static int setup(void **state)
{
	struct scene *s = calloc(1, sizeof(*s));
	struct sockaddr_storage addr;
	int listener;

	if (aw_engine_get() != 0)
		return -1;
	s->fds = proc_fds();
	listener = tcp_listen(1, &addr);
	s->peer = tcp_connect(&addr);
	s->fd = tcp_accept(listener);
	tcp_unblock(s->fd);
	close(listener);
	*state = s;
	return 0;
}

static void await_fds(int count)
{
	while (proc_fds() != count)
		sched_yield();
}

static int teardown(void **state)
{
	struct scene *s = *state;

	close(s->peer);
	await_fds(s->fds);
	aw_bounds.linger_ms = AW_LINGER_MS;
	free(s);
	aw_engine_put();
	return 0;
}

static void linger__unread_input_is_no_reset(void **state)
{
	struct scene *s = *state;
	uint8_t junk[UNREAD] = { 0 }, got[5];

	tcp_send(s->peer, junk, sizeof(junk));
	tcp_send(s->fd, "bye", 3);
	aw_linger(s->fd);
	tcp_send(s->peer, junk, sizeof(junk));
	tcp_recv(s->peer, got, 3);
	assert_memory_equal(got, "bye", 3);
	assert_int_equal(recv(s->peer, got, 1, 0), 0);
	tcp_send(s->peer, junk, sizeof(junk));
	assert_int_equal(proc_fds(), s->fds + 2);
	shutdown(s->peer, SHUT_WR);
	await_fds(s->fds + 1);
}

static void linger__peer_closed_first(void **state)
{
	struct scene *s = *state;
	uint8_t octet;

	shutdown(s->peer, SHUT_WR);
	tcp_send(s->fd, "x", 1);
	tcp_recv(s->peer, &octet, 1);
	aw_linger(s->fd);
	await_fds(s->fds + 1);
	tcp_assert_over(s->peer);
}

static void linger__deadline(void **state)
{
	struct scene *s = *state;

	aw_bounds.linger_ms = 20;
	aw_linger(s->fd);
	await_fds(s->fds + 1);
}

static void linger__not_connected(void **state)
{
	struct scene *s = *state;

	aw_linger(tcp_socket(AF_INET));
	assert_int_equal(proc_fds(), s->fds + 2);
	close(s->fd);
}

static void linger_flush__engine_stops(void **state)
{
	struct scene *s = *state;

	aw_linger(s->fd);
	aw_engine_put();
	assert_int_equal(proc_fds(), s->fds - 2 + 1);
	tcp_assert_over(s->peer);
	assert_int_equal(aw_engine_get(), 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(linger__unread_input_is_no_reset),
		TEST(linger__peer_closed_first),
		TEST(linger__deadline),
		TEST(linger__not_connected),
		TEST(linger_flush__engine_stops),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
