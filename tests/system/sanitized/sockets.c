// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A sockets program with threads and epoll, to be compiled with a sanitizer: a server and its clients in one process. Its arguments are
// "right", a fault of fault.h, or "read", which reads more from a connection than its block has room for; and, if the connections
// have to be AF_UNIX pairs, "pair".
#include <arpa/inet.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fault.h"

#define EXPECT(claim)                                                                           \
	do {                                                                                    \
		if (!(claim)) {                                                                 \
			fprintf(stderr, "%s:%d: not true: %s (errno %m)\n", __FILE__, __LINE__, \
				#claim);                                                        \
			exit(1);                                                                \
		}                                                                               \
	} while (0)

enum {
	CLIENTS = 8,
	TURNS = 4, /* connections of a client, one after the other */
	ROUNDS = 20,
	MESSAGE = 3000,
	ROOM = 65536
};

static struct sockaddr_in address = { .sin_family = AF_INET };
static int listener, gate[2];
static pthread_barrier_t begin; /* so that clients take connections at the same time */

/* Sends back what one connection brings. False: it has ended. */
static bool serve(int fd)
{
	char *room = malloc(ROOM);
	ssize_t got = read(fd, room, ROOM), sent = 0;

	EXPECT(got >= 0);
	while (sent < got) {
		ssize_t n = write(fd, room + sent, (size_t)(got - sent));

		EXPECT(n > 0);
		sent += n;
	}
	free(room);
	return got > 0;
}

static void *run_server(void *arg)
{
	int set = epoll_create1(EPOLL_CLOEXEC), ended = 0;
	struct epoll_event event = { .events = EPOLLIN, .data.fd = listener };

	EXPECT(set >= 0 && epoll_ctl(set, EPOLL_CTL_ADD, listener, &event) == 0);
	EXPECT(write(gate[1], "x", 1) == 1);
	while (ended < CLIENTS * TURNS + 1) {
		EXPECT(epoll_wait(set, &event, 1, -1) == 1);
		if (event.data.fd == listener) {
			event.data.fd = accept(listener, NULL, NULL);
			EXPECT(event.data.fd >= 0);
			EXPECT(epoll_ctl(set, EPOLL_CTL_ADD, event.data.fd, &event) == 0);
		} else if (!serve(event.data.fd)) {
			close(event.data.fd);
			ended++;
		}
	}
	close(set);
	return arg;
}

static void receive(int fd, char *bytes, size_t len)
{
	for (size_t at = 0; at < len;) {
		ssize_t n = read(fd, bytes + at, len - at);

		EXPECT(n > 0);
		at += (size_t)n;
	}
}

static int connect_client(void)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	EXPECT(fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0);
	return fd;
}

static void exchange(char *out, char *in)
{
	int fd = connect_client();

	for (int round = 0; round < ROUNDS; round++) {
		memset(out, round, MESSAGE);
		EXPECT(write(fd, out, MESSAGE) == MESSAGE);
		receive(fd, in, MESSAGE);
		EXPECT(!memcmp(out, in, MESSAGE));
	}
	close(fd);
}

static void *run_client(void *arg)
{
	char *out = malloc(MESSAGE), *in = malloc(MESSAGE);

	pthread_barrier_wait(&begin);
	for (int turn = 0; turn < TURNS; turn++)
		exchange(out, in);
	free(out);
	free(in);
	return arg;
}

/* AddressSanitizer's: the fault is in the call. */
static void fault_read(int fd)
{
	char *block = malloc(64);

	EXPECT(read(fd, block, MESSAGE) > 64);
	free(block);
}

/* The last connection, in the main thread. */
static void run_last(const char *word, bool is_pair)
{
	struct sockaddr_storage own;
	socklen_t len = sizeof(own);
	char out[MESSAGE], in[MESSAGE];
	int fd = connect_client();

	memset(out, 'o', sizeof(out));
	EXPECT(write(fd, out, sizeof(out)) == MESSAGE);
	if (is_pair) { /* the kernel's view, which no wrapper sees */
		char path[64], link[64] = "", line[256], inode[64] = "";
		bool found = false;
		FILE *table = fopen("/proc/net/unix", "r");

		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		EXPECT(table && readlink(path, link, sizeof(link) - 1) > 0);
		EXPECT(sscanf(link, "socket:[%63[0-9]", inode) == 1);
		while (!found && fgets(line, sizeof(line), table))
			found = strstr(line, inode) != NULL;
		EXPECT(found);
		fclose(table);
	}
	EXPECT(getsockname(fd, (struct sockaddr *)&own, &len) == 0 && own.ss_family == AF_INET);
	if (!strcmp(word, "read"))
		fault_read(fd);
	else
		receive(fd, in, sizeof(in));
	fault_make(word);
	close(fd);
}

int main(int argc, char **argv)
{
	pthread_t server, clients[CLIENTS];
	socklen_t len = sizeof(address);
	char byte;

	EXPECT(argc >= 2);
	expect_loaded();
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	EXPECT(bind(listener, (struct sockaddr *)&address, len) == 0 && listen(listener, 8) == 0);
	EXPECT(getsockname(listener, (struct sockaddr *)&address, &len) == 0);
	EXPECT(pthread_barrier_init(&begin, NULL, CLIENTS) == 0);
	EXPECT(pipe(gate) == 0 && pthread_create(&server, NULL, run_server, NULL) == 0);
	EXPECT(read(gate[0], &byte, 1) == 1);
	for (int i = 0; i < CLIENTS; i++)
		EXPECT(pthread_create(&clients[i], NULL, run_client, NULL) == 0);
	for (int i = 0; i < CLIENTS; i++)
		EXPECT(pthread_join(clients[i], NULL) == 0);
	run_last(argv[1], argc > 2);
	EXPECT(pthread_join(server, NULL) == 0);
	close(listener);
	puts("done");
	return 0;
}
