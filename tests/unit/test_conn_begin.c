// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// How an initiator begins: its Request, and its socket in the progress thread's epoll set.
#include "net/conn/conn.h"

#include "../lib/conn_scene.h"
#include "../lib/tcp.h"
#include "net/conn/conn_machine.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <netinet/in.h>
/* glibc's netinet/tcp.h has no tcpi_segs_out. */
#include <linux/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Looked at as a fd is first watched. */
static struct aw_conn **look_at;
static bool found_unlocked;

/* Before the C library's. */
int epoll_ctl(int epfd, int op, int fd, struct epoll_event *ev)
{
	if (op == EPOLL_CTL_ADD && look_at && *look_at) {
		found_unlocked = pthread_mutex_trylock(&(*look_at)->lock) == 0;
		if (found_unlocked)
			pthread_mutex_unlock(&(*look_at)->lock);
	}
	return (int)syscall(SYS_epoll_ctl, epfd, op, fd, ev);
}

/* Looked at as the options of a socket are set: the segments that have left with data, the least of them. */
static uint32_t sent_before_options;

/* Before the C library's. */
int setsockopt(int fd, int level, int name, const void *value, socklen_t len)
{
	struct tcp_info info = { 0 };
	socklen_t info_len = sizeof(info);

	if (level == IPPROTO_TCP && name == TCP_KEEPIDLE &&
	    getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &info_len) == 0 &&
	    info.tcpi_data_segs_out < sent_before_options)
		sent_before_options = info.tcpi_data_segs_out;
	return (int)syscall(SYS_setsockopt, fd, level, name, value, len);
}

static int option(int fd, int level, int name)
{
	socklen_t len = sizeof(int);
	int value = 0;

	assert_int_equal(getsockopt(fd, level, name, &value, &len), 0);
	return value;
}

static void start(struct scene *s)
{
	const struct aw_conn_ask ask = {
		.peer = (struct sockaddr *)&s->addr,
		.local = &scene_enhanced,
	};

	int err = aw_conn_connect(tcp_socket(AF_INET), &ask, heard_fn, &s->heard, &s->conn);

	assert_int_equal(err, 0);
}

/* The Reply may come before the socket is watched, and the progress thread then runs at once. */
static void conn_connect__watches_without_its_lock(void **state)
{
	struct scene *s = *state;

	look_at = &s->conn;
	start(s);
	look_at = NULL;
	assert_true(found_unlocked);
}

/* A SYN, and the Request: the peer's listener wakes once. */
static void conn_connect__request_ends_the_handshake(void **state)
{
	struct scene *s = *state;
	uint8_t request[MPA_HDR_LEN + MPA_ENH_LEN];
	struct tcp_info info = { 0 };
	socklen_t len = sizeof(info);

	start(s);
	s->peer = tcp_accept(s->listener);
	tcp_recv(s->peer, request, sizeof(request));
	assert_int_equal(getsockopt(s->conn->fd, IPPROTO_TCP, TCP_INFO, &info, &len), 0);
	assert_int_equal(info.tcpi_segs_out, 2);
}

/* The peer works on the Request while this end readies its socket. */
static void conn_connect__options_follow_the_request(void **state)
{
	sent_before_options = UINT32_MAX;
	start(*state);
	assert_int_equal(sent_before_options, 1);
}

static void conn_connect__qp_finds_its_socket_ready(void **state)
{
	struct scene *s = *state;
	uint8_t octets[MPA_FRAME_MAX];

	start(s);
	int fd = s->conn->fd, bound = option(fd, SOL_SOCKET, SO_SNDBUF);

	aw_uqp_ready_socket(fd);
	assert_int_equal(option(fd, SOL_SOCKET, SO_SNDBUF), bound);
	s->peer = tcp_accept(s->listener);
	tcp_recv(s->peer, octets, MPA_HDR_LEN + MPA_ENH_LEN);
	tcp_send(s->peer, octets, scene_frame(octets, MPA_REPLY, MPA_FLAG_ENHANCED, 2));
	heard_await(&s->heard, 0, AW_CONN_ACCEPTED);
	assert_int_equal(aw_conn_attach(s->conn, &s->qp.uqp), 0);
	assert_int_equal(s->qp.segment_size, option(fd, IPPROTO_TCP, TCP_MAXSEG));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, scene_setup, scene_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(conn_connect__watches_without_its_lock),
		TEST(conn_connect__request_ends_the_handshake),
		TEST(conn_connect__options_follow_the_request),
		TEST(conn_connect__qp_finds_its_socket_ready),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
