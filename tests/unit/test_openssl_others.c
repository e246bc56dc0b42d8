// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// This program exports functions by OpenSSL's names that are not OpenSSL's, as one with BoringSSL linked into it does.
#include "net/tls/openssl.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define OTHER(name)                                                     \
	__attribute__((visibility("default"))) void name(void);         \
	void name(void)                                                 \
	{                                                               \
		fail_msg("OpenSSL has called the program's %s", #name); \
	}

OTHER(CRYPTO_malloc)
OTHER(CRYPTO_zalloc)
OTHER(ERR_clear_error)
OTHER(EVP_CIPHER_CTX_new)
OTHER(EVP_MD_fetch)
OTHER(BIO_new)
OTHER(X509_STORE_new)
OTHER(SSL_CTX_free)

static void load__keeps_apart_what_the_program_has(void **state)
{
	const char *why;
	SSL_CTX *ctx;

	(void)state;
	assert_true(aw_openssl_load(&why));
	ctx = aw_openssl.SSL_CTX_new(aw_openssl.TLS_method());
	assert_non_null(ctx);
	aw_openssl.SSL_CTX_free(ctx);
	aw_openssl.ERR_clear_error();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(load__keeps_apart_what_the_program_has),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
