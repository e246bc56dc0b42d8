// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// sock_diag and /proc/net/tcp name the same listening sockets.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "xsock/base/sockdiag.h"
#include "xsock/proxy/procnet.h"

#define LISTENERS 200 /* more than one reply of a dump holds */
#define MAX 256

struct shared {
	int fds[LISTENERS];
	uint64_t inodes[MAX];
	uint16_t port;
};

static int compare(const void *a, const void *b)
{
	uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

	return (left > right) - (left < right);
}

static uint64_t inode_of(int fd)
{
	struct stat file;

	assert_int_equal(fstat(fd, &file), 0);
	return file.st_ino;
}

static int listen_at(struct sockaddr_in6 *addr, socklen_t len)
{
	int fd = socket(addr->sin6_family, SOCK_STREAM, 0), on = 1;

	assert_true(fd >= 0);
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on)), 0);
	assert_int_equal(bind(fd, (struct sockaddr *)addr, len), 0);
	assert_int_equal(listen(fd, 1), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)addr, &len), 0);
	return fd;
}

/* The port stands at the same place in both kinds of address. */
static void open_shared(struct shared *shared, bool ipv6)
{
	struct sockaddr_in6 addr = { .sin6_family = ipv6 ? AF_INET6 : AF_INET };

	for (int i = 0; i < LISTENERS; i++) {
		shared->fds[i] = listen_at(&addr, ipv6 ? sizeof(struct sockaddr_in6)
						       : sizeof(struct sockaddr_in));
		shared->inodes[i] = inode_of(shared->fds[i]);
	}
	shared->port = addr.sin6_port;
	qsort(shared->inodes, LISTENERS, sizeof(uint64_t), compare);
}

static void close_shared(struct shared *shared)
{
	for (int i = 0; i < LISTENERS; i++)
		close(shared->fds[i]);
}

typedef int (*read_table)(uint16_t port, bool ipv6, uint64_t *inodes, int max);

static void assert_named(read_table read_inodes, const struct shared *shared, bool ipv6)
{
	uint64_t found[MAX];

	assert_int_equal(read_inodes(shared->port, ipv6, found, MAX), LISTENERS);
	qsort(found, LISTENERS, sizeof(found[0]), compare);
	assert_memory_equal(found, shared->inodes, sizeof(found[0]) * LISTENERS);
	assert_int_equal(read_inodes(shared->port, ipv6, found, 3), 3);
	assert_int_equal(read_inodes(shared->port, !ipv6, found, MAX), 0);
}

static void check(read_table read_inodes, bool ipv6)
{
	struct shared shared;
	uint64_t found[1];

	open_shared(&shared, ipv6);
	assert_named(read_inodes, &shared, ipv6);
	close_shared(&shared);
	assert_int_equal(read_inodes(shared.port, ipv6, found, 1), 0);
}

static void sockdiag__names_listeners_of_ipv4(void **state)
{
	(void)state;
	check(aw_sockdiag_listeners, false);
}

static void sockdiag__names_listeners_of_ipv6(void **state)
{
	(void)state;
	check(aw_sockdiag_listeners, true);
}

static void check_one(int family)
{
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	struct sockaddr_in v4 = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct sockaddr_storage at = { 0 };
	socklen_t len = family == AF_INET ? sizeof(v4) : sizeof(v6);
	int fd = socket(family, SOCK_STREAM, 0);
	uint64_t ino = 0;

	if (family == AF_INET)
		memcpy(&at, &v4, len);
	else
		memcpy(&at, &v6, len);
	assert_int_equal(bind(fd, (struct sockaddr *)&at, len), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &len), 0);
	assert_false(aw_sockdiag_listener(&at, &ino));
	assert_int_equal(listen(fd, 1), 0);
	for (int i = 0; i < 3; i++) {
		assert_true(aw_sockdiag_listener(&at, &ino));
		assert_int_equal(ino, inode_of(fd));
	}
	close(fd);
	assert_false(aw_sockdiag_listener(&at, &ino));
}

static void sockdiag__names_the_listener_of_an_address(void **state)
{
	(void)state;
	check_one(AF_INET);
	check_one(AF_INET6);
}

struct seen {
	uint64_t inodes[2]; /* of a connection's ends */
	struct aw_sockdiag_conn ends[2];
	int count;
};

static void see(const struct aw_sockdiag_conn *conn, void *arg)
{
	struct seen *seen = arg;

	for (int i = 0; i < 2; i++) {
		if (conn->ino == seen->inodes[i]) {
			seen->ends[i] = *conn;
			seen->count++;
		}
	}
}

/* The ends of a connection over which the first one has sent 5 bytes. */
static void connect_ends(int ends[2])
{
	struct sockaddr_in6 addr = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	socklen_t len = sizeof(addr);
	int listener = listen_at(&addr, sizeof(addr));
	char bytes[5];

	ends[0] = socket(AF_INET6, SOCK_STREAM, 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&addr, &len), 0);
	assert_int_equal(connect(ends[0], (struct sockaddr *)&addr, sizeof(addr)), 0);
	ends[1] = accept(listener, NULL, NULL);
	assert_int_equal(send(ends[0], "12345", 5, 0), 5);
	assert_int_equal(recv(ends[1], bytes, 5, MSG_WAITALL), 5);
	close(listener);
}

static void sockdiag__describes_connections(void **state)
{
	struct seen seen = { 0 };
	int ends[2];

	(void)state;
	connect_ends(ends);
	for (int i = 0; i < 2; i++)
		seen.inodes[i] = inode_of(ends[i]);
	assert_true(aw_sockdiag_each(true, see, &seen));
	assert_int_equal(seen.count, 2);
	for (int i = 0; i < 2; i++) {
		assert_true(seen.ends[i].ipv6 && seen.ends[i].counted);
		assert_int_equal(seen.ends[i].local_port, seen.ends[!i].peer_port);
		assert_memory_equal(seen.ends[i].local, &in6addr_loopback, 16);
		assert_int_equal(seen.ends[i].bytes_out, i == 0 ? 5 : 0);
		assert_int_equal(seen.ends[i].bytes_in, i == 0 ? 0 : 5);
	}
	assert_true(aw_sockdiag_each(false, see, &seen));
	assert_int_equal(seen.count, 2);
	close(ends[0]);
	close(ends[1]);
}

static void sockdiag__finds_the_inode_of_a_socket(void **state)
{
	int fds = open("/proc/self/fd", O_PATH | O_DIRECTORY),
	    sock = socket(AF_INET, SOCK_STREAM, 0);
	uint64_t ino = 0, none = 0;
	char name[16];

	(void)state;
	sprintf(name, "%d", sock);
	assert_true(aw_sockdiag_fd(fds, name, &ino));
	assert_int_equal(ino, inode_of(sock));
	sprintf(name, "%d", fds);
	assert_false(aw_sockdiag_fd(fds, name, &none));
	assert_false(aw_sockdiag_fd(fds, "none", &none));
	close(sock);
	close(fds);
}

static void procnet__names_listeners_of_ipv4(void **state)
{
	(void)state;
	check(aw_procnet_listeners, false);
}

static void procnet__names_listeners_of_ipv6(void **state)
{
	(void)state;
	check(aw_procnet_listeners, true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sockdiag__names_listeners_of_ipv4),
		cmocka_unit_test(sockdiag__names_listeners_of_ipv6),
		cmocka_unit_test(sockdiag__names_the_listener_of_an_address),
		cmocka_unit_test(sockdiag__describes_connections),
		cmocka_unit_test(sockdiag__finds_the_inode_of_a_socket),
		cmocka_unit_test(procnet__names_listeners_of_ipv4),
		cmocka_unit_test(procnet__names_listeners_of_ipv6),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
