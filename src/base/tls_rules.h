// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The rules by which connections are protected by TLS, and the peers that are let in (docs/tls.md). One rule a line, the first
// that matches decides, '#' begins a comment:
//
//     off|offer|require [local=ADDR[/LEN]] [remote=ADDR[/LEN]] [port=N|N-M] [name=NAME[,NAME...]] [listen|connect]
#ifndef BASE_TLS_RULES_H
#define BASE_TLS_RULES_H

#include "base/prefix.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#define AW_TLS_RULES_MAX 256 /* rules */
#define AW_TLS_RULES_LINE_MAX 1023 /* bytes of a line, without its newline */
#define AW_TLS_RULES_TEXT_MAX 65536 /* bytes of the whole file */
#define AW_TLS_RULES_WHY_MAX 512 /* bytes that hold every error, with its NUL */
#define AW_TLS_NAME_MAX 253 /* bytes of a DNS name */
#define AW_TLS_NAMES_MAX 16 /* of a rule */

/* The values of ANYWARP_TLS, in the order of its words (base/setting.c). */
enum aw_tls_mode {
	AW_TLS_OFF,
	AW_TLS_REQUIRE, /* no connection without TLS */
	AW_TLS_OFFER, /* TLS with peers that have it, else none */
};

struct aw_tls_rule {
	enum aw_tls_mode mode;
	bool listens, connects; /* the ends that it holds for */
	struct aw_prefix local, remote;
	struct aw_ports ports;
	uint32_t line; /* from 1 */
	uint32_t name_count; /* 0: as ANYWARP_TLS_NAME has it */
	char names[AW_TLS_RULES_LINE_MAX +
		   1]; /* each with its NUL, in a row; "*." stands for one label */
};

struct aw_tls_rules;

/* False: why begins with the file, and names line, cause and remedy. The caller has one reference. */
__attribute__((warn_unused_result)) bool aw_tls_rules_read(const char *file,
							   struct aw_tls_rules **rules,
							   char why[AW_TLS_RULES_WHY_MAX]);

/* The same of a text; 0, the faulty line from 1, or -1 without memory. why begins with the word. */
__attribute__((warn_unused_result)) int aw_tls_rules_parse(const char *text,
							   struct aw_tls_rules **rules,
							   char why[AW_TLS_RULES_WHY_MAX]);

struct aw_tls_rules *aw_tls_rules_get(struct aw_tls_rules *rules);
void aw_tls_rules_put(struct aw_tls_rules *rules); /* takes NULL */

size_t aw_tls_rules_count(const struct aw_tls_rules *rules);
const struct aw_tls_rule *aw_tls_rules_at(const struct aw_tls_rules *rules, size_t i);

/*
 * A connection. The port that rules compare is the listener's: local's of an end that has accepted, remote's of one that
 * connects. local may be NULL, which is in no prefix.
 */
struct aw_tls_query {
	bool accepts;
	const struct sockaddr *local, *remote;
};

/* The first rule that matches; NULL: none. Valid while rules is held. */
const struct aw_tls_rule *aw_tls_rules_find(const struct aw_tls_rules *rules,
					    const struct aw_tls_query *query);

/* True when a rule may come before it for every connection that it matches, so that it never decides. */
bool aw_tls_rules_is_hidden(const struct aw_tls_rules *rules, size_t i);

#endif
