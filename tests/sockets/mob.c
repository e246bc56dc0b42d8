// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The ends of test_ends.py. A server, mob serve, and what its clients want of it:
//     mob flood|sink|records|echo PORT [--die-after-us N]   mob crowd PORT COUNT
// The server forks for each connection but those of echo and crowd, which it serves itself. Every octet is
// checked by who receives it; each end tells on one line how it ended.
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#define CHUNK 30000
#define RECORD 64
#define WRITERS 2
#define EVENTS 64
#define FDS_WANTED 65536
#define BATCH 128

static uint8_t octet_at(uint64_t offset)
{
	return (uint8_t)(offset ^ offset >> 7 ^ offset >> 15);
}

__attribute__((noreturn)) static void die(const char *what)
{
	printf("%s: %s\n", what, strerror(errno));
	exit(1);
}

static const char *end_of(ssize_t n)
{
	if (n == 0)
		return "end";
	return errno == ECONNRESET ? "reset" : errno == EPIPE ? "pipe" : strerror(errno);
}

static void sink(int fd)
{
	uint8_t chunk[CHUNK];
	uint64_t at = 0;
	ssize_t n;
	while ((n = recv(fd, chunk, sizeof(chunk), 0)) > 0)
		for (ssize_t i = 0; i < n; i++)
			if (chunk[i] != octet_at(at++)) {
				printf("sink wrong octet at %llu\n", (unsigned long long)at - 1);
				exit(1);
			}
	const char *end = end_of(n);
	printf("sink %llu %s\n", (unsigned long long)at, end);
}

static void flood(int fd)
{
	uint8_t chunk[CHUNK];
	uint64_t at = 0;
	ssize_t n;
	do {
		for (int i = 0; i < CHUNK; i++)
			chunk[i] = octet_at(at + (unsigned)i);
		n = send(fd, chunk, sizeof(chunk), MSG_NOSIGNAL);
		at += n > 0 ? (uint64_t)n : 0;
	} while (n > 0);
	printf("flood %llu %s\n", (unsigned long long)at, end_of(n));
}

struct record {
	uint32_t writer, sequence;
	uint8_t fill[RECORD - 8];
};

/* Each writer's records come whole and in order; when one is dead the other's still come. */
static void take_records(int fd)
{
	struct record r;
	uint32_t next[WRITERS] = { 0 };
	ssize_t n;
	while ((n = recv(fd, &r, sizeof(r), MSG_WAITALL)) == sizeof(r)) {
		bool right = r.writer < WRITERS && r.sequence == next[r.writer];
		for (size_t i = 0; i < sizeof(r.fill); i++)
			right = right && r.fill[i] == octet_at(r.sequence + i);
		if (!right) {
			printf("records wrong\n");
			exit(1);
		}
		if (++next[r.writer] % 100 == 0)
			printf("hundred %u\n", r.writer);
	}
	printf("records %u %u %s\n", next[0], next[1], n > 0 ? "cut" : end_of(n));
}

/* One record for each octet of the answer: what is on its way stays little. */
static void write_records(int fd, uint32_t writer)
{
	for (uint32_t sequence = 0;; sequence++) {
		struct record r = { .writer = writer, .sequence = sequence };
		for (size_t i = 0; i < sizeof(r.fill); i++)
			r.fill[i] = octet_at(sequence + i);
		if (send(fd, &r, sizeof(r), MSG_NOSIGNAL) != sizeof(r))
			die("record");
		poll(NULL, 0, 1);
	}
}

static void records(int fd)
{
	pid_t child = fork();
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, 0);
		write_records(fd, 1);
	}
	printf("writers %d %d\n", getpid(), child);
	write_records(fd, 0);
}

static void serve_alone(int fd, char wish)
{
	printf("serving %d\n", getpid());
	if (wish == 'f')
		sink(fd);
	else if (wish == 's')
		flood(fd);
	else
		take_records(fd);
}

/* Whether the connection goes on in this process. */
static bool serve_ready(int fd, bool fresh)
{
	char wish[4096];
	ssize_t n = recv(fd, wish, fresh ? 1 : sizeof(wish), 0);
	if (n <= 0)
		return false;
	if (fresh && wish[0] != 'e') {
		if (fork() == 0) {
			serve_alone(fd, wish[0]);
			exit(0);
		}
		return false;
	}
	return fresh || send(fd, wish, (size_t)n, MSG_NOSIGNAL) == n;
}

static void watch(int set, int fd, uint64_t data)
{
	struct epoll_event event = { .events = EPOLLIN, .data.u64 = data };
	if (epoll_ctl(set, EPOLL_CTL_ADD, fd, &event))
		die("epoll_ctl");
}

/* Data of a watched fd: its number, and whether it has said what it wants. */
#define SAID (1ull << 32)

static void serve(void)
{
	struct sockaddr_in name = { .sin_family = AF_INET,
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(name);
	int listener = socket(AF_INET, SOCK_STREAM, 0), set = epoll_create1(EPOLL_CLOEXEC);
	signal(SIGCHLD, SIG_IGN);
	if (bind(listener, (struct sockaddr *)&name, len) || listen(listener, 4096))
		die("listen");
	getsockname(listener, (struct sockaddr *)&name, &len);
	printf("port %d\n", ntohs(name.sin_port));
	watch(set, listener, (uint64_t)listener);
	for (;;) {
		struct epoll_event events[EVENTS];
		int n = epoll_wait(set, events, EVENTS, -1);
		for (int i = 0; i < n; i++) {
			uint64_t data = events[i].data.u64;
			int fd = (int)(data & (SAID - 1));
			if (fd == listener) {
				int accepted = accept(listener, NULL, NULL);
				if (accepted >= 0)
					watch(set, accepted, (uint64_t)accepted);
				continue;
			}
			bool stays = serve_ready(fd, !(data & SAID));
			epoll_ctl(set, EPOLL_CTL_DEL, fd, NULL);
			if (stays)
				watch(set, fd, (uint64_t)fd | SAID);
			else
				close(fd);
		}
	}
}

static int connect_to(int port)
{
	struct sockaddr_in name = { .sin_family = AF_INET,
				    .sin_port = htons((uint16_t)port),
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	if (fd < 0 || connect(fd, (struct sockaddr *)&name, sizeof(name)))
		die("connect");
	return fd;
}

static void ask_echo(int fd, const char *text)
{
	char got[64] = "";
	size_t len = strlen(text);
	if (send(fd, text, len, MSG_NOSIGNAL) != (ssize_t)len)
		die("echo send");
	ssize_t n = recv(fd, got, len, MSG_WAITALL);
	if (n < 0)
		die("echo receive");
	if (n != (ssize_t)len || memcmp(got, text, len)) {
		printf("echo got %zd octets: %s\n", n, n ? "wrong" : "end");
		exit(1);
	}
}

static void ask_member(int fd, int member, int round)
{
	char text[64];
	snprintf(text, sizeof(text), "member %d round %d", member, round);
	ask_echo(fd, text);
}

/* They come in batches: a busy server is to answer within a start-up's time-out. */
static void crowd(int port, int count)
{
	int *fds = calloc((size_t)count, sizeof(*fds));
	for (int i = 0; i < count; i++) {
		fds[i] = connect_to(port);
		if (send(fds[i], "e", 1, MSG_NOSIGNAL) != 1)
			die("crowd send");
		for (int j = i + 1 - BATCH; (i + 1) % BATCH == 0 && j <= i; j++)
			ask_member(fds[j], j, 1);
	}
	for (int round = 2; round < 4; round++)
		for (int i = 0; i < count; i++)
			ask_member(fds[i], i, round);
	printf("crowd %d\n", count);
	free(fds);
}

static void on_alarm(int number)
{
	(void)number;
	kill(getpid(), SIGKILL);
}

static void die_after(long us)
{
	struct itimerval when = { .it_value = { us / 1000000, us % 1000000 } };
	signal(SIGALRM, on_alarm);
	setitimer(ITIMER_REAL, &when, NULL);
}

/* Root may have more than the hard limit. */
static void raise_limit(void)
{
	struct rlimit wanted = { FDS_WANTED, FDS_WANTED }, fds;
	getrlimit(RLIMIT_NOFILE, &fds);
	if (fds.rlim_max >= FDS_WANTED)
		wanted.rlim_max = fds.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &wanted) == 0)
		return;
	fds.rlim_cur = fds.rlim_max;
	setrlimit(RLIMIT_NOFILE, &fds);
}

static void be_client(const char *role, int port)
{
	int fd = connect_to(port);
	if (send(fd, role, 1, MSG_NOSIGNAL) != 1)
		die("wish");
	if (!strcmp(role, "flood")) {
		flood(fd);
	} else if (!strcmp(role, "sink")) {
		sink(fd);
	} else if (!strcmp(role, "records")) {
		records(fd);
	} else {
		ask_echo(fd, "a text to and fro");
		printf("echo right\n");
	}
}

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	raise_limit();
	if (argc == 2 && !strcmp(argv[1], "serve"))
		serve();
	if (argc < 3)
		return 2;
	if (argc == 5)
		die_after(atol(argv[4]));
	if (argc == 4)
		crowd(atoi(argv[2]), atoi(argv[3]));
	else
		be_client(argv[1], atoi(argv[2]));
	return 0;
}
