// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// One direction's keys of a session behind its handshake, and libcrypto's cipher under them (RFC 8446 5.2, 5.3, 7.2, 7.3). A
// record's content passes in as many pieces as it has, from where they lie to where they shall be.
#ifndef NET_TLS_AEAD_H
#define NET_TLS_AEAD_H

#include "net/tls/openssl.h"
#include "net/tls/secrets.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define AW_AEAD_TAG 16u
#define AW_AEAD_HEAD 5u /* bytes of a record in the clear, which the tag covers */
#define AW_AEAD_IV 12u

struct aw_aead {
	EVP_CIPHER_CTX *ctx; /* NULL: there are no keys */
	uint16_t suite;
	bool seals;
	uint64_t number; /* of the next record under these keys */
	uint8_t secret[AW_TLS_SECRET_MAX], iv[AW_AEAD_IV];
};

/* True for the cipher suites that are carried out here: all of TLS 1.3's that OpenSSL offers unless its openssl.cnf adds some. */
bool aw_aead_knows(uint16_t suite);

/* The keys of a traffic secret, for records that this end seals, or opens. False: memory is out. */
bool aw_aead_begin(struct aw_aead *aead, uint16_t suite, const uint8_t *secret, bool seals)
	__attribute__((warn_unused_result));
/* Goes on to the keys behind a KeyUpdate. False: memory is out, and the keys must be used no more. */
bool aw_aead_renew(struct aw_aead *aead) __attribute__((warn_unused_result));
/* Forgets the keys. */
void aw_aead_end(struct aw_aead *aead);

/*
 * A record: start, its pieces in order, and then the tag, which counts it. One that was started anew instead counts nothing, so what was
 * sealed of it must not leave. False: libcrypto has failed; of open, also that the tag is wrong.
 */
bool aw_aead_start(struct aw_aead *aead, const uint8_t head[AW_AEAD_HEAD])
	__attribute__((warn_unused_result));
bool aw_aead_pass(struct aw_aead *aead, uint8_t *to, const uint8_t *from, size_t len)
	__attribute__((warn_unused_result));
bool aw_aead_seal(struct aw_aead *aead, uint8_t tag[AW_AEAD_TAG])
	__attribute__((warn_unused_result));
bool aw_aead_open(struct aw_aead *aead, const uint8_t tag[AW_AEAD_TAG])
	__attribute__((warn_unused_result));

#endif
