// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Decides which rule a socket matches. A match has three outcomes: a listener does not know its
// remote address, so that a rule with one stays open until there is a connection.
#include "xsock/base/rules.h"

#include "xsock/base/rule.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

enum match {
	MATCH_NO,
	MATCH_OPEN, /* depends on what is not known yet */
	MATCH_YES,
};

/* An address and its port; AF_UNSPEC and 0: not known. */
struct address {
	struct aw_prefix ip;
	uint16_t port;
};

static struct address address_of(const struct sockaddr *sa)
{
	static const uint8_t any[16];
	struct address a = { .port = 0 };

	/* another family is in no rule */
	if (!sa || !aw_prefix_of(sa, &a.ip, &a.port))
		return a;
	if (memcmp(a.ip.bytes, any, sizeof(any)) == 0)
		a.ip.family = AF_UNSPEC;
	return a;
}

static enum match match_net(const struct aw_prefix *net, const struct address *a)
{
	if (net->family != AF_UNSPEC && a->ip.family == AF_UNSPEC)
		return MATCH_OPEN;
	return aw_prefix_has(net, &a->ip) ? MATCH_YES : MATCH_NO;
}

static enum match match_port(const struct aw_xs_rule *rule, uint16_t port)
{
	if (rule->ports.first && !port)
		return MATCH_OPEN;
	return aw_ports_have(&rule->ports, port) ? MATCH_YES : MATCH_NO;
}

static enum match match_program(const struct aw_xs_rule *rule, const char *program)
{
	const char *slash = program ? strrchr(program, '/') : NULL;

	if (!rule->program[0])
		return MATCH_YES;
	if (!program)
		return MATCH_OPEN;
	return fnmatch(rule->program, slash ? slash + 1 : program, 0) == 0 ? MATCH_YES : MATCH_NO;
}

static enum match lesser_match(enum match a, enum match b)
{
	return a < b ? a : b;
}

static enum match match_rule(const struct aw_xs_rule *rule, const struct aw_xs_query *q)
{
	struct address local = address_of(q->local), remote = address_of(q->remote);
	bool is_side = rule->side == RULE_EITHER || (rule->side == RULE_LISTEN) == q->listening;
	enum match match = is_side ? MATCH_YES : MATCH_NO;

	match = lesser_match(match, match_port(rule, q->listening ? local.port : remote.port));
	match = lesser_match(match, match_net(&rule->local, &local));
	match = lesser_match(match, match_net(&rule->remote, &remote));
	return match == MATCH_NO ? MATCH_NO : lesser_match(match, match_program(rule, q->program));
}

static enum aw_xs_mode mode_without_match(const struct aw_xs_rules *rules)
{
	return rules->count ? AW_XS_OFF : AW_XS_AUTO;
}

enum aw_xs_mode aw_xs_rules_mode(const struct aw_xs_rules *rules, const struct aw_xs_query *q)
{
	for (size_t i = 0; i < rules->count; i++) {
		if (match_rule(&rules->rule[i], q) == MATCH_YES)
			return rules->rule[i].mode;
	}
	return mode_without_match(rules);
}

bool aw_xs_rules_are_settled(const struct aw_xs_rules *rules, const struct aw_xs_query *q,
			     enum aw_xs_mode *mode)
{
	enum match match = MATCH_NO;
	size_t i;

	for (i = 0; i < rules->count && match == MATCH_NO; i++)
		match = match_rule(&rules->rule[i], q);
	if (match == MATCH_OPEN)
		return false;
	*mode = match == MATCH_YES ? rules->rule[i - 1].mode : mode_without_match(rules);
	return true;
}

bool aw_xs_rules_may_be(const struct aw_xs_rules *rules, const struct aw_xs_query *q,
			enum aw_xs_mode mode)
{
	for (size_t i = 0; i < rules->count; i++) {
		enum match match = match_rule(&rules->rule[i], q);

		if (match != MATCH_NO && rules->rule[i].mode == mode)
			return true;
		if (match == MATCH_YES)
			return false;
	}
	return mode_without_match(rules) == mode;
}

bool aw_xs_rules_may_carry(const struct aw_xs_rules *rules, const struct aw_xs_query *q)
{
	for (enum aw_xs_mode mode = AW_XS_OFF; mode <= AW_XS_MODE_LAST; mode++)
		if (aw_xs_mode_is_carried(mode) && aw_xs_rules_may_be(rules, q, mode))
			return true;
	return false;
}

bool aw_xs_rules_may(const struct aw_xs_rules *rules, const struct aw_xs_query *q)
{
	return aw_xs_rules_may_carry(rules, q) || aw_xs_rules_may_be(rules, q, AW_XS_AUTO);
}

size_t aw_xs_rules_count(const struct aw_xs_rules *rules)
{
	return rules->count;
}

void aw_xs_rules_destroy(struct aw_xs_rules *rules)
{
	free(rules);
}
