// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The key of one direction of TLS 1.3's records (RFC 8446 5.3, 7.2, 7.3). It holds no pointer: any process that has its memory can go
// on with it.
#ifndef CRYPTO_KEY_H
#define CRYPTO_KEY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define AW_TLS_SECRET_MAX 48u /* bytes: a SHA-384 hash */
#define AW_KEY_MAX 32u
#define AW_AEAD_IV 12u
#define AW_AEAD_TAG 16u
#define AW_AEAD_HEAD 5u /* bytes of a record in the clear, which the tag covers */

/* By their numbers in TLS: all of TLS 1.3's that OpenSSL offers unless its openssl.cnf adds some. */
enum aw_suite {
	AW_SUITE_NONE = 0, /* no TLS */
	AW_SUITE_AES_128_GCM_SHA256 = 0x1301,
	AW_SUITE_AES_256_GCM_SHA384 = 0x1302,
	AW_SUITE_CHACHA20_POLY1305_SHA256 = 0x1303,
};
#define AW_SUITES 3u

struct aw_record_key {
	uint16_t suite; /* enum aw_suite */
	uint64_t seq; /* of the next record */
	uint64_t id; /* finds the cipher's context of a key in shared memory */
	uint8_t secret[AW_TLS_SECRET_MAX], key[AW_KEY_MAX], iv[AW_AEAD_IV];
};

static inline bool aw_suite_is_known(unsigned suite)
{
	return suite == AW_SUITE_AES_128_GCM_SHA256 || suite == AW_SUITE_AES_256_GCM_SHA384 ||
	       suite == AW_SUITE_CHACHA20_POLY1305_SHA256;
}

/* RFC 8446 5.5: AES-GCM's keys are for so many records; ChaCha20-Poly1305's last for all that a connection can have. */
static inline bool aw_suite_is_bounded(unsigned suite)
{
	return suite != AW_SUITE_CHACHA20_POLY1305_SHA256;
}

/* Bytes of a suite's key, and of its hash. */
static inline size_t aw_suite_key_len(unsigned suite)
{
	return suite == AW_SUITE_AES_128_GCM_SHA256 ? 16 : 32;
}

static inline size_t aw_suite_hash_len(unsigned suite)
{
	return suite == AW_SUITE_AES_256_GCM_SHA384 ? 48 : 32;
}

/* False, of both: there is no memory, and the key must be used no more. aw_libcrypto_load has succeeded. */

/* Makes the key of a suite's traffic secret, whose next record has number 0. Its id stays. */
bool aw_key_begin(struct aw_record_key *key, uint16_t suite, const uint8_t *secret)
	__attribute__((warn_unused_result));
/* Goes on to the key behind a KeyUpdate, whose next record has number 0. */
bool aw_key_update(struct aw_record_key *key) __attribute__((warn_unused_result));

#endif
