// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A program's buffers while its calls use them: another thread may store there, two buffers may be one, and what a read does not
// return it does not write.
#include "contract.h"

#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#define ROUNDS 400
#define CHUNK 60000 /* several FPDUs */
#define TOTAL ((size_t)ROUNDS * CHUNK)
#define BUFFERS 8
#define ROOM 131072 /* of a read */

static uint8_t buffer[CHUNK];
static atomic_bool done;

/* As a program whose memory is live: a virtual machine that migrates, a picture that is drawn. */
static void *store(void *arg)
{
	volatile uint8_t *octets = buffer;
	(void)arg;
	for (size_t i = 0; !atomic_load_explicit(&done, memory_order_relaxed); i += 61)
		octets[i % CHUNK]++;
	return NULL;
}

static void *write_rounds(void *arg)
{
	static const uint8_t still[CHUNK];
	const struct ends *e = arg;
	for (size_t i = 0; i < ROUNDS; i++)
		send_all(e->client, still, CHUNK);
	CHECK(!shutdown(e->client, SHUT_WR));
	return NULL;
}

/* The number of each round is in place, between octets of this time or that. */
static void *expect_rounds(void *arg)
{
	static uint8_t octets[CHUNK];
	const struct ends *e = arg;
	for (uint32_t i = 0; i < ROUNDS; i++) {
		uint32_t round;
		recv_exact(e->server, &round, sizeof(round));
		CHECK(round == i);
		recv_exact(e->server, octets, CHUNK);
	}
	expect_end(e->server);
	return NULL;
}

static void writev_all(int fd, struct iovec iov[2])
{
	for (int first = 0; first < 2;) {
		ssize_t n = writev(fd, iov + first, 2 - first);
		CHECK(n > 0);
		for (; first < 2 && (size_t)n >= iov[first].iov_len; first++)
			n -= (ssize_t)iov[first].iov_len;
		if (first < 2) {
			iov[first].iov_base = (uint8_t *)iov[first].iov_base + n;
			iov[first].iov_len -= (size_t)n;
		}
	}
}

static void stored_to_while_written(void)
{
	struct ends e;
	ends_open(&e);
	pthread_t reads = thread_start(expect_rounds, &e), stores = thread_start(store, NULL);
	for (uint32_t i = 0; i < ROUNDS; i++) {
		struct iovec iov[] = { { &i, sizeof(i) }, { buffer, CHUNK } };
		writev_all(e.client, iov);
	}
	CHECK(!shutdown(e.client, SHUT_WR));
	thread_join(reads);
	atomic_store(&done, true);
	thread_join(stores);
}

static void stored_to_while_read(void)
{
	struct ends e;
	size_t got = 0;
	ssize_t n;
	ends_open(&e);
	pthread_t writes = thread_start(write_rounds, &e), stores = thread_start(store, NULL);
	while ((n = read(e.server, buffer, CHUNK)) > 0)
		got += (size_t)n;
	CHECK(n == 0 && got == TOTAL);
	thread_join(writes);
	atomic_store(&done, true);
	thread_join(stores);
}

/* A program that throws away what it reads. */
static void named_often(void)
{
	struct ends e;
	struct iovec iov[BUFFERS];
	size_t got = 0;
	ssize_t n;
	for (int i = 0; i < BUFFERS; i++)
		iov[i] = (struct iovec){ buffer, 16384 };
	ends_open(&e);
	pthread_t writes = thread_start(write_rounds, &e);
	while ((n = readv(e.server, iov, BUFFERS)) > 0)
		got += (size_t)n;
	CHECK(n == 0 && got == TOTAL);
	thread_join(writes);
}

static void *write_lines(void *arg)
{
	static char line[ROOM];
	const struct ends *e = arg;
	memset(line, 'x', sizeof(line));
	for (size_t i = 0; i < ROUNDS; i++)
		send_all(e->client, line, 1 + i * 7919 % 90000);
	CHECK(!shutdown(e->client, SHUT_WR));
	return NULL;
}

/* A zeroed buffer that is read into is a string. */
static void zero_behind_what_was_read(void)
{
	static char line[ROOM];
	struct ends e;
	ssize_t n;
	ends_open(&e);
	pthread_t writes = thread_start(write_lines, &e);
	for (;;) {
		memset(line, 0, sizeof(line));
		n = read(e.server, line, sizeof(line) - 1);
		CHECK(n >= 0);
		CHECK(strlen(line) == (size_t)n);
		for (size_t i = (size_t)n; i < sizeof(line); i++)
			CHECK(line[i] == 0);
		if (n == 0)
			break;
	}
	thread_join(writes);
}

static const struct row rows[] = {
	{ "stored_to_while_written", stored_to_while_written },
	{ "stored_to_while_read", stored_to_while_read },
	{ "named_often", named_often },
	{ "zero_behind_what_was_read", zero_behind_what_was_read },
};
const struct rows buffer_rows = { rows, ARRAY_LEN(rows) };
