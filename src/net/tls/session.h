// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// OpenSSL's object of a connection, as a session over a socket (tls.h) and a handshake without one (handshake.h) have it: by
// this end's context, with the peer that is expected.
#ifndef NET_TLS_SESSION_H
#define NET_TLS_SESSION_H

#include "net/tls/cause.h"
#include "net/tls/expect.h"
#include "net/tls/identity.h"
#include "net/tls/openssl.h"
#include "net/tls/want.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

/* The alert protocol_version in clear, for a peer whose first bytes are no TLS. */
#define AW_TLS_PLAIN_ALERT_LEN 7
extern const uint8_t aw_tls_plain_alert[AW_TLS_PLAIN_ALERT_LEN];

/*
 * A session with the peer at this address, without BIOs. expect, which outlives it, is filled from want, for this ALPN protocol
 * (aw_tls_expect). 0, ENOMEM, or EINVAL: the settings are wrong (aw_tls_check). OpenSSL's queue of errors is empty afterwards.
 */
int aw_tls_session_make(const struct sockaddr *peer, bool accepts, const struct aw_tls_want *want,
			const char *alpn, struct aw_tls_expect *expect, SSL **made)
	__attribute__((warn_unused_result));

/* True when OpenSSL only waits for the peer's bytes, or for room. */
bool aw_tls_session_waits(const SSL *ssl, int result);

/*
 * Writes to cause why the session failed: from what the owner has set in end, and OpenSSL's queue of errors, which is empty
 * afterwards. Returns OpenSSL's reason, or 0.
 */
int aw_tls_session_explain(const SSL *ssl, struct aw_tls_end *end, char *cause, size_t max);

/*
 * True when the peer has chosen the protocol that is expected, or the program's own is. A server that speaks TLS for something
 * else may choose none.
 */
bool aw_tls_session_has_protocol(const SSL *ssl);

/* The peer, once the handshake is done, with a reference for the caller. NULL: memory is out, or it has shown no certificate. */
struct aw_tls_identity *aw_tls_session_identify(const SSL *ssl);

#endif
