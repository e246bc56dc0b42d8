// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// rsockets of SOCK_DGRAM, and what reaches their UDP socket from others.
#include "rs.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

static int bound(void)
{
	struct sockaddr_in addr = rs_address(0);
	int fd = rsocket(AF_INET, SOCK_DGRAM, 0);

	assert_int_equal(rbind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	return fd;
}

static int connected_to(int other)
{
	struct sockaddr_in addr = rs_address(rs_port(other));
	int fd = rsocket(AF_INET, SOCK_DGRAM, IPPROTO_UDP);

	assert_int_equal(rconnect(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	return fd;
}

static void datagrams__there_and_back(void **state)
{
	int server = bound(), client = connected_to(server);
	struct sockaddr_in from;
	socklen_t len = sizeof(from);
	char octets[16] = "";

	(void)state;
	assert_int_equal(rsend(client, "first", 5, 0), 5);
	assert_int_equal(rsend(client, "", 0, 0), 0);
	assert_int_equal(rsend(client, "third", 5, 0), 5);
	assert_int_equal(rrecv(server, octets, 3, MSG_PEEK), 3);
	assert_int_equal(rrecvfrom(server, octets, 16, 0, (struct sockaddr *)&from, &len), 5);
	assert_memory_equal(octets, "first", 5);
	assert_int_equal(ntohs(from.sin_port), rs_port(client));
	assert_int_equal(rrecv(server, octets, 16, 0), 0);
	assert_int_equal(rrecv(server, octets, 2, 0), 2);
	assert_int_equal(rsendto(server, "back", 4, 0, (struct sockaddr *)&from, len), 4);
	assert_int_equal(rs_poll_one(client, POLLIN), POLLIN);
	assert_int_equal(rread(client, octets, 16), 4);
	rs_fails(rrecv(server, octets, 1, MSG_DONTWAIT), EAGAIN);
	rs_fails(rlisten(server, 1), EOPNOTSUPP);
	rs_fails(raccept(server, NULL, NULL), EOPNOTSUPP);
	assert_int_equal(rclose(client), 0);
	assert_int_equal(rclose(server), 0);
}

/* The header of rdma-core's design guide: tag, version, op, length, reserved, QPN, address. */
static void datagrams__on_the_wire(void **state)
{
	static const unsigned char expected[] = { 0x55, 0x55, 0x55, 0x55, 4, 0, 16,  0,	  0,  0,
						  0,	0,    127,  0,	  0, 1, 'o', 'u', 't' };
	struct sockaddr_in addr = rs_address(0);
	socklen_t len = sizeof(addr);
	int plain = socket(AF_INET, SOCK_DGRAM, 0), fd = bound();
	unsigned char octets[64];

	(void)state;
	assert_int_equal(bind(plain, (struct sockaddr *)&addr, len), 0);
	assert_int_equal(getsockname(plain, (struct sockaddr *)&addr, &len), 0);
	assert_int_equal(rsendto(fd, "out", 3, 0, (struct sockaddr *)&addr, len), 3);
	assert_int_equal(recv(plain, octets, sizeof(octets), 0), sizeof(expected));
	assert_memory_equal(octets, expected, sizeof(expected));
	close(plain);
	assert_int_equal(rclose(fd), 0);
}

static void datagrams__of_others_are_dropped(void **state)
{
	static const char *const bad[] = { "",
					   "U",
					   "UUUU",
					   "UUUU\4\0\20\0\0\0\0\0\0\0\0",
					   "UUUV\4\0\20\0\0\0\0\0\0\0\0\0x",
					   "UUUU\5\0\20\0\0\0\0\0\0\0\0\0x",
					   "UUUU\4\1\20\0\0\0\0\0\0\0\0\0x",
					   "UUUU\4\0\21\0\0\0\0\0\0\0\0\0x",
					   "UUUU\6\0\34\0\0\0\0\0\0\0\0\0x" };
	static const size_t lengths[] = { 0, 1, 4, 15, 17, 17, 17, 17, 17 };
	int plain = socket(AF_INET, SOCK_DGRAM, 0), fd = bound();
	struct sockaddr_in addr = rs_address(rs_port(fd));
	struct pollfd one = { .fd = fd, .events = POLLIN };
	char octets[16];

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		sendto(plain, bad[i], lengths[i], 0, (struct sockaddr *)&addr, sizeof(addr));
	assert_int_equal(rpoll(&one, 1, 50), 0);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		sendto(plain, bad[i], lengths[i], 0, (struct sockaddr *)&addr, sizeof(addr));
	sendto(plain, "UUUU\4\0\20\0\0\0\0\0\0\0\0\0x", 17, 0, (struct sockaddr *)&addr,
	       sizeof(addr));
	assert_int_equal(rrecv(fd, octets, 16, 0), 1);
	assert_int_equal(octets[0], 'x');
	close(plain);
	assert_int_equal(rclose(fd), 0);
}

static void *recv_one(void *arg)
{
	char octet;
	ssize_t got = rrecv(*(int *)arg, &octet, 1, 0);

	return (void *)(intptr_t)(got < 0 ? -errno : got);
}

static void rclose__ends_a_receive(void **state)
{
	int fd = bound();
	pthread_t thread;
	void *result;

	(void)state;
	pthread_create(&thread, NULL, recv_one, &fd);
	rs_until_others_sleep();
	assert_int_equal(rclose(fd), 0);
	pthread_join(thread, &result);
	assert_int_equal((intptr_t)result, -EBADF);
}

/* As with the kernel's: the datagrams that came before are received, then a receive that may block returns 0. */
static void rshutdown__ends_receives(void **state)
{
	int fd = bound(), client = connected_to(fd);
	struct pollfd one = { .fd = fd, .events = POLLIN };
	struct sockaddr_in addr = rs_address(rs_port(client));
	char octet;

	(void)state;
	assert_int_equal(rconnect(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	assert_int_equal(rsend(client, "x", 1, 0), 1);
	rs_poll_one(fd, POLLIN);
	assert_int_equal(rshutdown(fd, SHUT_RD), 0);
	assert_int_equal(rrecv(fd, &octet, 1, 0), 1);
	assert_int_equal(rrecv(fd, &octet, 1, 0), 0);
	rs_fails(rrecv(fd, &octet, 1, MSG_DONTWAIT), EAGAIN);
	assert_int_equal(rpoll(&one, 1, RS_WAIT_MS), 1);
	assert_int_equal(one.revents, POLLIN);
	assert_int_equal(rclose(client), 0);
	assert_int_equal(rclose(fd), 0);
}

static void rshutdown__wakes_a_receive(void **state)
{
	int fd = bound(), client = connected_to(fd);
	struct sockaddr_in addr = rs_address(rs_port(client));
	pthread_t thread;
	void *result;

	(void)state;
	assert_int_equal(rconnect(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	pthread_create(&thread, NULL, recv_one, &fd);
	rs_until_others_sleep();
	assert_int_equal(rshutdown(fd, SHUT_RD), 0);
	pthread_join(thread, &result);
	assert_int_equal((intptr_t)result, 0);
	assert_int_equal(rclose(client), 0);
	assert_int_equal(rclose(fd), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(datagrams__there_and_back, rs_guard),
		cmocka_unit_test_setup(datagrams__on_the_wire, rs_guard),
		cmocka_unit_test_setup(datagrams__of_others_are_dropped, rs_guard),
		cmocka_unit_test_setup(rclose__ends_a_receive, rs_guard),
		cmocka_unit_test_setup(rshutdown__ends_receives, rs_guard),
		cmocka_unit_test_setup(rshutdown__wakes_a_receive, rs_guard),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
