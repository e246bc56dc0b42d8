// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "net/tls/aead.h"

#include <limits.h>
#include <string.h>

#define LABEL_MAX 16u
#define BLOCK_MAX 64u /* EVP_MAX_MD_SIZE */

enum {
	AES_128_GCM_SHA256 = 0x1301,
	AES_256_GCM_SHA384 = 0x1302,
	CHACHA20_POLY1305_SHA256 = 0x1303,
};

static const struct aw_openssl *const o = &aw_openssl;

bool aw_aead_knows(uint16_t suite)
{
	return suite == AES_128_GCM_SHA256 || suite == AES_256_GCM_SHA384 ||
	       suite == CHACHA20_POLY1305_SHA256;
}

static size_t key_len(uint16_t suite)
{
	return suite == AES_128_GCM_SHA256 ? 16 : 32;
}

static size_t hash_len(uint16_t suite)
{
	return suite == AES_256_GCM_SHA384 ? 48 : 32;
}

static const EVP_CIPHER *cipher_of(uint16_t suite)
{
	if (suite == AES_128_GCM_SHA256)
		return o->EVP_aes_128_gcm();
	return suite == AES_256_GCM_SHA384 ? o->EVP_aes_256_gcm() : o->EVP_chacha20_poly1305();
}

/*
 * HKDF-Expand-Label without context (RFC 8446 7.1). No output is longer than the hash, so it is the first block alone
 * (RFC 5869 2.3).
 */
static bool expand(const struct aw_aead *aead, const char *label, uint8_t *to, size_t len)
{
	const EVP_MD *hash = aead->suite == AES_256_GCM_SHA384 ? o->EVP_sha384() : o->EVP_sha256();
	uint8_t info[2 + 1 + 6 + LABEL_MAX + 2] = { 0, (uint8_t)len, (uint8_t)(6 + strlen(label)) };
	size_t at = 3 + 6 + strlen(label);
	uint8_t block[BLOCK_MAX];
	bool right;

	memcpy(info + 3, "tls13 ", 6);
	memcpy(info + 9, label, strlen(label));
	info[at++] = 0;
	info[at++] = 1;
	right = o->HMAC(hash, aead->secret, (int)hash_len(aead->suite), info, at, block, NULL);
	if (right)
		memcpy(to, block, len);
	explicit_bzero(block, sizeof(block));
	return right;
}

/* cipher: NULL where the context has it. */
static bool set_keys(struct aw_aead *aead, const EVP_CIPHER *cipher)
{
	uint8_t key[32];
	bool right = expand(aead, "key", key, key_len(aead->suite)) &&
		     expand(aead, "iv", aead->iv, sizeof(aead->iv)) &&
		     o->EVP_CipherInit_ex(aead->ctx, cipher, NULL, key, NULL, aead->seals) == 1;

	explicit_bzero(key, sizeof(key));
	aead->number = 0;
	return right;
}

bool aw_aead_begin(struct aw_aead *aead, uint16_t suite, const uint8_t *secret, bool seals)
{
	*aead = (struct aw_aead){ .suite = suite, .seals = seals };
	memcpy(aead->secret, secret, hash_len(suite));
	aead->ctx = o->EVP_CIPHER_CTX_new();
	if (aead->ctx && set_keys(aead, cipher_of(suite)))
		return true;
	aw_aead_end(aead);
	return false;
}

bool aw_aead_renew(struct aw_aead *aead)
{
	return expand(aead, "traffic upd", aead->secret, hash_len(aead->suite)) &&
	       set_keys(aead, NULL);
}

void aw_aead_end(struct aw_aead *aead)
{
	if (aead->ctx)
		o->EVP_CIPHER_CTX_free(aead->ctx);
	explicit_bzero(aead, sizeof(*aead));
}

bool aw_aead_start(struct aw_aead *aead, const uint8_t head[AW_AEAD_HEAD])
{
	uint8_t nonce[AW_AEAD_IV];
	int len;

	memcpy(nonce, aead->iv, sizeof(nonce));
	for (size_t i = 0; i < sizeof(aead->number); i++)
		nonce[AW_AEAD_IV - 1 - i] ^= (uint8_t)(aead->number >> 8 * i);
	return o->EVP_CipherInit_ex(aead->ctx, NULL, NULL, NULL, nonce, -1) == 1 &&
	       o->EVP_CipherUpdate(aead->ctx, NULL, &len, head, AW_AEAD_HEAD) == 1;
}

bool aw_aead_pass(struct aw_aead *aead, uint8_t *to, const uint8_t *from, size_t len)
{
	int done;

	return len <= INT_MAX && o->EVP_CipherUpdate(aead->ctx, to, &done, from, (int)len) == 1;
}

bool aw_aead_seal(struct aw_aead *aead, uint8_t tag[AW_AEAD_TAG])
{
	int len;

	aead->number++;
	return o->EVP_CipherFinal_ex(aead->ctx, tag, &len) == 1 &&
	       o->EVP_CIPHER_CTX_ctrl(aead->ctx, EVP_CTRL_AEAD_GET_TAG, AW_AEAD_TAG, tag) == 1;
}

bool aw_aead_open(struct aw_aead *aead, const uint8_t tag[AW_AEAD_TAG])
{
	uint8_t none[AW_AEAD_TAG], copy[AW_AEAD_TAG];
	int len;

	aead->number++;
	memcpy(copy, tag, sizeof(copy));
	return o->EVP_CIPHER_CTX_ctrl(aead->ctx, EVP_CTRL_AEAD_SET_TAG, AW_AEAD_TAG, copy) == 1 &&
	       o->EVP_CipherFinal_ex(aead->ctx, none, &len) == 1;
}
