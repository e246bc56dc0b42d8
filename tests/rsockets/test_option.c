// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// rsetsockopt, rgetsockopt, rfcntl.
#include "rs.h"

#include <netinet/tcp.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/time.h>

static const struct {
	int level, option, set, get;
} numbers[] = {
	{ SOL_SOCKET, SO_REUSEADDR, 1, 1 },
	{ SOL_SOCKET, SO_KEEPALIVE, 5, 1 },
	{ SOL_SOCKET, SO_OOBINLINE, 1, 1 },
	{ SOL_SOCKET, SO_RCVBUF, 100000, 200000 },
	{ SOL_SOCKET, SO_RCVBUF, -1, 4096 },
	{ SOL_SOCKET, SO_SNDBUF, 0, 4096 },
	{ SOL_SOCKET, SO_SNDBUF, 0x7fffffff, 1 << 28 },
	{ IPPROTO_TCP, TCP_NODELAY, 1, 1 },
	{ IPPROTO_TCP, TCP_KEEPIDLE, 30, 30 },
	{ SOL_RDMA, RDMA_SQSIZE, 100, 100 },
	{ SOL_RDMA, RDMA_SQSIZE, 1, 16 },
	{ SOL_RDMA, RDMA_RQSIZE, 100000, 0xFFFE },
	{ SOL_RDMA, RDMA_INLINE, 0, 0 },
	{ SOL_RDMA, RDMA_IOMAPSIZE, 0, 0 },
	{ SOL_RDMA, RDMA_IOMAPSIZE, 128, 128 },
	{ SOL_RDMA, RDMA_IOMAPSIZE, 200, 128 },
	{ SOL_RDMA, RDMA_IOMAPSIZE, 1000, 768 },
	{ SOL_RDMA, RDMA_IOMAPSIZE, 1000000, 32512 },
};

static void rsetsockopt__numbers(void **state)
{
	int fd = rs_socket();

	(void)state;
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		rs_set(fd, numbers[i].level, numbers[i].option, numbers[i].set);
		assert_int_equal(rs_get(fd, numbers[i].level, numbers[i].option), numbers[i].get);
	}
	assert_int_equal(rclose(fd), 0);
}

static void rgetsockopt__defaults(void **state)
{
	int fd = rs_socket();

	(void)state;
	assert_int_equal(rs_get(fd, SOL_SOCKET, SO_RCVBUF), 1 << 17);
	assert_int_equal(rs_get(fd, SOL_SOCKET, SO_SNDBUF), 1 << 17);
	assert_int_equal(rs_get(fd, SOL_SOCKET, SO_ERROR), 0);
	assert_int_equal(rs_get(fd, SOL_SOCKET, SO_TYPE), SOCK_STREAM);
	assert_int_equal(rs_get(fd, SOL_SOCKET, SO_DOMAIN), AF_INET);
	assert_int_equal(rs_get(fd, IPPROTO_TCP, TCP_NODELAY), 0);
	assert_int_equal(rs_get(fd, IPPROTO_TCP, TCP_MAXSEG), 2048);
	assert_int_equal(rs_get(fd, SOL_RDMA, RDMA_SQSIZE), 384);
	assert_int_equal(rs_get(fd, SOL_RDMA, RDMA_RQSIZE), 384);
	assert_int_equal(rs_get(fd, SOL_RDMA, RDMA_INLINE), 64);
	assert_int_equal(rs_get(fd, SOL_RDMA, RDMA_IOMAPSIZE), 0);
	assert_int_equal(rclose(fd), 0);
}

static void rsetsockopt__structures(void **state)
{
	struct linger linger = { 1, 5 }, linger_got;
	struct timeval time = { 3, 250000 }, time_got;
	char route[100], route_got[100];
	socklen_t len = sizeof(linger_got);
	int fd = rs_socket();

	(void)state;
	assert_int_equal(rsetsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)), 0);
	assert_int_equal(rgetsockopt(fd, SOL_SOCKET, SO_LINGER, &linger_got, &len), 0);
	assert_memory_equal(&linger, &linger_got, sizeof(linger));
	len = sizeof(time_got);
	assert_int_equal(rsetsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof(time)), 0);
	assert_int_equal(rgetsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &time_got, &len), 0);
	assert_memory_equal(&time, &time_got, sizeof(time));
	memset(route, 'r', sizeof(route));
	len = sizeof(route_got);
	assert_int_equal(rsetsockopt(fd, SOL_RDMA, RDMA_ROUTE, route, sizeof(route)), 0);
	assert_int_equal(rgetsockopt(fd, SOL_RDMA, RDMA_ROUTE, route_got, &len), 0);
	assert_int_equal(len, sizeof(route));
	assert_memory_equal(route, route_got, sizeof(route));
	len = 10;
	rs_fails(rgetsockopt(fd, SOL_RDMA, RDMA_ROUTE, route_got, &len), EINVAL);
	assert_int_equal(rclose(fd), 0);
}

static void rsetsockopt__refusals(void **state)
{
	int fd = rs_socket(), one = 1, none = 0;
	socklen_t len = sizeof(one);

	(void)state;
	rs_fails(rsetsockopt(fd, SOL_SOCKET, SO_RCVBUF, NULL, len), EINVAL);
	rs_fails(rsetsockopt(fd, SOL_SOCKET, SO_RCVBUF, &one, 1), EINVAL);
	rs_fails(rsetsockopt(fd, SOL_SOCKET, SO_LINGER, &one, len), EINVAL);
	rs_fails(rsetsockopt(fd, SOL_SOCKET, SO_BROADCAST, &one, len), ENOTSUP);
	rs_fails(rsetsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, &one, len), ENOTSUP);
	rs_fails(rsetsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &none, len), EINVAL);
	rs_fails(rsetsockopt(fd, 12345, 1, &one, len), ENOTSUP);
	rs_fails(rgetsockopt(fd, SOL_SOCKET, SO_BROADCAST, &one, &len), ENOTSUP);
	rs_fails(rgetsockopt(fd, SOL_SOCKET, SO_RCVBUF, NULL, &len), EFAULT);
	rs_fails(rfcntl(fd, F_SETLK, 0), ENOTSUP);
	assert_int_equal(rclose(fd), 0);
}

static void rsetsockopt__of_what_is_made(void **state)
{
	struct rs_ends ends;
	int size = 100;

	(void)state;
	rs_open(&ends);
	rs_fails(rsetsockopt(ends.client, SOL_RDMA, RDMA_SQSIZE, &size, sizeof(size)), EINVAL);
	rs_set(ends.client, IPPROTO_TCP, TCP_NODELAY, 1);
	rs_set(ends.client, SOL_SOCKET, SO_OOBINLINE, 1);
	rs_close(&ends);
}

static void raccept__inherits_options(void **state)
{
	int listener = rs_listener(1), client, server;

	(void)state;
	rs_set(listener, SOL_SOCKET, SO_RCVBUF, 50000);
	rs_set(listener, IPPROTO_TCP, TCP_NODELAY, 1);
	client = rs_client(listener);
	rs_unblock(listener);
	rs_poll_one(listener, POLLIN);
	server = raccept(listener, NULL, NULL);
	assert_int_equal(rs_get(server, SOL_SOCKET, SO_RCVBUF), 100000);
	assert_int_equal(rs_get(server, IPPROTO_TCP, TCP_NODELAY), 1);
	assert_int_equal(rfcntl(server, F_GETFL), O_RDWR);
	rs_close(&(struct rs_ends){ listener, client, server });
}

struct setter {
	int fd;
	_Atomic bool over;
};

/* Sets that there is no limit, again and again. Returns how often that failed. */
static void *set_no_limit(void *arg)
{
	const struct timeval none = { 0, 0 };
	struct setter *setter = arg;
	uintptr_t failed = 0;

	while (!setter->over)
		failed += rsetsockopt(setter->fd, SOL_SOCKET, SO_RCVTIMEO, &none, sizeof(none)) !=
			  0;
	return (void *)failed;
}

/* A thread that waits for bytes has the limit of before or that of after. */
static void rsetsockopt__timeout_beside_a_receiver(void **state)
{
	struct rs_ends ends;
	pthread_t thread;
	void *failed;

	(void)state;
	rs_open(&ends);
	struct setter setter = { .fd = ends.server };

	assert_int_equal(pthread_create(&thread, NULL, set_no_limit, &setter), 0);
	for (int i = 0; i < 300; i++) {
		uint8_t octet = (uint8_t)i, came;

		rs_send_all(ends.client, &octet, 1);
		rs_recv_all(ends.server, &came, 1);
		assert_int_equal(came, octet);
	}
	setter.over = true;
	assert_int_equal(pthread_join(thread, &failed), 0);
	assert_null(failed);
	rs_close(&ends);
}

/* Until the rsocket is closed. Returns NULL when it ended so. */
static void *set_linger(void *arg)
{
	const struct linger resets = { .l_onoff = 1 };
	const struct setter *setter = arg;

	while (rsetsockopt(setter->fd, SOL_SOCKET, SO_LINGER, &resets, sizeof(resets)) == 0)
		;
	return (void *)(uintptr_t)(errno != EBADF);
}

static void rclose__beside_a_thread_that_sets_linger(void **state)
{
	struct rs_ends ends;
	pthread_t thread;
	void *failed;

	(void)state;
	for (int i = 0; i < 50; i++) {
		rs_open(&ends);
		struct setter setter = { .fd = ends.server };

		assert_int_equal(pthread_create(&thread, NULL, set_linger, &setter), 0);
		sched_yield();
		assert_int_equal(rclose(ends.server), 0);
		assert_int_equal(pthread_join(thread, &failed), 0);
		assert_null(failed);
		assert_int_equal(rclose(ends.client), 0);
		assert_int_equal(rclose(ends.listener), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(rsetsockopt__numbers, rs_guard),
		cmocka_unit_test_setup(rgetsockopt__defaults, rs_guard),
		cmocka_unit_test_setup(rsetsockopt__structures, rs_guard),
		cmocka_unit_test_setup(rsetsockopt__refusals, rs_guard),
		cmocka_unit_test_setup(rsetsockopt__of_what_is_made, rs_guard),
		cmocka_unit_test_setup(raccept__inherits_options, rs_guard),
		cmocka_unit_test_setup(rsetsockopt__timeout_beside_a_receiver, rs_guard),
		cmocka_unit_test_setup(rclose__beside_a_thread_that_sets_linger, rs_guard),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
