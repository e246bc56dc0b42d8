// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Closing without losing what TCP holds: the peer reads all of it, however much it sends itself.
#include "net/progress/linger.h"

#include "../lib/proc.h"
#include "../lib/tcp.h"
#include "../lib/until.h"
#include "net/base/bounds.h"
#include "net/progress/engine.h"
#include "net/progress/watch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>

enum {
	UNREAD = 20000,
	MANY = 100,
	FILES = 256,
	STRANGERS = FILES / AW_FILES_LINGERING, /* so many linger */
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
	until(proc_fds() == count);
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

static void on_watch(struct aw_watch *w, uint32_t events)
{
	(void)w;
	(void)events;
}

static _Atomic uint32_t told_handle, told_number;

static void on_told(uint32_t handle, uint32_t number)
{
	told_handle = handle;
	told_number = number;
}

/* The socket keeps its place in the progress thread's epoll set, and no second FIN is asked for. */
static void linger_stream__passed_on(void **state)
{
	struct scene *s = *state;
	struct aw_watch watch;
	struct aw_linger_socket socket = {
		.fd = s->fd, .fin_sent = true, .told = on_told, .handle = 7
	};

	aw_bounds.linger_ms = 600000;
	assert_int_equal(aw_watch_add(&watch, s->fd, EPOLLIN, on_watch, NULL), 0);
	assert_int_equal(shutdown(s->fd, SHUT_WR), 0);
	socket.watched = aw_watch_pass_fd(&watch);
	assert_true(socket.watched);
	aw_watch_remove_wait(&watch);
	uint32_t number = aw_linger_stream(&socket);

	assert_int_not_equal(number, 0);
	assert_int_equal(proc_fds(), s->fds + 2);
	assert_int_equal(told_handle, 0);
	shutdown(s->peer, SHUT_WR);
	await_fds(s->fds + 1);
	until(told_handle == 7);
	assert_int_equal(told_number, number);
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

/* Both ends of a new connection. */
struct ends {
	int fd, peer;
};

static void connect_many(struct ends ends[MANY])
{
	struct sockaddr_storage addr;
	int listener = tcp_listen(1, &addr);

	for (int i = 0; i < MANY; i++) {
		ends[i].peer = tcp_connect(&addr);
		ends[i].fd = tcp_accept(listener);
		tcp_unblock(ends[i].fd);
	}
	close(listener);
}

static rlim_t allow_files(rlim_t most)
{
	struct rlimit files;
	rlim_t before;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
	before = files.rlim_cur;
	files.rlim_cur = most;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &files), 0);
	return before;
}

/* What it sends after our FIN is no reset, so that all that we sent is there to be read. */
static void assert_has_lingered(int peer)
{
	uint8_t junk[UNREAD] = { 0 }, got[3];

	tcp_send(peer, junk, sizeof(junk));
	tcp_recv(peer, got, sizeof(got));
	assert_memory_equal(got, "bye", sizeof(got));
	assert_int_equal(recv(peer, got, 1, 0), 0);
	tcp_send(peer, junk, sizeof(junk));
}

/* A program that closes all it has loses nothing by the bound, which is of strangers. */
static void linger__many_at_once(void **state)
{
	struct scene *s = *state;
	struct ends ends[MANY];

	aw_bounds.linger_ms = 600000;
	connect_many(ends);
	rlim_t before = allow_files(FILES);

	for (int i = 0; i < MANY; i++) {
		tcp_send(ends[i].fd, "bye", 3);
		aw_linger(ends[i].fd);
	}
	assert_int_equal(proc_fds(), s->fds + 2 + 2 * MANY);
	allow_files(before);
	for (int i = 0; i < MANY; i++) {
		assert_has_lingered(ends[i].peer);
		close(ends[i].peer);
	}
	close(s->fd);
}

static void linger__strangers_give_way_to_strangers(void **state)
{
	struct scene *s = *state;
	struct ends ends[MANY];

	aw_bounds.linger_ms = 600000;
	connect_many(ends);
	rlim_t before = allow_files(FILES);

	tcp_send(s->fd, "bye", 3);
	aw_linger(s->fd);
	for (int i = 0; i < MANY; i++) {
		tcp_send(ends[i].fd, "bye", 3);
		aw_linger_stranger(ends[i].fd);
	}
	await_fds(s->fds + 2 + MANY + STRANGERS);
	allow_files(before);
	assert_has_lingered(s->peer);
	assert_has_lingered(ends[MANY - STRANGERS].peer);
	for (int i = 0; i < MANY; i++)
		close(ends[i].peer);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(linger__unread_input_is_no_reset),
		TEST(linger__peer_closed_first),
		TEST(linger_stream__passed_on),
		TEST(linger__deadline),
		TEST(linger__not_connected),
		TEST(linger__many_at_once),
		TEST(linger__strangers_give_way_to_strangers),
		TEST(linger_flush__engine_stops),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
