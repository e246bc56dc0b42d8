// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The handshake of a record over TCP sockets: what it takes out of them and what it leaves there.
#include "xsock/framed/tls_start.h"

#include "../lib/tcp.h"
#include "../lib/tls_files.h"
#include "../lib/under_way.h"
#include "net/tls/context.h"
#include "net/tls/handshake.h"
#include "net/tls/session.h"
#include "xsock/process/shield.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <malloc.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define SILENT_CLIENTS 16

/* The shield of the library around a program's signals: no signal comes here. */
void aw_shield_raise(struct aw_shield *shield)
{
	(void)shield;
}

void aw_shield_lower(const struct aw_shield *shield)
{
	(void)shield;
}

static void close_pair(const int fds[2])
{
	close(fds[0]);
	close(fds[1]);
}

/* Waits for what the step needs, as a thread of the program would. */
static void await(int fd, const struct aw_tls_start_wait *wait)
{
	struct pollfd ready = { .fd = fd, .events = wait->events };
	int lowat = (int)wait->bytes;

	assert_true(wait->events == POLLIN || wait->events == POLLOUT);
	assert_return_code(setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &lowat, sizeof(lowat)), errno);
	assert_int_equal(poll(&ready, 1, TCP_WAIT_S * 1000), 1);
	lowat = 1;
	assert_return_code(setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &lowat, sizeof(lowat)), errno);
}

/* The two ends in turn, until both are over. */
static void run(struct aw_tls_start *const ends[2], const int fds[2],
		enum aw_tls_started results[2])
{
	results[0] = results[1] = AW_TLS_START_LATER;
	for (int turn = 0; results[0] == AW_TLS_START_LATER || results[1] == AW_TLS_START_LATER;
	     turn++) {
		int end = turn % 2;
		struct aw_tls_start_wait wait;

		assert_true(turn < 1000);
		results[end] = aw_tls_start_step(ends[end], fds[end], &wait);
		if (results[end] == AW_TLS_START_LATER && results[!end] != AW_TLS_START_LATER)
			await(fds[end], &wait);
	}
}

static void step__leaves_the_first_record_to_the_program(void **state)
{
	static const char words[] = "a record's bytes";
	struct aw_tls_start *ends[] = { aw_tls_start_create(false), aw_tls_start_create(true) };
	struct aw_record_secrets secrets[2];
	struct aw_tls_start_wait wait;
	enum aw_tls_started result;
	char got[sizeof(words)];
	int fds[2];

	(void)state;
	tcp_pair(fds);
	assert_false(aw_tls_start_has_begun(ends[0]));
	do {
		assert_int_equal(aw_tls_start_step(ends[1], fds[1], &wait), AW_TLS_START_LATER);
		result = aw_tls_start_step(ends[0], fds[0], &wait);
		assert_true(aw_tls_start_has_begun(ends[0]));
		if (result == AW_TLS_START_LATER)
			await(fds[1], &(struct aw_tls_start_wait){ POLLIN, 1 });
	} while (result == AW_TLS_START_LATER);
	assert_int_equal(result, AW_TLS_START_DONE);
	/* The server finds the client's last flight and a record behind it. */
	tcp_send(fds[0], words, sizeof(words));
	while ((result = aw_tls_start_step(ends[1], fds[1], &wait)) == AW_TLS_START_LATER)
		await(fds[1], &wait);
	assert_int_equal(result, AW_TLS_START_DONE);
	tcp_recv(fds[1], got, sizeof(got));
	assert_memory_equal(got, words, sizeof(words));
	/* The server has sent nothing behind its handshake. */
	assert_int_equal(recv(fds[0], got, 1, MSG_DONTWAIT), -1);
	assert_int_equal(errno, EAGAIN);

	for (int end = 0; end < 2; end++) {
		aw_tls_start_copy_secrets(ends[end], &secrets[end]);
		aw_tls_start_free(ends[end]);
		assert_true(aw_suite_is_known(secrets[end].suite));
		assert_int_equal(secrets[end].is_client, end == 0);
	}
	assert_int_equal(secrets[0].suite, secrets[1].suite);
	assert_memory_equal(secrets[0].client, secrets[1].client, AW_TLS_SECRET_MAX);
	assert_memory_equal(secrets[0].server, secrets[1].server, AW_TLS_SECRET_MAX);
	assert_memory_not_equal(secrets[0].client, secrets[0].server, AW_TLS_SECRET_MAX);
	close_pair(fds);
}

static size_t queued(int fd)
{
	int count = 0;

	assert_return_code(ioctl(fd, FIONREAD, &count), errno);
	return (size_t)count;
}

/* The ClientHello of an end that asks for this protocol. */
static size_t make_hello(const char *alpn, uint8_t *hello, size_t room)
{
	static const struct aw_tls_want require = { .mode = AW_TLS_REQUIRE };
	const struct sockaddr_storage any = { .ss_family = AF_INET };
	const struct aw_openssl *o = &aw_openssl;
	struct aw_tls_expect expect;
	BIO *out;
	SSL *ssl;
	int len;

	assert_int_equal(aw_tls_session_make((const struct sockaddr *)&any, false, &require, alpn,
					     &expect, &ssl),
			 0);
	out = o->BIO_new(o->BIO_s_mem());
	o->SSL_set_bio(ssl, o->BIO_new(o->BIO_s_mem()), out);
	(void)o->SSL_do_handshake(ssl);
	o->ERR_clear_error();
	len = o->BIO_read(out, hello, (int)room);
	assert_true(len > 100);
	o->SSL_free(ssl);
	return (size_t)len;
}

/* It comes in two pieces, cut anywhere: nothing is taken before all of it is known, and the step names the bytes that it waits for. */
static void step__leaves_a_client_without_records_as_it_came(void **state)
{
	uint8_t hello[4096], got[sizeof(hello)];
	size_t len = make_hello(AW_TLS_ALPN, hello, sizeof(hello));

	(void)state;
	for (size_t cut = 0; cut < len; cut += cut < 8 ? 1 : 61) {
		struct aw_tls_start *start = aw_tls_start_create(true);
		struct aw_tls_start_wait wait;
		int fds[2];

		tcp_pair(fds);
		tcp_send(fds[0], hello, cut);
		if (cut)
			await(fds[1], &(struct aw_tls_start_wait){ POLLIN, cut });
		assert_int_equal(aw_tls_start_step(start, fds[1], &wait), AW_TLS_START_LATER);
		assert_int_equal(wait.events, POLLIN);
		assert_int_equal(wait.bytes, cut == 0			 ? 1
					     : cut < AW_HANDSHAKE_HEADER ? AW_HANDSHAKE_HEADER
									 : len);
		assert_int_equal(queued(fds[1]), cut);
		tcp_send(fds[0], hello + cut, len - cut);
		await(fds[1], &(struct aw_tls_start_wait){ POLLIN, len });
		assert_int_equal(aw_tls_start_step(start, fds[1], &wait), AW_TLS_START_OTHER);
		assert_int_equal(aw_tls_start_step(start, fds[1], &wait), AW_TLS_START_OTHER);
		assert_false(aw_tls_start_has_begun(start));
		aw_tls_start_free(start);
		/* Whoever carries the connection reads it from its beginning, and the client was sent nothing. */
		tcp_recv(fds[1], got, len);
		assert_memory_equal(got, hello, len);
		assert_int_equal(recv(fds[0], got, 1, MSG_DONTWAIT), -1);
		assert_int_equal(errno, EAGAIN);
		close_pair(fds);
	}
}

/* Fills what TCP takes of fd: also the room that bytes leave which are still on their way to the peer. Returns the number of bytes. */
static size_t fill(int fd)
{
	static const uint8_t junk[65536];
	bool moves = true;
	size_t filled = 0;
	ssize_t n;

	while (moves) {
		moves = is_under_way(fd);
		while ((n = send(fd, junk, sizeof(junk), MSG_DONTWAIT)) > 0) {
			filled += (size_t)n;
			moves = true;
		}
		assert_int_equal(errno, EAGAIN);
	}
	return filled;
}

static void step__waits_for_room(void **state)
{
	struct aw_tls_start *ends[] = { aw_tls_start_create(false), aw_tls_start_create(true) };
	struct aw_tls_start_wait wait;
	enum aw_tls_started results[2];
	static uint8_t junk[65536];
	size_t filled;
	int fds[2];

	(void)state;
	tcp_pair(fds);
	filled = fill(fds[0]);
	assert_int_equal(aw_tls_start_step(ends[0], fds[0], &wait), AW_TLS_START_LATER);
	assert_int_equal(wait.events, POLLOUT);
	assert_false(aw_tls_start_has_begun(ends[0]));
	while (filled > 0) {
		size_t next = filled < sizeof(junk) ? filled : sizeof(junk);

		tcp_recv(fds[1], junk, next);
		filled -= next;
	}
	await(fds[0], &wait);
	run(ends, fds, results);
	assert_int_equal(results[0], AW_TLS_START_DONE);
	assert_int_equal(results[1], AW_TLS_START_DONE);
	aw_tls_start_free(ends[0]);
	aw_tls_start_free(ends[1]);
	close_pair(fds);
}

/* A server whose client ends the stream, or breaks it, at each byte of its ClientHello. */
static void step__fails_where_the_stream_ends(void **state)
{
	uint8_t hello[4096];
	size_t len = make_hello(AW_TLS_ALPN_RECORD, hello, sizeof(hello));

	(void)state;
	for (size_t cut = 0; cut <= len; cut += cut < 8 ? 1 : 61) {
		for (int broken = 0; broken < 2; broken++) {
			struct aw_tls_start *start = aw_tls_start_create(true);
			struct aw_tls_start_wait wait;
			enum aw_tls_started result;
			int fds[2];

			tcp_pair(fds);
			tcp_send(fds[0], hello, cut);
			if (broken)
				tcp_reset(fds[0]);
			else
				shutdown(fds[0], SHUT_WR);
			await(fds[1], &(struct aw_tls_start_wait){ POLLIN, cut + 1 });
			while ((result = aw_tls_start_step(start, fds[1], &wait)) ==
			       AW_TLS_START_LATER)
				await(fds[1], &wait);
			assert_int_equal(result, AW_TLS_START_FAILED);
			assert_non_null(aw_tls_start_cause(start));
			assert_true(*aw_tls_start_cause(start));
			aw_tls_start_free(start);
			close(fds[1]);
			if (!broken)
				close(fds[0]);
		}
	}
}

static void step__tells_a_stranger(void **state)
{
	struct aw_tls_start *start = aw_tls_start_create(true);
	uint8_t alert[AW_TLS_PLAIN_ALERT_LEN];
	struct aw_tls_start_wait wait;
	enum aw_tls_started result;
	int fds[2];

	(void)state;
	tcp_pair(fds);
	tcp_send_slowly(fds[0], "MPA ID Req Frame", 16);
	while ((result = aw_tls_start_step(start, fds[1], &wait)) == AW_TLS_START_LATER)
		await(fds[1], &wait);
	assert_int_equal(result, AW_TLS_START_FAILED);
	assert_non_null(strstr(aw_tls_start_cause(start), "mpa without tls"));
	tcp_recv(fds[0], alert, sizeof(alert));
	assert_memory_equal(alert, aw_tls_plain_alert, sizeof(alert));
	aw_tls_start_free(start);
	close_pair(fds);
}

/* A peer that connects and says nothing costs no session: many can do so. */
static void step__has_no_session_for_a_silent_client(void **state)
{
	struct aw_tls_start *starts[SILENT_CLIENTS];
	int fds[SILENT_CLIENTS][2];
	struct aw_tls_start_wait wait;
	size_t before;

	(void)state;
	assert_int_equal(aw_tls_check(), 0);
	for (int i = 0; i < SILENT_CLIENTS; i++) {
		starts[i] = aw_tls_start_create(true);
		tcp_pair(fds[i]);
	}
	before = mallinfo2().uordblks;
	for (int i = 0; i < SILENT_CLIENTS; i++) {
		assert_int_equal(aw_tls_start_step(starts[i], fds[i][1], &wait),
				 AW_TLS_START_LATER);
		assert_int_equal(wait.events, POLLIN);
		assert_int_equal(wait.bytes, 1);
	}
	assert_in_range(mallinfo2().uordblks, before, before + 1024);
	for (int i = 0; i < SILENT_CLIENTS; i++) {
		tcp_send(fds[i][0], "hello", 5);
		await(fds[i][1], &wait);
		assert_int_equal(aw_tls_start_step(starts[i], fds[i][1], &wait),
				 AW_TLS_START_FAILED);
		aw_tls_start_free(starts[i]);
		close_pair(fds[i]);
	}
}

/* At either end: the program is to get what TCP has told this library. */
static void step__notes_a_reset(void **state)
{
	const struct linger at_once = { .l_onoff = 1 };

	(void)state;
	for (int reset = 0; reset < 2; reset++) {
		struct aw_tls_start *start = aw_tls_start_create(false);
		struct aw_tls_start_wait wait;
		enum aw_tls_started result;
		int fds[2];

		tcp_pair(fds);
		assert_int_equal(aw_tls_start_step(start, fds[0], &wait), AW_TLS_START_LATER);
		if (reset)
			assert_return_code(setsockopt(fds[1], SOL_SOCKET, SO_LINGER, &at_once,
						      sizeof(at_once)),
					   errno);
		else
			tcp_recv(fds[1], (uint8_t[1]){ 0 }, 1);
		/* Unread bytes make a reset as well: without linger the end is a FIN, and the ClientHello is read first. */
		if (!reset)
			while (recv(fds[1], (uint8_t[4096]){ 0 }, 4096, MSG_DONTWAIT) > 0)
				;
		close(fds[1]);
		while ((result = aw_tls_start_step(start, fds[0], &wait)) == AW_TLS_START_LATER)
			await(fds[0], &wait);
		assert_int_equal(result, AW_TLS_START_FAILED);
		assert_int_equal(aw_tls_start_was_reset(start), reset);
		aw_tls_start_free(start);
		close(fds[0]);
	}
}

static void has_record__knows_how_much_is_missing(void **state)
{
	const uint8_t whole[] = { 23, 3, 3, 0, 3, 'a', 'b', 'c' },
		      longest[] = { 23, 3, 3, 0x41, 0 }, longer[] = { 23, 3, 3, 0x41, 1 };
	const struct {
		const uint8_t *bytes;
		size_t len, wanted;
		bool has;
	} cases[] = {
		{ whole, 4, 5, false }, { whole, 5, 8, false },	      { whole, 7, 8, false },
		{ whole, 8, 8, true },	{ longest, 5, 16645, false }, { longer, 5, 16645, true },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		size_t wanted = 0;
		int fds[2];

		tcp_pair(fds);
		assert_false(aw_tls_start_has_record(fds[1], &wanted));
		assert_int_equal(wanted, 5);
		tcp_send(fds[0], cases[i].bytes, cases[i].len);
		await(fds[1], &(struct aw_tls_start_wait){ POLLIN, cases[i].len });
		assert_int_equal(aw_tls_start_has_record(fds[1], &wanted), cases[i].has);
		assert_int_equal(wanted, cases[i].wanted);
		assert_int_equal(queued(fds[1]), cases[i].len);
		close_pair(fds);
	}
}

static void step__fails_without_a_connection(void **state)
{
	struct aw_tls_start *start = aw_tls_start_create(false);
	struct aw_tls_start_wait wait;
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	(void)state;
	assert_int_equal(aw_tls_start_step(start, fd, &wait), AW_TLS_START_FAILED);
	assert_string_equal(aw_tls_start_cause(start), strerror(ENOTCONN));
	aw_tls_start_free(start);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(step__leaves_the_first_record_to_the_program),
		cmocka_unit_test(step__leaves_a_client_without_records_as_it_came),
		cmocka_unit_test(step__waits_for_room),
		cmocka_unit_test(step__fails_where_the_stream_ends),
		cmocka_unit_test(step__tells_a_stranger),
		cmocka_unit_test(step__has_no_session_for_a_silent_client),
		cmocka_unit_test(step__notes_a_reset),
		cmocka_unit_test(has_record__knows_how_much_is_missing),
		cmocka_unit_test(step__fails_without_a_connection),
	};

	return cmocka_run_group_tests(tests, tls_files_make, tls_files_remove);
}
