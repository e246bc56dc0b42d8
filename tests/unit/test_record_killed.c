// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Two processes share a record on the kernel's own TCP, and one of them is killed while it sends: the other goes
// on, and the peer gets a stream without a fault.
#include "record/record.h"
#include "record/startup.h"

#include "../lib/record_calls.h"
#include "../lib/tcp.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define HELLO "a hello of forty bytes, as sockets have..."
#define HELLO_LEN 40
#define LARGE 300000u
#define KILLS 300
#define LIFE_NS_MAX 400000
#define WAIT_MS 10000
#define TAIL "the survivor's"

enum {
	ACTIVE,
	PASSIVE
};

static struct aw_record *records; /* two, in shared memory */
static int fds[2];
static uint8_t data[LARGE], came[LARGE];

/* What becomes of the process in its next sendmsg. */
static enum {
	LIVE,
	DIE_BEFORE,
	DIE_BEHIND
} fate;
static size_t takes; /* bytes that TCP takes of the next sendmsg; 0: all */

static void die(void)
{
	kill(getpid(), SIGKILL);
	pause();
}

static ssize_t fateful_sendmsg(int fd, const struct msghdr *msg, int flags)
{
	struct iovec first = { msg->msg_iov[0].iov_base, takes };
	struct msghdr little = { .msg_iov = &first, .msg_iovlen = 1 };
	ssize_t n;

	if (fate == DIE_BEFORE)
		die();
	assert_true(takes <= msg->msg_iov[0].iov_len);
	n = sendmsg(fd, takes ? &little : msg, flags);
	takes = 0;
	if (fate == DIE_BEHIND)
		die();
	return n;
}

static bool is_hello(const uint8_t *bytes, size_t len, bool sealed)
{
	(void)sealed;
	return len == HELLO_LEN && memcmp(bytes, HELLO, len) == 0;
}

const struct aw_record_calls aw_record_calls = {
	.recvmsg = recvmsg,
	.sendmsg = fateful_sendmsg,
	.getsockopt = getsockopt,
	.setsockopt = setsockopt,
	.shutdown = shutdown,
	.poll = poll,
	.ioctl = record_calls_ioctl,
	.is_record = is_hello,
};

static ssize_t send_on(int end, const void *bytes, size_t len)
{
	struct iovec iov = { (void *)bytes, len };

	return aw_record_send(&records[end], fds[end], &iov, 1, 0);
}

/* Receives what there is at end, or what comes within timeout_ms. */
static size_t receive_on(int end, int timeout_ms)
{
	struct pollfd pollfd = { .fd = fds[end], .events = POLLIN };
	struct iovec iov = { came, sizeof(came) };
	ssize_t n = -EAGAIN;

	while (n == -EAGAIN && poll(&pollfd, 1, timeout_ms) > 0)
		n = aw_record_receive(&records[end], fds[end], &iov, 1, 0);
	assert_true(n > 0 || n == -EAGAIN);
	return n > 0 ? (size_t)n : 0;
}

static void expect_at(int end, const void *bytes, size_t len)
{
	size_t got = 0;

	while (got < len) {
		size_t n = receive_on(end, WAIT_MS);

		assert_true(n > 0 && n <= len - got);
		assert_memory_equal(came, (const uint8_t *)bytes + got, n);
		got += n;
	}
}

static int connect_records(void **state)
{
	int err;

	(void)state;
	tcp_pair(fds);
	records = mmap(NULL, 2 * sizeof(*records), PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(records != MAP_FAILED);
	aw_record_init(&records[ACTIVE]);
	aw_record_init(&records[PASSIVE]);
	for (size_t i = 0; i < LARGE; i++)
		data[i] = (uint8_t)(i * 31 + i / 256);
	fate = LIVE;
	takes = 0;
	assert_int_equal(aw_record_initiate(&records[ACTIVE], fds[ACTIVE], HELLO, HELLO_LEN), 0);
	do
		err = aw_record_take_request(&records[PASSIVE], fds[PASSIVE]);
	while (err == -EAGAIN);
	assert_int_equal(err, 0);
	aw_record_respond(&records[PASSIVE], HELLO, HELLO_LEN);
	assert_int_equal(send_on(PASSIVE, "reply", 5), 5);
	expect_at(ACTIVE, "reply", 5);
	return 0;
}

static int close_records(void **state)
{
	(void)state;
	munmap(records, 2 * sizeof(*records));
	close(fds[ACTIVE]);
	close(fds[PASSIVE]);
	return 0;
}

static void await_killed(pid_t child)
{
	int status;

	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

/* A process sends on end, and dies in its next sendmsg, of which TCP takes so many bytes; 0: all. */
static void killed_sender(int end, size_t len, int how, size_t taken)
{
	pid_t child = fork();

	assert_true(child >= 0);
	if (child == 0) {
		fate = how;
		takes = taken;
		(void)send_on(end, data, len);
		_exit(0);
	}
	await_killed(child);
}

static bool recover(int end)
{
	return aw_record_recover(&records[end], fds[end]);
}

static void expect_tail(int end)
{
	assert_int_equal(send_on(end, TAIL, sizeof(TAIL)), sizeof(TAIL));
	expect_at(!end, TAIL, sizeof(TAIL));
}

static const size_t lens[] = { 1, 100, AW_FPDU_PAYLOAD_MAX, 3 * AW_FPDU_PAYLOAD_MAX + 5 };

/* At each end: before TCP takes a call's bytes, and when it has taken them. */
static void test_killed_in_a_send(void **state)
{
	(void)state;
	for (int i = 0; i < 16; i++) {
		int end = i % 2, how = i / 2 % 2 ? DIE_BEFORE : DIE_BEHIND;
		size_t len = lens[i / 4];

		killed_sender(end, len, how, 0);
		assert_true(recover(end));
		if (how == DIE_BEHIND)
			expect_at(!end, data, len);
		expect_tail(end);
	}
}

/* The rest of the FPDU was in the memory of the process that is no more. */
static void test_killed_in_the_middle_of_an_fpdu(void **state)
{
	(void)state;
	killed_sender(ACTIVE, 100, DIE_BEHIND, AW_FPDU_HEAD - 2);
	assert_false(recover(ACTIVE));
}

/* The rest of an FPDU is in the record: each process that is killed sends some of it. */
static void test_killed_sending_a_rest(void **state)
{
	(void)state;
	takes = AW_FPDU_HEAD - 2;
	assert_int_equal(send_on(ACTIVE, data, 100), 100);
	for (size_t sent = 0; sent < 3; sent++) {
		killed_sender(ACTIVE, 1, DIE_BEHIND, 7);
		assert_true(recover(ACTIVE));
		killed_sender(ACTIVE, 1, DIE_BEFORE, 0);
		assert_true(recover(ACTIVE));
	}
	assert_int_equal(aw_record_flush(&records[ACTIVE], fds[ACTIVE]), 0);
	expect_at(PASSIVE, data, 100);
	expect_tail(ACTIVE);
}

static void test_killed_after_all_of_a_rest(void **state)
{
	(void)state;
	takes = AW_FPDU_HEAD - 2;
	assert_int_equal(send_on(ACTIVE, data, 100), 100);
	killed_sender(ACTIVE, 1, DIE_BEHIND, 0);
	assert_true(recover(ACTIVE));
	expect_at(PASSIVE, data, 100);
	expect_tail(ACTIVE);
}

/* Nothing can be sent any more, and so nothing is lost; the other direction goes on. */
static void test_killed_behind_the_end(void **state)
{
	(void)state;
	assert_int_equal(shutdown(fds[ACTIVE], SHUT_WR), 0);
	killed_sender(ACTIVE, 100, DIE_BEHIND, 0);
	assert_true(recover(ACTIVE));
	assert_int_equal(send_on(ACTIVE, data, 1), -EPIPE);
	expect_tail(PASSIVE);
}

static pid_t start_flood(int end)
{
	pid_t child = fork();

	assert_true(child >= 0);
	if (child > 0)
		return child;
	for (uint32_t i = 0;; i++)
		(void)send_on(end, data, 1 + i * 7919 % (2 * AW_FPDU_PAYLOAD_MAX));
}

/* Receives until the stream ends in the tail, and has no more. */
static void expect_tail_at_last(int end)
{
	uint8_t last[sizeof(TAIL)] = "";

	while (memcmp(last, TAIL, sizeof(TAIL)) != 0) {
		size_t n = receive_on(end, WAIT_MS), kept = n < sizeof(last) ? sizeof(last) - n : 0;

		assert_true(n > 0);
		memmove(last, last + sizeof(last) - kept, kept);
		memcpy(last + kept, came + n - (sizeof(last) - kept), sizeof(last) - kept);
	}
}

/* At any instruction. */
static void test_killed_at_any_time(void **state)
{
	unsigned int seed = (unsigned int)time(NULL);

	(void)state;
	printf("seed %u\n", seed);
	for (int i = 0; i < KILLS; i++) {
		struct timespec life = { .tv_nsec = rand_r(&seed) % LIFE_NS_MAX };
		pid_t child = start_flood(i % 2);

		clock_nanosleep(CLOCK_MONOTONIC, 0, &life, NULL);
		kill(child, SIGKILL);
		await_killed(child);
		assert_true(recover(i % 2));
		while (send_on(i % 2, TAIL, sizeof(TAIL)) == -EAGAIN)
			(void)receive_on(!(i % 2), 0);
		expect_tail_at_last(!(i % 2));
	}
}

int main(void)
{
#define KILLED_TEST(test) cmocka_unit_test_setup_teardown(test, connect_records, close_records)
	const struct CMUnitTest tests[] = {
		KILLED_TEST(test_killed_in_a_send),
		KILLED_TEST(test_killed_in_the_middle_of_an_fpdu),
		KILLED_TEST(test_killed_sending_a_rest),
		KILLED_TEST(test_killed_after_all_of_a_rest),
		KILLED_TEST(test_killed_behind_the_end),
		KILLED_TEST(test_killed_at_any_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
