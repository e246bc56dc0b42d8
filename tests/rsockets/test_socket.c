// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Descriptors: what rsocket refuses, numbers among the kernel's, rclose under others' feet, fork.
#include "rs.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "lib/proc.h"
#include "lib/until.h"

static void rsocket__refuses_what_it_does_not_carry(void **state)
{
	(void)state;
	rs_fails(rsocket(AF_UNIX, SOCK_STREAM, 0), ENOTSUP);
	rs_fails(rsocket(AF_INET, SOCK_RAW, 0), ENOTSUP);
	rs_fails(rsocket(AF_INET, SOCK_STREAM, IPPROTO_UDP), ENOTSUP);
	rs_fails(rsocket(AF_INET6, SOCK_DGRAM, IPPROTO_TCP), ENOTSUP);
}

static void rsocket__takes_what_getaddrinfo_says(void **state)
{
	(void)state;
	assert_int_equal(rclose(rsocket(AF_INET, SOCK_STREAM, IPPROTO_TCP)), 0);
	assert_int_equal(rclose(rsocket(AF_INET6, SOCK_STREAM, 0)), 0);
	assert_int_equal(rclose(rsocket(AF_INET, SOCK_DGRAM, IPPROTO_UDP)), 0);
}

static void rsocket__number_is_no_other_fd(void **state)
{
	int first = rs_socket(), file = dup(STDIN_FILENO), second = rs_socket();

	(void)state;
	assert_int_not_equal(first, file);
	assert_int_not_equal(second, file);
	assert_int_not_equal(first, second);
	assert_int_equal(fcntl(first, F_GETFD), FD_CLOEXEC);
	assert_int_equal(rclose(first), 0);
	assert_int_equal(fcntl(first, F_GETFD), -1);
	assert_int_equal(rclose(second), 0);
	close(file);
}

static void rsocket__number_whose_rsocket_was_closed_by_close(void **state)
{
	int lost = rs_socket(), fd;

	(void)state;
	close(lost);
	fd = rs_socket();
	assert_int_not_equal(fd, lost);
	assert_int_equal(rclose(fd), 0);
	rclose(lost);
}

static void calls__want_an_rsocket(void **state)
{
	struct sockaddr_in addr = rs_address(1);
	socklen_t len = sizeof(addr);
	int file = dup(STDIN_FILENO), closed = rs_socket();

	(void)state;
	assert_int_equal(rclose(closed), 0);
	for (int i = 0; i < 4; i++) {
		int fd = (int[]){ file, closed, -1, 1 << 30 }[i];

		rs_fails(rclose(fd), EBADF);
		rs_fails(rbind(fd, (struct sockaddr *)&addr, len), EBADF);
		rs_fails(rlisten(fd, 1), EBADF);
		rs_fails(raccept(fd, NULL, NULL), EBADF);
		rs_fails(rconnect(fd, (struct sockaddr *)&addr, len), EBADF);
		rs_fails(rshutdown(fd, SHUT_WR), EBADF);
		rs_fails(rsend(fd, "x", 1, 0), EBADF);
		rs_fails(rrecv(fd, &addr, 1, 0), EBADF);
		rs_fails(rfcntl(fd, F_GETFL), EBADF);
		rs_fails(rgetsockname(fd, (struct sockaddr *)&addr, &len), EBADF);
		rs_fails(riomap(fd, &addr, 1, PROT_WRITE, 0, 0), EBADF);
	}
	close(file);
}

static void calls__want_a_connection(void **state)
{
	char octet;
	int fd = rs_socket();

	(void)state;
	rs_fails(rsend(fd, "x", 1, 0), EPIPE);
	rs_fails(rrecv(fd, &octet, 1, 0), ENOTCONN);
	rs_fails(rshutdown(fd, SHUT_WR), ENOTCONN);
	rs_fails(raccept(fd, NULL, NULL), EINVAL);
	rs_fails(riomap(fd, &octet, 1, PROT_WRITE, 0, 0), EINVAL);
	assert_int_equal(rclose(fd), 0);
}

static void *recv_one(void *arg)
{
	char octet;
	ssize_t got = rrecv(*(int *)arg, &octet, 1, 0);

	return (void *)(intptr_t)(got < 0 ? -errno : got);
}

static void *accept_one(void *arg)
{
	int fd = raccept(*(int *)arg, NULL, NULL);

	return (void *)(intptr_t)(fd < 0 ? -errno : fd);
}

static intptr_t closed_under(void *(*call)(void *), int fd)
{
	pthread_t thread;
	void *result;

	assert_int_equal(pthread_create(&thread, NULL, call, &fd), 0);
	rs_until_others_sleep();
	assert_int_equal(rclose(fd), 0);
	pthread_join(thread, &result);
	return (intptr_t)result;
}

static void rclose__ends_calls_of_other_threads(void **state)
{
	struct rs_ends ends;

	(void)state;
	rs_open(&ends);
	assert_int_equal(closed_under(recv_one, ends.server), -EBADF);
	assert_int_equal(closed_under(accept_one, ends.listener), -EBADF);
	assert_int_equal(rclose(ends.client), 0);
}

static void rclose__leaves_nothing(void **state)
{
	struct rs_ends ends;
	int fds = 0;

	(void)state;
	for (int i = 0; i < 6; i++) {
		rs_open(&ends);
		rs_close(&ends);
		// What a process opens once is open after the first rounds; lingering ends take a moment.
		if (i == 2)
			fds = proc_fds();
	}
	until(proc_fds() <= fds);
}

static void use_parents(void *arg)
{
	const struct rs_ends *ends = arg;
	struct rs_ends own;
	char octet;

	rs_fails(rrecv(ends->server, &octet, 1, MSG_DONTWAIT), EBADF);
	rs_fails(rsend(ends->client, "x", 1, 0), EBADF);
	rs_fails(raccept(ends->listener, NULL, NULL), EBADF);
	assert_int_equal(rclose(ends->server), 0);
	rs_fails(rclose(ends->server), EBADF);
	rs_open(&own);
	rs_send_all(own.client, "own", 3);
	rs_recv_all(own.server, (char[3]){ 0 }, 3);
	rs_close(&own);
}

static void fork__parents_rsockets_stay_the_parents(void **state)
{
	struct rs_ends ends;
	char octets[4];

	(void)state;
	rs_open(&ends);
	assert_int_equal(rs_in_child(use_parents, &ends), 0);
	rs_send_all(ends.client, "fork", 4);
	rs_recv_all(ends.server, octets, 4);
	assert_memory_equal(octets, "fork", 4);
	assert_int_equal(rclose(rs_client(ends.listener)), 0);
	rs_close(&ends);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(rsocket__refuses_what_it_does_not_carry, rs_guard),
		cmocka_unit_test_setup(rsocket__takes_what_getaddrinfo_says, rs_guard),
		cmocka_unit_test_setup(rsocket__number_is_no_other_fd, rs_guard),
		cmocka_unit_test_setup(rsocket__number_whose_rsocket_was_closed_by_close, rs_guard),
		cmocka_unit_test_setup(calls__want_an_rsocket, rs_guard),
		cmocka_unit_test_setup(calls__want_a_connection, rs_guard),
		cmocka_unit_test_setup(rclose__ends_calls_of_other_threads, rs_guard),
		cmocka_unit_test_setup(rclose__leaves_nothing, rs_guard),
		cmocka_unit_test_setup(fork__parents_rsockets_stay_the_parents, rs_guard),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
