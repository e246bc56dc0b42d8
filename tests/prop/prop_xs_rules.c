// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// ANYWARP_SOCKETS_RULES: any text is either refused with a line that it has and a reason that ends
// in its buffer, or read; what was read, printed, is read to the same again, and answers the same.
#include "prop/prop.h"

#include "xsock/base/rules.h"

#include <ctype.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#define TEXT_MAX 600

static const char *const pieces[] = {
	"on",	    "auto",	"off",	   " program=", " local=", " remote=", " port=",
	" listen",  " connect", "\n",	   " ",		"#",	   "/",	       "-",
	"0",	    "8",	"128",	   "65535",	"*",	   "[a-",      "?",
	"10.0.0.0", "::",	"::ffff:", "127.0.0.1", "\x01",	   "\xff",     "\t",
};

static struct aw_xs_rules *parse(const char *text)
{
	char why[AW_XS_RULES_WHY_MAX];
	struct aw_xs_rules *rules = NULL;
	int line, lines = 1;
	const char *end;

	memset(why, 0xff, sizeof(why));
	line = aw_xs_rules_parse(text, &rules, why, sizeof(why));
	PROP((line == 0) == (rules != NULL));
	if (!line)
		return rules;
	for (const char *p = text; *p; p++)
		lines += *p == '\n';
	PROP(line > 0 && line <= lines);
	end = memchr(why, 0, sizeof(why));
	PROP(end && end > why);
	for (const char *p = why; p < end; p++)
		PROP(isprint((unsigned char)*p));
	return NULL;
}

static const struct sockaddr *draw_address(struct bytes *b, struct sockaddr_in6 *sa)
{
	struct sockaddr_in in = { .sin_family = AF_INET };
	uint8_t kind = bytes_u8(b);

	memset(sa, 0, sizeof(*sa));
	sa->sin6_family = AF_INET6;
	sa->sin6_port = in.sin_port = htons(bytes_u16(b));
	bytes_take(b, (uint8_t *)&in.sin_addr, 4);
	memcpy(sa->sin6_addr.s6_addr + 12, &in.sin_addr, 4);
	if (kind & 1)
		memset(sa->sin6_addr.s6_addr + 10, 0xff, 2);
	if (kind & 2)
		memcpy(sa, &in, sizeof(in));
	return kind & 4 ? NULL : (const struct sockaddr *)sa;
}

static void answers_alike(struct bytes *b, const struct aw_xs_rules *one,
			  const struct aw_xs_rules *other)
{
	static const char *const programs[] = { NULL, "a", "/b/ab", "on-" };
	struct sockaddr_in6 local, remote;
	struct aw_xs_query q = {
		.program = programs[bytes_u8(b) % 4],
		.listening = bytes_bool(b),
		.local = draw_address(b, &local),
		.remote = draw_address(b, &remote),
	};
	enum aw_xs_mode mode = aw_xs_rules_mode(one, &q);

	PROP(mode == aw_xs_rules_mode(other, &q));
	PROP(aw_xs_rules_may(one, &q) == aw_xs_rules_may(other, &q));
	PROP(mode == AW_XS_OFF || aw_xs_rules_may(one, &q));
	PROP(mode != AW_XS_ON || aw_xs_rules_may_be(one, &q, AW_XS_ON));
	PROP(aw_xs_rules_may(one, &q) || !aw_xs_rules_may_be(one, &q, AW_XS_ON));
}

static void reads_again(struct bytes *b, const struct aw_xs_rules *rules)
{
	size_t count = aw_xs_rules_count(rules), at = 0;
	char *text = calloc(count + 1, AW_XS_RULE_TEXT_MAX);
	struct aw_xs_rules *again;

	PROP(text && count <= AW_XS_RULES_MAX);
	for (size_t i = 0; i < count; i++) {
		aw_xs_rules_print(rules, i, text + at);
		PROP(memchr(text + at, 0, AW_XS_RULE_TEXT_MAX));
		at += strlen(text + at);
		text[at++] = '\n';
	}
	again = parse(text);
	PROP(again && aw_xs_rules_count(again) == count);
	answers_alike(b, rules, again);
	aw_xs_rules_destroy(again);
	free(text);
}

static void reads_or_refuses(struct bytes *b, const char *text)
{
	struct aw_xs_rules *rules = parse(text);

	if (rules)
		reads_again(b, rules);
	aw_xs_rules_destroy(rules);
}

static void any_text(struct bytes *b)
{
	char text[TEXT_MAX + 1] = "";

	bytes_take(b, (uint8_t *)text, bytes_range(b, 0, TEXT_MAX));
	reads_or_refuses(b, text);
}

/* The words of the grammar in any order. */
static void near_rules(struct bytes *b)
{
	char text[TEXT_MAX + 1] = "";
	size_t count = bytes_range(b, 0, 60), at = 0;

	for (size_t i = 0; i < count; i++) {
		const char *piece = pieces[bytes_u8(b) % (sizeof(pieces) / sizeof(pieces[0]))];

		if (at + strlen(piece) <= TEXT_MAX)
			at += (size_t)sprintf(text + at, "%s", piece);
	}
	reads_or_refuses(b, text);
}

static size_t draw_rule(struct bytes *b, char *text)
{
	static const char *const modes[] = { "on", "auto", "off", "rsockets", "tls-plain" };
	static const char *const sides[] = { "", " listen", " connect" };
	static const char *const nets[] = { "", " local=10.0.0.0/8", " local=::/1",
					    " remote=127.0.0.1", " remote=::ffff:0.0.0.0/96" };
	static const char *const programs[] = { "", " program=*", " program=[", " program=a*b" };
	unsigned port = bytes_u16(b);
	int at = sprintf(text, "%s%s%s%s", modes[bytes_u8(b) % 5], sides[bytes_u8(b) % 3],
			 nets[bytes_u8(b) % 5], programs[bytes_u8(b) % 4]);

	if (port)
		at += sprintf(text + at, " port=%u-%u", port,
			      (unsigned)bytes_range(b, port, 65535));
	text[at++] = '\n';
	text[at] = '\0';
	return (size_t)at;
}

/* Rules that are right are taken. */
static void right_rules(struct bytes *b)
{
	size_t count = bytes_range(b, 0, 5), at = 0;
	struct aw_xs_rules *rules;
	char text[TEXT_MAX + 1] = "";

	for (size_t i = 0; i < count; i++)
		at += draw_rule(b, text + at);
	rules = parse(text);
	PROP(rules && aw_xs_rules_count(rules) == count);
	reads_again(b, rules);
	aw_xs_rules_destroy(rules);
}

void prop_run(struct bytes *b)
{
	static void (*const props[])(struct bytes *) = { any_text, near_rules, right_rules };

	props[bytes_u8(b) % (sizeof(props) / sizeof(props[0]))](b);
}
