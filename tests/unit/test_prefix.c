// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "base/prefix.h"

#include "base/array.h"

#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static struct aw_prefix read_right(const char *text)
{
	char why[AW_PREFIX_WHY_MAX];
	struct aw_prefix prefix;

	assert_true(aw_prefix_read(aw_slice_of(text), "remote", &prefix, why));
	return prefix;
}

static struct aw_prefix address(const char *text)
{
	struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = htons(7) };
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_port = htons(7) };
	bool is_v4 = inet_pton(AF_INET, text, &v4.sin_addr) == 1;
	struct aw_prefix prefix;
	uint16_t port = 0;

	assert_true(is_v4 || inet_pton(AF_INET6, text, &v6.sin6_addr) == 1);
	assert_true(aw_prefix_of(is_v4 ? (void *)&v4 : (void *)&v6, &prefix, &port));
	assert_int_equal(port, 7);
	return prefix;
}

static void aw_prefix_has__to_the_bit(void **state)
{
	static const struct {
		const char *prefix, *address;
		bool has;
	} rows[] = {
		{ "192.0.2.0/25", "192.0.2.127", true },
		{ "192.0.2.0/25", "192.0.2.128", false },
		{ "192.0.2.7", "192.0.2.7", true },
		{ "192.0.2.7", "192.0.2.6", false },
		{ "0.0.0.0/0", "203.0.113.9", true },
		{ "0.0.0.0/0", "2001:db8::1", false },
		{ "::/0", "2001:db8::1", true },
		{ "2001:db8::/33", "2001:db8:7fff::1", true },
		{ "2001:db8::/33", "2001:db8:8000::1", false },
		{ "192.0.2.0/24", "::ffff:192.0.2.1", true },
		{ "::ffff:192.0.2.0/120", "192.0.2.1", true },
		{ "::ffff:192.0.2.0/120", "192.0.3.1", false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct aw_prefix prefix = read_right(rows[i].prefix);
		struct aw_prefix at = address(rows[i].address);

		assert_int_equal(aw_prefix_has(&prefix, &at), rows[i].has);
	}
}

static void aw_prefix_read__tells_what_is_wrong(void **state)
{
	static const struct {
		const char *text, *why;
	} rows[] = {
		{ "", "remote must be an IPv4 or IPv6 address" },
		{ "host", "remote must be an IPv4 or IPv6 address" },
		{ "192.0.2.0/33", "the prefix length of remote must be 0 to 32" },
		{ "192.0.2.0/", "the prefix length of remote must be 0 to 32" },
		{ "::ffff:192.0.2.0/95", "the prefix length of remote must be 96 to 128" },
		{ "192.0.2.1/24", "that would be 192.0.2.0/24" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char why[AW_PREFIX_WHY_MAX];
		struct aw_prefix prefix;

		assert_false(aw_prefix_read(aw_slice_of(rows[i].text), "remote", &prefix, why));
		assert_non_null(strstr(why, rows[i].why));
	}
}

static void aw_prefix_print__is_read_back(void **state)
{
	static const char *const texts[] = { "192.0.2.0/24", "192.0.2.1", "2001:db8::/32", "::1" };
	char text[AW_PREFIX_TEXT_MAX];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		struct aw_prefix prefix = read_right(texts[i]);

		aw_prefix_print(&prefix, text);
		assert_string_equal(text, texts[i]);
	}
}

static void aw_ports_have__the_ends_of_the_range(void **state)
{
	char why[AW_PREFIX_WHY_MAX];
	struct aw_ports ports, all = { 0, 0 };

	(void)state;
	assert_true(aw_ports_read(aw_slice_of("7-9"), &ports, why));
	assert_false(aw_ports_have(&ports, 6));
	assert_true(aw_ports_have(&ports, 7));
	assert_true(aw_ports_have(&ports, 9));
	assert_false(aw_ports_have(&ports, 10));
	assert_true(aw_ports_have(&all, 0));
	assert_true(aw_ports_read(aw_slice_of("65535"), &ports, why));
	assert_false(aw_ports_read(aw_slice_of("65536"), &ports, why));
	assert_false(aw_ports_read(aw_slice_of("0"), &ports, why));
	assert_false(aw_ports_read(aw_slice_of("9-7"), &ports, why));
	assert_false(aw_ports_read(aw_slice_of("7-"), &ports, why));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(aw_prefix_has__to_the_bit),
		cmocka_unit_test(aw_prefix_read__tells_what_is_wrong),
		cmocka_unit_test(aw_prefix_print__is_read_back),
		cmocka_unit_test(aw_ports_have__the_ends_of_the_range),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
