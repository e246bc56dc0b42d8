// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The lines of a key log, of which those with traffic secrets are read. That OpenSSL writes them so: test_handshake.c.
#include "net/tls/secrets.h"

#include "base/array.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define RANDOM "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"

static void read__takes_lines_that_are_right(void **state)
{
	static const char *const wrong[] = {
		"",
		"CLIENT_TRAFFIC_SECRET_0",
		"CLIENT_TRAFFIC_SECRET_0 " RANDOM,
		"CLIENT_TRAFFIC_SECRET_0 " RANDOM " ",
		"CLIENT_TRAFFIC_SECRET_0 " RANDOM " 123",
		"CLIENT_TRAFFIC_SECRET_0 " RANDOM " 1g",
		"CLIENT_TRAFFIC_SECRET_0 " RANDOM "0" RANDOM,
		"CLIENT_HANDSHAKE_TRAFFIC_SECRET " RANDOM " " RANDOM,
		"EXPORTER_SECRET " RANDOM " " RANDOM,
		"SERVER_TRAFFIC_SECRET_1 " RANDOM " " RANDOM,
		/* one byte too long for any hash */
		"SERVER_TRAFFIC_SECRET_0 " RANDOM " " RANDOM "0102030405060708090a0b0c0d0e0f1011",
	};
	struct aw_tls_secrets secrets = { .len = 0 }, none = { .len = 0 };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
		aw_tls_secrets_read(&secrets, wrong[i]);
		assert_memory_equal(&secrets, &none, sizeof(none));
	}
	aw_tls_secrets_read(&secrets, "SERVER_TRAFFIC_SECRET_0 " RANDOM " " RANDOM
				      "0102030405060708090a0b0c0d0e0f10");
	assert_true(secrets.server_is_known && !secrets.client_is_known);
	assert_int_equal(secrets.len, AW_TLS_SECRET_MAX);
	assert_int_equal(secrets.server[AW_TLS_SECRET_MAX - 1], 0x10);
	/* of another length than the first */
	aw_tls_secrets_read(&secrets, "CLIENT_TRAFFIC_SECRET_0 " RANDOM " " RANDOM);
	assert_false(secrets.client_is_known);
	aw_tls_secrets_read(&secrets, "CLIENT_TRAFFIC_SECRET_0 " RANDOM " " RANDOM
				      "0202030405060708090a0b0c0d0e0f11");
	assert_true(secrets.client_is_known);
	assert_int_equal(secrets.client[AW_TLS_SECRET_MAX - 1], 0x11);
	assert_int_equal(secrets.server[AW_TLS_SECRET_MAX - 1], 0x10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(read__takes_lines_that_are_right),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
