// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A handshake without a socket against another, against OpenSSL's own session, and against peers that are to be refused.
#include "net/tls/handshake.h"

#include "../lib/tls_files.h"
#include "base/array.h"
#include "net/tls/context.h"
#include "net/tls/session.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define FLIGHT_MAX 16384 /* bytes of one end's part of a handshake */

static const struct aw_openssl *const o = &aw_openssl;

static int make_files(void **state)
{
	int made = tls_files_make(state);

	setenv("ANYWARP_TLS_KEYLOG", tls_files_path("keys"), 1);
	return made || aw_tls_check();
}

static const struct aw_tls_want require = { .mode = AW_TLS_REQUIRE };

static struct sockaddr *loopback(void)
{
	static struct sockaddr_in peer = { .sin_family = AF_INET, .sin_port = 1 };

	peer.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return (struct sockaddr *)&peer;
}

static struct aw_handshake *create(bool accepts)
{
	struct aw_handshake *made = NULL;

	assert_int_equal(aw_handshake_create(loopback(), accepts, &require, &made), 0);
	return made;
}

/* An end of OpenSSL's own, over memory. */
struct peer {
	SSL *ssl;
	BIO *in, *out;
	struct aw_tls_expect expect;
	struct aw_tls_secrets secrets;
};

static void set_bios(struct peer *peer)
{
	peer->in = o->BIO_new(o->BIO_s_mem());
	peer->out = o->BIO_new(o->BIO_s_mem());
	o->SSL_set_bio(peer->ssl, peer->in, peer->out);
	assert_true(aw_tls_secrets_keep(peer->ssl, &peer->secrets));
}

/* One that is as this end's settings say, for this protocol. */
static void peer_make(struct peer *peer, bool accepts, const char *alpn)
{
	*peer = (struct peer){ .ssl = NULL };
	assert_int_equal(aw_tls_session_make(loopback(), accepts, &require, alpn, &peer->expect,
					     &peer->ssl),
			 0);
	set_bios(peer);
}

/* A server that speaks TLS for something else: it knows no protocol. */
static void peer_make_foreign_server(struct peer *peer)
{
	struct aw_tls_settings settings = { .cert = tls_files_path("own.pem"),
					    .key = tls_files_path("own.key"),
					    .ca = tls_files_path("ca.pem") };
	char why[AW_TLS_CONTEXT_WHY_MAX];
	SSL_CTX *ctx;

	*peer = (struct peer){ .ssl = NULL };
	assert_true(aw_tls_context_make(&settings, &ctx, why));
	o->SSL_CTX_set_alpn_select_cb(ctx, NULL, NULL);
	o->SSL_CTX_set_client_hello_cb(ctx, NULL, NULL);
	peer->ssl = o->SSL_new(ctx);
	o->SSL_CTX_free(ctx);
	o->SSL_set_accept_state(peer->ssl);
	set_bios(peer);
}

/* A client with this certificate, or without one, which takes any server's. */
static void peer_make_client(struct peer *peer, const char *cert, const char *alpn)
{
	struct aw_tls_settings settings = { .key = tls_files_path("own.key"),
					    .ca = tls_files_path("ca.pem") };
	char why[AW_TLS_CONTEXT_WHY_MAX];
	SSL_CTX *ctx;

	*peer = (struct peer){ .expect.alpn = alpn };
	if (cert) {
		settings.cert = tls_files_path(cert);
		assert_true(aw_tls_context_make(&settings, &ctx, why));
		o->SSL_CTX_set_verify(ctx, 0, NULL);
	} else {
		ctx = o->SSL_CTX_new(o->TLS_method());
	}
	peer->ssl = o->SSL_new(ctx);
	o->SSL_CTX_free(ctx);
	assert_true(aw_tls_expect_set(&peer->expect, peer->ssl, false));
	o->SSL_set_connect_state(peer->ssl);
	set_bios(peer);
}

static void peer_free(struct peer *peer)
{
	o->SSL_free(peer->ssl);
}

/* Takes what is its own of the octets. Returns how many those are; the rest stays in the socket, as it were. */
static size_t take(struct aw_handshake *handshake, const uint8_t *octets, size_t len, size_t piece)
{
	size_t taken = 0;

	for (;;) {
		size_t wanted = aw_handshake_wanted(handshake);
		size_t next = len - taken < wanted ? len - taken : wanted;

		if (next > piece)
			next = piece;
		if (next == 0)
			return taken;
		(void)aw_handshake_take(handshake, octets + taken, next);
		taken += next;
	}
}

static enum aw_handshake_state state_of(struct aw_handshake *handshake)
{
	return aw_handshake_take(handshake, NULL, 0);
}

/* The peer steps with what the handshake puts out. Returns what it sends back. */
static size_t peer_step(struct peer *peer, struct aw_handshake *handshake, uint8_t *to)
{
	uint8_t octets[FLIGHT_MAX];
	size_t len = aw_handshake_output(handshake, octets, sizeof(octets));

	if (len)
		assert_int_equal(o->BIO_write(peer->in, octets, (int)len), len);
	o->ERR_clear_error();
	(void)o->SSL_do_handshake(peer->ssl);
	o->ERR_clear_error();
	if (o->BIO_ctrl_pending(peer->out) == 0)
		return 0;
	return (size_t)o->BIO_read(peer->out, to, FLIGHT_MAX);
}

/* Until neither has anything more to say. */
static void meet(struct peer *peer, struct aw_handshake *handshake)
{
	uint8_t octets[FLIGHT_MAX];

	for (int round = 0; round < 4; round++)
		(void)take(handshake, octets, peer_step(peer, handshake, octets), SIZE_MAX);
}

static void expect_same(const struct aw_tls_secrets *a, const struct aw_tls_secrets *b)
{
	static const uint8_t none[AW_TLS_SECRET_MAX];

	assert_true(a->client_is_known && a->server_is_known);
	assert_true(b->client_is_known && b->server_is_known);
	assert_true(a->len == 32 || a->len == 48);
	assert_int_equal(a->len, b->len);
	assert_memory_equal(a->client, b->client, a->len);
	assert_memory_equal(a->server, b->server, a->len);
	assert_memory_not_equal(a->client, a->server, a->len);
	assert_memory_not_equal(a->client, none, a->len);
}

static void take__makes_two_ends_of_one_mind(void **state)
{
	static const size_t pieces[] = { 1, 2, 7, 1000, SIZE_MAX };
	uint8_t octets[FLIGHT_MAX];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(pieces); i++) {
		struct aw_handshake *ends[] = { create(false), create(true) };
		struct aw_tls_identity *identity;

		for (int round = 0; round < 4; round++) {
			size_t len = aw_handshake_output(ends[round % 2], octets, sizeof(octets));

			assert_int_equal(take(ends[!(round % 2)], octets, len, pieces[i]), len);
		}
		for (int end = 0; end < 2; end++) {
			assert_int_equal(state_of(ends[end]), AW_HANDSHAKE_DONE);
			assert_int_equal(aw_handshake_wanted(ends[end]), 0);
			assert_int_equal(aw_handshake_output(ends[end], octets, 1), 0);
			identity = aw_handshake_identify(ends[end]);
			assert_string_equal(identity->name, TLS_FILES_NAME);
			aw_tls_identity_put(identity);
		}
		assert_int_equal(aw_handshake_cipher(ends[0]), aw_handshake_cipher(ends[1]));
		assert_int_equal(aw_handshake_cipher(ends[0]) >> 8, 0x13);
		expect_same(aw_handshake_secrets(ends[0]), aw_handshake_secrets(ends[1]));
		aw_handshake_free(ends[0]);
		aw_handshake_free(ends[1]);
	}
}

/* A function of OpenSSL's that anywarp does without. */
static int ssl_write(SSL *ssl, const void *buf, int len)
{
	int (*call)(SSL * ssl, const void *buf, int len);
	void *found = dlsym(dlopen(AW_OPENSSL_LIBRARY, RTLD_NOW), "SSL_write");

	memcpy(&call, &found, sizeof(call));
	return call(ssl, buf, len);
}

/* At either end, and the first record behind the handshake, which comes together with its last one, stays where it is. */
static void take__leaves_what_is_behind_the_handshake(void **state)
{
	uint8_t octets[2 * FLIGHT_MAX];

	(void)state;
	for (int accepts = 0; accepts < 2; accepts++) {
		struct aw_handshake *handshake = create(accepts);
		struct peer peer;
		size_t len = 0, taken = 0;

		peer_make(&peer, !accepts, AW_TLS_ALPN_RECORD);
		for (int round = 0; round < 3; round++) {
			len = peer_step(&peer, handshake, octets);
			/* The client writes behind its Finished, the server as soon as it may: behind the client's. */
			if (ssl_write(peer.ssl, "hello", 5) == 5)
				len += (size_t)o->BIO_read(peer.out, octets + len, FLIGHT_MAX);
			o->ERR_clear_error();
			taken = take(handshake, octets, len, SIZE_MAX);
			if (taken < len)
				break;
		}
		assert_int_equal(state_of(handshake), AW_HANDSHAKE_DONE);
		expect_same(aw_handshake_secrets(handshake), &peer.secrets);
		if (accepts) {
			/* a header, the bytes, their type, the AEAD's tag */
			assert_int_equal(len - taken, AW_HANDSHAKE_HEADER + 5 + 1 + 16);
			assert_int_equal(octets[taken], 23);
		}
		peer_free(&peer);
		aw_handshake_free(handshake);
	}
}

static void take__sends_no_message_behind_the_handshake(void **state)
{
	struct aw_handshake *handshake = create(true);
	struct peer peer;
	char octet;

	(void)state;
	peer_make(&peer, false, AW_TLS_ALPN_RECORD);
	meet(&peer, handshake);
	assert_int_equal(state_of(handshake), AW_HANDSHAKE_DONE);
	assert_int_equal(aw_handshake_output(handshake, &octet, 1), 0);
	assert_int_equal(o->BIO_ctrl_pending(peer.in), 0);
	peer_free(&peer);
	aw_handshake_free(handshake);
}

/* A client's certificate, and words of the cause. */
static void take__refuses_a_client(void **state)
{
	static const struct {
		const char *cert, *words;
	} rows[] = {
		{ "foe.pem", "unable to get local issuer certificate" },
		{ "old.pem", "certificate has expired" },
		{ "other.pem", "hostname mismatch" },
		{ NULL, "the peer has no certificate" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct aw_handshake *handshake = create(true);
		struct peer peer;

		peer_make_client(&peer, rows[i].cert, AW_TLS_ALPN_RECORD);
		meet(&peer, handshake);
		assert_int_equal(state_of(handshake), AW_HANDSHAKE_FAILED);
		if (!strstr(aw_handshake_cause(handshake), rows[i].words))
			fail_msg("'%s' is not in '%s'", rows[i].words,
				 aw_handshake_cause(handshake));
		peer_free(&peer);
		aw_handshake_free(handshake);
	}
}

/* Each alert that a server sends once it has the client's certificate or hello reaches the client's cause. */
static void take__tells_the_servers_alert(void **state)
{
	const struct aw_tls_rule keeps_out = { .names = "other", .name_count = 1, .line = 7 };
	const struct aw_tls_want wants = { .mode = AW_TLS_REQUIRE, .rule = &keeps_out };
	struct aw_handshake *server, *client = create(false);
	uint8_t octets[FLIGHT_MAX];

	(void)state;
	assert_int_equal(aw_handshake_create(loopback(), true, &wants, &server), 0);
	for (int round = 0; round < 3; round++) {
		struct aw_handshake *from = round % 2 ? server : client;
		size_t len = aw_handshake_output(from, octets, sizeof(octets));

		(void)take(round % 2 ? client : server, octets, len, SIZE_MAX);
	}
	assert_int_equal(state_of(server), AW_HANDSHAKE_FAILED);
	assert_non_null(strstr(aw_handshake_cause(server), "line 7 of ANYWARP_TLS_RULES"));
	/* TLS 1.3 has the client done by then: the alert is the first record behind, in place of one with bytes. */
	assert_int_equal(state_of(client), AW_HANDSHAKE_DONE);
	assert_int_equal(aw_handshake_output(server, octets, sizeof(octets)),
			 AW_HANDSHAKE_HEADER + 2 + 1 + 16);
	aw_handshake_free(client);
	aw_handshake_free(server);
}

static void take__names_an_end_without_records(void **state)
{
	struct aw_handshake *client = create(false);
	struct peer server;

	(void)state;
	peer_make(&server, true, AW_TLS_ALPN);
	meet(&server, client);
	assert_int_equal(state_of(client), AW_HANDSHAKE_FAILED);
	assert_non_null(strstr(aw_handshake_cause(client), "ANYWARP_SOCKETS_RECORD=off"));
	peer_free(&server);
	aw_handshake_free(client);
}

static void take__names_a_server_of_something_else(void **state)
{
	struct aw_handshake *client = create(false);
	struct peer server;

	(void)state;
	peer_make_foreign_server(&server);
	meet(&server, client);
	assert_int_equal(state_of(client), AW_HANDSHAKE_FAILED);
	assert_non_null(strstr(aw_handshake_cause(client), "not for records"));
	peer_free(&server);
	aw_handshake_free(client);
}

/* Somebody else may answer it: this end has put out nothing but the alert for it. */
static void take__leaves_a_client_without_records_to_others(void **state)
{
	static const uint8_t alert[] = { 21, 3, 3, 0, 2, 2, 120 };
	static const char *const names[] = { AW_TLS_ALPN, "anywarp-recor", "anywarp-records" };
	uint8_t octets[FLIGHT_MAX];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		struct aw_handshake *server = create(true);
		struct peer client;

		peer_make(&client, false, names[i]);
		(void)take(server, octets, peer_step(&client, server, octets), SIZE_MAX);
		assert_int_equal(state_of(server), AW_HANDSHAKE_OTHER);
		assert_non_null(strstr(aw_handshake_cause(server), "does not carry records"));
		assert_int_equal(aw_handshake_output(server, octets, sizeof(octets)),
				 sizeof(alert));
		assert_memory_equal(octets, alert, sizeof(alert));
		peer_free(&client);
		aw_handshake_free(server);
	}
}

static void take__refuses_what_is_no_record(void **state)
{
	static const struct {
		uint8_t octets[AW_HANDSHAKE_HEADER];
		const char *words;
	} rows[] = {
		{ "MPA I", "the peer speaks mpa without tls" },
		{ "GET /", "neither tls nor mpa" },
		{ { 19, 3, 1, 0, 1 }, "neither tls nor mpa" },
		{ { 24, 3, 1, 0, 1 }, "neither tls nor mpa" },
		{ { 22, 2, 1, 0, 1 }, "tls" },
		{ { 22, 3, 1, 0, 0 }, "tls" },
		{ { 22, 3, 1, 0x41, 0x01 }, "tls" },
		{ { 0x80, 0x2e, 1, 3, 1 }, "neither tls nor mpa" },
	};
	uint8_t octets[FLIGHT_MAX];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct aw_handshake *handshake = create(true);

		assert_int_equal(take(handshake, rows[i].octets, AW_HANDSHAKE_HEADER, 1),
				 AW_HANDSHAKE_HEADER);
		assert_int_equal(state_of(handshake), AW_HANDSHAKE_FAILED);
		assert_non_null(strstr(aw_handshake_cause(handshake), rows[i].words));
		assert_int_equal(aw_handshake_output(handshake, octets, sizeof(octets)),
				 AW_TLS_PLAIN_ALERT_LEN);
		assert_memory_equal(octets, aw_tls_plain_alert, AW_TLS_PLAIN_ALERT_LEN);
		aw_handshake_free(handshake);
	}
}

static void wanted__is_bounded_by_a_record(void **state)
{
	static const uint8_t header[] = { 22, 3, 1, 0x41, 0x00 };
	struct aw_handshake *handshake = create(true);

	(void)state;
	assert_int_equal(aw_handshake_wanted(handshake), AW_HANDSHAKE_HEADER);
	assert_int_equal(take(handshake, header, 3, SIZE_MAX), 3);
	assert_int_equal(aw_handshake_wanted(handshake), 2);
	assert_int_equal(take(handshake, header + 3, 2, SIZE_MAX), 2);
	assert_int_equal(aw_handshake_wanted(handshake), AW_HANDSHAKE_RECORD_MAX);
	aw_handshake_free(handshake);
}

/* The server's flight, and then the client's, ends at each byte. */
static void cut__fails_anywhere(void **state)
{
	uint8_t octets[FLIGHT_MAX];

	(void)state;
	for (int accepts = 0; accepts < 2; accepts++) {
		struct aw_handshake *handshake = create(accepts);
		struct peer peer;
		size_t len;

		peer_make(&peer, !accepts, AW_TLS_ALPN_RECORD);
		if (accepts)
			(void)take(handshake, octets, peer_step(&peer, handshake, octets),
				   SIZE_MAX);
		len = peer_step(&peer, handshake, octets);
		assert_int_equal(take(handshake, octets, len - 1, SIZE_MAX), len - 1);
		assert_int_equal(aw_handshake_cut(handshake, 0), AW_HANDSHAKE_FAILED);
		assert_non_null(strstr(aw_handshake_cause(handshake), "in the middle of the tls"));
		assert_int_equal(aw_handshake_wanted(handshake), 0);
		peer_free(&peer);
		aw_handshake_free(handshake);

		handshake = create(accepts);
		assert_int_equal(aw_handshake_cut(handshake, 0), AW_HANDSHAKE_FAILED);
		assert_non_null(strstr(aw_handshake_cause(handshake), "without a tls record"));
		aw_handshake_free(handshake);
		handshake = create(accepts);
		assert_int_equal(aw_handshake_cut(handshake, ECONNRESET), AW_HANDSHAKE_FAILED);
		assert_string_equal(aw_handshake_cause(handshake), strerror(ECONNRESET));
		aw_handshake_free(handshake);
	}
}

/* The version in a record's header says nothing (RFC 8446 5.1). */
static bool is_version(const uint8_t *octets, size_t at)
{
	size_t record = 0;

	for (;;) {
		size_t next = record + AW_HANDSHAKE_HEADER +
			      ((size_t)octets[record + 3] << 8 | octets[record + 4]);

		if (at < next)
			return at == record + 1 || at == record + 2;
		record = next;
	}
}

/* No byte of the server's flight can be another: the client is not DONE with what the server has not sent. */
static void take__refuses_a_changed_byte(void **state)
{
	uint8_t octets[FLIGHT_MAX];
	size_t first = (size_t)getpid() % 13, len = FLIGHT_MAX;

	(void)state;
	printf("from byte %zu\n", first);
	for (size_t at = first; at < len; at += 13) {
		struct aw_handshake *client = create(false);
		struct peer server;

		peer_make(&server, true, AW_TLS_ALPN_RECORD);
		len = peer_step(&server, client, octets);
		assert_true(len > 500);
		if (at < len && !is_version(octets, at)) {
			octets[at] ^= 1;
			(void)take(client, octets, len, SIZE_MAX);
			assert_int_not_equal(state_of(client), AW_HANDSHAKE_DONE);
		}
		peer_free(&server);
		aw_handshake_free(client);
	}
}

static void keylog__has_these_secrets_too(void **state)
{
	struct aw_handshake *client = create(false);
	const struct aw_tls_secrets *secrets = aw_handshake_secrets(client);
	struct aw_tls_secrets logged = { .len = 0 };
	FILE *keys = fopen(tls_files_path("keys"), "re");
	struct peer server;
	char line[256];

	(void)state;
	assert_non_null(keys);
	fseek(keys, 0, SEEK_END);
	peer_make(&server, true, AW_TLS_ALPN_RECORD);
	meet(&server, client);
	while (fgets(line, sizeof(line), keys)) {
		line[strcspn(line, "\n")] = '\0';
		aw_tls_secrets_read(&logged, line);
	}
	expect_same(secrets, &logged);
	fclose(keys);
	peer_free(&server);
	aw_handshake_free(client);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(take__makes_two_ends_of_one_mind),
		cmocka_unit_test(take__leaves_what_is_behind_the_handshake),
		cmocka_unit_test(take__sends_no_message_behind_the_handshake),
		cmocka_unit_test(take__refuses_a_client),
		cmocka_unit_test(take__tells_the_servers_alert),
		cmocka_unit_test(take__names_an_end_without_records),
		cmocka_unit_test(take__names_a_server_of_something_else),
		cmocka_unit_test(take__leaves_a_client_without_records_to_others),
		cmocka_unit_test(take__refuses_what_is_no_record),
		cmocka_unit_test(wanted__is_bounded_by_a_record),
		cmocka_unit_test(cut__fails_anywhere),
		cmocka_unit_test(take__refuses_a_changed_byte),
		cmocka_unit_test(keylog__has_these_secrets_too),
	};

	return cmocka_run_group_tests(tests, make_files, tls_files_remove);
}
