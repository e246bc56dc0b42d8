// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What reads or writes a connection where a library that is preloaded sees nothing of it, while other threads, epoll sets and
// processes go on with the same connection.
#include "contract.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define BULK_OCTETS (8u << 20)
#define MANY 300
#define BUSY_MS 300

extern char **environ;
static char *const cat[] = { "/bin/cat", NULL };
static char *const empty[] = { NULL };

/* The program's client has cat on the other end. */
static void use_cat(int client, pid_t child)
{
	send_text(client, "through cat");
	expect_text(client, "through cat");
	CHECK(!shutdown(client, SHUT_WR));
	expect_end(client);
	reap(child);
}

static void touch(const struct ends *e)
{
	send_text(e->client, "touched");
	expect_text(e->server, "touched");
}

/* The child of vfork has its parent's memory, and fds of its own: one connection under two numbers. */
static pid_t vfork_cat(int fd)
{
	pid_t child = vfork();
	if (child == 0) {
		if (dup2(fd, 0) == 0 && dup2(fd, 1) == 1)
			execve(cat[0], cat, empty);
		_exit(1);
	}
	CHECK(child > 0);
	return child;
}

static void vfork_without(void)
{
	for (int touched = 0; touched < 2; touched++) {
		struct ends e;
		ends_open(&e);
		CHECK(!fcntl(e.server, F_SETFD, FD_CLOEXEC));
		CHECK(!fcntl(e.client, F_SETFD, FD_CLOEXEC));
		if (touched)
			touch(&e);
		pid_t child = vfork_cat(e.server);
		close(e.server);
		use_cat(e.client, child);
		close(e.client);
	}
}

/* A child that closes its copies again leaves the connection to its parent. */
static void vfork_unused(void)
{
	struct ends e;
	ends_open(&e);
	touch(&e);
	pid_t child = vfork();
	if (child == 0) {
		execve("/bin/true", empty, empty);
		_exit(1);
	}
	reap(child);
	send_text(e.client, "still here");
	expect_text(e.server, "still here");
	send_text(e.server, "and back");
	expect_text(e.client, "and back");
	close(e.server);
	expect_end(e.client);
}

static void spawn_without(void)
{
	for (int touched = 0; touched < 2; touched++) {
		posix_spawn_file_actions_t actions;
		struct ends e;
		pid_t child;
		ends_open(&e);
		CHECK(!fcntl(e.server, F_SETFD, FD_CLOEXEC));
		CHECK(!fcntl(e.client, F_SETFD, FD_CLOEXEC));
		if (touched)
			touch(&e);
		CHECK(!posix_spawn_file_actions_init(&actions));
		CHECK(!posix_spawn_file_actions_adddup2(&actions, e.server, 0));
		CHECK(!posix_spawn_file_actions_adddup2(&actions, e.server, 1));
		CHECK(!posix_spawn(&child, cat[0], &actions, NULL, cat, empty));
		posix_spawn_file_actions_destroy(&actions);
		close(e.server);
		use_cat(e.client, child);
		close(e.client);
	}
}

static void popen_output(void)
{
	struct ends e;
	char command[64], line[64];
	ends_open(&e);
	touch(&e);
	send_text(e.client, "a line\n");
	snprintf(command, sizeof(command), "read line <&%d; echo got $line", e.server);
	FILE *shell = popen(command, "r");
	CHECK(shell && fgets(line, sizeof(line), shell) && !strcmp(line, "got a line\n"));
	CHECK(!pclose(shell));
	send_text(e.server, "back");
	expect_text(e.client, "back");
}

/* The set tells of the connection as before, whatever reads it. */
static void stdio_beside_epoll(void)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLET }, got = { 0 };
	struct ends e;
	char line[64];
	ends_open(&e);
	touch(&e);
	event.data.u64 = UINT64_C(0x123456789abcdef0);
	int set = epoll_create1(0);
	CHECK(!epoll_ctl(set, EPOLL_CTL_ADD, e.server, &event));
	FILE *stream = fdopen(e.server, "r");
	CHECK(stream);
	for (int i = 0; i < 3; i++) {
		send_text(e.client, "line\n");
		CHECK(epoll_wait(set, &got, 1, WAIT_MS) == 1);
		CHECK(got.events == EPOLLIN && got.data.u64 == event.data.u64);
		CHECK(fgets(line, sizeof(line), stream) && !strcmp(line, "line\n"));
	}
	CHECK(!epoll_ctl(set, EPOLL_CTL_DEL, e.server, NULL));
	send_text(e.client, "line\n");
	wait_readable_octets(e.server, 5);
	CHECK(epoll_wait(set, &got, 1, 0) == 0);
	CHECK(fgets(line, sizeof(line), stream) && !strcmp(line, "line\n"));
	CHECK(!fclose(stream));
	expect_end(e.client);
}

struct task {
	int fd;
	pthread_t thread;
	pid_t tid;
};

/* The thread, or the process with one, is in a call of the kernel's that waits. */
static void await_sleep(pid_t tid)
{
	char path[64], line[512];
	for (int in_a_row = 0; in_a_row < 3;) {
		snprintf(path, sizeof(path), "/proc/%d/stat", (int)tid);
		FILE *file = fopen(path, "r");
		CHECK(file && fgets(line, sizeof(line), file));
		fclose(file);
		in_a_row = strstr(line, ") S ") ? in_a_row + 1 : 0;
		sched_yield();
	}
}

static void *read_a_word(void *arg)
{
	struct task *task = arg;
	char word[8];
	__atomic_store_n(&task->tid, (pid_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
	CHECK(read(task->fd, word, sizeof(word)) == 3 && !memcmp(word, "one", 3));
	return NULL;
}

static void *write_bulk(void *arg)
{
	struct task *task = arg;
	char *octets = malloc(BULK_OCTETS);
	CHECK(octets);
	pattern_fill(octets, BULK_OCTETS, 0);
	__atomic_store_n(&task->tid, (pid_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
	CHECK(write(task->fd, octets, BULK_OCTETS) == (ssize_t)BULK_OCTETS);
	free(octets);
	return NULL;
}

static void start(struct task *task, void *(*run)(void *arg), int fd)
{
	task->fd = fd;
	task->tid = 0;
	task->thread = thread_start(run, task);
	while (!__atomic_load_n(&task->tid, __ATOMIC_ACQUIRE))
		sched_yield();
	await_sleep(task->tid);
}

/* Passes e's server to this process itself while a thread runs with it. Returns the fd that has come. */
static int pass_beside(struct task *task, void *(*run)(void *arg), struct ends *e)
{
	int channel[2], again;
	ends_open(e);
	touch(e);
	CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, channel));
	start(task, run, e->server);
	fd_send(channel[0], e->server);
	again = fd_recv(channel[1]);
	close(channel[0]);
	close(channel[1]);
	return again;
}

/* Who was there first gets the first word. */
static void pass_beside_reader(void)
{
	struct task task;
	struct ends e;
	int again = pass_beside(&task, read_a_word, &e);
	send_text(e.client, "one");
	thread_join(task.thread);
	send_text(e.client, "two");
	expect_text(again, "two");
	send_text(again, "back");
	expect_text(e.client, "back");
}

/* All of a write goes out, and what is written by the other fd comes behind it. */
static void pass_beside_writer(void)
{
	struct task task;
	struct ends e;
	int again = pass_beside(&task, write_bulk, &e);
	expect_pattern(e.client, BULK_OCTETS);
	thread_join(task.thread);
	send_text(again, "behind it");
	expect_text(e.client, "behind it");
}

/* The parent goes on with what a child has handed to another program. */
static void parent_goes_on(void)
{
	struct ends e;
	char *argv[] = { "/bin/sh", "-c", "read line; echo got $line", NULL };
	ends_open(&e);
	touch(&e);
	pid_t child = fork();
	if (child == 0) {
		if (dup2(e.server, 0) == 0 && dup2(e.server, 1) == 1)
			execve(argv[0], argv, empty);
		_exit(1);
	}
	CHECK(child > 0);
	send_text(e.client, "a line\n");
	expect_text(e.client, "got a line\n");
	reap(child);
	send_text(e.client, "to the parent");
	expect_text(e.server, "to the parent");
	send_text(e.server, "from the parent");
	expect_text(e.client, "from the parent");
	close(e.server);
	expect_end(e.client);
}

/*
 * A program that inherits a connection and never looks at it takes nothing of it, however long the parent is busy with other
 * things, and wherever the parent waits for it then.
 */
static void leak_to(bool polls, bool ends_first)
{
	char *argv[] = { "/bin/sleep", "1000", NULL };
	int status;
	struct ends e;
	ends_open(&e);
	touch(&e);
	pid_t child = fork();
	if (child == 0) {
		execve(argv[0], argv, empty);
		_exit(1);
	}
	CHECK(child > 0);
	for (int i = 0; i < 3; i++) {
		send_text(e.client, "word");
		poll(NULL, 0, BUSY_MS);
		if (i == 1 && ends_first)
			CHECK(!kill(child, SIGKILL) && waitpid(child, &status, 0) == child);
		if (polls)
			CHECK(wait_for(e.server, POLLIN) == POLLIN);
		expect_text(e.server, "word");
		send_text(e.server, "back");
		expect_text(e.client, "back");
	}
	if (!ends_first)
		CHECK(!kill(child, SIGKILL) && waitpid(child, &status, 0) == child);
	close(e.server);
	expect_end(e.client);
	close(e.client);
}

static void leak_to_stranger(void)
{
	for (int i = 0; i < 4; i++)
		leak_to(i & 1, i & 2);
}

static void wait_in_epoll(int fd)
{
	struct epoll_event event = { .events = EPOLLIN };
	int set = epoll_create1(0);
	CHECK(set >= 0 && !epoll_ctl(set, EPOLL_CTL_ADD, fd, &event));
	int n;
	do {
		n = epoll_wait(set, &event, 1, WAIT_MS);
	} while (n < 0 && errno == EINTR);
	CHECK(n == 1 && event.events & EPOLLIN);
}

static void wait_in_poll(int fd)
{
	CHECK(wait_for(fd, POLLIN) & POLLIN);
}

static void wait_in_read(int fd)
{
	char first;
	CHECK(recv(fd, &first, 1, MSG_PEEK) == 1);
}

static pid_t start_waiter(int fd, void (*wait)(int fd))
{
	pid_t child = fork();
	if (child == 0) {
		wait(fd);
		expect_text(fd, "word");
		_exit(0);
	}
	CHECK(child > 0);
	await_sleep(child);
	return child;
}

/* Starts a program that knows nothing of the library, and writes an octet to `told` once its input is readable; it never reads. */
static pid_t start_watcher(const struct ends *e, int told)
{
	char *argv[] = { "/usr/bin/python3", "-c",
			 "import os, select, signal\n"
			 "select.select([0], [], [])\n"
			 "os.write(1, b'.')\n"
			 "signal.pause()\n",
			 NULL };
	pid_t child = fork();
	if (child == 0) {
		close(e->client);
		if (dup2(e->server, 0) == 0 && dup2(told, 1) == 1)
			execve(argv[0], argv, empty);
		_exit(1);
	}
	CHECK(child > 0);
	return child;
}

/*
 * A process that sleeps until there are bytes wakes for them, however late it gets a processor, also where another program had the
 * connection meanwhile and has not read them.
 */
static void late_waiter(void)
{
	static void (*const waits[])(int fd) = { wait_in_poll, wait_in_epoll, wait_in_read };
	for (size_t i = 0; i < ARRAY_LEN(waits); i++) {
		int told[2], status;
		char octet;
		struct ends e;
		ends_open(&e);
		touch(&e);
		CHECK(!pipe(told));
		pid_t waiter = start_waiter(e.server, waits[i]);
		CHECK(!kill(waiter, SIGSTOP) && waitpid(waiter, &status, WUNTRACED) == waiter);
		pid_t watcher = start_watcher(&e, told[1]);
		send_text(e.client, "word");
		CHECK(read(told[0], &octet, 1) == 1);
		CHECK(!kill(waiter, SIGCONT));
		reap(waiter);
		CHECK(!kill(watcher, SIGKILL) && waitpid(watcher, &status, 0) == watcher);
		close(told[0]);
		close(told[1]);
		close(e.server);
		expect_end(e.client);
		close(e.client);
		close(e.listener);
	}
}

/* The stream's end is told before unread bytes, also where a process holds the connection that never looks at it. */
static void end_behind_unread(void)
{
	int told[2], status;
	char octet;
	struct ends e;
	ends_open(&e);
	touch(&e);
	CHECK(!pipe(told));
	pid_t idle = fork();
	if (idle == 0)
		for (;;)
			pause();
	pid_t watcher = start_watcher(&e, told[1]);
	send_text(e.client, "word");
	CHECK(read(told[0], &octet, 1) == 1);
	CHECK(recv(e.server, &octet, 1, MSG_PEEK) == 1);
	CHECK(!shutdown(e.client, SHUT_WR));
	CHECK(wait_for(e.server, POLLRDHUP) & POLLRDHUP);
	expect_text(e.server, "word");
	expect_end(e.server);
	CHECK(!kill(watcher, SIGKILL) && waitpid(watcher, &status, 0) == watcher);
	CHECK(!kill(idle, SIGKILL) && waitpid(idle, &status, 0) == idle);
}

static void expect_linger(int fd, int on, int seconds)
{
	struct linger linger = { -1, -1 };
	socklen_t len = sizeof(linger);
	CHECK(!getsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, &len) && len == sizeof(linger));
	CHECK(linger.l_onoff == on && linger.l_linger == seconds);
}

static void set_linger(int fd, int on, int seconds)
{
	struct linger linger = { on, seconds };
	CHECK(!setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)));
}

/*
 * SO_LINGER is the program's own before and after another program has the connection, too. The parent sets the option before
 * its first read, and behind it.
 */
static void linger_beside_stranger(void)
{
	char *argv[] = { "/bin/sleep", "1000", NULL };
	int status;
	for (int reset = 0; reset < 2; reset++) {
		struct ends e;
		ends_open(&e);
		touch(&e);
		set_linger(e.server, 1, 7);
		pid_t child = fork();
		if (child == 0) {
			execve(argv[0], argv, empty);
			_exit(1);
		}
		CHECK(child > 0);
		poll(NULL, 0, BUSY_MS);
		expect_linger(e.server, 1, 7);
		set_linger(e.server, 0, 7);
		touch(&e);
		expect_linger(e.server, 0, 7);
		if (reset)
			set_linger(e.server, 1, 0);
		CHECK(!kill(child, SIGKILL) && waitpid(child, &status, 0) == child);
		close(e.server);
		if (reset) {
			char octet;
			CHECK(wait_for(e.client, POLLIN) & POLLIN);
			CHECK(read(e.client, &octet, 1) == -1 && errno == ECONNRESET);
		} else {
			expect_end(e.client);
		}
		close(e.client);
		close(e.listener);
	}
}

/* A shell inherits more connections than are handed over at a time. */
static void shell_beside_many(void)
{
	static struct ends many[MANY];
	struct sockaddr_in name;
	int listener = listener_open(&name);
	for (int i = 0; i < MANY; i++) {
		many[i].client = client_open(&name);
		many[i].server = accept(listener, NULL, NULL);
		CHECK(many[i].server >= 0);
		touch(&many[i]);
	}
	CHECK(!system("true"));
	for (int i = 0; i < MANY; i++) {
		send_text(many[i].server, "word");
		expect_text(many[i].client, "word");
		touch(&many[i]);
	}
}

static const struct row rows[] = {
	{ "vfork_without", vfork_without },
	{ "vfork_unused", vfork_unused },
	{ "spawn_without", spawn_without },
	{ "popen_output", popen_output },
	{ "stdio_beside_epoll", stdio_beside_epoll },
	{ "pass_beside_reader", pass_beside_reader },
	{ "pass_beside_writer", pass_beside_writer },
	{ "parent_goes_on", parent_goes_on },
	{ "leak_to_stranger", leak_to_stranger },
	{ "late_waiter", late_waiter },
	{ "end_behind_unread", end_behind_unread },
	{ "shell_beside_many", shell_beside_many },
	{ "linger_beside_stranger", linger_beside_stranger },
};
const struct rows bridge_rows = { rows, ARRAY_LEN(rows) };
