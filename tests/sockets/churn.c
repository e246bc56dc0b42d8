// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Numbers that change their file under the threads that use them. A server's thread reads or writes a connection in a loop while
// another one ends the number, in one of the ways that there are; clients connect again and again. Each connection carries words in
// order, so that every byte that is another connection's, or the transport's own, is seen. All of it is right with TCP.
//
//   churn serve WAY JOB MS     prints its port; ends after MS, with status 1 after a fault
//   churn feed PORT JOB        the clients, until the server is gone; the same status
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "thread.h"

#define WORDS 2000
#define LANES \
	4 /* threads that serve, where the way keeps the number taken until its user has left */
#define LIFE_US_MAX 1500
#define ALARM_US 100
#define LAST UINT64_MAX /* the last word of a stream that is to arrive whole */

enum way {
	BY_CLOSE,
	BY_SYSCALL,
	BY_RANGE,
	BY_SIGNALLED,
	BY_DUP2,
	BY_DUP3,
	BY_COPY
};
enum job {
	JOB_READ,
	JOB_WRITE,
	JOB_POLL
};

static const char *const way_names[] = { "close", "syscall", "range", "signalled",
					 "dup2",  "dup3",    "copy",  NULL };
static const char *const job_names[] = { "read", "write", "poll", NULL };

static enum way way;
static enum job job;
static int listener, dead_end;
static int64_t length_ms; /* of the test, from the first connection on */
static _Atomic(int64_t) end_ms; /* 0: no connection yet */
static atomic_uint connections, faults, ids = 1;
static atomic_int signalled_fd = -1;

/* One end of a connection, and how far its stream of words is. */
struct stream {
	int fd;
	uint64_t next; /* the next word; 0: the first one tells */
	uint64_t words[WORDS];
	size_t have; /* bytes of words that have come */
	bool ended; /* the last word has come */
};

static int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void report_fault(const char *what, uint64_t got, uint64_t wanted)
{
	if (atomic_fetch_add(&faults, 1) < 5)
		printf("fault: %s: %016llx, wanted %016llx\n", what, (unsigned long long)got,
		       (unsigned long long)wanted);
}

/* Checks the words that have come whole. */
static bool check_words(struct stream *s)
{
	size_t count = s->have / sizeof(uint64_t);

	for (size_t i = 0; i < count; i++) {
		if (s->words[i] == LAST) {
			s->ended = true;
			continue;
		}
		if (!s->next)
			s->next = s->words[i];
		if (s->words[i] != s->next || s->ended) {
			report_fault("a word", s->words[i], s->next);
			return false;
		}
		s->next++;
	}
	s->have -= count * sizeof(uint64_t);
	memmove(s->words, s->words + count, s->have);
	return true;
}

static bool is_wrong_end(int err)
{
	return err != EBADF && err != EINTR && err != ECONNRESET && err != EPIPE;
}

/* Reads until the number is no more the connection's, or the connection has ended. */
static void read_stream(struct stream *s, bool polls)
{
	struct pollfd pollfd = { .fd = s->fd, .events = POLLIN };

	for (;;) {
		char *at = (char *)s->words + s->have;
		size_t room = sizeof(s->words) - s->have;
		ssize_t n;

		if (polls && poll(&pollfd, 1, -1) < 0)
			return;
		n = polls ? recv(s->fd, at, room, MSG_DONTWAIT) : read(s->fd, at, room);
		if (polls && n < 0 && errno == EAGAIN)
			continue;
		if (polls && n < 0 && errno == ENOTSOCK)
			return;
		if (n < 0 && is_wrong_end(errno))
			report_fault("a read's errno", (uint64_t)errno, 0);
		if (n <= 0)
			return;
		s->have += (size_t)n;
		if (!check_words(s))
			return;
	}
}

/* Writes count words. False: the number is no more the connection's; *odd is set if a word was written in part. */
static bool write_words(struct stream *s, size_t count, bool is_last, bool *odd)
{
	size_t done = 0, len = count * sizeof(uint64_t);

	for (size_t i = 0; i < count; i++)
		s->words[i] = s->next + i;
	if (is_last)
		s->words[count - 1] = LAST;
	while (done < len) {
		ssize_t n = send(s->fd, (char *)s->words + done, len - done, MSG_NOSIGNAL);

		if (n < 0 && is_wrong_end(errno))
			report_fault("a write's errno", (uint64_t)errno, 0);
		if (n <= 0)
			break;
		done += (size_t)n;
	}
	s->next += done / sizeof(uint64_t);
	*odd = done % sizeof(uint64_t);
	return done == len;
}

static void *use_stream(void *arg)
{
	struct stream *s = arg;
	bool odd = false;

	if (job != JOB_WRITE)
		read_stream(s, job == JOB_POLL);
	else
		while (write_words(s, WORDS / 4, false, &odd))
			;
	return odd ? s : NULL;
}

static void on_signal(int sig)
{
	(void)sig;
}

/* A handler that uses the number, wherever it interrupts its thread. */
static void on_alarm(int sig)
{
	int fd = signalled_fd, saved = errno;
	char byte;

	(void)sig;
	(void)recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
	errno = saved;
}

static void start_alarms(void)
{
	const struct itimerval often = { { 0, ALARM_US }, { 0, ALARM_US } };
	struct sigaction action = { .sa_handler = on_alarm, .sa_flags = SA_RESTART };

	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
}

/* Lets the user of the number get on. */
static void live(unsigned *seed)
{
	struct timespec life = { .tv_nsec = rand_r(seed) % LIFE_US_MAX * 1000L };

	nanosleep(&life, NULL);
}

/* Ends the number, which stays taken where dup2 or dup3 gives it another file. */
static void end_number(int fd, pthread_t user)
{
	switch (way) {
	case BY_CLOSE:
	case BY_COPY:
	case BY_SIGNALLED:
		close(fd);
		break;
	case BY_SYSCALL:
		syscall(SYS_close, fd);
		break;
	case BY_RANGE:
		close_range((unsigned)fd, (unsigned)fd, 0);
		break;
	case BY_DUP2:
		dup2(dead_end, fd);
		pthread_kill(user, SIGUSR1);
		break;
	case BY_DUP3:
		dup3(dead_end, fd, O_CLOEXEC);
		pthread_kill(user, SIGUSR1);
		break;
	}
}

static void serve_connection(struct stream *s, unsigned *seed)
{
	struct linger at_once = { .l_onoff = 1 };
	int copy = way == BY_COPY ? dup(s->fd) : -1;
	pthread_t user;
	void *odd;

	if (copy < 0)
		setsockopt(s->fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
	s->next = job == JOB_WRITE ? (uint64_t)atomic_fetch_add(&ids, 1) << 32 : 0;
	s->have = 0;
	s->ended = false;
	signalled_fd = s->fd;
	user = thread_start(use_stream, s);
	live(seed);
	end_number(s->fd, user);
	if (pthread_join(user, &odd))
		abort();
	if (way == BY_DUP2 || way == BY_DUP3)
		close(s->fd);
	if (copy < 0)
		return;
	/* The stream goes on by its other number. */
	s->fd = copy;
	if (!odd && !write_words(s, WORDS, true, &(bool){ false }))
		report_fault("a write by the copy", (uint64_t)errno, 0);
	close(copy);
}

static void *serve_lane(void *arg)
{
	unsigned seed = (unsigned)(uintptr_t)arg;
	struct pollfd pollfd = { .fd = listener, .events = POLLIN };
	static struct stream streams[LANES];
	struct stream *s = &streams[seed % LANES];

	while (!end_ms || now_ms() < end_ms) {
		if (poll(&pollfd, 1, 50) <= 0)
			continue;
		s->fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
		if (s->fd < 0)
			continue;
		if (atomic_fetch_add(&connections, 1) == 0)
			end_ms = now_ms() + length_ms;
		serve_connection(s, &seed);
	}
	return NULL;
}

static int serve(int ms)
{
	struct sockaddr_in addr = { .sin_family = AF_INET,
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	bool stays = way == BY_DUP2 ||
		     way == BY_DUP3; /* else a late user would meet another lane's connection */
	socklen_t len = sizeof(addr);
	pthread_t lanes[LANES];
	int pair[2], count = stays ? LANES : 1;

	listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	if (listener < 0 || bind(listener, (struct sockaddr *)&addr, len) || listen(listener, 64) ||
	    getsockname(listener, (struct sockaddr *)&addr, &len) ||
	    socketpair(AF_UNIX, SOCK_STREAM, 0, pair))
		return 2;
	close(pair[1]);
	dead_end = pair[0];
	length_ms = ms;
	printf("port %d\n", ntohs(addr.sin_port));
	if (way == BY_SIGNALLED)
		start_alarms();
	for (int i = 0; i < count; i++)
		lanes[i] = thread_start(serve_lane, (void *)(uintptr_t)i);
	for (int i = 0; i < count; i++)
		thread_join(lanes[i]);
	printf("connections %u faults %u\n", connections, faults);
	return faults > 0 || connections == 0;
}

static bool feed_once(struct stream *s, const struct sockaddr_in *addr, bool reads)
{
	bool odd, connected;

	s->fd = socket(AF_INET, SOCK_STREAM, 0);
	s->next = reads ? 0 : (uint64_t)atomic_fetch_add(&ids, 1) << 32;
	s->have = 0;
	s->ended = false;
	connected = connect(s->fd, (const struct sockaddr *)addr, sizeof(*addr)) == 0;
	if (connected && reads) {
		read_stream(s, false);
		/* A word in part is the end of a stream that its writer has left there. */
		if (way == BY_COPY && s->next && !s->have && !s->ended)
			report_fault("an end", s->next, LAST);
	} else if (connected)
		while (write_words(s, WORDS / 2, false, &odd))
			;
	close(s->fd);
	return connected;
}

static struct sockaddr_in server;

static void *feed_lane(void *unused)
{
	struct stream *s = malloc(sizeof(*s));

	while (s && feed_once(s, &server, job == JOB_WRITE))
		atomic_fetch_add(&connections, 1);
	free(s);
	return unused;
}

static int feed(int port)
{
	pthread_t lanes[LANES];

	server = (struct sockaddr_in){
		.sin_family = AF_INET,
		.sin_port = htons((uint16_t)port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	for (int i = 0; i < LANES; i++)
		lanes[i] = thread_start(feed_lane, NULL);
	for (int i = 0; i < LANES; i++)
		thread_join(lanes[i]);
	printf("streams %u faults %u\n", connections, faults);
	return faults > 0;
}

static int find_name(const char *const *names, const char *name)
{
	for (int i = 0; names[i]; i++)
		if (strcmp(names[i], name) == 0)
			return i;
	exit(2);
}

int main(int argc, char **argv)
{
	struct sigaction action = { .sa_handler = on_signal };

	setvbuf(stdout, NULL, _IOLBF, 0);
	sigaction(SIGUSR1, &action, NULL);
	if (argc == 5 && strcmp(argv[1], "serve") == 0) {
		way = (enum way)find_name(way_names, argv[2]);
		job = (enum job)find_name(job_names, argv[3]);
		return serve(atoi(argv[4]));
	}
	if (argc != 5 || strcmp(argv[1], "feed") != 0)
		return 2;
	way = (enum way)find_name(way_names, argv[4]);
	job = (enum job)find_name(job_names, argv[3]);
	return feed(atoi(argv[2]));
}
