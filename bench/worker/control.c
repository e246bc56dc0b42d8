// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "worker/control.h"

#include "worker/fail.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define GONE "the other end is gone: see what it printed"

bool control_address(const char *address, const char *port, struct sockaddr_storage *at)
{
	struct addrinfo hints = { .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV,
				  .ai_socktype = SOCK_STREAM };
	struct addrinfo *found;

	if (getaddrinfo(address, port, &hints, &found) != 0)
		return false;
	memset(at, 0, sizeof(*at));
	memcpy(at, found->ai_addr, found->ai_addrlen);
	freeaddrinfo(found);
	return true;
}

socklen_t control_address_size(const struct sockaddr_storage *at)
{
	return at->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
}

void control_set_port(struct sockaddr_storage *at, unsigned int port)
{
	if (at->ss_family == AF_INET6)
		((struct sockaddr_in6 *)at)->sin6_port = htons((uint16_t)port);
	else
		((struct sockaddr_in *)at)->sin_port = htons((uint16_t)port);
}

unsigned int control_port(const struct sockaddr_storage *at)
{
	if (at->ss_family == AF_INET6)
		return ntohs(((const struct sockaddr_in6 *)at)->sin6_port);
	return ntohs(((const struct sockaddr_in *)at)->sin_port);
}

int control_listen(struct sockaddr_storage *at, int backlog)
{
	int fd = socket(at->ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	socklen_t size = sizeof(*at);
	int on = 1;

	if (fd < 0)
		fail_errno("no TCP socket");
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(fd, (struct sockaddr *)at, control_address_size(at)) != 0)
		fail_errno("cannot bind: give an address of this machine and a free port");
	if (listen(fd, backlog) != 0 || getsockname(fd, (struct sockaddr *)at, &size) != 0)
		fail_errno("cannot listen");
	return fd;
}

static void begin(struct control *control, int fd)
{
	int on = 1;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	control->fd = fd;
	control->used = 0;
	fail_tell(fd);
}

void control_accept(struct control *control, int listener)
{
	int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);

	if (fd < 0)
		fail_errno("accept");
	begin(control, fd);
}

void control_connect(struct control *control, const struct sockaddr_storage *at)
{
	int fd = socket(at->ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		fail_errno("no TCP socket");
	if (connect(fd, (const struct sockaddr *)at, control_address_size(at)) != 0)
		fail_errno("cannot connect: start the same program as server there first");
	begin(control, fd);
}

int control_connect_data(const struct sockaddr_storage *at)
{
	int fd = socket(at->ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		fail_errno("no TCP socket");
	if (connect(fd, (const struct sockaddr *)at, control_address_size(at)) != 0)
		fail_errno("cannot connect to port %u", control_port(at));
	return fd;
}

void control_send(struct control *control, const char *format, ...)
{
	char line[CONTROL_LINE_MAX];
	va_list args;
	int length;

	va_start(args, format);
	length = vsnprintf(line, sizeof(line) - 1, format, args);
	va_end(args);
	if (length < 0 || (size_t)length >= sizeof(line) - 1)
		fail("a control line of %d bytes is too long", length);
	line[length++] = '\n';
	if (send(control->fd, line, (size_t)length, MSG_NOSIGNAL) != length)
		fail_errno(GONE);
}

/* Reads on; fails at the stream's end and when a line is longer than any of ours. */
static void fill(struct control *control)
{
	size_t room = sizeof(control->input) - control->used;
	ssize_t got;

	if (room == 0)
		fail("the other end sends no lines: is another program on this port?");
	do {
		got = recv(control->fd, control->input + control->used, room, 0);
	} while (got < 0 && errno == EINTR);
	if (got < 0)
		fail_errno(GONE);
	if (got == 0)
		fail(GONE);
	control->used += (size_t)got;
}

void control_receive(struct control *control, char *line)
{
	char *newline;
	size_t length;

	while (!(newline = memchr(control->input, '\n', control->used)))
		fill(control);
	length = (size_t)(newline - control->input);
	memcpy(line, control->input, length);
	line[length] = '\0';
	control->used -= length + 1;
	memmove(control->input, newline + 1, control->used);
	if (strncmp(line, "error ", 6) == 0) {
		fail_tell(-1);
		fail("the other end: %s", line + 6);
	}
}

void control_expect(struct control *control, const char *word, char *rest)
{
	char line[CONTROL_LINE_MAX];
	size_t length = strlen(word);

	control_receive(control, line);
	if (strncmp(line, word, length) != 0 || (line[length] != ' ' && line[length] != '\0'))
		fail("the other end says '%.80s' instead of '%s': are both of one version?", line,
		     word);
	if (rest)
		strcpy(rest, line[length] ? line + length + 1 : "");
}

void control_check(const struct control *control)
{
	struct pollfd fd = { .fd = control->fd, .events = POLLRDHUP };

	if (poll(&fd, 1, 0) > 0 && (fd.revents & (POLLRDHUP | POLLHUP | POLLERR)))
		fail(GONE);
}
