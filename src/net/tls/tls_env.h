// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The process's settings of TLS: ANYWARP_TLS, the files of ANYWARP_TLS_CERT, _KEY and _CA, and ANYWARP_TLS_RULES, read once. A
// user who asks for TLS gets what was asked for or nothing: where a setting or file is wrong, nothing connects.
#ifndef NET_TLS_ENV_H
#define NET_TLS_ENV_H

#include "base/tls_rules.h"

#include <stdbool.h>

#define AW_TLS_CERT_ENV "ANYWARP_TLS_CERT"
#define AW_TLS_KEY_ENV "ANYWARP_TLS_KEY"
#define AW_TLS_CA_ENV "ANYWARP_TLS_CA"
#define AW_TLS_NAME_ENV "ANYWARP_TLS_NAME"
#define AW_TLS_RULES_ENV "ANYWARP_TLS_RULES"

/* Fixed once read. */
struct aw_tls_settings {
	const char *cert, *key, *ca; /* PEM files */
	const char *name; /* that the peer's certificate must have, or NULL: see docs/tls.md */
	const char *rules; /* the file of rules, or NULL */
	enum aw_tls_mode mode; /* of what no rule matches */
	bool by_kernel; /* records, where it can: ANYWARP_TLS_RECORDS */
	bool host_path; /* memory between two ends of one host that have proven who they are: ANYWARP_TLS_HOST_PATH */
};

/* secure_getenv(3). A library that has kept the variables as they were, since programs change theirs, puts its own here. */
typedef char *aw_tls_getenv_fn(const char *name);
extern aw_tls_getenv_fn *aw_tls_getenv;

/* True when the user asks for TLS, for some connections at least, also where a setting is wrong. */
bool aw_tls_is_used(void);

/* NULL: a setting is wrong, which was logged once, or TLS is not used. */
const struct aw_tls_settings *aw_tls_settings(void);

#endif
