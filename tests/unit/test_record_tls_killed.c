// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Processes share a record under TLS, and one of them is killed while it sends: what was sealed is sent, and where that is not known
// the half is broken. No number of a key is used twice.
#include "record_tls_scene.h"

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
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define KILLS 200
#define LIFE_NS_MAX 400000

static void await_killed(pid_t child)
{
	int status;

	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

static void killed_sender(int end, size_t len, enum fate how, int at, size_t taken)
{
	pid_t child = fork();

	assert_true(child >= 0);
	if (child == 0) {
		fate = how;
		fate_at = at;
		takes = taken;
		(void)send_on(end, data, len);
		_exit(0);
	}
	await_killed(child);
}

/* While it seals: the first record of a send, the second, the third; and a KeyUpdate in front of them. */
static void killed__while_it_seals_is_broken(void **state)
{
	for (int i = 0; i < 2 * 3 * 2; i++) {
		int end = i % 2;

		connect_records(state);
		if (i >= 6)
			atomic_fetch_add(&record_of(end)->rx.asked, 1);
		killed_sender(end, 3 * AW_SEALED_PAYLOAD_MAX,
			      i % 4 < 2 ? DIE_BEFORE_SEAL : DIE_BEHIND_SEAL, i / 2 % 3, 0);
		assert_false(aw_record_recover(record_of(end), fds[end]));
		close_records(state);
	}
}

/* What was sealed is sent, whatever TCP has of it: nothing, a part, all. */
static void killed__while_it_sends_goes_on(void **state)
{
	static const size_t lens[] = { 1, 100, AW_SEALED_PAYLOAD_MAX,
				       3 * AW_SEALED_PAYLOAD_MAX + 5 };
	static const size_t taken[] = { 0, 1, AW_AEAD_HEAD, 40 };

	(void)state;
	for (int i = 0; i < 2 * 2 * 4 * 4; i++) {
		int end = i % 2;
		size_t len = lens[i / 4 % 4];

		if (i % 3 == 0)
			atomic_fetch_add(&record_of(end)->rx.asked, 1);
		killed_sender(end, len, i / 2 % 2 ? DIE_BEFORE_SEND : DIE_BEHIND_SEND, 0,
			      taken[i / 16]);
		assert_true(aw_record_recover(record_of(end), fds[end]));
		assert_int_equal(aw_record_flush(record_of(end), fds[end]), 0);
		expect_at(!end, data, len);
		assert_int_equal(send_on(end, "survivor", 8), 8);
		expect_at(!end, "survivor", 8);
	}
}

static pid_t start_flood(int end)
{
	pid_t child = fork();

	assert_true(child >= 0);
	if (child > 0)
		return child;
	for (uint32_t i = 0;; i++)
		(void)send_on(end, data, 1 + i * 7919 % (2 * AW_SEALED_PAYLOAD_MAX));
}

/* At any instruction: either the half is broken, or each record that comes is right and the stream goes on. */
static void killed__at_any_time(void **state)
{
	unsigned int seed = (unsigned int)time(NULL), broken = 0;
	bool connected = false;

	printf("seed %u\n", seed);
	for (int i = 0; i < KILLS; i++) {
		struct timespec life = { .tv_nsec = rand_r(&seed) % LIFE_NS_MAX };
		pid_t child;
		ssize_t n;

		if (!connected)
			connect_records(state);
		connected = true;
		child = start_flood(i % 2);
		clock_nanosleep(CLOCK_MONOTONIC, 0, &life, NULL);
		kill(child, SIGKILL);
		await_killed(child);
		if (!aw_record_recover(record_of(i % 2), fds[i % 2])) {
			assert_true(record_of(i % 2)->tx.intent.seals);
			broken++;
			close_records(state);
			connected = false;
			continue;
		}
		while ((n = send_on(i % 2, "tail", 4)) == -EAGAIN)
			assert_true(receive_on(!(i % 2)) > 0);
		assert_int_equal(n, 4);
		while (aw_record_flush(record_of(i % 2), fds[i % 2]) == -EAGAIN)
			assert_true(receive_on(!(i % 2)) > 0);
		do {
			n = receive_on(!(i % 2));
			assert_true(n > 0);
		} while (n < 4 || memcmp(came + n - 4, "tail", 4) != 0);
	}
	printf("%u of %d were killed while they sealed\n", broken, KILLS);
	if (connected)
		close_records(state);
}

/* A process that was forked in between reads on, and sends on; then the first one does. */
static void fork__shares_the_keys(void **state)
{
	(void)state;
	for (int i = 0; i < 6; i++) {
		pid_t child;
		int status;

		assert_int_equal(send_on(CLIENT, data, 1000), 1000);
		child = fork();
		assert_true(child >= 0);
		if (child == 0) {
			struct iovec iov = { came, 400 };
			ssize_t n = -EAGAIN;

			while (n == -EAGAIN)
				n = aw_record_receive(record_of(SERVER), fds[SERVER], &iov, 1, 0);
			_exit(n == 400 && memcmp(came, data, 400) == 0 &&
					      send_on(SERVER, data, 7) == 7
				      ? 0
				      : 1);
		}
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_int_equal(status, 0);
		expect_at(SERVER, data + 400, 600);
		assert_int_equal(send_on(SERVER, data + 7, 7), 7);
		expect_at(CLIENT, data, 14);
	}
}

static int load(void **state)
{
	(void)state;
	return record_tls_is_there() ? 0 : -1;
}

int main(void)
{
#define TLS_TEST(test) cmocka_unit_test_setup_teardown(test, connect_records, close_records)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(killed__while_it_seals_is_broken),
		TLS_TEST(killed__while_it_sends_goes_on),
		cmocka_unit_test(killed__at_any_time),
		TLS_TEST(fork__shares_the_keys),
	};

	return cmocka_run_group_tests(tests, load, NULL);
}
