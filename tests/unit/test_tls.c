// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Two sessions over sockets between which the test reads the records: how they leave, when keys change, and what resumes.
#include "net/tls/tls.h"

#include "../lib/tls_files.h"
#include "../lib/tls_link.h"
#include "base/array.h"
#include "net/base/bounds.h"
#include "net/tls/context.h"
#include "net/tls/expect.h"
#include "net/tls/identity.h"
#include "net/tls/resume.h"
#include "net/tls/spare.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define HEADER 5 /* of a record (RFC 8446 5.1) */
#define KEY_UPDATE (5 + 1 + 16) /* the record of one: the message, its type, and the AEAD's tag */

/* rules: of the two ends. */
static struct tls_link connect_by(in_port_t port, const struct aw_tls_rule *connects,
				  const struct aw_tls_rule *accepts)
{
	const struct aw_tls_want wants[] = { { .mode = AW_TLS_REQUIRE, .rule = connects },
					     { .mode = AW_TLS_REQUIRE, .rule = accepts } };
	struct tls_link link = tls_link_open(port, wants);

	tls_link_shake_hands(&link);
	return link;
}

/* The initiator reads what the responder has sent behind its handshake: a ticket, and no bytes. */
static void read_ticket(struct tls_link *link)
{
	char octet;

	aw_tls_begin_turn(link->ends[0]);
	assert_int_equal(aw_tls_recv(link->ends[0], &octet, 1), -1);
	assert_int_equal(errno, EAGAIN);
}

/* Sends one record, and returns how many records that made on the wire that change keys; the peer reads the rest. */
static unsigned int send_record(struct tls_link *link, int from)
{
	char sent[100], got[sizeof(sent)], octets[4096];
	unsigned int updates = 0;
	ssize_t n;

	memset(sent, 'a' + from, sizeof(sent));
	assert_int_equal(aw_tls_send(link->ends[from], sent, sizeof(sent)), sizeof(sent));
	n = recv(link->wire[from], octets, sizeof(octets), MSG_DONTWAIT);
	assert_true(n > 0);
	for (ssize_t at = 0; at < n;) {
		size_t len = (size_t)(uint8_t)octets[at + 3] << 8 | (uint8_t)octets[at + 4];

		updates += len == KEY_UPDATE;
		at += HEADER + (ssize_t)len;
	}
	assert_int_equal(send(link->wire[!from], octets, (size_t)n, 0), n);
	aw_tls_begin_turn(link->ends[!from]);
	assert_int_equal(aw_tls_recv(link->ends[!from], got, sizeof(got)), sizeof(got));
	assert_memory_equal(got, sent, sizeof(sent));
	return updates;
}

static void seal__changes_keys_behind_the_bound(void **state)
{
	unsigned int under_keys[2] = { 0, 1 }; /* the responder's ticket is a record, too */
	struct tls_link link = tls_link_connect(1);

	(void)state;
	atomic_store(&aw_bounds.tls_records_max, 3);
	for (int i = 0; i < 12; i++) {
		for (int from = 0; from < 2; from++) {
			bool is_due = under_keys[from] == 3;

			assert_int_equal(send_record(&link, from), is_due);
			under_keys[from] = is_due ? 1 : under_keys[from] + 1;
		}
	}
	atomic_store(&aw_bounds.tls_records_max, AW_TLS_RECORDS_MAX);
	tls_link_end(&link);
}

static void fill(char *octets, size_t len, unsigned int with)
{
	for (size_t i = 0; i < len; i++)
		octets[i] = (char)(i * 7 + i / 251 + with);
}

/* Takes len bytes in steps, one after the other. */
static void take(struct aw_tls *tls, const char *expected, size_t len, const size_t *steps,
		 size_t count)
{
	static char got[AW_TLS_SEND_MAX];
	size_t done = 0;

	for (size_t i = 0; done < len; i++) {
		size_t step = steps[i % count] < len - done ? steps[i % count] : len - done;
		ssize_t n;

		aw_tls_begin_turn(tls);
		n = aw_tls_recv(tls, got + done, step);
		assert_true(n > 0 && (size_t)n <= step);
		done += (size_t)n;
	}
	assert_memory_equal(got, expected, len);
	assert_false(aw_tls_has_input(tls));
}

static void recv__keeps_what_the_caller_has_no_room_for(void **state)
{
	static const size_t steps[] = { 1, 7, AW_TLS_RECORD_MAX - 1, AW_TLS_RECORD_MAX,
					AW_TLS_SEND_MAX };
	static char sent[AW_TLS_SEND_MAX];
	struct tls_link link = tls_link_connect(6);

	(void)state;
	for (int round = 0; round < 6; round++) {
		int from = round % 2;

		fill(sent, sizeof(sent), (unsigned int)round);
		assert_int_equal(aw_tls_send(link.ends[from], sent, sizeof(sent)), sizeof(sent));
		(void)tls_link_pass(&link, from);
		take(link.ends[!from], sent, sizeof(sent), steps + round % 5,
		     ARRAY_LEN(steps) - (size_t)round % 5);
	}
	tls_link_end(&link);
}

/* A record that comes byte by byte is whole with its last one, and until then there is nothing to read. */
static void recv__opens_whole_records(void **state)
{
	char sent[300], octets[1000], got[sizeof(sent)];
	struct tls_link link = tls_link_connect(6);
	ssize_t len;

	(void)state;
	read_ticket(&link);
	fill(sent, sizeof(sent), 1);
	assert_int_equal(aw_tls_send(link.ends[1], sent, sizeof(sent)), sizeof(sent));
	len = recv(link.wire[1], octets, sizeof(octets), MSG_DONTWAIT);
	assert_int_equal(len, sizeof(sent) + AW_TLS_SEALED_EXTRA);
	/* What a buffer had before is no record's head. */
	aw_tls_spare_give(memset(aw_tls_spare_take(), 0xff, AW_TLS_SPARE_BYTES));
	for (ssize_t i = 0; i < len; i++) {
		assert_false(aw_tls_has_input(link.ends[0]));
		assert_int_equal(send(link.wire[0], octets + i, 1, 0), 1);
		aw_tls_begin_turn(link.ends[0]);
		assert_int_equal(aw_tls_recv(link.ends[0], got, sizeof(got)),
				 i + 1 < len ? -1 : (ssize_t)sizeof(got));
	}
	assert_memory_equal(got, sent, sizeof(sent));
	tls_link_end(&link);
}

/* One octet is another one: nothing is read, and the sender is told. */
static void recv__refuses_every_octet_that_was_changed(void **state)
{
	char sent[20] = { 0 }, octets[100], got[sizeof(sent)];

	(void)state;
	for (size_t i = 0; i < sizeof(sent) + AW_TLS_SEALED_EXTRA; i++) {
		struct tls_link link = tls_link_connect(6);

		assert_int_equal(aw_tls_send(link.ends[0], sent, sizeof(sent)), sizeof(sent));
		assert_int_equal(recv(link.wire[0], octets, sizeof(octets), MSG_DONTWAIT),
				 sizeof(sent) + AW_TLS_SEALED_EXTRA);
		octets[i] ^= 1;
		/* A length that is larger needs one more. */
		assert_int_equal(send(link.wire[1], octets, sizeof(sent) + AW_TLS_SEALED_EXTRA + 1,
				      0),
				 sizeof(sent) + AW_TLS_SEALED_EXTRA + 1);
		aw_tls_begin_turn(link.ends[1]);
		memset(got, 'x', sizeof(got));
		if (i != 3) { /* of a record too long by 256 the rest has yet to come */
			assert_int_equal(aw_tls_recv(link.ends[1], got, sizeof(got)), -1);
			assert_int_equal(errno, EPROTO);
			(void)tls_link_pass(&link, 1);
			aw_tls_begin_turn(link.ends[0]);
			assert_int_equal(aw_tls_recv(link.ends[0], got, sizeof(got)), -1);
			assert_int_equal(errno, EPROTO);
			assert_non_null(strstr(aw_tls_cause(link.ends[0]), "alert"));
		}
		tls_link_end(&link);
	}
}

static void seal__begins_a_record_anew(void **state)
{
	static char sent[AW_TLS_RECORD_MAX];
	static const size_t whole[] = { AW_TLS_SEND_MAX };
	struct tls_link link = tls_link_connect(6);
	struct aw_tls *tls = link.ends[0];

	(void)state;
	fill(sent, sizeof(sent), 2);
	assert_int_equal(aw_tls_seal_start(tls, sizeof(sent) + 1), sizeof(sent));
	assert_true(aw_tls_seal_add(tls, sent, 5000));
	assert_int_equal(aw_tls_seal_start(tls, 3000), 3000);
	assert_true(aw_tls_seal_add(tls, sent, 1) && aw_tls_seal_add(tls, sent + 1, 16) &&
		    aw_tls_seal_add(tls, sent + 17, 2983) && aw_tls_seal_finish(tls));
	assert_int_equal(aw_tls_send_sealed(tls), 3000);
	(void)tls_link_pass(&link, 0);
	take(link.ends[1], sent, 3000, whole, 1);
	tls_link_end(&link);
}

static void handshake__has_these_cipher_suites(void **state)
{
	static const struct {
		const char *name;
		bool is_known;
	} rows[] = {
		{ "TLS_AES_128_GCM_SHA256", true },
		{ "TLS_AES_256_GCM_SHA384", true },
		{ "TLS_CHACHA20_POLY1305_SHA256", true },
		{ "TLS_AES_128_CCM_SHA256", false },
	};

	(void)state;
	atomic_store(&aw_bounds.tls_records_max, 3);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct tls_link link;

		tls_link_set_suites(rows[i].name);
		link = tls_link_open((in_port_t)(20 + i), NULL);
		tls_link_shake_hands(&link);
		assert_int_equal(!link.cause, rows[i].is_known);
		for (int turn = 0; !link.cause && turn < 10; turn++)
			(void)send_record(&link, turn % 2);
		assert_true(!link.cause || strstr(link.cause, "openssl.cnf"));
		tls_link_end(&link);
	}
	atomic_store(&aw_bounds.tls_records_max, AW_TLS_RECORDS_MAX);
	tls_link_set_suites(
		"TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256:TLS_AES_128_GCM_SHA256");
}

static void seal__takes_what_leaves_at_once(void **state)
{
	static char octets[AW_TLS_SEND_MAX + 1];
	struct tls_link link = tls_link_connect(1);
	struct aw_tls *tls = link.ends[0];

	(void)state;
	assert_int_equal(aw_tls_send_sealed(tls), 0);
	assert_int_equal(aw_tls_seal(tls, octets, 1), 1);
	assert_int_equal(aw_tls_seal(tls, octets, sizeof(octets)), AW_TLS_SEND_MAX - 1);
	assert_int_equal(aw_tls_seal(tls, octets, 1), 0);
	assert_int_equal(aw_tls_send_sealed(tls), AW_TLS_SEND_MAX);
	assert_int_equal(aw_tls_send_sealed(tls), 0);
	assert_int_equal(aw_tls_seal(tls, octets, sizeof(octets)), AW_TLS_SEND_MAX);
	tls_link_end(&link);
}

static void send_sealed__tells_of_bytes_once_their_records_have_left(void **state)
{
	static char octets[AW_TLS_SEND_MAX];
	struct tls_link link = tls_link_connect(1);
	struct aw_tls *tls = link.ends[0];
	ssize_t n;

	(void)state;
	do {
		assert_int_equal(aw_tls_seal(tls, octets, sizeof(octets)), sizeof(octets));
		n = aw_tls_send_sealed(tls);
	} while (n == sizeof(octets));
	assert_int_equal(n, -1);
	assert_int_equal(errno, EAGAIN);
	assert_true(aw_tls_has_output(tls));
	while (aw_tls_has_output(tls)) {
		while (recv(link.wire[0], (char[65536]){ 0 }, 65536, MSG_DONTWAIT) > 0)
			;
		n = aw_tls_send_sealed(tls);
	}
	assert_int_equal(n, sizeof(octets));
	tls_link_end(&link);
}

static void handshake__resumes_by_a_ticket_that_is_used_once(void **state)
{
	unsigned int before = aw_tls_resume_count();
	struct tls_link first = tls_link_connect(2), second, third;

	(void)state;
	read_ticket(&first);
	assert_int_equal(aw_tls_resume_count(), before + 1);
	second = tls_link_connect(2);
	third = tls_link_connect(2);
	for (int i = 0; i < 2; i++) {
		struct aw_tls_identity *identity = aw_tls_identify(second.ends[i]);

		assert_false(aw_tls_is_resumed(first.ends[i]));
		assert_true(aw_tls_is_resumed(second.ends[i]));
		assert_false(aw_tls_is_resumed(third.ends[i]));
		assert_string_equal(identity->name, TLS_FILES_NAME);
		aw_tls_identity_put(identity);
	}
	read_ticket(&second);
	assert_int_equal(aw_tls_resume_count(), before + 1);
	tls_link_end(&first);
	tls_link_end(&second);
	tls_link_end(&third);
}

/* The files are written anew, as they were: what a ticket of before stands for is not looked up there. */
static void handshake__resumes_nothing_behind_a_renewal(void **state)
{
	struct tls_link link = tls_link_connect(3);
	size_t full = link.hello;
	char command[128];

	(void)state;
	read_ticket(&link);
	tls_link_end(&link);
	snprintf(command, sizeof(command), "cd %s && cp ca.pem new.pem && mv new.pem ca.pem",
		 tls_files_path(""));
	assert_int_equal(system(command), 0);
	link = tls_link_connect(3);
	assert_false(aw_tls_is_resumed(link.ends[0]) || aw_tls_is_resumed(link.ends[1]));
	assert_int_equal(link.hello, full); /* no ticket was offered */
	tls_link_end(&link);
}

static void resume__keeps_so_many_tickets(void **state)
{
	(void)state;
	for (in_port_t i = 0; i <= AW_TLS_TICKETS_MAX; i++) {
		struct tls_link link = tls_link_connect(100 + i);

		read_ticket(&link);
		tls_link_end(&link);
		assert_true(aw_tls_resume_count() <= AW_TLS_TICKETS_MAX);
	}
	assert_int_equal(aw_tls_resume_count(), AW_TLS_TICKETS_MAX);
}

static const X509 *certificate(SSL_CTX *ctx)
{
	X509 *(*get)(const SSL_CTX *ctx);
	void *found = dlsym(dlopen(AW_OPENSSL_LIBRARY, RTLD_NOW), "SSL_CTX_get0_certificate");

	memcpy(&get, &found, sizeof(get));
	return get(ctx);
}

static bool holds(const char *names, uint32_t count, bool by_address, const X509 *cert)
{
	struct aw_tls_expect expect = { .peer.ss_family = AF_INET,
					.names = names,
					.name_count = count,
					.by_address = by_address };

	return aw_tls_expect_holds(&expect, cert);
}

static void expect__looks_at_the_certificate_again(void **state)
{
	struct aw_tls_settings settings = { .cert = tls_files_path("own.pem"),
					    .key = tls_files_path("own.key"),
					    .ca = tls_files_path("ca.pem") };
	char why[AW_TLS_CONTEXT_WHY_MAX];
	SSL_CTX *ctx;

	(void)state;
	assert_false(holds(NULL, 0, false, NULL));
	assert_true(aw_tls_context_make(&settings, &ctx, why));
	assert_true(holds(NULL, 0, false, certificate(ctx)));
	assert_false(holds(NULL, 0, true, certificate(ctx)));
	assert_true(holds(TLS_FILES_NAME, 1, false, certificate(ctx)));
	assert_true(holds("own\0" TLS_FILES_NAME, 2, false, certificate(ctx)));
	assert_false(holds("own\0*." TLS_FILES_NAME, 2, false, certificate(ctx)));
	aw_openssl.SSL_CTX_free(ctx);
	settings.cert = tls_files_path("old.pem");
	assert_true(aw_tls_context_make(&settings, &ctx, why));
	assert_false(holds(TLS_FILES_NAME, 1, false, certificate(ctx)));
	aw_openssl.SSL_CTX_free(ctx);
}

/* At either end: the ticket is passed over, and a full handshake keeps the peer out. */
static void handshake__resumes_no_session_of_a_peer_that_a_rule_keeps_out(void **state)
{
	const struct aw_tls_rule lets_in = { .names = TLS_FILES_NAME, .name_count = 1, .line = 1 };
	const struct aw_tls_rule keeps_out = { .names = "other", .name_count = 1, .line = 1 };

	(void)state;
	for (int end = 0; end < 2; end++) {
		struct tls_link link = connect_by(4, &lets_in, &lets_in);

		assert_null(link.cause);
		read_ticket(&link);
		tls_link_end(&link);
		link = connect_by(4, &lets_in, &lets_in);
		assert_null(link.cause);
		assert_true(aw_tls_is_resumed(link.ends[0]) && aw_tls_is_resumed(link.ends[1]));
		read_ticket(&link);
		tls_link_end(&link);
		link = connect_by(4, end == 0 ? &keeps_out : &lets_in,
				  end == 1 ? &keeps_out : &lets_in);
		assert_non_null(link.cause);
		tls_link_end(&link);
	}
}

/* Both ends have the program's bytes inside, or none has. */
static void handshake__without_mpa_at_both_ends(void **state)
{
	static const struct {
		bool connects, accepts;
		const char *cause;
	} rows[] = {
		{ true, true, NULL },
		{ true, false, "the client asks for another protocol inside tls, or for none" },
		{ false, true, "the client wants mpa under tls" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct aw_tls_want wants[] = {
			{ .mode = AW_TLS_REQUIRE, .without_mpa = rows[i].connects },
			{ .mode = AW_TLS_REQUIRE, .without_mpa = rows[i].accepts },
		};
		struct tls_link link = tls_link_open(5, wants);

		tls_link_shake_hands(&link);
		assert_int_equal(!link.cause, !rows[i].cause);
		assert_true(!link.cause || strstr(link.cause, rows[i].cause));
		tls_link_end(&link);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(seal__changes_keys_behind_the_bound),
		cmocka_unit_test(recv__keeps_what_the_caller_has_no_room_for),
		cmocka_unit_test(recv__opens_whole_records),
		cmocka_unit_test(recv__refuses_every_octet_that_was_changed),
		cmocka_unit_test(seal__begins_a_record_anew),
		cmocka_unit_test(handshake__has_these_cipher_suites),
		cmocka_unit_test(seal__takes_what_leaves_at_once),
		cmocka_unit_test(send_sealed__tells_of_bytes_once_their_records_have_left),
		cmocka_unit_test(handshake__resumes_by_a_ticket_that_is_used_once),
		cmocka_unit_test(handshake__resumes_nothing_behind_a_renewal),
		cmocka_unit_test(resume__keeps_so_many_tickets),
		cmocka_unit_test(expect__looks_at_the_certificate_again),
		cmocka_unit_test(handshake__resumes_no_session_of_a_peer_that_a_rule_keeps_out),
		cmocka_unit_test(handshake__without_mpa_at_both_ends),
	};

	return cmocka_run_group_tests(tests, tls_files_make, tls_files_remove);
}
