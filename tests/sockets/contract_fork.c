// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Connections across each way to fork.
#include "contract.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../lib/limit.h"

static pid_t by_fork(int (*run)(void *), void *arg)
{
	pid_t child = fork();
	if (child == 0)
		_exit(run(arg));
	return child;
}

static pid_t by_bare_fork(int (*run)(void *), void *arg)
{
	pid_t child = _Fork();
	if (child == 0)
		_exit(run(arg));
	return child;
}

static pid_t by_clone(int (*run)(void *), void *arg)
{
	static _Alignas(16) char stack[256 << 10];
	return clone(run, stack + sizeof(stack), SIGCHLD, arg);
}

static pid_t by_number(int (*run)(void *), void *arg)
{
	pid_t child = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
	if (child == 0)
		_exit(run(arg));
	return child;
}

static pid_t (*const ways[])(int (*)(void *), void *) = { by_fork, by_bare_fork, by_clone,
							  by_number };

static int answer_and_ask(void *arg)
{
	int fd = *(int *)arg;
	alarm(limit_s(20));
	expect_text(fd, "to the child");
	send_text(fd, "from the child");
	return 0;
}

/* Whoever uses first what is connected, or just about to be: parent and child, born in whatever way, both can. */
static void fork_unused(void)
{
	for (size_t i = 0; i < 2 * ARRAY_LEN(ways); i++) {
		struct sockaddr_in name;
		int listener = listener_open(&name), client = socket(AF_INET, SOCK_STREAM, 0);
		bool connects = i % 2;
		if (connects)
			set_nonblocking(client, true);
		CHECK(!connect(client, (struct sockaddr *)&name, sizeof(name)) ||
		      errno == EINPROGRESS);
		int server = accept(listener, NULL, NULL);
		if (connects)
			set_nonblocking(client, false);
		pid_t child = ways[i / 2](answer_and_ask, connects ? &client : &server);
		CHECK(child > 0);
		int mine = connects ? client : server, others = connects ? server : client;
		send_text(others, "to the child");
		expect_text(others, "from the child");
		reap(child);
		send_text(others, "to the parent");
		expect_text(mine, "to the parent");
		send_text(mine, "from the parent");
		expect_text(others, "from the parent");
		close(listener);
		close(client);
		close(server);
	}
}

static int do_nothing(void *arg)
{
	(void)arg;
	return 0;
}

/* The end of a child, born in whatever way, gives up none of its parent's connections. */
static void fork_ends(void)
{
	for (size_t i = 0; i < ARRAY_LEN(ways); i++) {
		struct ends e, later;
		ends_open(&e);
		send_text(e.client, "begun");
		expect_text(e.server, "begun");
		pid_t child = ways[i](do_nothing, NULL);
		CHECK(child > 0);
		reap(child);
		ends_open(&later);
		send_text(e.server, "to the one");
		send_text(later.server, "to the other");
		expect_text(e.client, "to the one");
		expect_text(later.client, "to the other");
		send_text(e.client, "back by the one");
		send_text(later.client, "back by the other");
		expect_text(e.server, "back by the one");
		expect_text(later.server, "back by the other");
		close(e.client);
		close(e.server);
		close(later.client);
		close(later.server);
	}
}

static const struct row rows[] = {
	{ "fork_unused", fork_unused },
	{ "fork_ends", fork_ends },
};
const struct rows fork_rows = { rows, ARRAY_LEN(rows) };
