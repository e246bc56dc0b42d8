// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "net/tls/session.h"

#include "net/tls/context.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static const struct aw_openssl *const o = &aw_openssl;

const uint8_t aw_tls_plain_alert[] = { 21, 3, 3, 0, 2, 2, 70 }; /* RFC 8446 5.1, 6.2 */

int aw_tls_session_make(const struct sockaddr *peer, bool accepts, const struct aw_tls_want *want,
			const char *alpn, struct aw_tls_expect *expect, SSL **made)
{
	int err = aw_tls_check();
	SSL_CTX *ctx = err ? NULL : aw_tls_context_get();
	SSL *ssl;

	if (err)
		return err;
	if (!ctx)
		return ENOMEM;
	o->ERR_clear_error();
	ssl = o->SSL_new(ctx);
	o->SSL_CTX_free(ctx);
	if (!ssl)
		return ENOMEM;
	aw_tls_expect_init(expect, peer, accepts, want);
	expect->alpn = alpn;
	if (want->admits_any)
		o->SSL_set_verify(ssl, SSL_VERIFY_PEER, NULL);
	if (!aw_tls_expect_set(expect, ssl, accepts)) {
		o->SSL_free(ssl);
		o->ERR_clear_error();
		return ENOMEM;
	}
	if (accepts)
		o->SSL_set_accept_state(ssl);
	else
		o->SSL_set_connect_state(ssl);
	*made = ssl;
	return 0;
}

bool aw_tls_session_waits(const SSL *ssl, int result)
{
	int error = o->SSL_get_error(ssl, result);

	return error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE;
}

int aw_tls_session_explain(const SSL *ssl, struct aw_tls_end *end, char *cause, size_t max)
{
	unsigned long error = o->ERR_peek_error();
	const struct aw_tls_expect *expect = aw_tls_expect_of(ssl);

	end->reason = AW_OPENSSL_REASON(error);
	end->reason_text = o->ERR_reason_error_string(error);
	end->verify = o->SSL_get_verify_result(ssl);
	end->verify_text = o->X509_verify_cert_error_string(end->verify);
	end->rule_line = expect->rule_line;
	end->without_mpa = !expect->alpn;
	end->for_records = expect->alpn && strcmp(expect->alpn, AW_TLS_ALPN_RECORD) == 0;
	aw_tls_explain(end, cause, max);
	o->ERR_clear_error();
	return end->reason;
}

bool aw_tls_session_has_protocol(const SSL *ssl)
{
	const char *expected = aw_tls_expect_of(ssl)->alpn;
	const unsigned char *name;
	unsigned int len;

	if (!expected)
		return true;
	o->SSL_get0_alpn_selected(ssl, &name, &len);
	return len == strlen(expected) && memcmp(name, expected, len) == 0;
}

struct aw_tls_identity *aw_tls_session_identify(const SSL *ssl)
{
	X509 *cert = o->SSL_get1_peer_certificate(ssl);
	int len = cert ? o->i2d_X509(cert, NULL) : 0;
	struct aw_tls_identity *identity = len > 0 ? malloc(sizeof(*identity) + (size_t)len) : NULL;

	if (identity) {
		unsigned char *to = identity->der;

		atomic_init(&identity->refs, 1);
		identity->der_len = (size_t)len;
		(void)o->i2d_X509(cert, &to);
		aw_tls_expect_name(aw_tls_expect_of(ssl), cert, identity->name,
				   sizeof(identity->name));
	}
	o->X509_free(cert);
	return identity;
}
