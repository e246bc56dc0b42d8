// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The other end of a session (net/tls/tls.h), for a fuzz target: OpenSSL's own client makes the handshake, and from there on each
// record is sealed here, of any type and length, as RFC 8446 5.2 and 7 say.
#ifndef FUZZ_TLS_PEER_H
#define FUZZ_TLS_PEER_H

#include <stddef.h>
#include <stdint.h>

#define TLS_CONTENT_MAX 16384u /* RFC 8446 5.1 */
#define TLS_RECORD_EXTRA 22u /* a record's header, type and tag */

enum tls_type {
	TLS_ALERT = 21,
	TLS_HANDSHAKE = 22,
	TLS_DATA = 23
};

struct aw_tls;

/* Seals what the peer sends. AES-128-GCM with SHA-256, which both ends are held to. */
struct tls_sealer {
	uint8_t secret[32], key[16], iv[12];
	uint64_t number; /* of the next record */
};

/* Makes the certificates, and sets the variables that name them: before anything asks for the settings. */
void tls_peer_begin(void);

/* A session over fd[1], whose handshake with the peer at fd[0] is done. Both are non-blocking. */
struct aw_tls *tls_peer_connect(const int fd[2], struct tls_sealer *sealer);

/* Writes the record and returns its length. padding: octets behind the type. */
size_t tls_peer_seal(struct tls_sealer *sealer, enum tls_type type, const void *content, size_t len,
		     size_t padding, uint8_t *record);

/* The keys behind a KeyUpdate. */
void tls_peer_renew(struct tls_sealer *sealer);

#endif
