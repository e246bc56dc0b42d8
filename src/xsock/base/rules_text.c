// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Reads and prints the rules' text. The reader is strict: a word without effect, or with another
// effect than it seems to have, is an error, since a user who keeps a port off relies on the rules.
#include "xsock/base/rules.h"

#include "base/array.h"
#include "base/slice.h"
#include "xsock/base/rule.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define QUOTE_MAX 48 /* bytes of the user's text that an error repeats */
#define GRAMMAR                                                             \
	"on|auto|off|rsockets|tls-plain [program=GLOB] [local=ADDR[/LEN]] " \
	"[remote=ADDR[/LEN]] [port=N|N-M] [client=any] [listen|connect]"

/* The buffer that an error is written to. */
struct error_buf {
	char *at;
	size_t len;
};

/* Reads the value into the rule. False: the error is written. */
typedef bool (*key_reader)(struct aw_slice value, struct aw_xs_rule *rule, struct error_buf *error);

static bool read_program(struct aw_slice value, struct aw_xs_rule *rule, struct error_buf *error);
static bool read_local(struct aw_slice value, struct aw_xs_rule *rule, struct error_buf *error);
static bool read_remote(struct aw_slice value, struct aw_xs_rule *rule, struct error_buf *error);
static bool read_port(struct aw_slice value, struct aw_xs_rule *rule, struct error_buf *error);
static bool read_client(struct aw_slice value, struct aw_xs_rule *rule, struct error_buf *error);

static const struct {
	const char *name;
	key_reader read;
} keys[] = {
	{ "program", read_program }, { "local", read_local },	{ "remote", read_remote },
	{ "port", read_port },	     { "client", read_client },
};
enum {
	KEY_SIDE = ARRAY_LEN(keys), /* the bit of listen or connect in `given` */
};

static const char *const modes[] = { "off", "on", "auto", "rsockets", AW_XS_TLS_PLAIN_WORD };
static const char *const sides[] = { "", "listen", "connect" };

/* Writes the error about item. Returns false. */
__attribute__((format(printf, 3, 4))) static bool write_error(struct error_buf *error,
							      struct aw_slice item,
							      const char *format, ...)
{
	char line[AW_XS_RULES_WHY_MAX];
	size_t at = aw_slice_quote(item, QUOTE_MAX, line);
	va_list args;

	va_start(args, format);
	vsnprintf(line + at, sizeof(line) - at, format, args);
	va_end(args);
	if (error->len)
		snprintf(error->at, error->len, "%s", line);
	return false;
}

static bool read_program(struct aw_slice value, struct aw_xs_rule *rule, struct error_buf *error)
{
	if (!value.len || memchr(value.at, '/', value.len))
		return write_error(error, value,
				   "program must be a file name without directories, or a "
				   "pattern of one, such as redis-* or python3.?");
	if (value.len > RULE_GLOB_MAX)
		return write_error(error, value, "program must have at most %d bytes",
				   RULE_GLOB_MAX);
	memcpy(rule->program, value.at, value.len);
	rule->program[value.len] = '\0';
	return true;
}

static bool read_net(const char *key, struct aw_slice value, struct aw_prefix *net,
		     struct error_buf *error)
{
	char why[AW_PREFIX_WHY_MAX];

	return aw_prefix_read(value, key, net, why) || write_error(error, value, "%s", why);
}

static bool read_local(struct aw_slice value, struct aw_xs_rule *rule, struct error_buf *error)
{
	return read_net("local", value, &rule->local, error);
}

static bool read_remote(struct aw_slice value, struct aw_xs_rule *rule, struct error_buf *error)
{
	return read_net("remote", value, &rule->remote, error);
}

static bool read_port(struct aw_slice value, struct aw_xs_rule *rule, struct error_buf *error)
{
	char why[AW_PREFIX_WHY_MAX];

	return aw_ports_read(value, &rule->ports, why) || write_error(error, value, "%s", why);
}

static bool read_client(struct aw_slice value, struct aw_xs_rule *rule, struct error_buf *error)
{
	if (!aw_slice_equals(value, "any"))
		return write_error(error, value,
				   "client must be any: clients without a certificate are let in");
	if (rule->mode != AW_XS_TLS_PLAIN)
		return write_error(error, value,
				   "client=any is for " AW_XS_TLS_PLAIN_WORD
				   ": in every other mode both ends have to show a certificate");
	rule->mode = AW_XS_TLS_ANY;
	return true;
}

static bool read_word(struct aw_slice word, struct aw_xs_rule *rule, unsigned *given,
		      struct error_buf *error)
{
	struct aw_slice value = word;
	struct aw_slice name = aw_slice_cut(&value, '=');
	size_t key = 0, side;
	bool is_side = aw_slice_find(word, sides, ARRAY_LEN(sides), &side);

	while (key < KEY_SIDE && (name.len == word.len || !aw_slice_equals(name, keys[key].name)))
		key++;
	if (key == KEY_SIDE && !is_side)
		return write_error(
			error, word,
			"no such word; behind the mode come program=GLOB, "
			"local=ADDR[/LEN], remote=ADDR[/LEN], port=N|N-M, client=any, listen or connect");
	if (*given & 1U << key)
		return write_error(error, word, "%s is given twice",
				   key == KEY_SIDE ? "listen or connect" : keys[key].name);
	*given |= 1U << key;
	if (!is_side)
		return keys[key].read(value, rule, error);
	rule->side = (enum rule_side)side;
	return true;
}

static bool read_rule(struct aw_slice line, struct aw_xs_rule *rule, struct error_buf *error)
{
	struct aw_slice word = aw_slice_word(&line);
	unsigned given = 0;
	size_t mode;

	*rule = (struct aw_xs_rule){ .mode = AW_XS_OFF };
	if (!aw_slice_find(word, modes, ARRAY_LEN(modes), &mode))
		return write_error(
			error, word,
			"a rule begins with on, auto, off, rsockets or tls-plain: " GRAMMAR);
	rule->mode = (enum aw_xs_mode)mode;
	for (word = aw_slice_word(&line); word.len; word = aw_slice_word(&line)) {
		if (!read_word(word, rule, &given, error))
			return false;
	}
	if (rule->mode == AW_XS_TLS_ANY && rule->side != RULE_LISTEN)
		return write_error(
			error, aw_slice_of("client=any"),
			"it says who may connect, so the rule needs the word listen, too");
	return true;
}

static bool read_line(struct aw_slice line, struct aw_xs_rules *rules, struct error_buf *error)
{
	struct aw_slice rest = line;
	struct aw_slice body = aw_slice_cut(&rest, '#');
	struct aw_slice left = body;
	struct aw_slice word = aw_slice_word(&left);

	if (line.len > AW_XS_RULES_LINE_MAX)
		return write_error(error, line, "the line is longer than %d bytes",
				   AW_XS_RULES_LINE_MAX);
	if (!word.len)
		return true;
	if (rules->count == AW_XS_RULES_MAX)
		return write_error(error, word, "more than %d rules", AW_XS_RULES_MAX);
	if (!read_rule(body, &rules->rule[rules->count], error))
		return false;
	rules->count++;
	return true;
}

int aw_xs_rules_parse(const char *text, struct aw_xs_rules **rules, char *error, size_t len)
{
	struct aw_slice all = aw_slice_of(text);
	struct error_buf buf = { error, len };
	struct aw_xs_rules *found, *fitted;
	int number = 0;
	bool right = true;

	if (all.len >= AW_XS_RULES_TEXT_MAX) {
		(void)write_error(&buf, (struct aw_slice){ all.at, QUOTE_MAX + 1 },
				  "the rules have more than %d bytes", AW_XS_RULES_TEXT_MAX - 1);
		return 1;
	}
	found = calloc(1, sizeof(*found) + AW_XS_RULES_MAX * sizeof(found->rule[0]));
	if (!found) {
		if (len)
			snprintf(error, len, "out of memory");
		return -1;
	}
	for (; all.len && right; number++)
		right = read_line(aw_slice_cut(&all, '\n'), found, &buf);
	if (!right) {
		free(found);
		return number;
	}
	fitted = realloc(found, sizeof(*found) + found->count * sizeof(found->rule[0]));
	*rules = fitted ? fitted : found;
	return 0;
}

void aw_xs_rules_print(const struct aw_xs_rules *rules, size_t i, char *text)
{
	const struct aw_xs_rule *rule = &rules->rule[i];
	char net[AW_PREFIX_TEXT_MAX];
	bool admits_any = rule->mode == AW_XS_TLS_ANY;
	int at = sprintf(text, "%s", modes[admits_any ? AW_XS_TLS_PLAIN : rule->mode]);

	if (rule->program[0])
		at += sprintf(text + at, " program=%s", rule->program);
	if (rule->local.family != AF_UNSPEC) {
		aw_prefix_print(&rule->local, net);
		at += sprintf(text + at, " local=%s", net);
	}
	if (rule->remote.family != AF_UNSPEC) {
		aw_prefix_print(&rule->remote, net);
		at += sprintf(text + at, " remote=%s", net);
	}
	if (rule->ports.first)
		at += sprintf(text + at, " port=%u", rule->ports.first);
	if (rule->ports.first < rule->ports.last)
		at += sprintf(text + at, "-%u", rule->ports.last);
	if (admits_any)
		at += sprintf(text + at, " client=any");
	if (rule->side != RULE_EITHER)
		sprintf(text + at, " %s", sides[rule->side]);
}
