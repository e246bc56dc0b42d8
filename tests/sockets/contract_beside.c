// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What one thread does with a socket while another one is still in its connect.
#include "contract.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <unistd.h>

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

static void recv_beside_connect(void)
{
	struct late l;
	late_open(&l);
	l.serves = thread_start(serve, &l);
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

static const struct row rows[] = {
	{ "poll_beside_connect", poll_beside_connect },
	{ "select_beside_connect", select_beside_connect },
	{ "recv_beside_connect", recv_beside_connect },
	{ "shutdown_beside_connect", shutdown_beside_connect },
	{ "fork_beside_connect", fork_beside_connect },
};
const struct rows beside_rows = { rows, ARRAY_LEN(rows) };
