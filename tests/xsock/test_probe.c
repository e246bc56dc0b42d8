// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A client's question: who answers, who is silent, and how long each is waited for. The clock is the test's.
#include "xsock/preload/probe.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <limits.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "xsock/base/libc.h"
#include "xsock/base/probe_wire.h"

#define MS INT64_C(1000000)

static int64_t clock_ns = 1;
static int waited_ms; /* by the last question */

/* Before the C library's. */
int clock_gettime(clockid_t which, struct timespec *now)
{
	(void)which;
	now->tv_sec = clock_ns / 1000000000;
	now->tv_nsec = clock_ns % 1000000000;
	return 0;
}

static int server = -1;
static bool answers, has_records;
static int asked; /* questions that have come */
static uint16_t asked_from; /* the port of the last one */

static void answer_probe(void)
{
	uint8_t octets[AW_PROBE_LEN];
	struct sockaddr_storage from;
	socklen_t len = sizeof(from);

	if (recvfrom(server, octets, sizeof(octets), MSG_DONTWAIT, (struct sockaddr *)&from,
		     &len) != AW_PROBE_LEN)
		return;
	asked++;
	asked_from = ((struct sockaddr_in *)&from)->sin_port;
	memcpy(octets, AW_PROBE_ANSWERS, 8);
	octets[AW_PROBE_YES_AT] &= has_records ? AW_PROBE_RECORDS : 0;
	octets[AW_PROBE_YES_AT] |= AW_PROBE_YES;
	if (answers)
		assert_int_equal(sendto(server, octets, sizeof(octets), 0, (struct sockaddr *)&from,
					len),
				 sizeof(octets));
}

static int polls, receives; /* of the last question */
static int answers_at; /* the receive before which the server answers; 0: it answers at a poll */

/* In place of libc's. */
static ssize_t receive_counted(int fd, void *octets, size_t len, int flags)
{
	if (++receives == answers_at)
		answer_probe();
	return recv(fd, octets, len, flags);
}

/* In place of libc's: whoever waits in vain is older then. */
static int poll_by_clock(struct pollfd *fds, nfds_t count, int timeout_ms)
{
	int ready;

	polls++;
	if (server >= 0)
		answer_probe();
	ready = poll(fds, count, answers ? 10000 : 0);
	if (ready == 0) {
		clock_ns += timeout_ms * MS;
		waited_ms += timeout_ms;
	}
	return ready;
}

static int set_up(void **state)
{
	(void)state;
	aw_libc_find();
	aw_libc_table.poll = poll_by_clock;
	aw_libc_table.recv = receive_counted;
	return 0;
}

static void open_server(struct sockaddr_storage *name)
{
	struct sockaddr_in any = { .sin_family = AF_INET,
				   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(any);

	server = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(server, (struct sockaddr *)&any, sizeof(any)), 0);
	assert_int_equal(getsockname(server, (struct sockaddr *)&any, &len), 0);
	memset(name, 0, sizeof(*name));
	memcpy(name, &any, sizeof(any));
	asked = 0;
}

/* Its number is soon another's. */
static void close_server(void)
{
	close(server);
	server = -1;
}

static bool ask(const struct sockaddr_storage *name)
{
	struct sockaddr_storage local = *name;

	waited_ms = polls = receives = 0;
	return aw_probe_server(-1, &local, name, false, 10) == AW_ANSWER_YES;
}

static void meet_server(struct sockaddr_storage *name)
{
	open_server(name);
	answers = true;
	assert_true(ask(name));
}

/* Not every connection waits a second for it, and it is found again. */
static void ask__a_server_that_falls_silent(void **state)
{
	struct sockaddr_storage name;

	(void)state;
	meet_server(&name);
	answers = false;
	assert_false(ask(&name));
	assert_int_equal(waited_ms, 1000);
	assert_int_equal(asked, 2);
	for (int i = 0; i < 5; i++) {
		assert_false(ask(&name));
		assert_int_equal(waited_ms, 0);
	}
	assert_int_equal(asked, 2);
	clock_ns += 10001 * MS;
	answers = true;
	assert_true(ask(&name));
	assert_int_equal(asked, 3);
	close_server();
}

static void ask__a_server_that_stays_silent(void **state)
{
	struct sockaddr_storage name;

	(void)state;
	meet_server(&name);
	answers = false;
	for (int i = 0; i < 4; i++) {
		assert_false(ask(&name));
		assert_int_equal(waited_ms, i < 2 ? 1000 : 10);
		clock_ns += 10001 * MS;
	}
	assert_int_equal(asked, 5);
	close_server();
}

/* Nobody is at the port: that is known at once. */
static void ask__a_server_that_is_gone(void **state)
{
	struct sockaddr_storage name;

	(void)state;
	meet_server(&name);
	close_server();
	assert_false(ask(&name));
	assert_int_equal(waited_ms, 0);
}

/* Both must have them. */
static void ask__for_records(void **state)
{
	struct sockaddr_storage name, local;

	(void)state;
	meet_server(&name);
	local = name;
	assert_int_equal(aw_probe_server(-1, &local, &name, true, 10), AW_ANSWER_YES);
	has_records = true;
	assert_int_equal(aw_probe_server(-1, &local, &name, true, 10), AW_ANSWER_RECORDS);
	assert_int_equal(aw_probe_server(-1, &local, &name, false, 10), AW_ANSWER_YES);
	has_records = false;
	close_server();
	assert_int_equal(aw_probe_server(-1, &local, &name, true, 10), AW_ANSWER_REFUSED);
}

/* Asks until a question has been awake in vain, and counts those that slept before it. */
static int count_asleep(const struct sockaddr_storage *name)
{
	int asleep = 0;

	answers_at = INT_MAX;
	for (; ask(name) && receives == 1; asleep++)
		assert_int_equal(polls, 1);
	assert_in_range(receives, 101, 1000);
	assert_int_equal(polls, 1);
	return asleep;
}

/* A server of this host answers soon: its client is awake then. */
static void ask__awake(void **state)
{
	struct sockaddr_storage name;

	(void)state;
	meet_server(&name);
	(void)count_asleep(&name);
	for (int i = 0; i < 31; i++)
		assert_true(ask(&name));
	answers_at = 100;
	assert_true(ask(&name));
	assert_int_equal(receives, 100);
	assert_int_equal(polls, 0);
	close_server();
}

/* It needs the client's processor: many clients sleep after one that was awake in vain. */
static void ask__awake_in_vain(void **state)
{
	struct sockaddr_storage name;

	(void)state;
	meet_server(&name);
	(void)count_asleep(&name);
	assert_int_equal(count_asleep(&name), 31);
	close_server();
}

/* A server elsewhere is waited for asleep. */
static void ask__asleep(void **state)
{
	struct sockaddr_storage name, local;

	(void)state;
	meet_server(&name);
	local = name;
	((struct sockaddr_in *)&local)->sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1);
	polls = receives = 0;
	assert_int_equal(aw_probe_server(-1, &local, &name, false, 10), AW_ANSWER_YES);
	assert_int_equal(receives, 1);
	assert_int_equal(polls, 1);
	close_server();
}

/* The port that a probe came from may be the next listener's. */
static void ask__leaves_its_port_free(void **state)
{
	struct sockaddr_storage name;
	struct sockaddr_in own = { .sin_family = AF_INET };
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	(void)state;
	meet_server(&name);
	for (int i = 0; i < 3; i++)
		assert_true(ask(&name));
	own.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	own.sin_port = asked_from;
	assert_int_equal(bind(fd, (struct sockaddr *)&own, sizeof(own)), 0);
	close(fd);
	close_server();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ask__for_records),
		cmocka_unit_test(ask__a_server_that_falls_silent),
		cmocka_unit_test(ask__a_server_that_stays_silent),
		cmocka_unit_test(ask__a_server_that_is_gone),
		cmocka_unit_test(ask__awake),
		cmocka_unit_test(ask__awake_in_vain),
		cmocka_unit_test(ask__asleep),
		cmocka_unit_test(ask__leaves_its_port_free),
	};

	return cmocka_run_group_tests(tests, set_up, NULL);
}
