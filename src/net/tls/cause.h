// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Why a session failed, in words for the user who can mend it. Pure.
#ifndef NET_TLS_CAUSE_H
#define NET_TLS_CAUSE_H

#include <stdbool.h>
#include <stddef.h>

/* A session's end, as far as it is known. */
struct aw_tls_end {
	bool accepts; /* the peer has connected */
	bool for_records; /* the protocol inside is AW_TLS_ALPN_RECORD */
	bool secured; /* the handshake was done */
	bool cut; /* TCP ended the stream, and TLS did not */
	int io_errno; /* the socket failed; or 0 */
	int reason; /* OpenSSL's, or 0 */
	const char *reason_text; /* OpenSSL's words for it, or NULL */
	long verify; /* X509_V_... of the peer's certificate */
	const char *verify_text; /* OpenSSL's words for it */
	const unsigned char *first; /* the peer's first bytes */
	size_t first_len;
	bool without_mpa; /* the program's own bytes are inside */
	unsigned rule_line; /* of the rule whose names the peer needs one of; 0: none */
};

#define AW_TLS_RECORD_ALERT 21 /* RFC 8446 5.1: the first byte of a record */
#define AW_TLS_RECORD_HANDSHAKE 22

/* Of a peer that should have begun TLS, and has begun with these bytes. */
const char *aw_tls_plain_cause(const unsigned char *first, size_t len);

void aw_tls_explain(const struct aw_tls_end *end, char *cause, size_t max);

#endif
