// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Connections passed to others over a unix socket, also to programs that run without the library. And what
// such programs do with a connection that they were handed.
#include "contract.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../lib/limit.h"

static int echo(int fd)
{
	char room[4096];
	ssize_t n;
	alarm(limit_s(20));
	while ((n = read(fd, room, sizeof(room))) > 0)
		send_all(fd, room, (size_t)n);
	return n != 0;
}

static int drain(int fd)
{
	char room[4096];
	alarm(limit_s(20));
	while (read(fd, room, sizeof(room)) > 0)
		;
	return 0;
}

/* Writes to a peer that has ended its direction, and waits until poll reports POLLHUP. */
static int hangup(int fd)
{
	expect_end(fd);
	send_text(fd, "x");
	CHECK(wait_for(fd, 0) & POLLHUP);
	return 0;
}

/* Reads a request to its end, replies, and shuts down. */
static int finish(int fd, int how)
{
	drain(fd);
	send_text(fd, "reply");
	return shutdown(fd, how) != 0;
}

int role_main(const char *word, int fd)
{
	if (!strcmp(word, "echo"))
		return echo(fd);
	if (!strcmp(word, "drain"))
		return drain(fd);
	if (!strcmp(word, "finish"))
		return finish(fd, SHUT_WR);
	if (!strcmp(word, "finish_both"))
		return finish(fd, SHUT_RDWR);
	if (!strcmp(word, "hangup"))
		return hangup(fd);
	if (!strcmp(word, "take"))
		return echo(fd_recv(fd));
	fprintf(stderr, "%s: no such role\n", word);
	return 2;
}

/* Control data whose length cannot be is the kernel's to refuse. */
static void pass_out_of_bounds(void)
{
	static const size_t lengths[] = { 0, sizeof(struct cmsghdr) - 1, SIZE_MAX / 2 };
	struct ends e;
	int channel[2];
	ends_open(&e);
	CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, channel));
	for (size_t i = 0; i < ARRAY_LEN(lengths); i++) {
		char octet = '!', control[CMSG_SPACE(sizeof(int))] = { 0 };
		struct iovec iov = { &octet, 1 };
		struct msghdr msg = { .msg_iov = &iov,
				      .msg_iovlen = 1,
				      .msg_control = control,
				      .msg_controllen = sizeof(control) };
		struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
		*c = (struct cmsghdr){ lengths[i], SOL_SOCKET, SCM_RIGHTS };
		CHECK(sendmsg(channel[0], &msg, 0) == -1 && errno == EINVAL);
	}
}

static void use(int client, pid_t other)
{
	send_text(client, "to whom it was passed");
	expect_text(client, "to whom it was passed");
	CHECK(!shutdown(client, SHUT_WR));
	expect_end(client);
	reap(other);
}

static void pass_to(bool without, bool touched)
{
	int channel[2];
	struct ends e;
	CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, channel));
	pid_t other = spawn_self("take", channel[1], without);
	ends_open(&e);
	if (touched) {
		send_text(e.client, "touched");
		expect_text(e.server, "touched");
	}
	fd_send(channel[0], e.server);
	close(e.server);
	use(e.client, other);
	close(e.client);
}

static void pass_within(void)
{
	for (int touched = 0; touched < 2; touched++) {
		int channel[2];
		struct ends e;
		ends_open(&e);
		CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, channel));
		if (touched) {
			send_text(e.client, "x");
			expect_text(e.server, "x");
		}
		fd_send(channel[0], e.server);
		int again = fd_recv(channel[1]);
		CHECK(again >= 0 && again != e.server);
		send_text(e.client, "12");
		expect_text(again, "1");
		expect_text(e.server, "2");
		close(e.server);
		send_text(again, "back");
		expect_text(e.client, "back");
		close(again);
		expect_end(e.client);
	}
}

/* By sendmmsg and recvmmsg, too. */
static void pass_among_messages(void)
{
	struct sockaddr_in name;
	char octets[2], control[2][CMSG_SPACE(sizeof(int))] = { 0 };
	struct iovec iov[] = { { &octets[0], 1 }, { &octets[1], 1 } };
	struct mmsghdr msgs[2];
	struct ends e;
	int channel[2], fds[2];
	ends_open(&e);
	send_text(e.client, "x");
	expect_text(e.server, "x");
	CHECK(!socketpair(AF_UNIX, SOCK_DGRAM, 0, channel));
	fds[0] = e.server;
	fds[1] = listener_open(&name);
	for (int i = 0; i < 2; i++) {
		msgs[i].msg_hdr = (struct msghdr){ .msg_iov = &iov[i],
						   .msg_iovlen = 1,
						   .msg_control = control[i],
						   .msg_controllen = sizeof(control[i]) };
		struct cmsghdr *c = CMSG_FIRSTHDR(&msgs[i].msg_hdr);
		*c = (struct cmsghdr){ CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS };
		memcpy(CMSG_DATA(c), &fds[i], sizeof(int));
	}
	CHECK(sendmmsg(channel[0], msgs, 2, 0) == 2);
	CHECK(!close(fds[0]) && !close(fds[1]));
	CHECK(recvmmsg(channel[1], msgs, 2, 0, NULL) == 2);
	for (int i = 0; i < 2; i++)
		memcpy(&fds[i], CMSG_DATA(CMSG_FIRSTHDR(&msgs[i].msg_hdr)), sizeof(int));
	pid_t child = spawn_self("echo", fds[0], true);
	CHECK(!close(fds[0]));
	use(e.client, child);
	int client = client_open(&name), server = accept(fds[1], NULL, NULL);
	send_text(client, "to the listener");
	expect_text(server, "to the listener");
}

static void pass_to_process(void)
{
	pass_to(false, false);
	pass_to(false, true);
}

static void pass_to_process_without(void)
{
	pass_to(true, true);
	pass_to(true, false);
}

/* An accepted socket that nobody touched goes to a program without the library. */
static void exec_without(void)
{
	for (int touched = 0; touched < 2; touched++) {
		struct ends e;
		ends_open(&e);
		if (touched) {
			send_text(e.client, "x");
			expect_text(e.server, "x");
		}
		pid_t child = spawn_self("echo", e.server, true);
		close(e.server);
		send_text(e.client, "without");
		expect_text(e.client, "without");
		/* The child has both ends: it ends by its parent's leave only. */
		CHECK(!shutdown(e.client, SHUT_WR));
		expect_end(e.client);
		reap(child);
		close(e.client);
	}
}

/* A listener is inherited, and one is passed. */
static void pass_listener(void)
{
	struct sockaddr_in name;
	int channel[2];
	int listener = listener_open(&name);
	CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, channel));
	fd_send(channel[0], listener);
	close(listener);
	int again = fd_recv(channel[1]);
	int client = client_open(&name);
	int server = accept(again, NULL, NULL);
	CHECK(server >= 0);
	send_text(client, "x");
	expect_text(server, "x");
	send_text(server, "y");
	expect_text(client, "y");
}

static const struct row rows[] = {
	{ "pass_out_of_bounds", pass_out_of_bounds },
	{ "pass_within", pass_within },
	{ "pass_among_messages", pass_among_messages },
	{ "pass_to_process", pass_to_process },
	{ "pass_to_process_without", pass_to_process_without },
	{ "exec_without", exec_without },
	{ "pass_listener", pass_listener },
};
const struct rows pass_rows = { rows, ARRAY_LEN(rows) };
