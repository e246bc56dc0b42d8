// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The traffic secrets of a session (RFC 8446 7.1), for an owner that makes and opens the records itself. OpenSSL gives them as the
// lines of a key log, and in no other way.
#ifndef NET_TLS_SECRETS_H
#define NET_TLS_SECRETS_H

#include "crypto/key.h"
#include "net/tls/openssl.h"

#include <stdbool.h>
#include <stdint.h>

struct aw_tls_secrets {
	uint8_t len; /* of each: that of the cipher suite's hash */
	bool client_is_known, server_is_known;
	uint8_t client[AW_TLS_SECRET_MAX]; /* client_application_traffic_secret_0 */
	uint8_t server[AW_TLS_SECRET_MAX];
};

/* The secrets of the session go to secrets, all zero, which outlives it. False: memory is out. */
bool aw_tls_secrets_keep(SSL *ssl, struct aw_tls_secrets *secrets)
	__attribute__((warn_unused_result));

/* A line of the session's key log, from OpenSSL's callback. */
void aw_tls_secrets_note(const SSL *ssl, const char *line);

/* Reads one line. One that has no traffic secret, or is not as it should be, changes nothing. */
void aw_tls_secrets_read(struct aw_tls_secrets *secrets, const char *line);

#endif
