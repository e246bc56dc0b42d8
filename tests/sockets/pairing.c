// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// pairing serve epoll|thread: prints its port, and answers each line of each client with "KIND line".
// pairing ask PORT WORD [nonblock]: sends a line before it waits for anything, says so, and reads the answer; a long one follows. Prints
// "done OWN THEIRS". KIND, OWN and THEIRS: what the kernel has for the program's fd, "pair" or "tcp".
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LINE_MAX_BYTES 200000
#define LONG_LINE 150000
#define CONNECTIONS_MAX 1024

#define CHECK(what)                                                                    \
	do {                                                                           \
		if (!(what)) {                                                         \
			fprintf(stderr, "%s:%d: %s: %m\n", __FILE__, __LINE__, #what); \
			exit(1);                                                       \
		}                                                                      \
	} while (0)

struct connection {
	int fd;
	size_t len;
	char line[LINE_MAX_BYTES];
};

/* No wrapper sees this call. */
static const char *kind_of(int fd)
{
	struct sockaddr_storage name = { 0 };
	socklen_t len = sizeof(name);

	CHECK(syscall(SYS_getsockname, fd, &name, &len) == 0);
	return name.ss_family == AF_UNIX ? "pair" : "tcp";
}

static void wait_for(int fd, short events)
{
	struct pollfd one = { .fd = fd, .events = events };

	CHECK(poll(&one, 1, -1) == 1);
}

static bool write_all(int fd, const char *bytes, size_t len)
{
	while (len) {
		ssize_t sent = send(fd, bytes, len, MSG_NOSIGNAL);

		if (sent < 0 && errno != EAGAIN)
			return false;
		if (sent < 0)
			wait_for(fd, POLLOUT);
		bytes += sent < 0 ? 0 : sent;
		len -= sent < 0 ? 0 : (size_t)sent;
	}
	return true;
}

/* Reads once. Returns the line's length without its end, 0: not yet, -1: the stream has ended. */
static ssize_t read_some(struct connection *c)
{
	ssize_t got = read(c->fd, c->line + c->len, sizeof(c->line) - c->len);

	if (got < 0 && errno == EAGAIN)
		return 0;
	if (got <= 0)
		return -1;
	c->len += (size_t)got;
	return c->line[c->len - 1] == '\n' ? (ssize_t)c->len - 1 : 0;
}

/* False: the connection is over. */
static bool serve_once(struct connection *c)
{
	ssize_t len = read_some(c);
	const char *kind = kind_of(c->fd);

	if (len <= 0)
		return len == 0;
	if (!write_all(c->fd, kind, strlen(kind)) || !write_all(c->fd, " ", 1) ||
	    !write_all(c->fd, c->line, c->len))
		return false;
	c->len = 0;
	return true;
}

static void *serve_whole(void *arg)
{
	struct connection *c = arg;

	while (serve_once(c))
		;
	close(c->fd);
	free(c);
	return NULL;
}

static struct connection *accept_one(int listener, int flags)
{
	struct connection *c = calloc(1, sizeof(*c));

	CHECK(c);
	c->fd = accept4(listener, NULL, NULL, flags);
	CHECK(c->fd >= 0);
	return c;
}

static void serve_by_threads(int listener)
{
	pthread_t thread;

	for (;;) {
		struct connection *c = accept_one(listener, 0);

		CHECK(pthread_create(&thread, NULL, serve_whole, c) == 0 &&
		      !pthread_detach(thread));
	}
}

static void serve_by_epoll(int listener)
{
	int set = epoll_create1(0);
	struct epoll_event event = { .events = EPOLLIN };

	CHECK(epoll_ctl(set, EPOLL_CTL_ADD, listener, &event) == 0);
	for (;;) {
		struct connection *c;
		int ready = epoll_wait(set, &event, 1, -1);

		CHECK(ready == 1 || errno == EINTR); /* the process was stopped */
		if (ready != 1)
			continue;
		c = event.data.ptr;
		if (!c) {
			c = accept_one(listener, SOCK_NONBLOCK);
			event = (struct epoll_event){ .events = EPOLLIN | EPOLLET, .data.ptr = c };
			CHECK(epoll_ctl(set, EPOLL_CTL_ADD, c->fd, &event) == 0);
		} else if (!serve_once(c)) {
			close(c->fd);
			free(c);
		} else if (c->len) { /* the edge is told once */
			event = (struct epoll_event){ .events = EPOLLIN | EPOLLET, .data.ptr = c };
			CHECK(epoll_ctl(set, EPOLL_CTL_MOD, c->fd, &event) == 0);
		}
	}
}

static int serve(const char *how)
{
	int listener = socket(AF_INET, SOCK_STREAM, 0);
	struct sockaddr_in name = { .sin_family = AF_INET,
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(name);

	CHECK(bind(listener, (struct sockaddr *)&name, len) == 0 && listen(listener, 128) == 0);
	CHECK(getsockname(listener, (struct sockaddr *)&name, &len) == 0);
	CHECK(poll(&(struct pollfd){ .fd = listener, .events = POLLIN }, 1, 0) ==
	      0); /* it is waited for */
	printf("port %d\n", ntohs(name.sin_port));
	fflush(stdout);
	if (strcmp(how, "epoll") == 0)
		serve_by_epoll(listener);
	serve_by_threads(listener);
	return 0;
}

/* Reads an answer of len bytes to line. Returns its kind. */
static const char *read_answer(struct connection *c, const char *line, size_t len)
{
	static char kind[8];
	char *space;
	ssize_t got;

	c->len = 0;
	while ((got = read_some(c)) == 0)
		wait_for(c->fd, POLLIN);
	if (got < 0) {
		printf("ended\n");
		exit(2);
	}
	space = memchr(c->line, ' ', sizeof(kind));
	CHECK(space && c->len == (size_t)(space + 1 - c->line) + len &&
	      !memcmp(space + 1, line, len));
	memcpy(kind, c->line, (size_t)(space - c->line));
	return kind;
}

static void connect_to(int fd, uint16_t port)
{
	struct sockaddr_in name = { .sin_family = AF_INET,
				    .sin_port = htons(port),
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int err = 0;
	socklen_t len = sizeof(err);

	if (connect(fd, (struct sockaddr *)&name, sizeof(name)) == 0)
		return;
	if (errno == EINPROGRESS) {
		wait_for(fd, POLLOUT);
		CHECK(getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &len) == 0);
		errno = err;
	}
	if (errno && errno != EINPROGRESS) {
		printf("not connected %d\n", errno);
		exit(2);
	}
}

static void say_ended(void)
{
	printf("ended\n");
	exit(2);
}

static int ask(uint16_t port, const char *word, bool nonblock)
{
	static struct connection c;
	static char line[LONG_LINE];
	int len = snprintf(line, sizeof(line), "%s\n", word);
	const char *theirs, *own;

	c.fd = socket(AF_INET, SOCK_STREAM | (nonblock ? SOCK_NONBLOCK : 0), 0);
	CHECK(c.fd >= 0);
	connect_to(c.fd, port);
	if (!write_all(c.fd, line, (size_t)len))
		say_ended();
	own = kind_of(c.fd);
	printf("written %s\n", own);
	fflush(stdout);
	theirs = read_answer(&c, line, (size_t)len);
	memset(line, 'x', sizeof(line));
	line[sizeof(line) - 1] = '\n';
	if (!write_all(c.fd, line, sizeof(line)))
		say_ended();
	CHECK(strcmp(read_answer(&c, line, sizeof(line)), theirs) == 0);
	printf("done %s %s\n", own, theirs);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 3 && strcmp(argv[1], "serve") == 0)
		return serve(argv[2]);
	if (argc < 4)
		return 1;
	return ask((uint16_t)atoi(argv[2]), argv[3], argc > 4);
}
