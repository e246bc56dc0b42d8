// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// How often the routing table is asked. The clock stands still, but where a test moves it; sockets and the clock are the
// libraries' too, since a program's functions come before the C library's.
#define _GNU_SOURCE /* syscall */
#include "cm.h"

#include <errno.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define MS_NS 1000000

static _Atomic int asked; /* datagram sockets */
static _Atomic int64_t stopped_ns; /* the monotonic clock, or 0: it runs */

#pragma GCC visibility push(default)

int socket(int family, int type, int protocol)
{
	asked += (type & ~(SOCK_CLOEXEC | SOCK_NONBLOCK)) == SOCK_DGRAM;
	return (int)syscall(SYS_socket, family, type, protocol);
}

int clock_gettime(clockid_t clock, struct timespec *at)
{
	int64_t ns = stopped_ns;

	if (clock != CLOCK_MONOTONIC || !ns)
		return (int)syscall(SYS_clock_gettime, clock, at);
	*at = (struct timespec){ ns / 1000000000, ns % 1000000000 };
	return 0;
}

#pragma GCC visibility pop

static int setup(void **state)
{
	static int64_t begun_ns;
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	/* Far behind whatever the test before has asked. */
	if (!begun_ns)
		begun_ns = now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
	begun_ns += 100 * MS_NS;
	stopped_ns = begun_ns;
	asked = 0;
	return cm_open_channel(state);
}

static int teardown(void **state)
{
	stopped_ns = 0;
	return cm_close_channel(state);
}

/* The source address that an id without one gets for this destination; 0 and an error where there is none. */
static in_addr_t source_to(const char *ip, uint16_t port, int status)
{
	struct sockaddr_storage dst = cm_address(ip, port);
	struct rdma_cm_id *id;

	assert_int_equal(rdma_create_id(cm_channel, &id, NULL, RDMA_PS_TCP), 0);
	assert_int_equal(rdma_resolve_addr(id, NULL, (struct sockaddr *)&dst, 1), 0);
	cm_expect_ack(cm_channel, status ? RDMA_CM_EVENT_ADDR_ERROR : RDMA_CM_EVENT_ADDR_RESOLVED,
		      status);
	in_addr_t source = id->route.addr.src_sin.sin_addr.s_addr;

	rdma_destroy_id(id);
	return status ? 0 : source;
}

static void resolve__answer_serves_for_a_millisecond(void **state)
{
	(void)state;
	for (int i = 0; i < 3; i++)
		assert_int_equal(source_to("127.0.0.1", 1, 0), htonl(INADDR_LOOPBACK));
	assert_int_equal(asked, 1);
	stopped_ns += MS_NS - 1;
	source_to("127.0.0.1", 1, 0);
	assert_int_equal(asked, 1);
	stopped_ns += 1;
	source_to("127.0.0.1", 1, 0);
	assert_int_equal(asked, 2);
}

static void resolve__another_destination_is_asked_for(void **state)
{
	(void)state;
	source_to("127.0.0.1", 1, 0);
	source_to("127.0.0.2", 1, 0);
	assert_int_equal(asked, 2);
	source_to("127.0.0.2", 2, 0);
	assert_int_equal(asked, 3);
}

static void resolve__error_is_not_kept(void **state)
{
	(void)state;
	source_to("255.255.255.255", 1, -EACCES);
	source_to("255.255.255.255", 1, -EACCES);
	assert_int_equal(asked, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(resolve__answer_serves_for_a_millisecond, setup,
						teardown),
		cmocka_unit_test_setup_teardown(resolve__another_destination_is_asked_for, setup,
						teardown),
		cmocka_unit_test_setup_teardown(resolve__error_is_not_kept, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
