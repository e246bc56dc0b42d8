// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Two threads or processes that read one connection at the same time: no byte twice, none lost, and whichever of them waits gets
// what comes.
#include "contract.h"

#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#define ROUNDS 300
#define LONG_BYTES 40000 /* several FPDUs */

/* In memory that processes share. */
struct crowd {
	int fd;
	_Atomic(uint64_t) got, sum; /* bytes that were read, and the sum of their values */
	_Atomic(bool) snatches, rests; /* the second reader is to take what it can; it does not */
};

static void count(struct crowd *crowd, const uint8_t *octets, size_t len)
{
	uint64_t sum = 0;
	for (size_t i = 0; i < len; i++)
		sum += octets[i];
	atomic_fetch_add(&crowd->sum, sum);
	atomic_fetch_add(&crowd->got, len);
}

static void *read_waiting(void *arg)
{
	static const size_t rooms[] = { 65536, 16, 20000, 3 };
	static uint8_t octets[65536];
	struct crowd *crowd = arg;
	ssize_t n;
	for (int i = 0; (n = recv(crowd->fd, octets, rooms[i++ % ARRAY_LEN(rooms)], 0)) > 0;)
		count(crowd, octets, (size_t)n);
	CHECK(n == 0);
	return NULL;
}

static void *snatch(void *arg)
{
	static const size_t rooms[] = { 7, 30000, 100, 5000 };
	static uint8_t octets[65536];
	struct crowd *crowd = arg;
	for (int i = 0;; i++) {
		bool rests = !atomic_load(&crowd->snatches);
		atomic_store(&crowd->rests, rests);
		if (rests) {
			sched_yield();
			continue;
		}
		ssize_t n = recv(crowd->fd, octets, rooms[i % (int)ARRAY_LEN(rooms)], MSG_DONTWAIT);
		if (n == 0)
			return NULL;
		CHECK(n > 0 || errno == EAGAIN);
		if (n > 0)
			count(crowd, octets, (size_t)n);
	}
}

static void send_counted(int fd, uint64_t *sent, uint64_t *sum, size_t len)
{
	static uint8_t octets[LONG_BYTES];
	pattern_fill(octets, len, *sent);
	for (size_t i = 0; i < len; i++)
		*sum += octets[i];
	*sent += len;
	send_all(fd, octets, len);
}

static void await_all(const struct crowd *crowd, uint64_t sent, uint64_t sum)
{
	int64_t deadline = now_ms() + WAIT_MS;
	while (atomic_load(&crowd->got) < sent) {
		CHECK(now_ms() < deadline);
		sched_yield();
	}
	CHECK(atomic_load(&crowd->got) == sent && atomic_load(&crowd->sum) == sum);
}

static void send_rounds(struct crowd *crowd, int fd)
{
	uint64_t sent = 0, sum = 0;
	for (int round = 0; round < ROUNDS; round++) {
		atomic_store(&crowd->snatches, true);
		send_counted(fd, &sent, &sum, LONG_BYTES - (size_t)round % 16 * 1000);
		await_all(crowd, sent, sum);
		atomic_store(&crowd->snatches, false);
		while (!atomic_load(&crowd->rests))
			sched_yield();
		/* Few bytes, and only the reader that waits can get them. */
		send_counted(fd, &sent, &sum, 1 + (size_t)round % 40);
		await_all(crowd, sent, sum);
	}
	atomic_store(&crowd->snatches, true);
	CHECK(!shutdown(fd, SHUT_WR));
}

static struct crowd *crowd_open(struct ends *e)
{
	struct crowd *crowd = mmap(NULL, sizeof(*crowd), PROT_READ | PROT_WRITE,
				   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(crowd != MAP_FAILED);
	ends_open(e);
	/* A window of less than an FPDU: each long one comes in parts. */
	CHECK(!setsockopt(e->server, SOL_SOCKET, SO_RCVBUF, &(int){ 24576 }, sizeof(int)));
	send_text(e->client, "x");
	expect_text(e->server, "x");
	crowd->fd = e->server;
	return crowd;
}

static void two_threads_read(void)
{
	struct ends e;
	struct crowd *crowd = crowd_open(&e);
	pthread_t waits = thread_start(read_waiting, crowd), snatches = thread_start(snatch, crowd);
	send_rounds(crowd, e.client);
	thread_join(waits);
	thread_join(snatches);
}

static pid_t reader_fork(void *(*run)(void *), struct crowd *crowd, int other)
{
	pid_t child = fork();
	if (child == 0) {
		close(other);
		run(crowd);
		_exit(0);
	}
	CHECK(child > 0);
	return child;
}

static void two_processes_read(void)
{
	struct ends e;
	struct crowd *crowd = crowd_open(&e);
	pid_t waits = reader_fork(read_waiting, crowd, e.client);
	pid_t snatches = reader_fork(snatch, crowd, e.client);
	send_rounds(crowd, e.client);
	reap(waits);
	reap(snatches);
}

static const struct row rows[] = {
	{ "two_threads_read", two_threads_read },
	{ "two_processes_read", two_processes_read },
};
const struct rows reader_rows = { rows, ARRAY_LEN(rows) };
