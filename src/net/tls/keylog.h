// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The key log that ANYWARP_TLS_KEYLOG names: the secrets of each session, in the format of NSS that Wireshark reads. With it and a
// capture anybody reads all that went over the wire, so it is for a test or a search for a fault alone.
#ifndef NET_TLS_KEYLOG_H
#define NET_TLS_KEYLOG_H

#include "net/tls/openssl.h"

#define AW_TLS_KEYLOG_ENV "ANYWARP_TLS_KEYLOG"

/*
 * Reads the variable and opens the file, once, before there is a context; a warning goes to the log. 0, also where none is asked for;
 * EINVAL: it cannot be a key log, which was logged.
 */
int aw_tls_keylog_begin(void);

/* Sessions of this context write their secrets there, if there is a key log, and to an owner that asks (secrets.h). */
void aw_tls_keylog_use(SSL_CTX *ctx);

#endif
