// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The process's settings of TLS: ANYWARP_TLS and the files of ANYWARP_TLS_CERT, _KEY and _CA, read once. A user who
// asks for TLS gets it or nothing: where a setting or file is wrong, nothing connects.
#ifndef NET_TLS_ENV_H
#define NET_TLS_ENV_H

#include <stdbool.h>

#define AW_TLS_CERT_ENV "ANYWARP_TLS_CERT"
#define AW_TLS_KEY_ENV "ANYWARP_TLS_KEY"
#define AW_TLS_CA_ENV "ANYWARP_TLS_CA"
#define AW_TLS_NAME_ENV "ANYWARP_TLS_NAME"

/* Fixed once read. */
struct aw_tls_settings {
	const char *cert, *key, *ca; /* PEM files */
	const char *name; /* that the peer's certificate must have, or NULL: see docs/tls.md */
};

/*
 * True when no byte may leave without TLS, also where a setting is wrong. Each connection that cannot have it is refused,
 * with an error in the log.
 */
bool aw_tls_is_required(void);

/* NULL: a setting is wrong, which was logged once, or TLS is not required. */
const struct aw_tls_settings *aw_tls_settings(void);

/* For what TLS cannot protect: where it is required, logs that what is refused, and returns EOPNOTSUPP; else 0. */
int aw_tls_refuse(const char *what);

#endif
