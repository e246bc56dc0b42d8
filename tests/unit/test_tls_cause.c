// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "net/tls/cause.h"

#include "base/array.h"
#include "net/tls/openssl.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>

#define ALERT(number) (SSL_AD_REASON_OFFSET + (number))

static const struct {
	struct aw_tls_end end;
	const char *words;
} rows[] = {
	{ { .reason = ALERT(48) }, "the peer's tls alert: unknown ca: the peer's --tls-ca" },
	{ { .reason = ALERT(48), .cut = true, .io_errno = ECONNRESET }, "unknown ca" },
	{ { .reason = ALERT(80), .reason_text = "internal error" },
	  "tls: internal error (the peer's alert)" },
	{ { .io_errno = ECONNRESET, .cut = true }, "Connection reset by peer" },
	{ { .cut = true, .secured = true }, "without tls's close_notify" },
	{ { .cut = true },
	  "closed without a tls record: does its program run with --tls require?" },
	{ { .cut = true, .first = (const unsigned char *)"\x16", .first_len = 1 },
	  "in the middle of the tls handshake" },
	{ { .first = (const unsigned char *)"MPA ", .first_len = 4, .reason = 267 },
	  "speaks mpa without tls: run its program with --tls require" },
	{ { .first = (const unsigned char *)"MPX ", .first_len = 4, .reason = 267 },
	  "neither tls nor mpa" },
	{ { .first = (const unsigned char *)"MPA", .first_len = 3, .reason = 267 },
	  "neither tls nor mpa" },
	{ { .reason = SSL_R_CERTIFICATE_VERIFY_FAILED,
	    .verify = 10,
	    .verify_text = "it has expired" },
	  "it has expired: renew it there" },
	{ { .reason = SSL_R_CERTIFICATE_VERIFY_FAILED, .verify = 77, .verify_text = "odd" },
	  "odd: see docs/tls.md" },
	{ { .reason = SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE }, "the peer has no certificate" },
	{ { .reason = SSL_R_UNSUPPORTED_PROTOCOL }, "does not speak tls 1.3" },
	{ { .reason = SSL_R_CALLBACK_FAILED },
	  "another protocol inside tls, or for none: run its program by anywarp" },
	{ { .reason = SSL_R_CALLBACK_FAILED, .for_records = true },
	  "it does not carry records under tls" },
	{ { .reason = SSL_R_NO_APPLICATION_PROTOCOL }, "lets it in by a rule tls-plain" },
	{ { .reason = SSL_R_NO_APPLICATION_PROTOCOL, .without_mpa = true },
	  "the client wants mpa under tls: give both ends a rule tls-plain, or both on" },
	{ { .reason = ALERT(SSL_AD_NO_APPLICATION_PROTOCOL) }, "the peer speaks tls without mpa" },
	{ { .reason = ALERT(SSL_AD_NO_APPLICATION_PROTOCOL), .for_records = true },
	  "run its program by this version of anywarp sockets" },
	{ { .reason = ALERT(SSL_AD_NO_APPLICATION_PROTOCOL), .without_mpa = true },
	  "tls-plain names none" },
	{ { .reason = SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE, .without_mpa = true },
	  "a rule with client=any lets in clients without" },
	{ { .cut = true, .without_mpa = true }, "does it speak tls 1.3?" },
	{ { .first = (const unsigned char *)"MPA ", .first_len = 4, .without_mpa = true },
	  "the peer speaks no tls" },
	{ { .reason = 281, .reason_text = "bad record mac" }, "tls: bad record mac" },
	{ { .secured = true }, "tls: failed" },
};

static void explain__names_cause_and_remedy(void **state)
{
	char cause[256];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		aw_tls_explain(&rows[i].end, cause, sizeof(cause));
		if (!strstr(cause, rows[i].words))
			fail_msg("row %zu: '%s' is not in '%s'", i, rows[i].words, cause);
	}
}

static void explain__keeps_to_its_bound(void **state)
{
	char cause[8];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		memset(cause, 'x', sizeof(cause));
		aw_tls_explain(&rows[i].end, cause, sizeof(cause) - 1);
		assert_int_equal(strlen(cause), sizeof(cause) - 2);
		assert_int_equal(cause[sizeof(cause) - 1], 'x');
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(explain__names_cause_and_remedy),
		cmocka_unit_test(explain__keeps_to_its_bound),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
