// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What src/net/tls, src/crypto and src/cli say of OpenSSL against its headers: the prototypes as openssl_there.c compiles, the numbers here.
#include "net/tls/openssl.h"

#include "base/array.h"
#include "openssl_numbers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static const struct openssl_number here[] = { OPENSSL_NUMBERS(OPENSSL_NUMBER) };

static void numbers__are_openssls(void **state)
{
	(void)state;
	assert_int_equal(ARRAY_LEN(here), openssl_numbers_there_count);
	for (size_t i = 0; i < ARRAY_LEN(here); i++) {
		assert_string_equal(here[i].name, openssl_numbers_there[i].name);
		assert_int_equal(here[i].value, openssl_numbers_there[i].value);
	}
}

static void reason__is_openssls(void **state)
{
	(void)state;
	assert_int_equal(AW_OPENSSL_REASON(0x0a000086), openssl_reason_there(0x0a000086));
}

static void ssl_error__is_openssls(void **state)
{
	(void)state;
	assert_int_equal(AW_OPENSSL_SSL_ERROR(1048), openssl_ssl_error_there(1048));
}

static void load__finds_every_function(void **state)
{
	const char *why;

	(void)state;
	assert_true(aw_openssl_load(&why));
#define IS_THERE(result, name, parameters) assert_non_null(aw_openssl.name);
	AW_OPENSSL_FUNCTIONS(IS_THERE)
#undef IS_THERE
#define IS_THERE(result, name, parameters) assert_non_null(aw_libcrypto.name);
	AW_LIBCRYPTO_FUNCTIONS(IS_THERE)
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers__are_openssls),
		cmocka_unit_test(reason__is_openssls),
		cmocka_unit_test(ssl_error__is_openssls),
		cmocka_unit_test(load__finds_every_function),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
