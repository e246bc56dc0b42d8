// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// This end's certificate and key, and the CA of its peers, as a context that sessions are made from. A file that was renewed
// is read before the next session is made, so no program is started anew for it.
#ifndef NET_TLS_CONTEXT_H
#define NET_TLS_CONTEXT_H

#include "net/tls/openssl.h"
#include "net/tls/tls_env.h"

#define AW_TLS_CONTEXT_WHY_MAX 320

/*
 * Reads the files and writes a context, which the caller frees. False: why says which file is wrong, and how. OpenSSL is
 * loaded.
 */
bool aw_tls_context_make(const struct aw_tls_settings *from, SSL_CTX **made,
			 char why[AW_TLS_CONTEXT_WHY_MAX]) __attribute__((warn_unused_result));

/* 0, also where TLS is not used; EINVAL: a setting or file is wrong, or there is no OpenSSL, which was logged once. */
int aw_tls_check(void);

/*
 * The context of now, with a reference for the caller. Where renewed files are wrong it is the one before, and the log says so
 * once. NULL: aw_tls_check says that there is none, or memory is out.
 */
SSL_CTX *aw_tls_context_get(void);

#endif
