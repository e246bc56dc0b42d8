// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "base/tls_rules.h"

#include "base/array.h"

#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct aw_tls_rules *parse_right(const char *text)
{
	char why[AW_TLS_RULES_WHY_MAX] = "";
	struct aw_tls_rules *rules;
	int line = aw_tls_rules_parse(text, &rules, why);

	if (line)
		print_error("line %d: %s\n", line, why);
	assert_int_equal(line, 0);
	return rules;
}

static struct sockaddr_storage address(const char *text, uint16_t port)
{
	struct sockaddr_storage storage = { .ss_family = AF_INET6 };
	struct sockaddr_in *v4 = (void *)&storage;
	struct sockaddr_in6 *v6 = (void *)&storage;

	if (inet_pton(AF_INET6, text, &v6->sin6_addr) == 1) {
		v6->sin6_port = htons(port);
		return storage;
	}
	v4->sin_family = AF_INET;
	v4->sin_port = htons(port);
	assert_int_equal(inet_pton(AF_INET, text, &v4->sin_addr), 1);
	return storage;
}

static const char lines[] =
	"# what comes first decides\n"
	"require remote=192.0.2.7 name=seven.example.org\n"
	"off remote=192.0.2.0/24 port=7000-7099 listen\n"
	"offer remote=192.0.2.0/24\r\n"
	"\n"
	"require remote=2001:db8::/32 port=20049 name=a.example,*.b.example # two\n"
	"require local=198.51.100.1\n";

static void aw_tls_rules_find__the_first_that_matches(void **state)
{
	static const struct {
		bool accepts;
		const char *local;
		uint16_t local_port;
		const char *remote;
		uint16_t remote_port;
		uint32_t line; /* 0: none */
		enum aw_tls_mode mode;
	} rows[] = {
		{ true, "192.0.2.1", 7000, "192.0.2.7", 50000, 2, AW_TLS_REQUIRE },
		{ false, "192.0.2.1", 50000, "192.0.2.7", 7000, 2, AW_TLS_REQUIRE },
		{ true, "192.0.2.1", 7000, "192.0.2.8", 50000, 3, AW_TLS_OFF },
		{ true, "192.0.2.1", 7099, "192.0.2.8", 50000, 3, AW_TLS_OFF },
		{ true, "192.0.2.1", 7100, "192.0.2.8", 50000, 4, AW_TLS_OFFER },
		/* the port is the listener's, and this end connects */
		{ false, "192.0.2.1", 50000, "192.0.2.8", 7000, 4, AW_TLS_OFFER },
		{ true, "192.0.2.1", 50000, "::ffff:192.0.2.8", 7000, 4, AW_TLS_OFFER },
		{ false, "2001:db8::1", 1, "2001:db8::2", 20049, 6, AW_TLS_REQUIRE },
		{ false, "2001:db8::1", 1, "2001:db8::2", 20050, 0, AW_TLS_OFF },
		{ true, "2001:db8::1", 20049, "2001:db8::2", 1, 6, AW_TLS_REQUIRE },
		{ false, "2001:db8::1", 1, "2001:db9::2", 20049, 0, AW_TLS_OFF },
		{ true, "198.51.100.1", 1, "203.0.113.1", 2, 7, AW_TLS_REQUIRE },
		{ true, NULL, 0, "203.0.113.1", 2, 0, AW_TLS_OFF },
	};
	struct aw_tls_rules *rules = parse_right(lines);

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct sockaddr_storage remote = address(rows[i].remote, rows[i].remote_port);
		struct sockaddr_storage local =
			address(rows[i].local ? rows[i].local : "::", rows[i].local_port);
		const struct aw_tls_query query = {
			.accepts = rows[i].accepts,
			.local = rows[i].local ? (void *)&local : NULL,
			.remote = (void *)&remote,
		};
		const struct aw_tls_rule *rule = aw_tls_rules_find(rules, &query);

		assert_int_equal(rule ? rule->line : 0, rows[i].line);
		if (rule)
			assert_int_equal(rule->mode, rows[i].mode);
	}
	aw_tls_rules_put(rules);
}

static void aw_tls_rules_parse__names_in_a_row(void **state)
{
	struct aw_tls_rules *rules = parse_right("require name=a.example,*.b.example,c");
	const struct aw_tls_rule *rule = aw_tls_rules_at(rules, 0);

	(void)state;
	assert_int_equal(rule->name_count, 3);
	assert_memory_equal(rule->names, "a.example\0*.b.example\0c", 24);
	aw_tls_rules_put(rules);
}

static void aw_tls_rules_parse__tells_line_word_and_remedy(void **state)
{
	static const struct {
		const char *text;
		int line;
		const char *why;
	} rows[] = {
		{ "on", 1, "'on': a rule begins with off, offer or require" },
		{ "off\n\nrequired", 3, "'required': a rule begins with" },
		{ "require from=::1", 1, "'from=::1': no such word" },
		{ "require remote", 1, "'remote': no such word" },
		{ "require listen=1", 1, "'listen=1': no such word" },
		{ "require listen connect", 1, "listen or connect is given twice" },
		{ "require name=a name=b", 1, "name is given twice" },
		{ "require remote=host", 1, "remote must be an IPv4 or IPv6 address" },
		{ "require remote=192.0.2.1/24", 1, "that would be 192.0.2.0/24" },
		{ "require port=0", 1, "port must be a number" },
		{ "require name=", 1, "name must be a DNS name" },
		{ "require name=a,", 1, "name must be a DNS name" },
		{ "require name=,a", 1, "name must be a DNS name" },
		{ "require name=192.0.2.1", 1, "'192.0.2.1': name must be a DNS name" },
		{ "require name=2001:db8::1", 1, "name must be a DNS name" },
		{ "require name=a.*.example", 1, "name must be a DNS name" },
		{ "require name=*", 1, "name must be a DNS name" },
		{ "require name=*.", 1, "name must be a DNS name" },
		{ "require name=.a", 1, "name must be a DNS name" },
		{ "require name=a.", 1, "name must be a DNS name" },
		{ "require name=a..b", 1, "name must be a DNS name" },
		{ "require name=a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q", 1, "at most 16 names" },
		{ "off name=a", 1, "name has no effect without TLS" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char why[AW_TLS_RULES_WHY_MAX] = "";
		struct aw_tls_rules *rules;

		assert_int_equal(aw_tls_rules_parse(rows[i].text, &rules, why), rows[i].line);
		if (!strstr(why, rows[i].why))
			fail_msg("%s: %s", rows[i].text, why);
	}
}

/* A line, a name and the number of rules, each at its bound and one past it. */
static void aw_tls_rules_parse__bounds(void **state)
{
	char line[AW_TLS_RULES_LINE_MAX + 2], why[AW_TLS_RULES_WHY_MAX];
	char *many = malloc(4 * (AW_TLS_RULES_MAX + 1) + 1);
	struct aw_tls_rules *rules;

	(void)state;
	memset(line, ' ', sizeof(line));
	memcpy(line, "off", 3);
	line[AW_TLS_RULES_LINE_MAX + 1] = '\0';
	assert_int_equal(aw_tls_rules_parse(line, &rules, why), 1);
	assert_non_null(strstr(why, "longer than 1023 bytes"));
	line[AW_TLS_RULES_LINE_MAX] = '\0';
	aw_tls_rules_put(parse_right(line));

	size_t at = (size_t)sprintf(line, "require name=");
	memset(line + at, 'a', AW_TLS_NAME_MAX + 1);
	line[at + AW_TLS_NAME_MAX + 1] = '\0';
	assert_int_equal(aw_tls_rules_parse(line, &rules, why), 1);
	line[at + AW_TLS_NAME_MAX] = '\0';
	aw_tls_rules_put(parse_right(line));

	assert_non_null(many);
	for (size_t i = 0; i <= AW_TLS_RULES_MAX; i++)
		memcpy(many + 4 * i, "off\n", 5);
	assert_int_equal(aw_tls_rules_parse(many, &rules, why), AW_TLS_RULES_MAX + 1);
	assert_non_null(strstr(why, "more than 256 rules"));
	many[4 * AW_TLS_RULES_MAX] = '\0';
	rules = parse_right(many);
	assert_int_equal(aw_tls_rules_count(rules), AW_TLS_RULES_MAX);
	aw_tls_rules_put(rules);
	rules = parse_right("");
	assert_int_equal(aw_tls_rules_count(rules), 0);
	aw_tls_rules_put(rules);
	free(many);
}

static void aw_tls_rules_is_hidden__by_an_earlier_one(void **state)
{
	struct aw_tls_rules *rules = parse_right("require remote=192.0.2.0/24 listen\n"
						 "off remote=192.0.2.7 listen\n"
						 "off remote=192.0.2.7\n"
						 "off remote=192.0.0.0/16 listen\n"
						 "offer port=5-9\n"
						 "off port=6-9\n"
						 "off port=6-10\n"
						 "off\n");
	static const bool hidden[] = { false, true, false, false, false, true, false, false };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(hidden); i++)
		assert_int_equal(aw_tls_rules_is_hidden(rules, i), hidden[i]);
	aw_tls_rules_put(rules);
}

static void aw_tls_rules_read__names_the_file(void **state)
{
	char file[] = "/tmp/aw-tls-rules-XXXXXX", why[AW_TLS_RULES_WHY_MAX];
	struct aw_tls_rules *rules;
	FILE *to = fdopen(mkstemp(file), "w");

	(void)state;
	assert_non_null(to);
	fputs("off\nno\n", to);
	fclose(to);
	assert_false(aw_tls_rules_read(file, &rules, why));
	assert_memory_equal(why, file, strlen(file));
	assert_non_null(strstr(why, ": line 2: 'no': a rule begins with"));
	remove(file);
	assert_false(aw_tls_rules_read(file, &rules, why));
	assert_non_null(strstr(why, "No such file"));
	assert_false(aw_tls_rules_read("/dev/zero", &rules, why));
	assert_false(aw_tls_rules_read("/", &rules, why));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(aw_tls_rules_find__the_first_that_matches),
		cmocka_unit_test(aw_tls_rules_parse__names_in_a_row),
		cmocka_unit_test(aw_tls_rules_parse__tells_line_word_and_remedy),
		cmocka_unit_test(aw_tls_rules_parse__bounds),
		cmocka_unit_test(aw_tls_rules_is_hidden__by_an_earlier_one),
		cmocka_unit_test(aw_tls_rules_read__names_the_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
