// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The grammar of ANYWARP_SOCKETS_RULES, which decides the mode of each socket. One rule a line, the
// first that matches decides, '#' begins a comment:
//
//     on|auto|off|rsockets|tls-plain [program=GLOB] [local=ADDR[/LEN]] [remote=ADDR[/LEN]] [port=N|N-M] [client=any] [listen|connect]
//
// These functions read no environment and no file. Called by process/mode.c and src/cli.
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
	AW_XS_RSOCKETS =
		3, /* as ON, towards servers of another implementation's rsockets; by rules alone */
	AW_XS_TLS_PLAIN = 4, /* the program's bytes within TLS, without iWARP; by rules alone */
	AW_XS_TLS_ANY = 5, /* the same, and a client needs no certificate */
};
#define AW_XS_MODE_LAST AW_XS_TLS_ANY
#define AW_XS_TLS_PLAIN_WORD "tls-plain"

/* Returns whether a connection in that mode is TLS without iWARP, and never anything else. */
static inline bool aw_xs_mode_is_tls_plain(enum aw_xs_mode mode)
{
	return mode == AW_XS_TLS_PLAIN || mode == AW_XS_TLS_ANY;
}

/* Returns whether a connection in that mode is never TCP as the program has made it. */
static inline bool aw_xs_mode_is_carried(enum aw_xs_mode mode)
{
	return mode == AW_XS_ON || mode == AW_XS_RSOCKETS || aw_xs_mode_is_tls_plain(mode);
}

struct aw_xs_rules;

/*
 * Reads text (NULL: empty). Returns 0 with *rules, which the caller destroys. Returns the number of
 * the first faulty line, from 1, and writes to error (len bytes) the word, its fault and what is
 * allowed; error begins without the line's number. Returns -1 without memory.
 */
__attribute__((warn_unused_result)) int aw_xs_rules_parse(const char *text,
							  struct aw_xs_rules **rules, char *error,
							  size_t len);
void aw_xs_rules_destroy(struct aw_xs_rules *rules);

/*
 * A socket, or a connection. An address that is not known yet is NULL; a wildcard address counts as
 * not known, but its port counts. An IPv4 address mapped into IPv6 is an IPv4 address. The port
 * that rules compare is the listener's: local's port of a listener or an accepted socket, remote's
 * port of one that connects.
 */
struct aw_xs_query {
	const char *program; /* a path or a name; its last component is compared */
	bool listening; /* the socket listens, or was accepted */
	const struct sockaddr *local; /* AF_INET or AF_INET6; others match no address */
	const struct sockaddr *remote;
};

/*
 * Returns the mode of the first rule that matches; a rule with something that is not known does not
 * match. If none matches, OFF; without any rules, AUTO.
 */
enum aw_xs_mode aw_xs_rules_mode(const struct aw_xs_rules *rules, const struct aw_xs_query *q);

/*
 * Returns whether the mode may be any but OFF once everything is known. A listener is a candidate if
 * this holds with remote NULL; each accepted connection is decided by aw_xs_rules_mode() with both
 * addresses. With both addresses NULL: whether the program may have any socket in iWARP mode on
 * that side.
 */
bool aw_xs_rules_may(const struct aw_xs_rules *rules, const struct aw_xs_query *q);
/* The same for those that are carried, all but OFF and AUTO. */
bool aw_xs_rules_may_carry(const struct aw_xs_rules *rules, const struct aw_xs_query *q);
/* The same for one mode. */
bool aw_xs_rules_may_be(const struct aw_xs_rules *rules, const struct aw_xs_query *q,
			enum aw_xs_mode mode);

/*
 * Returns whether the mode is the same whatever the parts of q are that are not known; *mode is that mode. False:
 * the rules ask for such a part.
 */
bool aw_xs_rules_are_settled(const struct aw_xs_rules *rules, const struct aw_xs_query *q,
			     enum aw_xs_mode *mode);

size_t aw_xs_rules_count(const struct aw_xs_rules *rules);

/* Prints rule i to text, of AW_XS_RULE_TEXT_MAX bytes; aw_xs_rules_parse() reads it back. */
void aw_xs_rules_print(const struct aw_xs_rules *rules, size_t i, char *text);

#endif
