// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "rs.h"

#include <arpa/inet.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/limit.h"
#include "lib/proc.h"
#include "lib/until.h"

int rs_guard(void **state)
{
	(void)state;
	alarm(limit_s(RS_WAIT_S));
	return 0;
}

struct sockaddr_in rs_address(uint16_t port)
{
	return (struct sockaddr_in){ .sin_family = AF_INET,
				     .sin_port = htons(port),
				     .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
}

uint16_t rs_port(int fd)
{
	struct sockaddr_in addr;
	socklen_t len = sizeof(addr);

	assert_int_equal(rgetsockname(fd, (struct sockaddr *)&addr, &len), 0);
	assert_int_equal(len, sizeof(addr));
	assert_int_equal(addr.sin_family, AF_INET);
	return ntohs(addr.sin_port);
}

int rs_socket(void)
{
	int fd = rsocket(AF_INET, SOCK_STREAM, 0);

	assert_true(fd >= 0);
	return fd;
}

int rs_listener(int backlog)
{
	struct sockaddr_in addr = rs_address(0);
	int fd = rs_socket();

	assert_int_equal(rbind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	assert_int_equal(rlisten(fd, backlog), 0);
	return fd;
}

int rs_client(int listener)
{
	struct sockaddr_in addr = rs_address(rs_port(listener));
	int fd = rs_socket();

	assert_int_equal(rconnect(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	return fd;
}

void rs_open(struct rs_ends *ends)
{
	ends->listener = rs_listener(1);
	ends->client = rs_client(ends->listener);
	ends->server = raccept(ends->listener, NULL, NULL);
	assert_true(ends->server >= 0);
}

void rs_close(struct rs_ends *ends)
{
	assert_int_equal(rclose(ends->client), 0);
	assert_int_equal(rclose(ends->server), 0);
	assert_int_equal(rclose(ends->listener), 0);
}

void rs_unblock(int fd)
{
	assert_int_equal(rfcntl(fd, F_SETFL, O_NONBLOCK), 0);
}

void rs_set(int fd, int level, int option, int value)
{
	assert_int_equal(rsetsockopt(fd, level, option, &value, sizeof(value)), 0);
}

int rs_get(int fd, int level, int option)
{
	int value = -1;
	socklen_t len = sizeof(value);

	assert_int_equal(rgetsockopt(fd, level, option, &value, &len), 0);
	assert_int_equal(len, sizeof(value));
	return value;
}

short rs_poll_one(int fd, short events)
{
	struct pollfd one = { .fd = fd, .events = events };

	assert_int_equal(rpoll(&one, 1, RS_WAIT_MS), 1);
	return one.revents;
}

void rs_until_others_sleep(void)
{
	until(proc_others_sleep());
}

void rs_send_all(int fd, const void *octets, size_t len)
{
	assert_int_equal(rsend(fd, octets, len, 0), (ssize_t)len);
}

void rs_recv_all(int fd, void *octets, size_t len)
{
	assert_int_equal(rrecv(fd, octets, len, MSG_WAITALL), (ssize_t)len);
}

int rs_in_child(void (*fn)(void *), void *arg)
{
	pid_t child = fork();
	int status;

	if (child == 0) {
		setenv("CMOCKA_TEST_ABORT", "1", 1);
		signal(SIGABRT, SIG_DFL);
		alarm(limit_s(RS_WAIT_S));
		fn(arg);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
