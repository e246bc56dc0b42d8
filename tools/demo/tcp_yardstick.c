// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What TCP itself does between two processes: the measure that other numbers are put beside.
// One connection with TCP_NODELAY; the client tells the server what to do in its first octets.
// Prints microseconds (one way, or there and back for 'read') or Gb/s.
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define SIZE_MAX_OCTETS (1U << 20)
#define READ_REQUEST_OCTETS 64
#define LAT_SECONDS 0.3
#define BW_SECONDS 0.5
#define ROUNDS_MAX 100000

struct job {
	uint32_t is_bw;
	uint32_t is_spinning;
	uint32_t request_octets;
	uint32_t reply_octets;
};

struct verb {
	const char *name;
	bool is_bw;
	bool is_spinning;
	bool is_read;
};

static const struct verb verbs[] = {
	{ "bw", true, false, false },	    { "lat", false, false, false },
	{ "lat-spin", false, true, false }, { "read", false, false, true },
	{ "read-spin", false, true, true },
};

static char buffer[SIZE_MAX_OCTETS];

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static double seconds_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static bool send_whole(int fd, const void *data, size_t size)
{
	for (size_t done = 0; done < size;) {
		ssize_t sent = send(fd, (const char *)data + done, size - done, MSG_NOSIGNAL);

		if (sent <= 0)
			return false;
		done += (size_t)sent;
	}
	return true;
}

static bool recv_blocking(int fd, void *data, size_t size)
{
	return recv(fd, data, size, MSG_WAITALL) == (ssize_t)size;
}

static bool recv_spinning(int fd, size_t size)
{
	for (size_t done = 0; done < size;) {
		ssize_t got = recv(fd, buffer + done, size - done, MSG_DONTWAIT);

		if (got == 0)
			return false;
		if (got > 0)
			done += (size_t)got;
	}
	return true;
}

static bool recv_whole(int fd, const struct job *job, size_t size)
{
	return job->is_spinning ? recv_spinning(fd, size) : recv_blocking(fd, buffer, size);
}

static int prepared(int fd)
{
	int on = 1;

	if (fd < 0 || setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) != 0)
		die("socket");
	return fd;
}

// Swallows a stream and answers its end with one byte, which stops the client's clock when all has
// arrived. In the other kind of job, answers each request with a reply until the client closes.
static void serve(const struct addrinfo *where)
{
	int listener = socket(where->ai_family, SOCK_STREAM, 0), on = 1, fd;
	struct job job;

	if (listener < 0 || setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) != 0 ||
	    bind(listener, where->ai_addr, where->ai_addrlen) != 0 || listen(listener, 1) != 0)
		die("listen");
	fd = prepared(accept(listener, NULL, NULL));
	if (!recv_blocking(fd, &job, sizeof(job)) || job.request_octets > SIZE_MAX_OCTETS ||
	    job.reply_octets > SIZE_MAX_OCTETS || job.request_octets == 0)
		die("job");
	if (job.is_bw) {
		while (recv(fd, buffer, SIZE_MAX_OCTETS, 0) > 0)
			continue;
		send_whole(fd, buffer, 1);
		return;
	}
	while (recv_whole(fd, &job, job.request_octets) && send_whole(fd, buffer, job.reply_octets))
		continue;
}

static void round_trip(int fd, const struct job *job)
{
	if (!send_whole(fd, buffer, job->request_octets) || !recv_whole(fd, job, job->reply_octets))
		die("round trip");
}

static int compare(const void *left, const void *right)
{
	double a = *(const double *)left, b = *(const double *)right;

	return (a > b) - (a < b);
}

/* The median, which is what perftest calls typical. */
static double measure_lat(int fd, const struct job *job)
{
	static double samples[ROUNDS_MAX];
	double begin = seconds_now(), last = begin;
	size_t rounds = 0;

	while (rounds < ROUNDS_MAX && last - begin < LAT_SECONDS) {
		double now;

		round_trip(fd, job);
		now = seconds_now();
		samples[rounds++] = now - last;
		last = now;
	}
	qsort(samples, rounds, sizeof(samples[0]), compare);
	return samples[rounds / 2] * 1e6;
}

static double measure_bw(int fd, const struct job *job)
{
	double start = seconds_now();
	double octets = 0;

	while (seconds_now() - start < BW_SECONDS) {
		if (!send_whole(fd, buffer, job->request_octets))
			die("send");
		octets += job->request_octets;
	}
	shutdown(fd, SHUT_WR);
	if (!recv_blocking(fd, buffer, 1))
		die("the end");
	return octets * 8 / (seconds_now() - start) / 1e9;
}

static void request(const struct addrinfo *where, const struct verb *verb, uint32_t size)
{
	int fd = prepared(socket(where->ai_family, SOCK_STREAM, 0));
	struct job job = { verb->is_bw, verb->is_spinning,
			   verb->is_read ? READ_REQUEST_OCTETS : size, size };

	if (connect(fd, where->ai_addr, where->ai_addrlen) != 0)
		die("connect");
	if (!send_whole(fd, &job, sizeof(job)))
		die("job");
	if (verb->is_bw)
		printf("%.3f\n", measure_bw(fd, &job));
	else
		printf("%.2f\n", measure_lat(fd, &job) / (verb->is_read ? 1 : 2));
}

static const struct verb *verb_of(const char *name)
{
	for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++) {
		if (!strcmp(verbs[i].name, name))
			return &verbs[i];
	}
	fprintf(stderr, "tcp_yardstick: no '%s'\n", name);
	exit(2);
}

static const struct addrinfo *address_of(const char *ip, const char *port)
{
	struct addrinfo hints = { .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV,
				  .ai_socktype = SOCK_STREAM };
	struct addrinfo *found;
	int status = getaddrinfo(ip, port, &hints, &found);

	if (status != 0) {
		fprintf(stderr, "tcp_yardstick: %s %s: %s\n", ip, port, gai_strerror(status));
		exit(2);
	}
	return found;
}

int main(int argc, char **argv)
{
	unsigned long size;

	if (argc == 4 && !strcmp(argv[1], "server")) {
		serve(address_of(argv[2], argv[3]));
		return 0;
	}
	if (argc != 6 || strcmp(argv[1], "client") != 0) {
		fprintf(stderr, "usage: tcp_yardstick server ADDRESS PORT\n"
				"       tcp_yardstick client ADDRESS PORT "
				"bw|lat|lat-spin|read|read-spin SIZE\n");
		return 2;
	}
	size = strtoul(argv[5], NULL, 10);
	if (size == 0 || size > SIZE_MAX_OCTETS) {
		fprintf(stderr, "tcp_yardstick: a size is 1 to %u octets\n", SIZE_MAX_OCTETS);
		return 2;
	}
	request(address_of(argv[2], argv[3]), verb_of(argv[4]), (uint32_t)size);
	return 0;
}
