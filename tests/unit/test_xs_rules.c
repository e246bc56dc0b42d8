// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// ANYWARP_SOCKETS_RULES: which rule decides, what each word means, and that every wrong word is
// named with its line and what would be right.
#include "xsock/base/rules.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct aw_xs_rules *parsed(const char *text)
{
	struct aw_xs_rules *rules = NULL;
	char why[AW_XS_RULES_WHY_MAX] = "";
	int line = aw_xs_rules_parse(text, &rules, why, sizeof(why));

	if (line)
		fail_msg("%s: line %d: %s", text, line, why);
	return rules;
}

/* The error of text is on that line and has the words; the rules are not written. */
static void refused(const char *text, int line, const char *item, const char *cause)
{
	struct aw_xs_rules *rules = NULL;
	char why[AW_XS_RULES_WHY_MAX] = "";
	int got = aw_xs_rules_parse(text, &rules, why, sizeof(why));

	if (got != line || !strstr(why, item) || !strstr(why, cause))
		fail_msg("'%.80s' gives line %d: %s", text, got, why);
	assert_null(rules);
}

static const struct sockaddr *address(const char *text, uint16_t port, struct sockaddr_storage *sa)
{
	struct sockaddr_in *in = (struct sockaddr_in *)sa;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)sa;

	if (!text)
		return NULL;
	memset(sa, 0, sizeof(*sa));
	if (inet_pton(AF_INET, text, &in->sin_addr) == 1) {
		in->sin_family = AF_INET;
		in->sin_port = htons(port);
	} else {
		assert_int_equal(inet_pton(AF_INET6, text, &in6->sin6_addr), 1);
		in6->sin6_family = AF_INET6;
		in6->sin6_port = htons(port);
	}
	return (struct sockaddr *)sa;
}

struct side {
	const char *address;
	uint16_t port;
};

static enum aw_xs_mode asked(const char *text, const char *program, bool listening,
			     struct side local, struct side remote)
{
	struct sockaddr_storage here, there;
	struct aw_xs_rules *rules = parsed(text);
	struct aw_xs_query q = {
		.program = program,
		.listening = listening,
		.local = address(local.address, local.port, &here),
		.remote = address(remote.address, remote.port, &there),
	};
	enum aw_xs_mode mode = aw_xs_rules_mode(rules, &q);

	/* What is known to be in iWARP mode may be. */
	assert_true(mode == AW_XS_OFF || aw_xs_rules_may(rules, &q));
	assert_true(mode != AW_XS_ON || aw_xs_rules_may_be(rules, &q, AW_XS_ON));
	assert_true(aw_xs_rules_may(rules, &q) || !aw_xs_rules_may_be(rules, &q, AW_XS_ON));
	aw_xs_rules_destroy(rules);
	return mode;
}

static enum aw_xs_mode connecting(const char *text, const char *to, uint16_t port)
{
	return asked(text, "/usr/bin/client", false, (struct side){ NULL, 0 },
		     (struct side){ to, port });
}

static bool listener_may(const char *text, const char *on, uint16_t port)
{
	struct sockaddr_storage here;
	struct aw_xs_rules *rules = parsed(text);
	struct aw_xs_query q = {
		.program = "server",
		.listening = true,
		.local = address(on, port, &here),
	};
	bool may = aw_xs_rules_may(rules, &q);

	aw_xs_rules_destroy(rules);
	return may;
}

static void aw_xs_rules_parse__blank_lines_are_no_rules(void **state)
{
	struct aw_xs_rules *rules = parsed("\n  \t\r\n# on\n\n   # auto\n");

	(void)state;
	assert_int_equal(aw_xs_rules_count(rules), 0);
	aw_xs_rules_destroy(rules);
	rules = parsed("# one\r\n  on port=1 # two\r\n\toff");
	assert_int_equal(aw_xs_rules_count(rules), 2);
	aw_xs_rules_destroy(rules);
}

static void aw_xs_rules_parse__mode(void **state)
{
	(void)state;
	refused("On", 1, "'On'", "begins with on, auto, off, rsockets or tls-plain");
	refused("on\nport=1 on", 2, "'port=1'", "on|auto|off|rsockets|tls-plain [program=GLOB]");
	refused("onn port=1", 1, "'onn'", "begins with on, auto, off, rsockets or tls-plain");
	refused("listen", 1, "'listen'", "begins with on, auto, off, rsockets or tls-plain");
}

static void aw_xs_rules_parse__client(void **state)
{
	struct aw_xs_rules *rules = parsed("tls-plain client=any port=443 listen\ntls-plain");
	char text[AW_XS_RULE_TEXT_MAX];

	(void)state;
	aw_xs_rules_print(rules, 0, text);
	assert_string_equal(text, "tls-plain port=443 client=any listen");
	aw_xs_rules_print(rules, 1, text);
	assert_string_equal(text, "tls-plain");
	aw_xs_rules_destroy(rules);
	refused("tls-plain client=none listen", 1, "'none'", "client must be any");
	refused("on client=any listen", 1, "'any'", "client=any is for tls-plain");
	refused("tls-plain client=any", 1, "'client=any'", "needs the word listen");
	refused("tls-plain client=any connect", 1, "'client=any'", "needs the word listen");
	refused("tls-plain client=any client=any listen", 1, "'client=any'",
		"client is given twice");
}

static void aw_xs_rules_parse__unknown_word(void **state)
{
	(void)state;
	refused("on ports=1", 1, "'ports=1'", "program=GLOB, local=ADDR[/LEN], remote=");
	refused("on port", 1, "'port'", "no such word");
	refused("on\n\n# x\non =1", 4, "'=1'", "no such word");
	refused("on Listen", 1, "'Listen'", "no such word");
	refused("on listen=1", 1, "'listen=1'", "no such word");
	refused("on off", 1, "'off'", "no such word");
}

static void aw_xs_rules_parse__given_twice(void **state)
{
	(void)state;
	refused("on port=1 port=1", 1, "'port=1'", "port is given twice");
	refused("on local=::1 local=::1", 1, "'local=::1'", "local is given twice");
	refused("on remote=::1 remote=::1", 1, "'remote=::1'", "remote is given twice");
	refused("on program=a program=b", 1, "'program=b'", "program is given twice");
	refused("on listen connect", 1, "'connect'", "listen or connect is given twice");
}

static void aw_xs_rules_parse__wrong_port(void **state)
{
	static const char *const wrong[] = { "0",     "65536",	 "-1", "1-",	"-",	"2-1",
					     "0-1",   "1-65536", "x",  "1-2-3", "0x10", "1,2",
					     "99999", "100000",	 "",   "+1" };
	char rule[64];

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		snprintf(rule, sizeof(rule), "off\non port=%s", wrong[i]);
		refused(rule, 2, "': port must be", "1 to 65535, or a range");
	}
}

static void aw_xs_rules_parse__wrong_address(void **state)
{
	static const char *const wrong[] = { "",	  "1",	       "1.2.3", "1.2.3.4.5",
					     "256.1.1.1", "localhost", ":::",	"fe80::1%lo",
					     "*",	  "/8",	       "[::1]", "1.2.3.4:80" };
	char rule[64];

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		snprintf(rule, sizeof(rule), "on local=%s", wrong[i]);
		refused(rule, 1, "': local must be", "an IPv4 or IPv6 address");
		snprintf(rule, sizeof(rule), "on remote=%s", wrong[i]);
		refused(rule, 1, "': remote must be", "an IPv4 or IPv6 address");
	}
}

static void aw_xs_rules_parse__wrong_prefix(void **state)
{
	(void)state;
	refused("on local=10.0.0.0/33", 1, "'10.0.0.0/33'", "of local must be 0 to 32");
	refused("on remote=::/129", 1, "'::/129'", "of remote must be 0 to 128");
	refused("on remote=10.0.0.0/", 1, "'10.0.0.0/'", "must be 0 to 32");
	refused("on remote=10.0.0.0/8/8", 1, "/8/8'", "must be 0 to 32");
	refused("on remote=10.0.0.0/-1", 1, "/-1'", "must be 0 to 32");
	refused("on remote=::ffff:0.0.0.0/95", 1, "/95'", "must be 96 to 128");
	refused("on remote=::ffff:1.2.3.4/129", 1, "/129'", "must be 96 to 128");
	refused("on remote=10.1.2.3/8", 1, "'10.1.2.3/8'", "that would be 10.0.0.0/8");
	refused("on local=2001:db8::1/33", 1, "::1/33'", "that would be 2001:db8::/33");
}

static void aw_xs_rules_parse__wrong_program(void **state)
{
	char rule[320] = "on program=";

	(void)state;
	refused("on program=", 1, "''", "program must be a file name");
	refused("on program=/usr/bin/ssh", 1, "'/usr/bin/ssh'", "without directories");
	memset(rule + 11, 'x', 256);
	refused(rule, 1, "'xxx", "at most 255 bytes");
	rule[11 + 255] = '\0';
	aw_xs_rules_destroy(parsed(rule));
}

/* Length and number of lines: at the bound, and one past it. */
static void aw_xs_rules_parse__bounds(void **state)
{
	static char text[AW_XS_RULES_TEXT_MAX + 1];
	struct aw_xs_rules *rules;

	(void)state;
	memset(text, ' ', AW_XS_RULES_LINE_MAX);
	memcpy(text, "on", 2);
	aw_xs_rules_destroy(parsed(text));
	strcat(text, " ");
	refused(text, 1, "'on", "longer than 511 bytes");
	text[0] = '\0';
	for (int i = 0; i < AW_XS_RULES_MAX; i++)
		strcat(text, "off\n");
	rules = parsed(text);
	assert_int_equal(aw_xs_rules_count(rules), AW_XS_RULES_MAX);
	aw_xs_rules_destroy(rules);
	strcat(text, "\n# \n on");
	refused(text, AW_XS_RULES_MAX + 3, "'on'", "more than 256 rules");
	memset(text, '\n', sizeof(text));
	text[AW_XS_RULES_TEXT_MAX - 1] = '\0';
	aw_xs_rules_destroy(parsed(text));
	text[AW_XS_RULES_TEXT_MAX - 1] = '\n';
	text[AW_XS_RULES_TEXT_MAX] = '\0';
	refused(text, 1, "...'", "more than 65535 bytes");
}

/* What a terminal would obey, or is long, is not repeated; a short buffer is not overrun. */
static void aw_xs_rules_parse__hostile_text(void **state)
{
	struct aw_xs_rules *rules = NULL;
	char why[9] = "12345678", text[200];

	(void)state;
	refused("on\033[2J", 1, "'on?[2J'", "begins with");
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	refused(text, 1, "xxx...'", "[listen|connect]");
	assert_int_equal(aw_xs_rules_parse("nonsense", &rules, why, 5), 1);
	assert_string_equal(why, "'non");
	assert_string_equal(why + 5, "678");
	assert_int_equal(aw_xs_rules_parse("nonsense", &rules, NULL, 0), 1);
}

static void aw_xs_rules_mode__no_rules_are_auto(void **state)
{
	(void)state;
	assert_int_equal(connecting("", "192.0.2.1", 80), AW_XS_AUTO);
	assert_int_equal(connecting(NULL, "192.0.2.1", 80), AW_XS_AUTO);
	assert_int_equal(connecting("# none\n", "::1", 80), AW_XS_AUTO);
	assert_true(listener_may("", NULL, 0));
}

static void aw_xs_rules_mode__first_match_wins(void **state)
{
	const char *rules = "off port=22\nauto port=1-79\non port=79-80\noff port=80";

	(void)state;
	assert_int_equal(connecting(rules, "192.0.2.1", 22), AW_XS_OFF);
	assert_int_equal(connecting(rules, "192.0.2.1", 79), AW_XS_AUTO);
	assert_int_equal(connecting(rules, "192.0.2.1", 80), AW_XS_ON);
	assert_int_equal(connecting(rules, "192.0.2.1", 81), AW_XS_OFF);
}

/* A mode that the proxy process carries is never left to TCP: a program whose rules may have one has to be reached by the library. */
static void aw_xs_rules_may_carry__each_mode(void **state)
{
	static const struct {
		const char *rules;
		enum aw_xs_mode mode;
		bool carried;
	} rows[] = {
		{ "off", AW_XS_OFF, false },
		{ "on", AW_XS_ON, true },
		{ "auto", AW_XS_AUTO, false },
		{ "rsockets", AW_XS_RSOCKETS, true },
		{ "tls-plain", AW_XS_TLS_PLAIN, true },
		{ "tls-plain client=any listen", AW_XS_TLS_ANY, true },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct aw_xs_rules *rules = parsed(rows[i].rules);
		struct aw_xs_query q = { .listening = true };

		assert_int_equal(aw_xs_rules_mode(rules, &q), rows[i].mode);
		assert_int_equal(aw_xs_mode_is_carried(rows[i].mode), rows[i].carried);
		assert_int_equal(aw_xs_rules_may_carry(rules, &q), rows[i].carried);
		aw_xs_rules_destroy(rules);
	}
}

static void aw_xs_rules_mode__ports(void **state)
{
	(void)state;
	assert_int_equal(connecting("on port=10-20", "::1", 9), AW_XS_OFF);
	assert_int_equal(connecting("on port=10-20", "::1", 10), AW_XS_ON);
	assert_int_equal(connecting("on port=10-20", "::1", 20), AW_XS_ON);
	assert_int_equal(connecting("on port=10-20", "::1", 21), AW_XS_OFF);
	assert_int_equal(connecting("on port=65535", "::1", 65535), AW_XS_ON);
	assert_int_equal(connecting("on port=00080", "::1", 80), AW_XS_ON);
}

/* The listener's port, on either side, never the other one. */
static void aw_xs_rules_mode__port_is_the_listeners(void **state)
{
	struct side low = { "192.0.2.1", 80 }, high = { "192.0.2.2", 4000 };

	(void)state;
	assert_int_equal(asked("on port=80", "a", true, low, high), AW_XS_ON);
	assert_int_equal(asked("on port=80", "a", false, low, high), AW_XS_OFF);
	assert_int_equal(asked("on port=80", "a", false, high, low), AW_XS_ON);
	assert_int_equal(asked("on port=80", "a", true, (struct side){ "0.0.0.0", 80 },
			       (struct side){ NULL, 0 }),
			 AW_XS_ON);
	assert_int_equal(asked("on port=80", "a", true, (struct side){ NULL, 0 }, low), AW_XS_OFF);
}

static void aw_xs_rules_mode__ipv4(void **state)
{
	(void)state;
	assert_int_equal(connecting("on remote=192.0.2.128/25", "192.0.2.128", 1), AW_XS_ON);
	assert_int_equal(connecting("on remote=192.0.2.128/25", "192.0.2.255", 1), AW_XS_ON);
	assert_int_equal(connecting("on remote=192.0.2.128/25", "192.0.2.127", 1), AW_XS_OFF);
	assert_int_equal(connecting("on remote=192.0.2.1", "192.0.2.1", 1), AW_XS_ON);
	assert_int_equal(connecting("on remote=192.0.2.1", "192.0.2.0", 1), AW_XS_OFF);
	assert_int_equal(connecting("on remote=0.0.0.0/0", "255.255.255.255", 1), AW_XS_ON);
	assert_int_equal(connecting("on remote=0.0.0.0/0", "2001:db8::1", 1), AW_XS_OFF);
}

static void aw_xs_rules_mode__ipv6(void **state)
{
	(void)state;
	assert_int_equal(connecting("on remote=2001:db8::/33", "2001:db8:7fff::1", 1), AW_XS_ON);
	assert_int_equal(connecting("on remote=2001:db8::/33", "2001:db8:8000::1", 1), AW_XS_OFF);
	assert_int_equal(connecting("on remote=::1", "::1", 1), AW_XS_ON);
	assert_int_equal(connecting("on remote=::1", "::2", 1), AW_XS_OFF);
	assert_int_equal(connecting("on remote=::/0", "fe80::1", 1), AW_XS_ON);
	assert_int_equal(connecting("on remote=::/0", "192.0.2.1", 1), AW_XS_OFF);
}

/* Either way of writing an IPv4 address, in the rule or in the socket. */
static void aw_xs_rules_mode__mapped(void **state)
{
	(void)state;
	assert_int_equal(connecting("on remote=10.0.0.0/8", "::ffff:10.1.2.3", 1), AW_XS_ON);
	assert_int_equal(connecting("on remote=10.0.0.0/8", "::ffff:11.1.2.3", 1), AW_XS_OFF);
	assert_int_equal(connecting("on remote=::ffff:10.0.0.0/104", "10.1.2.3", 1), AW_XS_ON);
	assert_int_equal(connecting("on remote=::ffff:10.0.0.0/104", "11.1.2.3", 1), AW_XS_OFF);
	assert_int_equal(connecting("on remote=::/0", "::ffff:10.1.2.3", 1), AW_XS_OFF);
}

static void aw_xs_rules_mode__unknown_address_matches_no_rule_that_names_one(void **state)
{
	struct side there = { "192.0.2.1", 80 };

	(void)state;
	assert_int_equal(asked("on local=0.0.0.0/0\nauto", "a", false, (struct side){ NULL, 0 },
			       there),
			 AW_XS_AUTO);
	assert_int_equal(asked("on local=0.0.0.0/0\nauto", "a", false,
			       (struct side){ "0.0.0.0", 9 }, there),
			 AW_XS_AUTO);
	assert_int_equal(asked("on local=::/0\nauto", "a", false, (struct side){ "::", 9 }, there),
			 AW_XS_AUTO);
	assert_int_equal(asked("on local=0.0.0.0/0\nauto", "a", false,
			       (struct side){ "192.0.2.2", 9 }, there),
			 AW_XS_ON);
}

static void aw_xs_rules_mode__other_family(void **state)
{
	struct sockaddr local = { .sa_family = AF_UNIX };
	struct aw_xs_query q = { .program = "a", .local = &local };
	struct aw_xs_rules *rules = parsed("on local=0.0.0.0/0\non local=::/0");

	(void)state;
	assert_int_equal(aw_xs_rules_mode(rules, &q), AW_XS_OFF);
	assert_false(aw_xs_rules_may(rules, &q));
	aw_xs_rules_destroy(rules);
}

static void aw_xs_rules_mode__program(void **state)
{
	struct side none = { NULL, 0 };

	(void)state;
	assert_int_equal(asked("on program=redis-*", "redis-server", true, none, none), AW_XS_ON);
	assert_int_equal(asked("on program=redis-*", "/opt/redis-cli", true, none, none), AW_XS_ON);
	assert_int_equal(asked("on program=redis-*", "/redis-x/nginx", true, none, none),
			 AW_XS_OFF);
	assert_int_equal(asked("on program=python3.?", "python3.9", true, none, none), AW_XS_ON);
	assert_int_equal(asked("on program=[a-c]x", "bx", true, none, none), AW_XS_ON);
	assert_int_equal(asked("on program=[a-c]x", "dx", true, none, none), AW_XS_OFF);
	assert_int_equal(asked("on program=a", NULL, true, none, none), AW_XS_OFF);
}

static void aw_xs_rules_mode__side(void **state)
{
	struct side a = { "::1", 1 };

	(void)state;
	assert_int_equal(asked("on listen", "a", true, a, a), AW_XS_ON);
	assert_int_equal(asked("on listen", "a", false, a, a), AW_XS_OFF);
	assert_int_equal(asked("on connect", "a", true, a, a), AW_XS_OFF);
	assert_int_equal(asked("on connect", "a", false, a, a), AW_XS_ON);
}

static void aw_xs_rules_may__listener_whose_peers_decide(void **state)
{
	(void)state;
	assert_true(listener_may("on remote=10.0.0.0/8", "::", 80));
	assert_true(listener_may("off remote=10.0.0.0/8\nauto", "::", 80));
	assert_true(listener_may("off remote=10.0.0.0/8\nauto", NULL, 0));
	assert_false(listener_may("off\nauto remote=10.0.0.0/8", "::", 80));
	assert_false(listener_may("off remote=10.0.0.0/8", "::", 80));
	assert_false(listener_may("on remote=10.0.0.0/8 connect", "::", 80));
	assert_false(listener_may("on remote=10.0.0.0/8 port=81", "::", 80));
	assert_true(listener_may("on local=192.0.2.1", "0.0.0.0", 80));
	assert_false(listener_may("on local=192.0.2.1", "192.0.2.2", 80));
	assert_false(listener_may("on program=client", "192.0.2.2", 80));
	assert_false(listener_may("off port=80\non", "::", 80));
	assert_true(listener_may("off port=80\non", NULL, 0));
}

/* *settled: the mode, where no rule asks for an address. */
static bool is_settled(const char *text, bool listening, enum aw_xs_mode *settled)
{
	struct aw_xs_query q = { .program = "a", .listening = listening };
	struct aw_xs_rules *rules;
	bool is;

	assert_int_equal(aw_xs_rules_parse(text, &rules, NULL, 0), 0);
	is = aw_xs_rules_are_settled(rules, &q, settled);
	aw_xs_rules_destroy(rules);
	return is;
}

static void settled_as(const char *text, enum aw_xs_mode mode)
{
	enum aw_xs_mode settled;

	assert_true(is_settled(text, true, &settled));
	assert_int_equal(settled, mode);
}

static void aw_xs_rules_are_settled__no_rule_asks(void **state)
{
	enum aw_xs_mode settled;

	(void)state;
	settled_as("", AW_XS_AUTO);
	settled_as("on", AW_XS_ON);
	settled_as("off program=a\non", AW_XS_OFF);
	settled_as("off program=b\nauto", AW_XS_AUTO);
	settled_as("off program=b", AW_XS_OFF);
	settled_as("on port=80 connect\nauto", AW_XS_AUTO);
	settled_as("on\noff port=80", AW_XS_ON);
	assert_false(is_settled("on port=80 connect\nauto", false, &settled));
	assert_false(is_settled("off port=80\non", true, &settled));
	assert_false(is_settled("on local=10.0.0.0/8", true, &settled));
	assert_false(is_settled("off remote=10.0.0.0/8\nauto", true, &settled));
	assert_true(is_settled("on listen", false, &settled));
	assert_int_equal(settled, AW_XS_OFF);
}

static void printed(const char *text, const char *again)
{
	struct aw_xs_rules *rules = parsed(text);
	char got[AW_XS_RULE_TEXT_MAX];

	assert_int_equal(aw_xs_rules_count(rules), 1);
	aw_xs_rules_print(rules, 0, got);
	assert_string_equal(got, again);
	aw_xs_rules_destroy(rules);
}

static void aw_xs_rules_print__says_all(void **state)
{
	(void)state;
	printed("  off # none", "off");
	printed("on", "on");
	printed("auto listen port=1-2 remote=::1/128 local=10.0.0.0/8 program=a*",
		"auto program=a* local=10.0.0.0/8 remote=::1 port=1-2 listen");
	printed("auto connect port=7-7", "auto port=7 connect");
	printed("on local=::ffff:10.0.0.0/104 remote=0.0.0.0/0",
		"on local=10.0.0.0/8 remote=0.0.0.0/0");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(aw_xs_rules_parse__blank_lines_are_no_rules),
		cmocka_unit_test(aw_xs_rules_parse__mode),
		cmocka_unit_test(aw_xs_rules_parse__client),
		cmocka_unit_test(aw_xs_rules_parse__unknown_word),
		cmocka_unit_test(aw_xs_rules_parse__given_twice),
		cmocka_unit_test(aw_xs_rules_parse__wrong_port),
		cmocka_unit_test(aw_xs_rules_parse__wrong_address),
		cmocka_unit_test(aw_xs_rules_parse__wrong_prefix),
		cmocka_unit_test(aw_xs_rules_parse__wrong_program),
		cmocka_unit_test(aw_xs_rules_parse__bounds),
		cmocka_unit_test(aw_xs_rules_parse__hostile_text),
		cmocka_unit_test(aw_xs_rules_mode__no_rules_are_auto),
		cmocka_unit_test(aw_xs_rules_mode__first_match_wins),
		cmocka_unit_test(aw_xs_rules_may_carry__each_mode),
		cmocka_unit_test(aw_xs_rules_mode__ports),
		cmocka_unit_test(aw_xs_rules_mode__port_is_the_listeners),
		cmocka_unit_test(aw_xs_rules_mode__ipv4),
		cmocka_unit_test(aw_xs_rules_mode__ipv6),
		cmocka_unit_test(aw_xs_rules_mode__mapped),
		cmocka_unit_test(aw_xs_rules_mode__unknown_address_matches_no_rule_that_names_one),
		cmocka_unit_test(aw_xs_rules_mode__other_family),
		cmocka_unit_test(aw_xs_rules_mode__program),
		cmocka_unit_test(aw_xs_rules_mode__side),
		cmocka_unit_test(aw_xs_rules_may__listener_whose_peers_decide),
		cmocka_unit_test(aw_xs_rules_are_settled__no_rule_asks),
		cmocka_unit_test(aw_xs_rules_print__says_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
