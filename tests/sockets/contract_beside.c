// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What one thread does with a socket while another one connects it, begins to use it, or closes it.
#include "contract.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define TURNS 100

/* A server that has no room for its client until it accepts another one: then the next SYN finds it. */
struct late {
	struct sockaddr_in name;
	int listener, client;
	int result, err; /* of connect */
	pthread_t connects, serves;
};

static void *connect_client(void *arg)
{
	struct late *l = arg;
	l->result = connect(l->client, (struct sockaddr *)&l->name, sizeof(l->name));
	l->err = errno;
	return NULL;
}

static bool is_connecting(int fd)
{
	struct tcp_info info;
	socklen_t len = sizeof(info);
	CHECK(!getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len));
	return info.tcpi_state == TCP_SYN_SENT;
}

/* Returns when the thread is in its connect. */
static void late_open(struct late *l)
{
	l->listener = listener_open(&l->name);
	CHECK(!listen(l->listener, 0));
	client_open(&l->name);
	CHECK(wait_for(l->listener, POLLIN) == POLLIN);
	l->client = socket(AF_INET, SOCK_STREAM, 0);
	CHECK(l->client >= 0);
	l->connects = thread_start(connect_client, l);
	while (!is_connecting(l->client))
		sched_yield();
}

/* Says a word to the client, which answers, and ends. */
static void *serve(void *arg)
{
	struct late *l = arg;
	CHECK(accept(l->listener, NULL, NULL) >= 0);
	int server = accept(l->listener, NULL, NULL);
	CHECK(server >= 0);
	send_text(server, "x");
	expect_text(server, "y");
	CHECK(!close(server));
	return NULL;
}

static void late_end(struct late *l)
{
	send_text(l->client, "y");
	expect_end(l->client);
	thread_join(l->serves);
	thread_join(l->connects);
	errno = l->err;
	CHECK(l->result == 0);
	CHECK(connect(l->client, (struct sockaddr *)&l->name, sizeof(l->name)) == -1 &&
	      errno == EISCONN);
}

static void poll_beside_connect(void)
{
	struct late l;
	late_open(&l);
	struct pollfd p = { l.client, POLLIN, 0 };
	CHECK(poll(&p, 1, 0) == 0);
	l.serves = thread_start(serve, &l);
	CHECK(poll(&p, 1, WAIT_MS) == 1 && p.revents == POLLIN);
	expect_text(l.client, "x");
	late_end(&l);
}

static void select_beside_connect(void)
{
	struct late l;
	struct timeval enough = { WAIT_MS / 1000, 0 };
	fd_set in;
	late_open(&l);
	FD_ZERO(&in);
	FD_SET(l.client, &in);
	l.serves = thread_start(serve, &l);
	CHECK(select(l.client + 1, &in, NULL, NULL, &enough) == 1 && FD_ISSET(l.client, &in));
	expect_text(l.client, "x");
	late_end(&l);
}

/* The way to give a connect up. */
static void shutdown_beside_connect(void)
{
	struct late l;
	late_open(&l);
	CHECK(!shutdown(l.client, SHUT_RDWR));
	thread_join(l.connects);
	CHECK(l.result == -1 && l.err == ECONNRESET);
}

/* Another thread forks, and reads. */
static void fork_beside_connect(void)
{
	struct late l;
	late_open(&l);
	pid_t child = fork();
	CHECK(child >= 0);
	if (child == 0)
		_exit(0);
	reap(child);
	CHECK(is_connecting(l.client));
	l.serves = thread_start(serve, &l);
	expect_text(l.client, "x");
	late_end(&l);
}

/* The child has the file, and not the thread that connects. */
static void shutdown_in_a_child_beside_connect(void)
{
	struct late l;
	late_open(&l);
	pid_t child = fork();
	CHECK(child >= 0);
	if (child == 0)
		_exit(shutdown(l.client, SHUT_RDWR) != 0);
	reap(child);
}

static struct late *interrupted;

/* The connection stands when the handler returns, and the kernel begins the call anew. */
static void await_connected(int number)
{
	(void)number;
	interrupted->serves = thread_start(serve, interrupted);
	CHECK(wait_for(interrupted->client, POLLIN) == POLLIN);
}

static void connect_restarts(void)
{
	struct late l;
	struct sigaction action = { .sa_handler = await_connected, .sa_flags = SA_RESTART };
	interrupted = &l;
	CHECK(!sigaction(SIGUSR1, &action, NULL));
	late_open(&l);
	CHECK(!pthread_kill(l.connects, SIGUSR1));
	thread_join(l.connects);
	CHECK(l.result == 0);
	expect_text(l.client, "x");
	send_text(l.client, "y");
	expect_end(l.client);
	thread_join(l.serves);
}

/* Returns when a thread sleeps in a call whose first argument is fd. */
static void await_sleep(pid_t thread, int fd)
{
	char path[64], text[64], first[32];
	snprintf(path, sizeof(path), "/proc/self/task/%d/syscall", thread);
	snprintf(first, sizeof(first), " %#x ", fd);
	do {
		FILE *file = fopen(path, "r");
		CHECK(file && fgets(text, sizeof(text), file));
		fclose(file);
		sched_yield();
	} while (!strstr(text, first) || strstr(text, first) != strchr(text, ' '));
}

struct worker {
	int fd;
	atomic_int id;
	atomic_int *events;
};

static void *accept_one(void *arg)
{
	struct worker *w = arg;
	atomic_store(&w->id, gettid());
	int server = accept(w->fd, NULL, NULL);
	CHECK(server >= 0);
	expect_text(server, "early");
	return NULL;
}

static void await_worker(const struct worker *w)
{
	while (!atomic_load(&w->id))
		sched_yield();
	await_sleep(atomic_load(&w->id), w->fd);
}

/* The kernel goes on with an accept whose listener is closed. */
static void close_beside_accept(void)
{
	struct sockaddr_in name;
	struct worker w = { .fd = listener_open(&name) };
	pthread_t thread = thread_start(accept_one, &w);
	await_worker(&w);
	CHECK(!close(w.fd));
	send_text(client_open(&name), "early");
	thread_join(thread);
}

static void *take_event(void *arg)
{
	struct worker *w = arg;
	struct epoll_event event;
	atomic_store(&w->id, gettid());
	while (epoll_wait(w->fd, &event, 1, -1) == 1) {
		if (event.data.u64 == 0)
			break;
		char octet;
		CHECK(recv((int)event.data.u64, &octet, 1, MSG_DONTWAIT) == 1);
		atomic_fetch_add(w->events, 1);
	}
	return NULL;
}

/* Both sleep before there is anything: an event that is told once is one worker's. */
static void oneshot_beside_wait(void)
{
	struct ends e;
	atomic_int events = 0;
	int set = epoll_create1(0), bell = eventfd(0, 0);
	struct worker w[2] = { { .fd = set, .events = &events }, { .fd = set, .events = &events } };
	pthread_t threads[2];
	for (int i = 0; i < 2; i++) {
		threads[i] = thread_start(take_event, &w[i]);
		await_worker(&w[i]);
	}
	ends_open(&e);
	struct epoll_event event = { .events = EPOLLIN | EPOLLONESHOT,
				     .data.u64 = (uint64_t)e.server };
	CHECK(!epoll_ctl(set, EPOLL_CTL_ADD, e.server, &event));
	send_text(e.client, "xx");
	while (!atomic_load(&events))
		sched_yield();
	poll(NULL, 0, 30);
	CHECK(atomic_load(&events) == 1);
	event = (struct epoll_event){ .events = EPOLLIN };
	CHECK(!epoll_ctl(set, EPOLL_CTL_ADD, bell, &event) && !eventfd_write(bell, 1));
	for (int i = 0; i < 2; i++)
		thread_join(threads[i]);
}

/* A connection that one thread begins to use while another one still sets it up. */
struct fresh {
	struct ends e;
	pthread_t greets;
};

static void *greet(void *arg)
{
	struct fresh *f = arg;
	send_text(f->e.server, "220");
	return NULL;
}

/* In each turn the other one goes on a little later. */
static void fresh_open(struct fresh *f, int turn)
{
	ends_open(&f->e);
	f->greets = thread_start(greet, f);
	for (volatile int i = 0; i < turn * 2000; i++)
		;
}

static void fresh_close(struct fresh *f)
{
	expect_text(f->e.client, "220");
	CHECK(!close(f->e.server) && !close(f->e.client) && !close(f->e.listener));
}

static void nonblocking_beside_first(void)
{
	for (int turn = 0; turn < TURNS; turn++) {
		struct fresh f;
		char octet;
		int on = 1;
		fresh_open(&f, turn);
		if (turn % 2)
			CHECK(!ioctl(f.e.server, FIONBIO, &on));
		else
			set_nonblocking(f.e.server, true);
		thread_join(f.greets);
		CHECK(fcntl(f.e.server, F_GETFL) & O_NONBLOCK);
		CHECK(recv(f.e.server, &octet, 1, 0) == -1 && errno == EAGAIN);
		fresh_close(&f);
	}
}

static void options_beside_first(void)
{
	const struct timeval soon = { 0, 1000 };
	const struct linger abort = { 1, 0 };
	for (int turn = 0; turn < TURNS; turn++) {
		struct linger told = { 0 };
		socklen_t len = sizeof(told);
		struct fresh f;
		char octet;
		fresh_open(&f, turn);
		if (turn % 2)
			CHECK(!setsockopt(f.e.server, SOL_SOCKET, SO_RCVTIMEO, &soon,
					  sizeof(soon)));
		CHECK(!setsockopt(f.e.server, SOL_SOCKET, SO_LINGER, &abort, sizeof(abort)));
		thread_join(f.greets);
		CHECK(!getsockopt(f.e.server, SOL_SOCKET, SO_LINGER, &told, &len) && told.l_onoff);
		if (turn % 2)
			CHECK(recv(f.e.server, &octet, 1, 0) == -1 && errno == EAGAIN);
		expect_text(f.e.client, "220");
		CHECK(!close(f.e.server) && !close(f.e.client) && !close(f.e.listener));
	}
}

static void dup_beside_first(void)
{
	for (int turn = 0; turn < TURNS; turn++) {
		struct fresh f;
		fresh_open(&f, turn);
		int copy = turn % 2 ? dup(f.e.server) : fcntl(f.e.server, F_DUPFD, 0);
		CHECK(copy >= 0);
		thread_join(f.greets);
		send_text(f.e.client, "hi");
		expect_text(copy, "hi");
		CHECK(!close(copy));
		fresh_close(&f);
	}
}

static void *receive_one(void *arg)
{
	struct worker *w = arg;
	char octet;
	atomic_store(&w->id, gettid());
	ssize_t n = recv(w->fd, &octet, 1, 0);
	CHECK(n == 1 || (n == -1 && errno == EBADF));
	return NULL;
}

/*
 * The thread that sleeps in a read keeps the file of its number open, and the child has all numbers. A thread that is about to
 * read, in a call of the library's, looks as if it slept in the read: then the close comes first.
 */
static void numbers_in_a_child_beside_read(void)
{
	struct ends e;
	int numbers[64], count = 0;
	struct rlimit few = { 64, 64 };
	CHECK(!setrlimit(RLIMIT_NOFILE, &few));
	ends_open(&e);
	send_text(e.client, "x");
	expect_text(e.server, "x");
	send_text(e.server, "x");
	expect_text(e.client, "x");
	struct worker w = { .fd = e.client };
	pthread_t thread = thread_start(receive_one, &w);
	await_worker(&w);
	CHECK(!close(e.client));
	pid_t child = fork();
	CHECK(child >= 0);
	if (child == 0) {
		while (count < 64 && (numbers[count] = open("/dev/null", O_RDONLY)) >= 0)
			count++;
		while (count-- > 0)
			CHECK(!close(numbers[count]));
		_exit(0);
	}
	reap(child);
	CHECK(send(e.server, "x", 1, MSG_NOSIGNAL) == 1 || errno == EPIPE || errno == ECONNRESET);
	thread_join(thread);
}

static void take_signal(int number)
{
	(void)number;
}

static void run_late_client(const struct sockaddr_in *name, int gate)
{
	int fd = client_open_late(name, gate);
	expect_end(fd);
	send_text(fd, "x");
	_exit(0);
}

/* The child ends at once, or sleeps until the client says something: no signal ends that sleep. */
static void shutdown_first_in_a_child(void)
{
	struct sockaddr_in name;
	siginfo_t ended = { 0 };
	int listener = listener_open(&name), gate = eventfd(0, 0);
	pid_t client = fork();
	CHECK(client >= 0);
	if (client == 0)
		run_late_client(&name, gate);
	int server = accept(listener, NULL, NULL);
	CHECK(server >= 0);
	set_nonblocking(server, true);
	signal(SIGUSR1, take_signal);
	pid_t child = fork();
	CHECK(child >= 0);
	if (child == 0)
		_exit(shutdown(server, SHUT_WR) != 0);
	for (int turn = 0; turn < 30 && !ended.si_pid; turn++) {
		CHECK(!kill(child, SIGUSR1));
		poll(NULL, 0, 1);
		CHECK(!waitid(P_PID, (id_t)child, &ended, WEXITED | WNOHANG | WNOWAIT));
	}
	CHECK(!eventfd_write(gate, 1));
	reap(child);
	CHECK(wait_for(server, POLLIN) & POLLIN);
	expect_text(server, "x");
	reap(client);
}

static const struct row rows[] = {
	{ "poll_beside_connect", poll_beside_connect },
	{ "select_beside_connect", select_beside_connect },
	{ "shutdown_beside_connect", shutdown_beside_connect },
	{ "fork_beside_connect", fork_beside_connect },
	{ "shutdown_in_a_child_beside_connect", shutdown_in_a_child_beside_connect },
	{ "connect_restarts", connect_restarts },
	{ "close_beside_accept", close_beside_accept },
	{ "oneshot_beside_wait", oneshot_beside_wait },
	{ "nonblocking_beside_first", nonblocking_beside_first },
	{ "options_beside_first", options_beside_first },
	{ "dup_beside_first", dup_beside_first },
	{ "numbers_in_a_child_beside_read", numbers_in_a_child_beside_read },
	{ "shutdown_first_in_a_child", shutdown_first_in_a_child },
};
const struct rows beside_rows = { rows, ARRAY_LEN(rows) };
