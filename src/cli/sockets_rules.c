// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Joins the rules of a command line, from its files and its words, to one text for the library.
#include "cli/sockets.h"

#include "cli/tls_options.h"

#include "xsock/base/rules.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool out_of_memory(void)
{
	fprintf(stderr, SOCKETS_WHO ": out of memory\n");
	return false;
}

// Reads a text, or prints its mistake as "source:line: why", which editors can jump to.
static struct aw_xs_rules *read_text(const char *source, const char *text)
{
	char why[AW_XS_RULES_WHY_MAX];
	struct aw_xs_rules *rules;
	int line = aw_xs_rules_parse(text, &rules, why, sizeof(why));

	if (!line)
		return rules;
	if (line < 0)
		(void)out_of_memory();
	else
		fprintf(stderr, "%s:%d: %s\n", source, line, why);
	return NULL;
}

bool aw_sockets_rules_add(struct sockets_rules *all, const char *source, const char *text)
{
	struct aw_xs_rules *rules = read_text(source, text);
	char *longer;
	size_t count;
	bool fits;

	if (!rules)
		return false;
	count = aw_xs_rules_count(rules);
	longer = realloc(all->text, all->len + count * AW_XS_RULE_TEXT_MAX + 1);
	if (!longer) {
		aw_xs_rules_destroy(rules);
		return out_of_memory();
	}
	all->text = longer;
	longer[all->len] = '\0';
	for (size_t i = 0; i < count; i++) {
		aw_xs_rules_print(rules, i, longer + all->len);
		all->len += strlen(longer + all->len);
		memcpy(longer + all->len, "\n", 2);
		all->len++;
	}
	aw_xs_rules_destroy(rules);

	/* Sources that are right alone may be too much together. */
	rules = read_text("all rules", all->text);
	fits = rules != NULL;
	aw_xs_rules_destroy(rules);
	return fits;
}

static bool cannot_read(const char *path, int error)
{
	fprintf(stderr, SOCKETS_WHO ": cannot read the rules of %s: %s\n", path, strerror(error));
	return false;
}

bool aw_sockets_rules_read(struct sockets_rules *all, const char *path)
{
	static char text[AW_XS_RULES_TEXT_MAX + 1];
	FILE *file = fopen(path, "re");
	size_t len;
	int error;

	if (!file)
		return cannot_read(path, errno);
	errno = 0;
	// Of a text that is too long so much is read that it still is.
	len = fread(text, 1, AW_XS_RULES_TEXT_MAX, file);
	error = ferror(file) ? errno : 0;
	fclose(file);
	if (error)
		return cannot_read(path, error);
	text[len] = '\0';
	if (strlen(text) == len)
		return aw_sockets_rules_add(all, path, text);
	fprintf(stderr, SOCKETS_WHO ": %s is no text: it has a NUL byte in it\n", path);
	return false;
}

bool aw_sockets_rules_are_protected(const struct sockets_rules *all)
{
	for (const char *rule = all->text; rule && *rule; rule += strcspn(rule, "\n") + 1)
		if (!strncmp(rule, "auto", strlen("auto"))) {
			fprintf(stderr, SOCKETS_WHO
				": a rule says 'auto', and TLS is required: neither a pair nor TCP has it: write "
				"'on', or 'off' where a connection may do without\n");
			return false;
		}
	return true;
}

bool aw_sockets_rules_need_tls(const struct sockets_rules *all)
{
	for (const char *rule = all->text; rule && *rule; rule += strcspn(rule, "\n") + 1)
		if (!strncmp(rule, AW_XS_TLS_PLAIN_WORD, strlen(AW_XS_TLS_PLAIN_WORD))) {
			fprintf(stderr, SOCKETS_WHO
				": a rule says 'tls-plain': it needs --tls require, with --tls-cert, --tls-key "
				"and --tls-ca\n");
			return true;
		}
	return false;
}

bool aw_sockets_rules_may_iwarp(const struct sockets_rules *all, const char *program)
{
	struct aw_xs_query q = { .program = program };
	struct aw_xs_rules *rules = all->text ? read_text(SOCKETS_WHO, all->text) : NULL;
	bool may = !all->text && aw_tls_options_required();

	for (int listening = 0; rules && listening < 2; listening++) {
		q.listening = listening;
		may |= aw_xs_rules_may_carry(rules, &q);
	}
	aw_xs_rules_destroy(rules);
	return may;
}
