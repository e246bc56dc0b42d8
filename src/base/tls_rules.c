// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The reader is strict: a word without effect, or with another effect than it seems to have, is an error, since a user relies
// on the rules.
#include "base/tls_rules.h"

#include "base/array.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define QUOTE_MAX 48 /* bytes of the user's text that an error repeats */
#define GRAMMAR                                                     \
	"off|offer|require [local=ADDR[/LEN]] [remote=ADDR[/LEN]] " \
	"[port=N|N-M] [name=NAME[,NAME...]] [listen|connect]"

/* Fixed once read, but for refs, whose atomic orders the free behind every use: acquire and release are partners. */
struct aw_tls_rules {
	_Atomic uint32_t refs;
	size_t count;
	struct aw_tls_rule rule[];
};

static const char *const modes[] = { "off", "require", "offer" };
static const char *const keys[] = { "local", "remote", "port", "name", "listen", "connect" };
enum rule_key {
	KEY_LOCAL,
	KEY_REMOTE,
	KEY_PORT,
	KEY_NAME,
	KEY_LISTEN,
	KEY_CONNECT,
};

/* Writes the error about item. Returns false. */
__attribute__((format(printf, 3, 4))) static bool write_error(char why[AW_TLS_RULES_WHY_MAX],
							      struct aw_slice item,
							      const char *format, ...)
{
	size_t at = aw_slice_quote(item, QUOTE_MAX, why);
	va_list args;

	va_start(args, format);
	vsnprintf(why + at, AW_TLS_RULES_WHY_MAX - at, format, args);
	va_end(args);
	return false;
}

static bool is_name_byte(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '-' || c == '_';
}

/* Labels between dots, of which a number alone is no last one, so that no IPv4 address is a name. */
static bool is_name(struct aw_slice name)
{
	bool numeric = true;

	if (name.len > 2 && name.at[0] == '*' && name.at[1] == '.') {
		name.at += 2;
		name.len -= 2;
	}
	if (!name.len || name.len > AW_TLS_NAME_MAX)
		return false;
	while (name.len) {
		size_t before = name.len;
		struct aw_slice label = aw_slice_cut(&name, '.');

		if (!label.len || (!name.len && label.len < before))
			return false;
		numeric = true;
		for (size_t i = 0; i < label.len; i++) {
			if (!is_name_byte(label.at[i]))
				return false;
			numeric = numeric && label.at[i] >= '0' && label.at[i] <= '9';
		}
	}
	return !numeric;
}

static bool read_names(struct aw_slice value, struct aw_tls_rule *rule,
		       char why[AW_TLS_RULES_WHY_MAX])
{
	size_t at = 0;
	bool more = true;

	while (more) {
		struct aw_slice whole = value;
		struct aw_slice name = aw_slice_cut(&value, ',');

		more = name.len < whole.len;
		if (!is_name(name))
			return write_error(
				why, name,
				"name must be a DNS name of the peer's certificate, such "
				"as node1.example.org, or *.example.org for all of one "
				"label more; several have commas between them");
		if (rule->name_count == AW_TLS_NAMES_MAX)
			return write_error(why, name, "a rule has at most %d names",
					   AW_TLS_NAMES_MAX);
		/* A line is no longer than the array. */
		memcpy(rule->names + at, name.at, name.len);
		at += name.len;
		rule->names[at++] = '\0';
		rule->name_count++;
	}
	return true;
}

static bool read_value(enum rule_key key, struct aw_slice value, struct aw_tls_rule *rule,
		       char why[AW_TLS_RULES_WHY_MAX])
{
	char reason[AW_PREFIX_WHY_MAX];
	bool right = true;

	switch (key) {
	case KEY_LOCAL:
		right = aw_prefix_read(value, keys[key], &rule->local, reason);
		break;
	case KEY_REMOTE:
		right = aw_prefix_read(value, keys[key], &rule->remote, reason);
		break;
	case KEY_PORT:
		right = aw_ports_read(value, &rule->ports, reason);
		break;
	case KEY_NAME:
		return read_names(value, rule, why);
	case KEY_LISTEN:
		rule->connects = false;
		break;
	case KEY_CONNECT:
		rule->listens = false;
		break;
	}
	return right || write_error(why, value, "%s", reason);
}

static bool read_word(struct aw_slice word, struct aw_tls_rule *rule, unsigned *given,
		      char why[AW_TLS_RULES_WHY_MAX])
{
	struct aw_slice value = word;
	struct aw_slice name = aw_slice_cut(&value, '=');
	bool has_value = name.len < word.len;
	size_t key;

	if (!aw_slice_find(name, keys, ARRAY_LEN(keys), &key) || has_value != (key < KEY_LISTEN))
		return write_error(
			why, word,
			"no such word; behind the mode come local=ADDR[/LEN], remote=ADDR[/LEN], "
			"port=N|N-M, name=NAME[,NAME...], listen or connect");
	/* listen and connect together are two words for one. */
	unsigned bit = 1u << (key == KEY_CONNECT ? KEY_LISTEN : key);

	if (*given & bit)
		return write_error(why, word, "%s is given twice",
				   key < KEY_LISTEN ? keys[key] : "listen or connect");
	*given |= bit;
	return read_value((enum rule_key)key, value, rule, why);
}

static bool read_rule(struct aw_slice line, struct aw_tls_rule *rule,
		      char why[AW_TLS_RULES_WHY_MAX])
{
	struct aw_slice word = aw_slice_word(&line);
	struct aw_slice first = word;
	unsigned given = 0;
	size_t mode;

	if (!aw_slice_find(word, modes, ARRAY_LEN(modes), &mode))
		return write_error(why, word, "a rule begins with off, offer or require: " GRAMMAR);
	rule->mode = (enum aw_tls_mode)mode;
	rule->listens = rule->connects = true;
	for (word = aw_slice_word(&line); word.len; word = aw_slice_word(&line)) {
		if (!read_word(word, rule, &given, why))
			return false;
	}
	if (rule->mode == AW_TLS_OFF && rule->name_count)
		return write_error(why, first,
				   "name has no effect without TLS: leave it out, or have the rule "
				   "begin with require");
	return true;
}

static bool read_line(struct aw_slice line, struct aw_tls_rules *rules, uint32_t number,
		      char why[AW_TLS_RULES_WHY_MAX])
{
	struct aw_slice rest = line;
	struct aw_slice body = aw_slice_cut(&rest, '#');
	struct aw_slice left = body;
	struct aw_slice word = aw_slice_word(&left);

	if (line.len > AW_TLS_RULES_LINE_MAX)
		return write_error(why, line, "the line is longer than %d bytes",
				   AW_TLS_RULES_LINE_MAX);
	if (!word.len)
		return true;
	if (rules->count == AW_TLS_RULES_MAX)
		return write_error(why, word, "more than %d rules", AW_TLS_RULES_MAX);
	if (!read_rule(body, &rules->rule[rules->count], why))
		return false;
	rules->rule[rules->count++].line = number;
	return true;
}

int aw_tls_rules_parse(const char *text, struct aw_tls_rules **rules,
		       char why[AW_TLS_RULES_WHY_MAX])
{
	struct aw_slice all = aw_slice_of(text);
	struct aw_tls_rules *found =
		calloc(1, sizeof(*found) + AW_TLS_RULES_MAX * sizeof(found->rule[0]));
	struct aw_tls_rules *fitted;
	bool right = true;
	int number = 0;

	if (!found) {
		snprintf(why, AW_TLS_RULES_WHY_MAX, "out of memory");
		return -1;
	}
	while (all.len && right) {
		number++;
		right = read_line(aw_slice_cut(&all, '\n'), found, (uint32_t)number, why);
	}
	if (!right) {
		free(found);
		return number;
	}
	fitted = realloc(found, sizeof(*found) + found->count * sizeof(found->rule[0]));
	*rules = fitted ? fitted : found;
	atomic_init(&(*rules)->refs, 1);
	return 0;
}

/* Returns 0 or an errno; EFBIG: there is more than fits. */
static int read_file(const char *file, char text[AW_TLS_RULES_TEXT_MAX + 1])
{
	FILE *from = fopen(file, "re");
	size_t len;
	int err = 0;

	if (!from)
		return errno;
	errno = 0;
	len = fread(text, 1, AW_TLS_RULES_TEXT_MAX + 1, from);
	if (ferror(from))
		err = errno ? errno : EIO;
	else if (len > AW_TLS_RULES_TEXT_MAX)
		err = EFBIG;
	else if (memchr(text, '\0', len))
		err = EILSEQ;
	else
		text[len] = '\0';
	fclose(from);
	return err;
}

bool aw_tls_rules_read(const char *file, struct aw_tls_rules **rules,
		       char why[AW_TLS_RULES_WHY_MAX])
{
	char *text = malloc(AW_TLS_RULES_TEXT_MAX + 1);
	int err = text ? read_file(file, text) : ENOMEM;
	char reason[AW_TLS_RULES_WHY_MAX];
	int line = 0;

	if (!err)
		line = aw_tls_rules_parse(text, rules, reason);
	free(text);
	if (err == EILSEQ)
		snprintf(why, AW_TLS_RULES_WHY_MAX, "%s: has a NUL byte: it must be a text", file);
	else if (err)
		snprintf(why, AW_TLS_RULES_WHY_MAX,
			 "%s: %s: it must be a readable text of at most %d bytes", file,
			 strerror(err), AW_TLS_RULES_TEXT_MAX);
	else if (line > 0)
		snprintf(why, AW_TLS_RULES_WHY_MAX, "%.200s: line %d: %.280s", file, line, reason);
	else if (line < 0)
		snprintf(why, AW_TLS_RULES_WHY_MAX, "%.200s: %.280s", file, reason);
	return !err && line == 0;
}

struct aw_tls_rules *aw_tls_rules_get(struct aw_tls_rules *rules)
{
	atomic_fetch_add_explicit(&rules->refs, 1, memory_order_relaxed);
	return rules;
}

void aw_tls_rules_put(struct aw_tls_rules *rules)
{
	if (rules && atomic_fetch_sub_explicit(&rules->refs, 1, memory_order_acq_rel) == 1)
		free(rules);
}

size_t aw_tls_rules_count(const struct aw_tls_rules *rules)
{
	return rules->count;
}

const struct aw_tls_rule *aw_tls_rules_at(const struct aw_tls_rules *rules, size_t i)
{
	return &rules->rule[i];
}

const struct aw_tls_rule *aw_tls_rules_find(const struct aw_tls_rules *rules,
					    const struct aw_tls_query *query)
{
	struct aw_prefix local = { 0 }, remote = { 0 };
	uint16_t local_port = 0, remote_port = 0;

	if (query->local && !aw_prefix_of(query->local, &local, &local_port))
		local.family = AF_UNSPEC;
	if (!aw_prefix_of(query->remote, &remote, &remote_port))
		remote.family = AF_UNSPEC;
	for (size_t i = 0; i < rules->count; i++) {
		const struct aw_tls_rule *rule = &rules->rule[i];

		if ((query->accepts ? rule->listens : rule->connects) &&
		    aw_prefix_has(&rule->local, &local) && aw_prefix_has(&rule->remote, &remote) &&
		    aw_ports_have(&rule->ports, query->accepts ? local_port : remote_port))
			return rule;
	}
	return NULL;
}

static bool holds(const struct aw_prefix *wide, const struct aw_prefix *narrow)
{
	return wide->family == AF_UNSPEC ||
	       (wide->bits <= narrow->bits && aw_prefix_has(wide, narrow));
}

static bool holds_ports(const struct aw_ports *wide, const struct aw_ports *narrow)
{
	return !wide->first || (narrow->first && aw_ports_have(wide, narrow->first) &&
				aw_ports_have(wide, narrow->last));
}

bool aw_tls_rules_is_hidden(const struct aw_tls_rules *rules, size_t i)
{
	const struct aw_tls_rule *late = &rules->rule[i];

	for (size_t j = 0; j < i; j++) {
		const struct aw_tls_rule *early = &rules->rule[j];

		if (early->listens >= late->listens && early->connects >= late->connects &&
		    holds(&early->local, &late->local) && holds(&early->remote, &late->remote) &&
		    holds_ports(&early->ports, &late->ports))
			return true;
	}
	return false;
}
