// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A listener among good peers, bad ones and too many.
#include "net/conn/listener.h"

#include "../lib/emulated.h"
#include "../lib/full_set.h"
#include "../lib/heard.h"
#include "../lib/proc.h"
#include "../lib/tcp.h"
#include "../lib/until.h"
#include "net/base/bounds.h"
#include "net/conn/conn_machine.h"
#include "net/progress/engine.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern void __tsan_init(void) __attribute__((weak));

#define PEERS 8

static const struct aw_mpa_local local = { .revision = 2, .ird = 16, .ord = 16 };

struct scene {
	int fds;
	struct aw_listener *listener;
	struct sockaddr_storage addr;
	int peer[PEERS];
	struct heard heard;
};

/* A bound socket and no listener yet. */
static int setup_bound(void **state, int *fd)
{
	struct scene *s = calloc(1, sizeof(*s));

	if (aw_engine_get() != 0)
		return -1;
	s->fds = proc_fds();
	s->heard = (struct heard)HEARD_INIT;
	memset(s->peer, -1, sizeof(s->peer));
	*fd = tcp_bind(AF_INET, &s->addr);
	*state = s;
	return 0;
}

static int listen_on(struct scene *s, int fd)
{
	return aw_listener_create(fd, 64, &local, heard_fn, &s->heard, &s->listener);
}

static int setup(void **state)
{
	int fd;

	return setup_bound(state, &fd) == 0 ? listen_on(*state, fd) : -1;
}

/* The bounds change while no thread is there to read them. */
static int setup_impatient(void **state)
{
	aw_bounds.startup_ms = 30;
	return setup(state);
}

static int setup_bounded(void **state)
{
	aw_bounds.half_open_max = 3;
	aw_bounds.young_ms = 0;
	return setup(state);
}

/* Nobody is old here. */
static int setup_young(void **state)
{
	aw_bounds.half_open_max = 3;
	aw_bounds.young_ms = 600000;
	return setup(state);
}

static void send_request(int fd)
{
	const struct mpa_frame frame = { .kind = MPA_REQUEST, .revision = 1 };
	uint8_t octets[MPA_FRAME_MAX];

	tcp_send(fd, octets, mpa_build(&frame, octets));
}

/* More than may be half-open at once are there, with their Requests, before anybody looks. */
static int setup_crowd(void **state)
{
	struct scene *s;
	int fd;

	aw_bounds.half_open_max = 3;
	if (setup_bound(state, &fd) != 0 || listen(fd, PEERS) != 0)
		return -1;
	s = *state;
	for (int i = 0; i < PEERS; i++) {
		s->peer[i] = tcp_connect(&s->addr);
		send_request(s->peer[i]);
	}
	return listen_on(s, fd);
}

static int teardown(void **state)
{
	struct scene *s = *state;

	if (s->listener)
		aw_listener_destroy(s->listener);
	for (unsigned int i = 0; !s->heard.destroy && i < s->heard.count; i++)
		aw_conn_destroy(s->heard.conn[i]);
	for (int i = 0; i < PEERS; i++)
		if (s->peer[i] >= 0)
			close(s->peer[i]);
	until(proc_fds() == s->fds);
	free(s);
	aw_engine_put();
	aw_bounds.half_open_max = AW_HALF_OPEN_MAX;
	aw_bounds.young_ms = AW_HALF_OPEN_YOUNG_MS;
	aw_bounds.startup_ms = AW_CONN_STARTUP_MS;
	return 0;
}

static void listener_create__requests_arrive(void **state)
{
	struct scene *s = *state;

	for (unsigned int i = 0; i < PEERS; i++) {
		s->peer[i] = tcp_connect(&s->addr);
		send_request(s->peer[i]);
		heard_await(&s->heard, i, AW_CONN_REQUEST);
	}
}

/* As many clients at once as may not be half open together: each has the time for its Request. */
static void listener_create__clients_come_at_once(void **state)
{
	struct scene *s = *state;

	for (int i = 0; i < PEERS; i++)
		s->peer[i] = tcp_connect(&s->addr);
	for (unsigned int i = 0; i < PEERS; i++) {
		send_request(s->peer[i]);
		heard_await(&s->heard, i, AW_CONN_REQUEST);
	}
}

static int option(int fd, int level, int name)
{
	socklen_t len = sizeof(int);
	int value = -1;

	assert_int_equal(getsockopt(fd, level, name, &value, &len), 0);
	return value;
}

/* As of an initiator's socket (test_conn.c). */
static void listener_create__peer_can_be_lost(void **state)
{
	struct scene *s = *state;
	struct aw_conn *conn;

	s->peer[0] = tcp_connect(&s->addr);
	send_request(s->peer[0]);
	conn = heard_await(&s->heard, 0, AW_CONN_REQUEST);
	assert_int_equal(option(conn->fd, IPPROTO_TCP, TCP_USER_TIMEOUT), 0);
	assert_int_equal(option(conn->fd, IPPROTO_TCP, TCP_KEEPCNT), 4);
	assert_int_equal(option(conn->fd, SOL_SOCKET, SO_KEEPALIVE), 1);
	assert_int_equal(option(conn->fd, IPPROTO_TCP, TCP_KEEPIDLE), 60);
	assert_int_equal(option(conn->fd, IPPROTO_TCP, TCP_KEEPINTVL), 15);
	assert_int_equal(option(conn->fd, IPPROTO_TCP, TCP_NODELAY), 1);
}

static void listener_create__port_in_use(void **state)
{
	struct scene *s = *state;
	struct aw_listener *second;
	int one = 1;
	int fd = tcp_socket(AF_INET);

	/* Bound beside the first, which listens since: only listen(2) can find out. */
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, (struct sockaddr *)&s->addr, tcp_addr_len(&s->addr)) == 0)
		assert_int_equal(aw_listener_create(fd, 1, &local, heard_fn, &s->heard, &second),
				 EADDRINUSE);
	else
		assert_int_equal(errno, EADDRINUSE);
	close(fd);
}

static void listener_create__ipv6(void **state)
{
	struct scene *s = *state;
	struct sockaddr_storage addr;
	struct aw_listener *six;
	int fd = tcp_bind(AF_INET6, &addr);

	assert_int_equal(aw_listener_create(fd, 1, &local, heard_fn, &s->heard, &six), 0);
	s->peer[0] = tcp_connect(&addr);
	send_request(s->peer[0]);
	struct aw_conn *conn = heard_await(&s->heard, 0, AW_CONN_REQUEST);

	assert_int_equal(aw_conn_info(conn)->local.ss_family, AF_INET6);
	assert_memory_equal(&aw_conn_info(conn)->local, &addr, tcp_addr_len(&addr));
	aw_listener_destroy(six);
}

static void listener_bad_peers__good_one_is_heard(void **state)
{
	struct scene *s = *state;

	for (int i = 0; i < PEERS; i++)
		s->peer[i] = tcp_connect(&s->addr);
	tcp_send(s->peer[0], "SSH-2.0-OpenSSH\r\n", 17);
	tcp_send(s->peer[1], "MPA ID Req", 10);
	shutdown(s->peer[1], SHUT_WR);
	tcp_reset(s->peer[2]);
	tcp_send(s->peer[3], "MPA ID Req Frame\0\1\377\377", 20);
	tcp_send(s->peer[4], "MPA ID Rep Frame\0\1\0\0", 20);
	tcp_send(s->peer[5], "MPA ID Req Frame\0\11\0\0", 20);
	s->peer[2] = -1;
	tcp_assert_over(s->peer[0]);
	tcp_assert_over(s->peer[1]);
	for (int i = 3; i <= 5; i++)
		tcp_assert_over(s->peer[i]);
	send_request(s->peer[7]);
	heard_await(&s->heard, 0, AW_CONN_REQUEST);
	assert_int_equal(heard_count(&s->heard), 1);
}

static void listener_silent_peers__time_out(void **state)
{
	struct scene *s = *state;

	for (int i = 0; i < PEERS; i++)
		s->peer[i] = tcp_connect(&s->addr);
	for (int i = 0; i < PEERS; i++)
		tcp_assert_over(s->peer[i]);
	assert_int_equal(heard_count(&s->heard), 0);
}

static void listener_half_open__bound(void **state)
{
	struct scene *s = *state;
	struct pollfd p = { .events = POLLIN };

	for (int i = 0; i < 3; i++)
		s->peer[i] = tcp_connect(&s->addr);
	until(proc_fds() >= s->fds + 1 + 3 + 3);
	/* One more takes the place of the oldest, and only of that one. */
	s->peer[3] = tcp_connect(&s->addr);
	send_request(s->peer[3]);
	heard_await(&s->heard, 0, AW_CONN_REQUEST);
	tcp_assert_over(s->peer[0]);
	for (int i = 1; i < 3; i++) {
		p.fd = s->peer[i];
		assert_int_equal(poll(&p, 1, 0), 0);
	}
	/* A place is free again by that Request: nobody need go now. */
	s->peer[4] = tcp_connect(&s->addr);
	send_request(s->peer[4]);
	heard_await(&s->heard, 1, AW_CONN_REQUEST);
	for (int i = 1; i < 3; i++) {
		send_request(s->peer[i]);
		heard_await(&s->heard, 1 + (unsigned int)i, AW_CONN_REQUEST);
	}
}

/* Who has sent its Request is not silent, though it was not read yet. */
static void listener_half_open__requests_are_not_dropped(void **state)
{
	struct scene *s = *state;

	for (unsigned int i = 0; i < PEERS; i++)
		heard_await(&s->heard, i, AW_CONN_REQUEST);
}

/* The process has no fd left for the connection. */
static void connect_without_fds(struct scene *s, struct rlimit *before)
{
	struct rlimit none;

	s->peer[0] = tcp_socket(AF_INET);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, before), 0);
	none = *before;
	none.rlim_cur = (rlim_t)s->peer[0] + 1;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	connect(s->peer[0], (struct sockaddr *)&s->addr, tcp_addr_len(&s->addr));
	struct pollfd p = { .fd = s->peer[0], .events = POLLOUT };

	assert_int_equal(poll(&p, 1, -1), 1);
	send_request(s->peer[0]);
}

static void listener_no_fds__pauses_and_goes_on(void **state)
{
	struct scene *s = *state;
	struct rlimit before;

	connect_without_fds(s, &before);
	struct pollfd p = { .fd = s->peer[0], .events = POLLIN };

	assert_int_equal(poll(&p, 1, 30), 0);
	assert_int_equal(heard_count(&s->heard), 0);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	heard_await(&s->heard, 0, AW_CONN_REQUEST);
}

/* The pause is over, and the kernel has no memory to listen again. */
static void listener_no_fds__goes_on_where_there_was_no_memory(void **state)
{
	struct scene *s = *state;
	struct rlimit before;

	full_epfd = aw_engine_epfd();
	refusals = 0;
	connect_without_fds(s, &before);
	until(refusals > 0);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	full_epfd = -1;
	heard_await(&s->heard, 0, AW_CONN_REQUEST);
}

static void listener_destroy__with_half_open(void **state)
{
	struct scene *s = *state;

	for (int i = 0; i < PEERS; i++)
		s->peer[i] = tcp_connect(&s->addr);
	until(proc_fds() >= s->fds + 1 + 2 * PEERS);
	aw_listener_destroy(s->listener);
	s->listener = NULL;
	for (int i = 0; i < PEERS; i++)
		tcp_assert_over(s->peer[i]);
}

/* Requests come while the listener goes; each conn is either ours or gone with it. */
static void listener_destroy__while_requests_come(void **state)
{
	struct scene *s = *state;

	s->heard.destroy = true;
	aw_listener_destroy(s->listener);
	for (int round = 0; round < 30; round++) {
		int fd = tcp_bind(AF_INET, &s->addr);
		unsigned int count;

		assert_int_equal(
			aw_listener_create(fd, 64, &local, heard_fn, &s->heard, &s->listener), 0);
		for (int i = 0; i < PEERS; i++) {
			s->peer[i] = tcp_connect(&s->addr);
			send_request(s->peer[i]);
		}
		aw_listener_destroy(s->listener);
		count = heard_count(&s->heard);
		for (int i = 0; i < PEERS; i++) {
			tcp_assert_over(s->peer[i]);
			close(s->peer[i]);
			s->peer[i] = -1;
		}
		assert_int_equal(heard_count(&s->heard), count);
	}
	s->listener = NULL;
}

/* Without a socket of its own, which setup's is not needed for. */
static void make_given(struct scene *s)
{
	aw_listener_destroy(s->listener);
	assert_int_equal(aw_listener_create_given(&local, heard_fn, &s->heard, &s->listener), 0);
}

static void give_peer(struct scene *s, int i)
{
	struct sockaddr_storage addr;
	int listener = tcp_listen(1, &addr), fd;

	s->peer[i] = tcp_connect(&addr);
	fd = tcp_accept(listener);
	tcp_unblock(fd);
	close(listener);
	assert_int_equal(aw_listener_give(s->listener, fd), 0);
}

/* Each comes to its one event, be it that it failed. */
static void listener_give__each_is_heard(void **state)
{
	struct scene *s = *state;

	make_given(s);
	for (unsigned int i = 0; i < PEERS; i++) {
		give_peer(s, (int)i);
		if (i % 2 == 0)
			send_request(s->peer[i]);
		else
			tcp_reset(s->peer[i]);
		heard_await(&s->heard, i, i % 2 == 0 ? AW_CONN_REQUEST : AW_CONN_FAILED);
		s->peer[i] = i % 2 == 0 ? s->peer[i] : -1;
	}
	give_peer(s, 1);
	aw_listener_destroy(s->listener);
	s->listener = NULL;
	tcp_assert_over(s->peer[1]);
	assert_int_equal(heard_count(&s->heard), PEERS);
}

/* The files that strangers may have are shared by the child's own listeners, whatever becomes of the parent's. */
static void listener_files__child_starts_afresh(void **state)
{
	struct sockaddr_storage addr;
	struct scene *s = *state;
	struct aw_listener *own;
	int status;
	pid_t child;

	/* The thread sanitizer and qemu-user start no thread in the child of a process with several. */
	if (__tsan_init || is_emulated())
		skip();
	assert_true(aw_bounds_files(1, 1) > aw_bounds_files(1, 2));
	child = fork();
	if (child == 0) {
		int err = aw_listener_create(tcp_bind(AF_INET, &addr), 1, &local, heard_fn,
					     &s->heard, &own);
		bool alone = aw_listener_files(1) == aw_bounds_files(1, 1);

		aw_listener_destroy(s->listener);
		_exit(!err && alone && aw_listener_files(1) == aw_bounds_files(1, 1) ? 0 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(listener_create__requests_arrive),
		TEST(listener_create__peer_can_be_lost),
		TEST(listener_create__port_in_use),
		TEST(listener_create__ipv6),
		TEST(listener_bad_peers__good_one_is_heard),
		cmocka_unit_test_setup_teardown(listener_silent_peers__time_out, setup_impatient,
						teardown),
		cmocka_unit_test_setup_teardown(listener_create__clients_come_at_once, setup_young,
						teardown),
		cmocka_unit_test_setup_teardown(listener_half_open__bound, setup_bounded, teardown),
		cmocka_unit_test_setup_teardown(listener_half_open__requests_are_not_dropped,
						setup_crowd, teardown),
		TEST(listener_no_fds__pauses_and_goes_on),
		TEST(listener_no_fds__goes_on_where_there_was_no_memory),
		TEST(listener_destroy__with_half_open),
		TEST(listener_destroy__while_requests_come),
		TEST(listener_give__each_is_heard),
		TEST(listener_files__child_starts_afresh),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
