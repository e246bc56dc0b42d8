// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "crypto/aead.h"

#include <limits.h>
#include <string.h>

static const struct aw_libcrypto *const o = &aw_libcrypto;

/* cipher: NULL where the context has it. */
static bool set_key(struct aw_aead *aead, const EVP_CIPHER *cipher)
{
	return o->EVP_CipherInit_ex(aead->ctx, cipher, NULL, aead->key.key, NULL, aead->seals) == 1;
}

static bool begin_context(struct aw_aead *aead)
{
	aead->ctx = o->EVP_CIPHER_CTX_new();
	if (aead->ctx && set_key(aead, aw_libcrypto_cipher(aead->key.suite)))
		return true;
	aw_aead_end(aead);
	return false;
}

bool aw_aead_begin(struct aw_aead *aead, uint16_t suite, const uint8_t *secret, bool seals)
{
	*aead = (struct aw_aead){ .seals = seals };
	if (aw_key_begin(&aead->key, suite, secret))
		return begin_context(aead);
	aw_aead_end(aead);
	return false;
}

bool aw_aead_renew(struct aw_aead *aead)
{
	return aw_key_update(&aead->key) && set_key(aead, NULL);
}

bool aw_aead_bind(struct aw_aead *aead, const struct aw_record_key *key, bool seals)
{
	bool is_same = aead->ctx && aead->key.suite == key->suite && aead->seals == seals;

	aead->key.seq = key->seq;
	if (is_same && memcmp(aead->key.key, key->key, sizeof(key->key)) == 0)
		return true;
	if (aead->ctx && !is_same)
		aw_aead_end(aead);
	aead->seals = seals;
	aead->key = *key;
	explicit_bzero(aead->key.secret, sizeof(aead->key.secret));
	if (!aead->ctx)
		return begin_context(aead);
	if (set_key(aead, NULL))
		return true;
	aw_aead_end(aead);
	return false;
}

void aw_aead_end(struct aw_aead *aead)
{
	if (aead->ctx)
		o->EVP_CIPHER_CTX_free(aead->ctx);
	explicit_bzero(aead, sizeof(*aead));
}

/* The nonce of the key's next record (RFC 8446 5.3) begins it. */
bool aw_aead_start(struct aw_aead *aead, const uint8_t head[AW_AEAD_HEAD])
{
	const struct aw_record_key *key = &aead->key;
	uint8_t nonce[AW_AEAD_IV];
	int len;

	memcpy(nonce, key->iv, sizeof(nonce));
	for (size_t i = 0; i < sizeof(key->seq); i++)
		nonce[AW_AEAD_IV - 1 - i] ^= (uint8_t)(key->seq >> 8 * i);
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

	aead->key.seq++;
	return o->EVP_CipherFinal_ex(aead->ctx, tag, &len) == 1 &&
	       o->EVP_CIPHER_CTX_ctrl(aead->ctx, EVP_CTRL_AEAD_GET_TAG, AW_AEAD_TAG, tag) == 1;
}

bool aw_aead_open(struct aw_aead *aead, const uint8_t tag[AW_AEAD_TAG])
{
	uint8_t none[AW_AEAD_TAG], copy[AW_AEAD_TAG];
	int len;

	aead->key.seq++;
	memcpy(copy, tag, sizeof(copy));
	return o->EVP_CIPHER_CTX_ctrl(aead->ctx, EVP_CTRL_AEAD_SET_TAG, AW_AEAD_TAG, copy) == 1 &&
	       o->EVP_CipherFinal_ex(aead->ctx, none, &len) == 1;
}
