// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The grammar of ANYWARP_SOCKETS_RULES: which sockets of which programs are in iWARP mode. One rule
// a line, the first that matches decides, '#' begins a comment:
//
//     on|auto|off [program=GLOB] [local=ADDR[/LEN]] [remote=ADDR[/LEN]] [port=N|N-M] [listen|connect]
//
// Pure: who reads the environment or a file is elsewhere.
#ifndef XSOCK_BASE_RULES_H
#define XSOCK_BASE_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

#define AW_XS_RULES_ENV "ANYWARP_SOCKETS_RULES"
#define AW_XS_RULES_MAX 256 /* rules */
#define AW_XS_RULES_LINE_MAX 511 /* bytes of a line, without its newline */
#define AW_XS_RULES_TEXT_MAX 65536 /* bytes of the whole text, with its NUL */
#define AW_XS_RULES_WHY_MAX 256 /* bytes that hold every error, with its NUL */
#define AW_XS_RULE_TEXT_MAX 512 /* bytes of a printed rule, with its NUL */

/* The values of IWARP_MODE. */
enum aw_xs_mode {
	AW_XS_OFF = 0,
	AW_XS_ON = 1,
	AW_XS_AUTO = 2,
};

struct aw_xs_rules;

/*
 * Reads text (NULL: empty). 0 with *rules, which the caller destroys; or the number of the line,
 * from 1, that has a mistake, and error, of len bytes, names the word, what is wrong with it and
 * what is allowed; or -1 without memory. error begins without the line's number.
 */
__attribute__((warn_unused_result)) int aw_xs_rules_parse(const char *text,
							  struct aw_xs_rules **rules, char *error,
							  size_t len);
void aw_xs_rules_destroy(struct aw_xs_rules *rules);

/*
 * A socket, or a connection. An address that is not known yet is NULL; a wildcard address, like
 * that of a listener on all, counts as not known, but its port counts. An IPv4 address mapped into
 * IPv6 is an IPv4 address. The rules' port is the listener's: local's port of one that listens or
 * was accepted, remote's of one that connects.
 */
struct aw_xs_query {
	const char *program; /* a path or a name; the base name is compared */
	bool listening; /* it listens, or was accepted */
	const struct sockaddr *local; /* AF_INET or AF_INET6; others match no address */
	const struct sockaddr *remote;
};

/*
 * The mode of it: of the first rule that matches, a rule that names what is not known does not.
 * Off where none matches, and AUTO where there are no rules at all.
 */
enum aw_xs_mode aw_xs_rules_mode(const struct aw_xs_rules *rules, const struct aw_xs_query *q);

/*
 * Whether the answer may be ON or AUTO once what is not known yet is known. A listener is a
 * candidate when this holds, with remote NULL; which connections of it are, aw_xs_rules_mode()
 * tells at each, with both addresses. With both addresses NULL: whether a program may have any
 * socket in iWARP mode on that side.
 */
bool aw_xs_rules_may(const struct aw_xs_rules *rules, const struct aw_xs_query *q);

size_t aw_xs_rules_count(const struct aw_xs_rules *rules);

/* Rule i as it was understood, in text of AW_XS_RULE_TEXT_MAX bytes; it can be read back. */
void aw_xs_rules_print(const struct aw_xs_rules *rules, size_t i, char *text);

#endif
