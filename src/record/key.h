// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The keys of a record under TLS 1.3 (RFC 8446 7.2, 7.3), one for each half. A key holds no pointer: any process that has the
// record can go on with it. The ciphers are the caller's (struct aw_record_cipher), because a program loads them only
// where it has TLS.
#ifndef RECORD_KEY_H
#define RECORD_KEY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#define AW_SECRET_MAX 48u
#define AW_KEY_MAX 32u
#define AW_IV_LEN 12u
#define AW_TAG_LEN 16u
#define AW_TLS_HEAD 5u /* of a TLS record: type, version, length */
/*
 * TLS records under one key. RFC 8446 5.5 allows AES-GCM 2^24.5 full ones; the keys change before that.
 */
#define AW_KEY_RECORDS_MAX (UINT64_C(1) << 24)
/* KeyUpdates that a peer may send without a byte for the program in between: each costs this end a key. */
#define AW_KEY_UPDATES_MAX 32u

/* By their numbers in TLS. */
enum aw_suite {
	AW_SUITE_NONE = 0, /* no TLS */
	AW_SUITE_AES_128_GCM_SHA256 = 0x1301,
	AW_SUITE_AES_256_GCM_SHA384 = 0x1302,
	AW_SUITE_CHACHA20_POLY1305_SHA256 = 0x1303,
};

struct aw_record_key {
	uint16_t suite; /* enum aw_suite */
	uint64_t seq; /* of the half's next TLS record */
	uint64_t id; /* finds the cipher's context; it grows with each key of the half */
	uint8_t secret[AW_SECRET_MAX], key[AW_KEY_MAX], iv[AW_IV_LEN];
};

/* The result of a handshake. */
struct aw_record_secrets {
	uint16_t suite;
	bool is_client; /* this end has sent the ClientHello */
	/* client_ and server_application_traffic_secret_0 */
	uint8_t client[AW_SECRET_MAX], server[AW_SECRET_MAX];
};

/* AEADs and HKDF. False: there is no memory. A process calls a record under TLS only when it has the ciphers. */
struct aw_record_cipher {
	/* Sets key and IV from the secret. */
	bool (*derive)(struct aw_record_key *key);
	/* Replaces the secret by the one behind it (RFC 8446 7.2). */
	bool (*advance)(struct aw_record_key *key);
	/*
	 * Encrypts the pieces to text, one behind the other, and writes the tag behind them; head is authenticated. A piece may
	 * be where its ciphertext goes.
	 */
	bool (*seal)(const struct aw_record_key *key, const uint8_t head[AW_TLS_HEAD],
		     const struct iovec *pieces, int count, uint8_t *text);
	/* Decrypts len bytes where they are. False also where the tag behind them is wrong. */
	bool (*open)(const struct aw_record_key *key, const uint8_t head[AW_TLS_HEAD],
		     uint8_t *text, size_t len);
};

static inline bool aw_key_is_on(const struct aw_record_key *key)
{
	return __builtin_expect(key->suite != AW_SUITE_NONE, 0);
}

static inline bool aw_suite_is_known(unsigned suite)
{
	return suite == AW_SUITE_AES_128_GCM_SHA256 || suite == AW_SUITE_AES_256_GCM_SHA384 ||
	       suite == AW_SUITE_CHACHA20_POLY1305_SHA256;
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

/* The nonce of the key's next TLS record (RFC 8446 5.3). */
static inline void aw_key_nonce(const struct aw_record_key *key, uint8_t nonce[AW_IV_LEN])
{
	for (size_t i = 0; i < AW_IV_LEN; i++) {
		size_t back = AW_IV_LEN - 1 - i;

		nonce[i] = key->iv[i] ^ (back < 8 ? (uint8_t)(key->seq >> 8 * back) : 0);
	}
}

/* Goes on to the half's next key, whose first TLS record has number 0. False: the cipher has failed. */
bool aw_key_update(struct aw_record_key *key) __attribute__((warn_unused_result));

#endif
