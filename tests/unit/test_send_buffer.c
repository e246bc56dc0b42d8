// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// TCP's send buffer: bounded where the path is short, and TCP's own elsewhere and on an older kernel.
#include <sys/socket.h>

static int measured(int fd, int level, int name, void *value, socklen_t *len);
static int set(int fd, int level, int name, const void *value, socklen_t len);

#define getsockopt measured
#define setsockopt set
#include "net/qp/send_buffer.c"
#undef getsockopt
#undef setsockopt

#include "../lib/emulated.h"
#include "../lib/tcp.h"
#include "../lib/uqp_pair.h"
#include "net/progress/engine.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* The path that TCP measures, and a kernel that cannot take a bound back. */
static uint32_t least_us, mean_us;
static bool no_unlock;

static int measured(int fd, int level, int name, void *value, socklen_t *len)
{
	struct tcp_info *info = value;

	if (level != IPPROTO_TCP || name != TCP_INFO)
		return getsockopt(fd, level, name, value, len);
	memset(info, 0, sizeof(*info));
	info->tcpi_min_rtt = least_us;
	info->tcpi_rtt = mean_us;
	return 0;
}

static int set(int fd, int level, int name, const void *value, socklen_t len)
{
	if (level == SOL_SOCKET && name == SO_BUF_LOCK && no_unlock)
		return -1;
	return setsockopt(fd, level, name, value, len);
}

enum {
	AS_GRANTED = 2 * BOUND, /* as the kernel counts */
	ONE_HOST = 32768,
	NETWORK = 1448,
	LOOK_OCTETS = 1u << 20, /* of net/qp/uqp_tx.c */
};

static int asked(int fd, int name)
{
	int value = 0;
	socklen_t len = sizeof(value);

	assert_int_equal(getsockopt(fd, SOL_SOCKET, name, &value, &len), 0);
	return value;
}

static void path_is(uint32_t min_us, uint32_t now_us)
{
	least_us = min_us;
	mean_us = now_us;
}

static void is_bounded__on_a_short_path_without_queues(void **state)
{
	(void)state;
	assert_true(aw_send_buffer_is_bounded(0, 0));
	assert_true(aw_send_buffer_is_bounded(AW_SHORT_RTT_US, AW_QUEUED_RTT_US));
	assert_false(aw_send_buffer_is_bounded(AW_SHORT_RTT_US + 1, AW_QUEUED_RTT_US));
	assert_false(aw_send_buffer_is_bounded(AW_SHORT_RTT_US, AW_QUEUED_RTT_US + 1));
	assert_false(aw_send_buffer_is_bounded(UINT32_MAX, UINT32_MAX));
}

/* A socket of its own for each test. */
static int setup(void **state)
{
	static int fd;

	no_unlock = false;
	fd = socket(AF_INET, SOCK_STREAM, 0);
	assert_return_code(fd, 0);
	*state = &fd;
	return 0;
}

static int teardown(void **state)
{
	return close(*(int *)*state);
}

static void begin(struct aw_send_buffer *buffer, int fd, uint32_t segment_size)
{
	aw_send_buffer_ready(fd, segment_size);
	aw_send_buffer_begin(buffer, segment_size);
}

static void begin__leaves_a_network_to_tcp(void **state)
{
	int fd = *(int *)*state, before = asked(fd, SO_SNDBUF);
	struct aw_send_buffer buffer;

	begin(&buffer, fd, ONE_HOST_SEGMENT - 1);
	assert_int_equal(asked(fd, SO_SNDBUF), before);
	assert_int_equal(asked(fd, SO_BUF_LOCK), 0);
	begin(&buffer, fd, ONE_HOST_SEGMENT);
	assert_int_equal(asked(fd, SO_SNDBUF), AS_GRANTED);
}

static void look__follows_the_path(void **state)
{
	int fd = *(int *)*state, before = asked(fd, SO_SNDBUF);
	struct aw_send_buffer buffer;

	begin(&buffer, fd, NETWORK);
	path_is(AW_SHORT_RTT_US + 1, AW_SHORT_RTT_US + 1);
	aw_send_buffer_look(&buffer, fd);
	assert_int_equal(asked(fd, SO_SNDBUF), before);
	path_is(AW_SHORT_RTT_US, AW_SHORT_RTT_US);
	aw_send_buffer_look(&buffer, fd);
	assert_int_equal(asked(fd, SO_SNDBUF), AS_GRANTED);
	assert_int_not_equal(asked(fd, SO_BUF_LOCK), 0);
	path_is(AW_SHORT_RTT_US, AW_QUEUED_RTT_US + 1);
	aw_send_buffer_look(&buffer, fd);
	assert_int_equal(asked(fd, SO_BUF_LOCK), 0);
	path_is(AW_SHORT_RTT_US, AW_QUEUED_RTT_US);
	aw_send_buffer_look(&buffer, fd);
	assert_int_not_equal(asked(fd, SO_BUF_LOCK), 0);
}

static void look__leaves_the_bound_of_one_host(void **state)
{
	int fd = *(int *)*state;
	struct aw_send_buffer buffer;

	begin(&buffer, fd, ONE_HOST);
	path_is(AW_SHORT_RTT_US + 1, AW_QUEUED_RTT_US + 1);
	aw_send_buffer_look(&buffer, fd);
	assert_int_equal(asked(fd, SO_SNDBUF), AS_GRANTED);
	assert_int_not_equal(asked(fd, SO_BUF_LOCK), 0);
}

/* Such a bound would stay when the path is another one. */
static void look__sets_no_bound_that_an_older_kernel_keeps(void **state)
{
	int fd = *(int *)*state, before = asked(fd, SO_SNDBUF);
	struct aw_send_buffer buffer;

	no_unlock = true;
	begin(&buffer, fd, NETWORK);
	path_is(AW_SHORT_RTT_US, AW_SHORT_RTT_US);
	aw_send_buffer_look(&buffer, fd);
	assert_int_equal(asked(fd, SO_SNDBUF), before);
	assert_int_equal(asked(fd, SO_BUF_LOCK), 0);
}

/* Segments as of a network, though over loopback. */
static void attach(struct pair *p)
{
	struct aw_stream s = { .crc = true, .large_fpdus = true };
	int listener, fd = tcp_socket(AF_INET), segment = NETWORK, peer;
	struct sockaddr_storage addr;

	listener = tcp_listen(1, &addr);
	assert_int_equal(setsockopt(fd, IPPROTO_TCP, TCP_MAXSEG, &segment, sizeof(segment)), 0);
	assert_int_equal(fcntl(fd, F_SETFL, 0), 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&addr, tcp_addr_len(&addr)), 0);
	tcp_unblock(fd);
	peer = tcp_accept(listener);
	tcp_unblock(peer);
	close(listener);
	assert_int_equal(aw_uqp_attach(p->b.qp, peer, &s), 0);
	s.initiator = true;
	assert_int_equal(aw_uqp_attach(p->a.qp, fd, &s), 0);
}

/* The caller of aw_uqp_ready_socket knows the segments. */
static void attach__takes_a_ready_socket_as_it_is(void **state)
{
	struct aw_stream s = { .initiator = true, .crc = true };
	struct aw_uqp_socket to = { .segment_size = NETWORK };
	struct pair p = { .pd = 0 };
	struct sockaddr_storage addr;
	int listener = tcp_listen(1, &addr), peer;

	(void)state;
	assert_int_equal(aw_engine_get(), 0);
	end_make(&p.a, &p.pd, NULL);
	to.fd = tcp_connect(&addr);
	peer = tcp_accept(listener);
	tcp_unblock(to.fd);
	assert_int_equal(aw_uqp_attach_to(p.a.qp, &to, &s), 0);
	assert_int_equal(s.emss, NETWORK);
	assert_int_equal(asked(to.fd, SO_BUF_LOCK), 0);
	close(peer);
	close(listener);
	end_destroy(&p.a);
	aw_engine_put();
}

static void write_over(struct pair *p, uint32_t octets)
{
	end_post(&p->a, AW_OP_WRITE, &p->b, octets);
	assert_int_equal(end_wait_cqe(&p->a).cqe.status, AW_WC_SUCCESS);
}

static void look__comes_while_the_stream_sends(void **state)
{
	struct pair p = { .pd = 0 };

	(void)state;
	no_unlock = false;
	path_is(AW_SHORT_RTT_US, AW_SHORT_RTT_US);
	assert_int_equal(aw_engine_get(), 0);
	end_make(&p.a, &p.pd, NULL);
	end_make(&p.b, &p.pd, NULL);
	attach(&p);
	write_over(&p, LOOK_OCTETS / 2);
	assert_int_equal(asked(p.a.qp->fd, SO_BUF_LOCK), 0);
	write_over(&p, LOOK_OCTETS);
	write_over(&p, 1);
	assert_int_equal(asked(p.a.qp->fd, SO_SNDBUF), AS_GRANTED);
	assert_int_equal(asked(p.b.qp->fd, SO_BUF_LOCK), 0);
	end_destroy(&p.a);
	end_destroy(&p.b);
	aw_engine_put();
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest pure[] = {
		cmocka_unit_test(is_bounded__on_a_short_path_without_queues),
	};
	const struct CMUnitTest tests[] = {
		CASE(begin__leaves_a_network_to_tcp),
		CASE(look__follows_the_path),
		CASE(look__leaves_the_bound_of_one_host),
		CASE(look__sets_no_bound_that_an_older_kernel_keeps),
		cmocka_unit_test(attach__takes_a_ready_socket_as_it_is),
		cmocka_unit_test(look__comes_while_the_stream_sends),
	};

	/* qemu-user knows no SO_BUF_LOCK. */
	if (is_emulated())
		return cmocka_run_group_tests(pure, NULL, NULL);
	return cmocka_run_group_tests(pure, NULL, NULL) + cmocka_run_group_tests(tests, NULL, NULL);
}
