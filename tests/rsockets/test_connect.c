// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// rconnect, rlisten, raccept, and names.
#include "rs.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

/* The listener's queue has this many places. */
#define QUEUE 128

static void rconnect__returns_before_raccept(void **state)
{
	int listener = rs_listener(1), client = rs_client(listener), server;
	char octets[2];

	(void)state;
	rs_send_all(client, "hi", 2);
	assert_int_equal(rs_poll_one(listener, POLLIN), POLLIN);
	server = raccept(listener, NULL, NULL);
	rs_recv_all(server, octets, 2);
	assert_memory_equal(octets, "hi", 2);
	rs_close(&(struct rs_ends){ listener, client, server });
}

/* It has its port, and does not listen. */
static int deaf_socket(struct sockaddr_in *addr)
{
	int fd = rs_socket();

	*addr = rs_address(0);
	assert_int_equal(rbind(fd, (struct sockaddr *)addr, sizeof(*addr)), 0);
	*addr = rs_address(rs_port(fd));
	return fd;
}

static void rconnect__is_refused(void **state)
{
	struct sockaddr_in addr;
	int deaf = deaf_socket(&addr), fd = rs_socket();

	(void)state;
	rs_fails(rconnect(fd, (struct sockaddr *)&addr, sizeof(addr)), ECONNREFUSED);
	assert_int_equal(rs_get(fd, SOL_SOCKET, SO_ERROR), 0);
	rs_fails(rconnect(fd, (struct sockaddr *)&addr, sizeof(addr)), ENOTCONN);
	assert_int_equal(rclose(fd), 0);
	assert_int_equal(rclose(deaf), 0);
}

static void rconnect__is_refused_later(void **state)
{
	struct sockaddr_in addr;
	int deaf = deaf_socket(&addr), fd = rs_socket();

	(void)state;
	rs_unblock(fd);
	rs_fails(rconnect(fd, (struct sockaddr *)&addr, sizeof(addr)), EINPROGRESS);
	assert_true(rs_poll_one(fd, POLLOUT) & POLLERR);
	assert_int_equal(rs_get(fd, SOL_SOCKET, SO_ERROR), ECONNREFUSED);
	assert_int_equal(rs_get(fd, SOL_SOCKET, SO_ERROR), 0);
	assert_int_equal(rclose(fd), 0);
	assert_int_equal(rclose(deaf), 0);
}

static void rconnect__in_progress(void **state)
{
	int listener = rs_listener(1), client = rs_socket(), server;
	struct sockaddr_in addr = rs_address(rs_port(listener));
	socklen_t len = sizeof(addr);

	(void)state;
	rs_unblock(client);
	rs_fails(rconnect(client, (struct sockaddr *)&addr, len), EINPROGRESS);
	assert_int_equal(rs_poll_one(client, POLLOUT), POLLOUT);
	assert_int_equal(rs_get(client, SOL_SOCKET, SO_ERROR), 0);
	rs_fails(rconnect(client, (struct sockaddr *)&addr, len), EISCONN);
	assert_int_equal(rgetpeername(client, (struct sockaddr *)&addr, &len), 0);
	server = raccept(listener, NULL, NULL);
	rs_close(&(struct rs_ends){ listener, client, server });
}

/* Nobody but the service makes progress here. */
static void rconnect__goes_on_without_its_caller(void **state)
{
	int listener = rs_listener(1), client = rs_socket(), server;
	struct sockaddr_in addr = rs_address(rs_port(listener));

	(void)state;
	rs_unblock(client);
	rs_fails(rconnect(client, (struct sockaddr *)&addr, sizeof(addr)), EINPROGRESS);
	server = raccept(listener, NULL, NULL);
	assert_true(server >= 0);
	rs_close(&(struct rs_ends){ listener, client, server });
}

static void rconnect__wants_an_address_of_its_family(void **state)
{
	struct sockaddr_in addr = rs_address(1);
	int fd = rs_socket(), fd6 = rsocket(AF_INET6, SOCK_STREAM, 0);

	(void)state;
	rs_fails(rconnect(fd6, (struct sockaddr *)&addr, sizeof(addr)), EAFNOSUPPORT);
	rs_fails(rconnect(fd, (struct sockaddr *)&addr, 4), EINVAL);
	rs_fails(rconnect(fd, NULL, 0), EINVAL);
	assert_int_equal(rclose(fd), 0);
	assert_int_equal(rclose(fd6), 0);
}

static void rbind__is_the_connections_address(void **state)
{
	struct sockaddr_in addr = rs_address(0), other;
	socklen_t len = sizeof(other);
	int listener = rs_listener(1), client = rs_socket(), server;
	uint16_t port;

	(void)state;
	assert_int_equal(rbind(client, (struct sockaddr *)&addr, sizeof(addr)), 0);
	rs_fails(rbind(client, (struct sockaddr *)&addr, sizeof(addr)), EINVAL);
	port = rs_port(client);
	assert_int_not_equal(port, 0);
	addr.sin_port = htons(rs_port(listener));
	assert_int_equal(rconnect(client, (struct sockaddr *)&addr, sizeof(addr)), 0);
	assert_int_equal(rs_port(client), port);
	server = raccept(listener, (struct sockaddr *)&other, &len);
	assert_int_equal(len, sizeof(other));
	assert_int_equal(ntohs(other.sin_port), port);
	assert_int_equal(rgetpeername(client, (struct sockaddr *)&other, &len), 0);
	assert_int_equal(other.sin_port, addr.sin_port);
	rs_close(&(struct rs_ends){ listener, client, server });
}

static void names__are_cut_to_the_room(void **state)
{
	struct rs_ends ends;
	char room[8] = "zzzzzzz";
	socklen_t len = 4;

	(void)state;
	rs_open(&ends);
	assert_int_equal(rgetpeername(ends.client, (struct sockaddr *)room, &len), 0);
	assert_int_equal(len, sizeof(struct sockaddr_in));
	assert_memory_equal(room + 4, "zzz", 4);
	rs_fails(rgetpeername(ends.listener, (struct sockaddr *)room, &len), ENOTCONN);
	rs_close(&ends);
}

static void rlisten__address_is_taken(void **state)
{
	int listener = rs_listener(1), other = rs_socket();
	struct sockaddr_in addr = rs_address(rs_port(listener));

	(void)state;
	rs_fails(rbind(other, (struct sockaddr *)&addr, sizeof(addr)), EADDRINUSE);
	assert_int_equal(rclose(listener), 0);
	rs_set(other, SOL_SOCKET, SO_REUSEADDR, 1);
	assert_int_equal(rbind(other, (struct sockaddr *)&addr, sizeof(addr)), 0);
	assert_int_equal(rlisten(other, 1), 0);
	assert_int_equal(rlisten(other, 5), 0);
	assert_int_equal(rs_get(other, SOL_SOCKET, SO_ACCEPTCONN), 1);
	rs_fails(rconnect(other, (struct sockaddr *)&addr, sizeof(addr)), EISCONN);
	assert_int_equal(rclose(other), 0);
}

static void rlisten__without_an_address(void **state)
{
	int listener = rs_socket(), client, server;

	(void)state;
	assert_int_equal(rlisten(listener, 1), 0);
	client = rs_client(listener);
	server = raccept(listener, NULL, NULL);
	rs_close(&(struct rs_ends){ listener, client, server });
}

static void raccept__has_nothing(void **state)
{
	struct timeval time = { .tv_usec = 20000 };
	int listener = rs_listener(1);

	(void)state;
	assert_int_equal(rsetsockopt(listener, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof(time)), 0);
	rs_fails(raccept(listener, NULL, NULL), EAGAIN);
	rs_unblock(listener);
	rs_fails(raccept(listener, NULL, NULL), EAGAIN);
	assert_int_equal(rclose(listener), 0);
}

static void on_signal(int number)
{
	(void)number;
}

static void raccept__is_interrupted(void **state)
{
	struct sigaction action = { .sa_handler = on_signal }, before;
	struct itimerval timer = { .it_value.tv_usec = 20000, .it_interval.tv_usec = 20000 };
	int listener = rs_listener(1);

	(void)state;
	sigaction(SIGALRM, &action, &before);
	setitimer(ITIMER_REAL, &timer, NULL);
	rs_fails(raccept(listener, NULL, NULL), EINTR);
	sigaction(SIGALRM, &before, NULL);
	setitimer(ITIMER_REAL, &(struct itimerval){ 0 }, NULL);
	assert_int_equal(rclose(listener), 0);
}

static void spoil(uint16_t port)
{
	struct sockaddr_in addr = rs_address(port);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	assert_int_equal(connect(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	assert_int_equal(write(fd, "GET / HTTP/1.0\r\n\r\n  ", 20), 20);
	close(fd);
}

/* Places that failed set-ups held would be missing at the end. */
static void rlisten__hears_after_failed_set_ups_with_a_full_queue(void **state)
{
	int listener = rs_listener(1), clients[QUEUE], server;

	(void)state;
	for (int i = 0; i < QUEUE; i++) {
		rs_set(clients[i] = rs_socket(), SOL_SOCKET, SO_RCVBUF, 2048);
		struct sockaddr_in addr = rs_address(rs_port(listener));

		assert_int_equal(rconnect(clients[i], (struct sockaddr *)&addr, sizeof(addr)), 0);
		if (i % 32 == 31)
			spoil(rs_port(listener));
	}
	for (int i = 0; i < QUEUE; i++) {
		server = raccept(listener, NULL, NULL);
		assert_true(server >= 0);
		assert_int_equal(rclose(server), 0);
		assert_int_equal(rclose(clients[i]), 0);
	}
	int client = rs_client(listener);

	server = raccept(listener, NULL, NULL);
	rs_close(&(struct rs_ends){ listener, client, server });
}

static void rlisten__closed_with_connections_untaken(void **state)
{
	int listener = rs_listener(1), client = rs_client(listener);
	char octet;

	(void)state;
	assert_int_equal(rclose(listener), 0);
	assert_true(rrecv(client, &octet, 1, 0) <= 0);
	assert_int_equal(rclose(client), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(rconnect__returns_before_raccept, rs_guard),
		cmocka_unit_test_setup(rconnect__is_refused, rs_guard),
		cmocka_unit_test_setup(rconnect__is_refused_later, rs_guard),
		cmocka_unit_test_setup(rconnect__in_progress, rs_guard),
		cmocka_unit_test_setup(rconnect__goes_on_without_its_caller, rs_guard),
		cmocka_unit_test_setup(rconnect__wants_an_address_of_its_family, rs_guard),
		cmocka_unit_test_setup(rbind__is_the_connections_address, rs_guard),
		cmocka_unit_test_setup(names__are_cut_to_the_room, rs_guard),
		cmocka_unit_test_setup(rlisten__address_is_taken, rs_guard),
		cmocka_unit_test_setup(rlisten__without_an_address, rs_guard),
		cmocka_unit_test_setup(raccept__has_nothing, rs_guard),
		cmocka_unit_test_setup(raccept__is_interrupted, rs_guard),
		cmocka_unit_test_setup(rlisten__hears_after_failed_set_ups_with_a_full_queue,
				       rs_guard),
		cmocka_unit_test_setup(rlisten__closed_with_connections_untaken, rs_guard),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
