// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// How a connection begins: accept, connect, names, and the errors of calls that come too early.
#include "contract.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static int socket_error(int fd)
{
	int err = -1;
	socklen_t len = sizeof(err);
	CHECK(!getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &len));
	return err;
}

static void accept_flags(void)
{
	struct sockaddr_in name, peer;
	socklen_t len = sizeof(peer);
	int listener = listener_open(&name);
	int client = client_open(&name);
	int server =
		accept4(listener, (struct sockaddr *)&peer, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);
	CHECK(server >= 0 && len == sizeof(peer) && peer.sin_family == AF_INET);
	CHECK(fcntl(server, F_GETFL) & O_NONBLOCK);
	CHECK(fcntl(server, F_GETFD) & FD_CLOEXEC);
	CHECK((fcntl(server, F_GETFL) & O_ACCMODE) == O_RDWR);
	char octet;
	CHECK(read(server, &octet, 1) == -1 && errno == EAGAIN);
	/* Still so when octets have flown. */
	send_text(client, "x");
	expect_text(server, "x");
	CHECK(fcntl(server, F_GETFL) & O_NONBLOCK);
	CHECK(fcntl(server, F_GETFD) & FD_CLOEXEC);
	CHECK(!(fcntl(client, F_GETFL) & O_NONBLOCK));
	CHECK(!(fcntl(client, F_GETFD) & FD_CLOEXEC));
}

static void accept_inherits_nothing(void)
{
	struct sockaddr_in name;
	int listener = listener_open(&name);
	set_nonblocking(listener, true);
	CHECK(accept(listener, NULL, NULL) == -1 && errno == EAGAIN);
	int client = client_open(&name);
	CHECK(wait_for(listener, POLLIN) == POLLIN);
	int server = accept(listener, NULL, NULL);
	CHECK(server >= 0 && !(fcntl(server, F_GETFL) & O_NONBLOCK));
	CHECK(!(fcntl(server, F_GETFD) & FD_CLOEXEC));
	CHECK(accept(client, NULL, NULL) == -1 && errno == EINVAL);
}

static void accept_names_are_cut(void)
{
	struct sockaddr_in name;
	char room[4] = "..";
	socklen_t len = 2;
	int listener = listener_open(&name);
	client_open(&name);
	CHECK(accept(listener, (struct sockaddr *)room, &len) >= 0);
	CHECK(len == sizeof(name) && room[2] == 0);
}

static void names(void)
{
	struct ends e;
	struct sockaddr_in a, b;
	socklen_t la = sizeof(a), lb = sizeof(b);
	ends_open(&e);
	for (int touched = 0; touched < 2; touched++) {
		CHECK(!getsockname(e.client, (struct sockaddr *)&a, &la) && la == sizeof(a));
		CHECK(!getpeername(e.server, (struct sockaddr *)&b, &lb) && lb == sizeof(b));
		CHECK(!memcmp(&a, &b, sizeof(a)) && a.sin_port && a.sin_family == AF_INET);
		CHECK(!getsockname(e.server, (struct sockaddr *)&a, &la));
		CHECK(!getpeername(e.client, (struct sockaddr *)&b, &lb));
		CHECK(!memcmp(&a, &b, sizeof(a)));
		send_text(e.client, "touched");
		expect_text(e.server, "touched");
	}
	la = 3;
	CHECK(!getsockname(e.client, (struct sockaddr *)&a, &la) && la == sizeof(a));
	struct stat st;
	CHECK(!fstat(e.client, &st) && S_ISSOCK(st.st_mode));
	CHECK(!fstat(e.server, &st) && S_ISSOCK(st.st_mode));
}

static void connect_before_accept(void)
{
	struct sockaddr_in name;
	int listener = listener_open(&name);
	int client = client_open(&name);
	send_text(client, "early");
	CHECK(wait_for(client, POLLOUT) == POLLOUT);
	int server = accept(listener, NULL, NULL);
	expect_text(server, "early");
	send_text(server, "answer");
	expect_text(client, "answer");
}

static void close_before_accept(void)
{
	struct sockaddr_in name;
	int listener = listener_open(&name);
	int client = client_open(&name);
	send_text(client, "early");
	CHECK(!close(client));
	int server = accept(listener, NULL, NULL);
	CHECK(server >= 0);
	expect_text(server, "early");
	expect_end(server);
}

static void connect_nonblocking(void)
{
	struct sockaddr_in name;
	int listener = listener_open(&name);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	int rc = connect(fd, (struct sockaddr *)&name, sizeof(name));
	CHECK(rc == 0 || errno == EINPROGRESS);
	CHECK(wait_for(fd, POLLOUT) == POLLOUT);
	CHECK(socket_error(fd) == 0);
	/* Linux lets one more connect tell of the success. */
	rc = connect(fd, (struct sockaddr *)&name, sizeof(name));
	CHECK(rc == 0 || errno == EISCONN);
	CHECK(connect(fd, (struct sockaddr *)&name, sizeof(name)) == -1 && errno == EISCONN);
	int server = accept(listener, NULL, NULL);
	send_text(fd, "x");
	expect_text(server, "x");
	CHECK(connect(fd, (struct sockaddr *)&name, sizeof(name)) == -1 && errno == EISCONN);
}

/* What was accepted is connected. */
static void connect_accepted(void)
{
	struct sockaddr_in name;
	int listener = listener_open(&name), client = client_open(&name);
	int server = accept(listener, NULL, NULL);
	for (int touched = 0; touched < 2; touched++) {
		CHECK(connect(server, (struct sockaddr *)&name, sizeof(name)) == -1);
		CHECK(errno == EISCONN);
		send_text(client, "x");
		expect_text(server, "x");
	}
}

static void connect_refused(void)
{
	struct sockaddr_in name;
	close(listener_open(&name));
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	CHECK(connect(fd, (struct sockaddr *)&name, sizeof(name)) == -1 && errno == ECONNREFUSED);
	/* The same socket may try again. */
	CHECK(connect(fd, (struct sockaddr *)&name, sizeof(name)) == -1 && errno == ECONNREFUSED);
	close(fd);
	fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	int rc = connect(fd, (struct sockaddr *)&name, sizeof(name));
	CHECK(rc == -1 && (errno == EINPROGRESS || errno == ECONNREFUSED));
	if (errno == EINPROGRESS) {
		CHECK(wait_for(fd, POLLOUT) & POLLERR);
		CHECK(socket_error(fd) == ECONNREFUSED);
	}
	CHECK(socket_error(fd) == 0);
}

static void connect_bound(void)
{
	struct sockaddr_in name,
		own = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(0x7f000002) };
	struct sockaddr_in seen;
	socklen_t len = sizeof(own);
	int listener = listener_open(&name);
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	CHECK(!bind(fd, (struct sockaddr *)&own, sizeof(own)));
	CHECK(!getsockname(fd, (struct sockaddr *)&own, &len));
	CHECK(!connect(fd, (struct sockaddr *)&name, sizeof(name)));
	int server = accept(listener, (struct sockaddr *)&seen, &len);
	CHECK(server >= 0 && !memcmp(&seen, &own, sizeof(own)));
	send_text(fd, "x");
	expect_text(server, "x");
}

static void connect_six(void)
{
	struct sockaddr_in6 name = { .sin6_family = AF_INET6, .sin6_addr = in6addr_loopback };
	struct sockaddr_in6 seen;
	socklen_t len = sizeof(name);
	int listener = socket(AF_INET6, SOCK_STREAM, 0);
	CHECK(!bind(listener, (struct sockaddr *)&name, sizeof(name)) && !listen(listener, 4));
	CHECK(!getsockname(listener, (struct sockaddr *)&name, &len));
	int fd = socket(AF_INET6, SOCK_STREAM, 0);
	CHECK(!connect(fd, (struct sockaddr *)&name, sizeof(name)));
	int server = accept(listener, (struct sockaddr *)&seen, &len);
	CHECK(server >= 0 && len == sizeof(seen) && seen.sin6_family == AF_INET6);
	send_text(fd, "x");
	expect_text(server, "x");
	CHECK(!getpeername(fd, (struct sockaddr *)&seen, &len));
	CHECK(seen.sin6_port == name.sin6_port && IN6_IS_ADDR_LOOPBACK(&seen.sin6_addr));
}

/* A client of IPv4 at a listener of IPv6. */
static void connect_mapped(void)
{
	struct sockaddr_in6 name = { .sin6_family = AF_INET6 }, seen;
	socklen_t len = sizeof(name);
	int listener = socket(AF_INET6, SOCK_STREAM, 0);
	CHECK(!bind(listener, (struct sockaddr *)&name, sizeof(name)) && !listen(listener, 4));
	CHECK(!getsockname(listener, (struct sockaddr *)&name, &len));
	struct sockaddr_in four = { .sin_family = AF_INET,
				    .sin_port = name.sin6_port,
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = client_open(&four);
	int server = accept(listener, (struct sockaddr *)&seen, &len);
	CHECK(server >= 0 && IN6_IS_ADDR_V4MAPPED(&seen.sin6_addr));
	send_text(fd, "x");
	expect_text(server, "x");
	send_text(server, "y");
	expect_text(fd, "y");
}

static void too_early(void)
{
	struct sockaddr_in name;
	socklen_t len = sizeof(name);
	char octet = 0;
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	CHECK(recv(fd, &octet, 1, 0) == -1 && errno == ENOTCONN);
	CHECK(send(fd, &octet, 1, MSG_NOSIGNAL) == -1 && errno == EPIPE);
	CHECK(getpeername(fd, (struct sockaddr *)&name, &len) == -1 && errno == ENOTCONN);
	CHECK(shutdown(fd, SHUT_WR) == -1 && errno == ENOTCONN);
	CHECK(accept(fd, NULL, NULL) == -1 && errno == EINVAL);
	struct pollfd p = { .fd = fd, .events = POLLIN | POLLOUT };
	CHECK(poll(&p, 1, 0) == 1 && p.revents == (POLLOUT | POLLHUP));
	CHECK(!close(fd));
	CHECK(close(fd) == -1 && errno == EBADF);
	CHECK(send(fd, &octet, 1, 0) == -1 && errno == EBADF);
	CHECK(connect(fd, (struct sockaddr *)&name, len) == -1 && errno == EBADF);
	CHECK(listen(fd, 1) == -1 && errno == EBADF);
	CHECK(send(STDERR_FILENO, &octet, 1, 0) == -1 && errno == ENOTSOCK);
}

static void address_in_use(void)
{
	struct ends e;
	struct sockaddr_in name;
	socklen_t len = sizeof(name);
	ends_open(&e);
	CHECK(!getsockname(e.listener, (struct sockaddr *)&name, &len));
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	CHECK(bind(fd, (struct sockaddr *)&name, len) == -1 && errno == EADDRINUSE);
	close(e.listener);
	send_text(e.client, "listener gone");
	expect_text(e.server, "listener gone");
	int on = 1;
	CHECK(!setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)));
	CHECK(bind(fd, (struct sockaddr *)&name, len) == -1 && errno == EADDRINUSE);
}

/* The next server on the port of one that has gone, with connections in TIME_WAIT. */
static void server_again(void)
{
	struct ends e;
	struct sockaddr_in name;
	socklen_t len = sizeof(name);
	int on = 1;
	ends_open(&e);
	CHECK(!getsockname(e.listener, (struct sockaddr *)&name, &len));
	CHECK(!setsockopt(e.listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)));
	CHECK(!setsockopt(e.server, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)));
	send_text(e.client, "x");
	expect_text(e.server, "x");
	close(e.server);
	expect_end(e.client);
	close(e.client);
	close(e.listener);
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	CHECK(!setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)));
	int64_t deadline = now_ms() + WAIT_MS;
	while (bind(fd, (struct sockaddr *)&name, len)) {
		CHECK(errno == EADDRINUSE && now_ms() < deadline);
		poll(NULL, 0, 5);
	}
	CHECK(!listen(fd, 1));
}

static void listener_closes(void)
{
	struct sockaddr_in name;
	int listener = listener_open(&name);
	int client = client_open(&name);
	CHECK(!close(listener));
	/* Who was never accepted is reset. */
	char octet;
	CHECK(wait_for(client, POLLIN) & (POLLERR | POLLHUP | POLLIN));
	CHECK(recv(client, &octet, 1, 0) == -1 && errno == ECONNRESET);
}

static const struct row rows[] = {
	{ "accept_flags", accept_flags },
	{ "accept_inherits_nothing", accept_inherits_nothing },
	{ "accept_names_are_cut", accept_names_are_cut },
	{ "names", names },
	{ "connect_before_accept", connect_before_accept },
	{ "close_before_accept", close_before_accept },
	{ "connect_nonblocking", connect_nonblocking },
	{ "connect_accepted", connect_accepted },
	{ "connect_refused", connect_refused },
	{ "connect_bound", connect_bound },
	{ "connect_six", connect_six },
	{ "connect_mapped", connect_mapped },
	{ "too_early", too_early },
	{ "address_in_use", address_in_use },
	{ "server_again", server_again },
	{ "listener_closes", listener_closes },
};
const struct rows open_rows = { rows, ARRAY_LEN(rows) };
