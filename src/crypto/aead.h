// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// One direction's key, and the context of libcrypto's cipher that has it (RFC 8446 5.2). A record's content passes in as many pieces as it
// has, from where they lie to where they shall be.
#ifndef CRYPTO_AEAD_H
#define CRYPTO_AEAD_H

#include "crypto/key.h"
#include "crypto/libcrypto.h"

struct aw_aead {
	EVP_CIPHER_CTX *ctx; /* NULL: there is no key */
	bool seals;
	struct aw_record_key key;
};

/* A key of its own, for records that this end seals, or opens. False: memory is out, and there is no key. */
bool aw_aead_begin(struct aw_aead *aead, uint16_t suite, const uint8_t *secret, bool seals)
	__attribute__((warn_unused_result));
/* Goes on to the key behind a KeyUpdate. False: memory is out, and the key must be used no more. */
bool aw_aead_renew(struct aw_aead *aead) __attribute__((warn_unused_result));
/*
 * The next record is one under a key that is kept elsewhere, which counts it there. Where the key is the one that the context has, it
 * needs no memory. aead is zero, or was bound before. False: memory is out, and there is no key.
 */
bool aw_aead_bind(struct aw_aead *aead, const struct aw_record_key *key, bool seals)
	__attribute__((warn_unused_result));
/* Wipes the key, here and in the context. */
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
