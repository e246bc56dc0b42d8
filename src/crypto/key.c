// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "crypto/key.h"

#include "crypto/libcrypto.h"

#include <string.h>

#define LABEL_MAX 16u
#define BLOCK_MAX 64u /* EVP_MAX_MD_SIZE */

/*
 * HKDF-Expand-Label of the key's secret, without context (RFC 8446 7.1). No output is longer than the hash, so it is the first block
 * alone (RFC 5869 2.3).
 */
static bool expand(const struct aw_record_key *key, const char *label, uint8_t *to, size_t len)
{
	const EVP_MD *hash = key->suite == AW_SUITE_AES_256_GCM_SHA384 ? aw_libcrypto.EVP_sha384()
								       : aw_libcrypto.EVP_sha256();
	uint8_t info[2 + 1 + 6 + LABEL_MAX + 2] = { 0, (uint8_t)len, (uint8_t)(6 + strlen(label)) };
	size_t at = 3 + 6 + strlen(label);
	uint8_t block[BLOCK_MAX];
	bool right;

	memcpy(info + 3, "tls13 ", 6);
	memcpy(info + 9, label, strlen(label));
	info[at++] = 0;
	info[at++] = 1;
	right = aw_libcrypto.HMAC(hash, key->secret, (int)aw_suite_hash_len(key->suite), info, at,
				  block, NULL);
	if (right)
		memcpy(to, block, len);
	explicit_bzero(block, sizeof(block));
	return right;
}

static bool derive(struct aw_record_key *key)
{
	memset(key->key, 0, sizeof(key->key));
	key->seq = 0;
	return expand(key, "key", key->key, aw_suite_key_len(key->suite)) &&
	       expand(key, "iv", key->iv, sizeof(key->iv));
}

bool aw_key_begin(struct aw_record_key *key, uint16_t suite, const uint8_t *secret)
{
	key->suite = suite;
	memcpy(key->secret, secret, aw_suite_hash_len(suite));
	return derive(key);
}

bool aw_key_update(struct aw_record_key *key)
{
	return expand(key, "traffic upd", key->secret, aw_suite_hash_len(key->suite)) &&
	       derive(key);
}
