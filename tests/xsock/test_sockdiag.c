// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// sock_diag(7) describes connections, and the inodes behind fds.
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

struct seen {
	uint64_t inodes[2]; /* of a connection's ends */
	struct aw_sockdiag_conn ends[2];
	int count;
};

static uint64_t inode_of(int fd)
{
	struct stat file;

	assert_int_equal(fstat(fd, &file), 0);
	return file.st_ino;
}

static int listen_at(struct sockaddr_in6 *addr, socklen_t len)
{
	int fd = socket(addr->sin6_family, SOCK_STREAM, 0);

	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)addr, len), 0);
	assert_int_equal(listen(fd, 1), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)addr, &len), 0);
	return fd;
}

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sockdiag__describes_connections),
		cmocka_unit_test(sockdiag__finds_the_inode_of_a_socket),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
