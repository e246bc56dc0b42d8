// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Connections across fork and exec, and ends that die.
#include "contract.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../lib/limit.h"

#define WORKERS 4
#define CLIENTS 16
#define VFORKS 400

static void touch(struct ends *e)
{
	send_text(e->client, "x");
	expect_text(e->server, "x");
}

static pid_t fork_checked(void)
{
	pid_t child = fork();
	CHECK(child >= 0);
	if (child == 0)
		alarm(limit_s(20));
	return child;
}

/* Parent and child both write and read, and the end is told by the last close. */
static void fork_shares(void)
{
	for (int touched = 0; touched < 2; touched++) {
		struct ends e;
		ends_open(&e);
		if (touched)
			touch(&e);
		pid_t child = fork_checked();
		if (child == 0) {
			close(e.server);
			expect_text(e.client, "to the child");
			send_text(e.client, "from the child");
			_exit(0);
		}
		send_text(e.server, "to the child");
		expect_text(e.server, "from the child");
		reap(child);
		struct pollfd p = { e.server, POLLIN, 0 };
		CHECK(poll(&p, 1, 20) == 0);
		send_text(e.server, "to the parent");
		expect_text(e.client, "to the parent");
		send_text(e.client, "from the parent");
		expect_text(e.server, "from the parent");
		close(e.client);
		expect_end(e.server);
		close(e.server);
	}
}

/* The child goes on when the parent has gone. */
static void fork_outlives(void)
{
	for (int touched = 0; touched < 2; touched++) {
		struct ends e;
		int ready[2];
		char octet;
		ends_open(&e);
		CHECK(!pipe(ready));
		pid_t parent = fork_checked();
		if (parent == 0) {
			int client = e.client;
			close(e.server);
			if (touched) {
				send_text(client, "parent ");
				expect_text(client, "hello");
			}
			if (fork() > 0)
				_exit(0);
			close(ready[1]);
			CHECK(read(ready[0], &octet, 1) == 0);
			expect_text(client, "still there?");
			send_text(client, "child");
			_exit(0);
		}
		close(e.client);
		if (touched) {
			expect_text(e.server, "parent ");
			send_text(e.server, "hello");
		}
		reap(parent);
		close(ready[1]);
		send_text(e.server, "still there?");
		expect_text(e.server, "child");
		expect_end(e.server);
		close(e.server);
		close(ready[0]);
	}
}

/* The classical server: accept, fork, the parent closes, the child serves. */
static void fork_a_connection(void)
{
	struct sockaddr_in name;
	int listener = listener_open(&name);
	pid_t server = fork_checked();
	if (server == 0) {
		for (int i = 0; i < CLIENTS; i++) {
			int fd = accept(listener, NULL, NULL);
			CHECK(fd >= 0);
			if (fork() == 0) {
				close(listener);
				expect_text(fd, "ask");
				send_text(fd, "answer");
				_exit(0);
			}
			close(fd);
		}
		while (wait(NULL) > 0)
			;
		_exit(0);
	}
	int fds[CLIENTS];
	for (int i = 0; i < CLIENTS; i++)
		fds[i] = client_open(&name);
	for (int i = 0; i < CLIENTS; i++)
		send_text(fds[i], "ask");
	for (int i = 0; i < CLIENTS; i++) {
		expect_text(fds[i], "answer");
		expect_end(fds[i]);
	}
	reap(server);
}

/* Workers that accept from one listener. */
static void fork_before_accept(void)
{
	struct sockaddr_in name;
	int listener = listener_open(&name);
	pid_t workers[WORKERS];
	for (int i = 0; i < WORKERS; i++) {
		workers[i] = fork_checked();
		if (workers[i] == 0) {
			for (int served = 0; served < CLIENTS / WORKERS; served++) {
				int fd = accept(listener, NULL, NULL);
				CHECK(fd >= 0);
				expect_text(fd, "ask");
				send_text(fd, "answer");
				close(fd);
			}
			_exit(0);
		}
	}
	for (int i = 0; i < CLIENTS; i++) {
		int fd = client_open(&name);
		send_text(fd, "ask");
		expect_text(fd, "answer");
		expect_end(fd);
		close(fd);
	}
	for (int i = 0; i < WORKERS; i++)
		reap(workers[i]);
}

/* A parent reads what a child does not: one stream, each octet once. */
static void fork_one_stream(void)
{
	struct ends e;
	int turn[2], back[2];
	char octet, got[11] = "";
	ends_open(&e);
	CHECK(!pipe(turn) && !pipe(back));
	touch(&e);
	pid_t child = fork_checked();
	if (child == 0) {
		for (int i = 0; i < 5; i++) {
			CHECK(read(turn[0], &octet, 1) == 1);
			recv_exact(e.server, &octet, 1);
			CHECK(write(back[1], &octet, 1) == 1);
		}
		_exit(0);
	}
	send_text(e.client, "0123456789");
	for (int i = 0; i < 5; i++) {
		recv_exact(e.server, got + 2 * i, 1);
		CHECK(write(turn[1], "", 1) == 1);
		CHECK(read(back[0], got + 2 * i + 1, 1) == 1);
	}
	CHECK(!strcmp(got, "0123456789"));
	reap(child);
}

static void exec_keeps(void)
{
	for (int touched = 0; touched < 2; touched++) {
		struct ends e;
		ends_open(&e);
		if (touched)
			touch(&e);
		CHECK(!fcntl(e.client, F_SETFD, FD_CLOEXEC));
		pid_t child = spawn_self("echo", e.server, false);
		close(e.server);
		send_text(e.client, "across exec");
		expect_text(e.client, "across exec");
		CHECK(!shutdown(e.client, SHUT_WR));
		expect_end(e.client);
		reap(child);
		close(e.client);
	}
}

/* Octets that came before exec, and were not read, are there after it. */
static void exec_keeps_unread(void)
{
	struct ends e;
	ends_open(&e);
	touch(&e);
	send_text(e.client, "unread ");
	wait_readable_octets(e.server, 7);
	CHECK(!fcntl(e.client, F_SETFD, FD_CLOEXEC));
	pid_t child = spawn_self("echo", e.server, false);
	close(e.server);
	send_text(e.client, "and new");
	expect_text(e.client, "unread and new");
	CHECK(!shutdown(e.client, SHUT_WR));
	expect_end(e.client);
	reap(child);
}

/* exec in the process that made the connection, without a fork: what serves it is gone. */
static void exec_in_place(void)
{
	struct sockaddr_in name;
	for (int each = 0; each < 2 * EXEC_WAYS; each++) {
		bool touched = each % 2;
		int listener = listener_open(&name);
		pid_t server = fork_checked();
		if (server == 0) {
			int fd = accept(listener, NULL, NULL);
			if (touched)
				expect_text(fd, "x");
			exec_self_by("echo", fd, false, (enum exec_way)(each / 2));
		}
		close(listener);
		int fd = client_open(&name);
		if (touched)
			send_text(fd, "x");
		send_text(fd, "across exec");
		expect_text(fd, "across exec");
		CHECK(!shutdown(fd, SHUT_WR));
		expect_end(fd);
		reap(server);
		close(fd);
	}
}

static void exec_closes(void)
{
	struct ends e;
	int kept[2];
	ends_open(&e);
	touch(&e);
	CHECK(!pipe(kept));
	CHECK(!fcntl(e.server, F_SETFD, FD_CLOEXEC) && !fcntl(e.client, F_SETFD, FD_CLOEXEC));
	CHECK(!fcntl(kept[1], F_SETFD, FD_CLOEXEC));
	pid_t child = spawn_self("drain", kept[0], false);
	close(e.server);
	expect_end(e.client);
	close(kept[1]);
	reap(child);
}

static pid_t inetd(struct sockaddr_in *name, char *const argv[])
{
	int listener = listener_open(name);
	pid_t child = fork_checked();
	if (child == 0) {
		int fd = accept(listener, NULL, NULL);
		CHECK(fd >= 0);
		CHECK(dup2(fd, 0) == 0 && dup2(fd, 1) == 1);
		closefrom(3);
		execv(argv[0], argv);
		_exit(1);
	}
	close(listener);
	return child;
}

static void inetd_style(void)
{
	struct sockaddr_in name;
	char *cat[] = { "/bin/cat", NULL };
	char *shell[] = { "/bin/sh", "-c", "read line; echo got $line; cat /etc/hostname | wc -l",
			  NULL };
	pid_t child = inetd(&name, cat);
	int fd = client_open(&name);
	send_text(fd, "through cat\n");
	expect_text(fd, "through cat\n");
	CHECK(!shutdown(fd, SHUT_WR));
	expect_end(fd);
	reap(child);
	child = inetd(&name, shell);
	fd = client_open(&name);
	send_text(fd, "a line\n");
	expect_text(fd, "got a line\n1\n");
	expect_end(fd);
	reap(child);
}

/* Returns when a child that executes a program sleeps. */
static void await_program(pid_t child, const char *name)
{
	char path[64], text[256], wanted[64];
	snprintf(path, sizeof(path), "/proc/%d/stat", child);
	snprintf(wanted, sizeof(wanted), "(%s) S ", name);
	do {
		FILE *file = fopen(path, "r");
		CHECK(file && fgets(text, sizeof(text), file));
		fclose(file);
		sched_yield();
	} while (!strstr(text, wanted));
}

static void talk_through_cat(const struct sockaddr_in *name, int gate)
{
	int fd = client_open_late(name, gate);
	send_text(fd, "through cat\n");
	expect_text(fd, "through cat\n");
	CHECK(!shutdown(fd, SHUT_WR));
	expect_end(fd);
	_exit(0);
}

/* The connection is the program's: its parent closes later what it has of it. */
static void parent_closes_later(void)
{
	struct sockaddr_in name;
	int listener = listener_open(&name);
	for (int turn = 0; turn < 8; turn++) {
		int gate = eventfd(0, 0);
		pid_t client = fork_checked();
		if (client == 0)
			talk_through_cat(&name, gate);
		int server = accept(listener, NULL, NULL);
		CHECK(server >= 0);
		pid_t child = fork_checked();
		if (child == 0) {
			CHECK(dup2(server, 0) == 0 && dup2(server, 1) == 1);
			closefrom(3);
			execl("/bin/cat", "cat", NULL);
			_exit(1);
		}
		await_program(child, "cat");
		CHECK(!close(server));
		CHECK(!eventfd_write(gate, 1));
		reap(client);
		reap(child);
		CHECK(!close(gate));
	}
}

static pid_t by_posix_spawn(int fd)
{
	char number[16], *argv[] = { "/proc/self/exe", "--echo", number, NULL };
	pid_t child;
	snprintf(number, sizeof(number), "%d", fd);
	CHECK(!posix_spawn(&child, argv[0], NULL, NULL, argv, environ));
	return child;
}

/* As posix_spawn where libc has no pidfd_spawn: glibc has it since 2.39. */
static pid_t by_pidfd_spawn(int fd)
{
	char number[16], *argv[] = { "/proc/self/exe", "--echo", number, NULL };
	__typeof__(posix_spawn) *spawn = dlsym(RTLD_DEFAULT, "pidfd_spawn");
	pid_t (*pid_of)(int) = dlsym(RTLD_DEFAULT, "pidfd_getpid");
	int pidfd = -1;
	if (!spawn || !pid_of)
		return by_posix_spawn(fd);
	snprintf(number, sizeof(number), "%d", fd);
	CHECK(!spawn(&pidfd, argv[0], NULL, NULL, argv, environ));
	pid_t child = pid_of(pidfd);
	CHECK(child > 0 && !close(pidfd));
	return child;
}

static pid_t by_vfork(int fd)
{
	char number[16];
	snprintf(number, sizeof(number), "%d", fd);
	pid_t child = vfork();
	CHECK(child >= 0);
	if (child == 0) {
		execl("/proc/self/exe", "contract", "--echo", number, (char *)NULL);
		_exit(1);
	}
	return child;
}

/* The classical server without a fork: who is begun serves, and the parent closes. */
static void spawn_a_connection(void)
{
	static pid_t (*const ways[])(int fd) = { by_posix_spawn, by_vfork, by_pidfd_spawn };
	for (int i = 0; i < 6; i++) {
		struct ends e;
		ends_open(&e);
		CHECK(!fcntl(e.client, F_SETFD, FD_CLOEXEC));
		if (i >= 3)
			touch(&e);
		pid_t child = ways[i % 3](e.server);
		CHECK(!close(e.server));
		send_text(e.client, "for the child");
		expect_text(e.client, "for the child");
		CHECK(!shutdown(e.client, SHUT_WR));
		expect_end(e.client);
		reap(child);
		CHECK(!close(e.client) && !close(e.listener));
	}
}

/* popen, system and posix_spawn while connections are open. */
static void spawns_beside(void)
{
	struct ends e;
	char line[32];
	ends_open(&e);
	touch(&e);
	for (int i = 0; i < 3; i++) {
		FILE *pipe = popen("echo popen", "r");
		CHECK(pipe && fgets(line, sizeof(line), pipe) && !strcmp(line, "popen\n"));
		CHECK(pclose(pipe) == 0);
		CHECK(system("exit 3") == 3 << 8);
		touch(&e);
	}
	close(e.client);
	expect_end(e.server);
}

static void killed(int signal, bool touched)
{
	struct ends e;
	ends_open(&e);
	if (touched)
		touch(&e);
	pid_t child = fork_checked();
	if (child == 0) {
		close(e.client);
		send_text(e.server, "last words");
		if (signal)
			raise(signal);
		_exit(7);
	}
	close(e.server);
	expect_text(e.client, "last words");
	CHECK(waitpid(child, NULL, 0) == child);
	char octet;
	CHECK(wait_for(e.client, POLLIN) & POLLIN);
	ssize_t n = recv(e.client, &octet, 1, 0);
	CHECK(n == 0 || (n == -1 && errno == ECONNRESET));
	close(e.client);
}

static void exit_ends(void)
{
	for (int touched = 0; touched < 2; touched++) {
		killed(0, touched);
		killed(SIGKILL, touched);
		killed(SIGTERM, touched);
	}
}

/* What was written before exit arrives, however much there is. */
static void exit_delivers(void)
{
	struct sockaddr_in name;
	int listener = listener_open(&name);
	for (int way = 0; way < 3; way++) {
		size_t taken;
		int told[2];
		CHECK(!pipe(told));
		pid_t child = fork_checked();
		if (child == 0) {
			int fd = client_open(&name);
			taken = fill_up(fd);
			CHECK(write(told[1], &taken, sizeof(taken)) == sizeof(taken));
			if (way == 0)
				exit(0);
			if (way == 1)
				_exit(0);
			quick_exit(0);
		}
		int fd = accept(listener, NULL, NULL);
		CHECK(read(told[0], &taken, sizeof(taken)) == sizeof(taken));
		expect_pattern(fd, taken);
		expect_end(fd);
		reap(child);
		close(fd);
	}
}

/* In KiB. */
static long memory_used(void)
{
	long all, resident;
	FILE *file = fopen("/proc/self/statm", "re");
	CHECK(file && fscanf(file, "%ld %ld", &all, &resident) == 2);
	fclose(file);
	return all * (sysconf(_SC_PAGESIZE) / 1024);
}

static void vfork_and_exec(void)
{
	static char *const argv[] = { "true", NULL };
	pid_t child = vfork();
	if (child == 0) {
		execv("/bin/true", argv);
		_exit(1);
	}
	reap(child);
}

/* What is prepared for an exec in a child of vfork must not stay with the parent. */
static void vfork_leaves_nothing(void)
{
	struct ends e;
	ends_open(&e);
	touch(&e);
	for (int i = 0; i < 10; i++)
		vfork_and_exec();
	long before = memory_used();
	for (int i = 0; i < VFORKS; i++)
		vfork_and_exec();
	CHECK(memory_used() - before < VFORKS / 2);
}

/* Closed, and gone at once: the peer, who was not there yet, gets it all. */
static void exit_after_close(void)
{
	static char octets[200000];
	struct sockaddr_in name;
	int listener = listener_open(&name);
	pattern_fill(octets, sizeof(octets), 0);
	for (int way = 0; way < 2; way++) {
		pid_t child = fork_checked();
		if (child == 0) {
			int fd = client_open(&name);
			send_all(fd, octets, sizeof(octets));
			close(fd);
			if (way == 0)
				exit(0);
			_exit(0);
		}
		int64_t began = now_ms();
		reap(child);
		CHECK(now_ms() - began < WAIT_MS);
		int fd = accept(listener, NULL, NULL);
		expect_pattern(fd, sizeof(octets));
		expect_end(fd);
		close(fd);
	}
}

static const struct row rows[] = {
	{ "vfork_leaves_nothing", vfork_leaves_nothing },
	{ "fork_shares", fork_shares },
	{ "fork_outlives", fork_outlives },
	{ "fork_a_connection", fork_a_connection },
	{ "fork_before_accept", fork_before_accept },
	{ "fork_one_stream", fork_one_stream },
	{ "exec_keeps", exec_keeps },
	{ "exec_keeps_unread", exec_keeps_unread },
	{ "exec_in_place", exec_in_place },
	{ "exec_closes", exec_closes },
	{ "inetd_style", inetd_style },
	{ "parent_closes_later", parent_closes_later },
	{ "spawn_a_connection", spawn_a_connection },
	{ "spawns_beside", spawns_beside },
	{ "exit_ends", exit_ends },
	{ "exit_delivers", exit_delivers },
	{ "exit_after_close", exit_after_close },
};
const struct rows process_rows = { rows, ARRAY_LEN(rows) };
