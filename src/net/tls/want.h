// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The TLS that a connection is to have, by the rules of now (base/tls_rules.h), or else by ANYWARP_TLS. The file of rules is looked
// at for each connection: a changed one holds from the next connection on, and while it is wrong nothing connects.
#ifndef NET_TLS_WANT_H
#define NET_TLS_WANT_H

#include "net/tls/tls_env.h"

/* Of a connection, from its beginning to its end. */
struct aw_tls_want {
	enum aw_tls_mode mode;
	const struct aw_tls_rule *rule; /* that has matched; NULL: none */
	struct aw_tls_rules *rules; /* that it is of, held; or NULL */
	bool without_mpa; /* the program's own bytes are inside */
	bool admits_any; /* responder: a client without a certificate is let in */
};

/* 0; EINVAL: the rules are wrong, which was logged once for each change of the file. want is dropped by the caller. */
int aw_tls_want_find(const struct aw_tls_query *query, struct aw_tls_want *want);
void aw_tls_want_drop(struct aw_tls_want *want);

/* Reads the rules for the first time, so that an error in them is logged before there is a connection. */
void aw_tls_want_begin(void);

/*
 * For what TLS cannot protect: where it is required, by ANYWARP_TLS or by any of the rules, logs that what is refused, and
 * returns EOPNOTSUPP; else 0.
 */
int aw_tls_refuse(const char *what);

#endif
