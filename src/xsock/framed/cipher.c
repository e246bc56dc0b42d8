// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A context of a cipher is bound to a key by a copy of it, and waits between calls at a place that the key's id chooses. A call takes
// it from there, so that no two threads use one; where it finds none, it makes one, and where it finds another key's, it gives that the
// key, which needs no memory.
#include "xsock/framed/cipher.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LIBRARY "libcrypto.so.3"
#define PLACES 1024u
#define WHY_MAX 160
#define LABEL_MAX 16u
#define INFO_MAX (2u + 1u + 6u + LABEL_MAX + 1u)

/* OpenSSL's structs, of which only pointers are known here, and the one that callers fill. */
typedef struct ossl_init_settings_st OPENSSL_INIT_SETTINGS;
typedef struct ossl_lib_ctx_st OSSL_LIB_CTX;
typedef struct evp_cipher_st EVP_CIPHER;
typedef struct evp_cipher_ctx_st EVP_CIPHER_CTX;
typedef struct engine_st ENGINE;
typedef struct evp_kdf_st EVP_KDF;
typedef struct evp_kdf_ctx_st EVP_KDF_CTX;
typedef struct ossl_param_st {
	const char *key;
	unsigned int data_type;
	void *data;
	size_t data_size, return_size;
} OSSL_PARAM;

#include "xsock/framed/libcrypto.h"

enum {
	OPENSSL_INIT_NO_ATEXIT = 0x00080000,
	OSSL_PARAM_UTF8_STRING = 4,
	OSSL_PARAM_OCTET_STRING = 5,
	EVP_CTRL_AEAD_GET_TAG = 0x10,
	EVP_CTRL_AEAD_SET_TAG = 0x11,
};

#define MEMBER(result, name, parameters) result(*name) parameters;

/* Fixed once loaded. */
static struct {
	AW_LIBCRYPTO_FUNCTIONS(MEMBER)
} crypto;
static EVP_CIPHER *ciphers[3];
static EVP_KDF *hkdf;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static _Atomic(bool) loaded;
static char reason[WHY_MAX];

struct context {
	EVP_CIPHER_CTX *evp;
	uint16_t suite; /* 0: it has no key */
	bool seals;
	uint8_t key[AW_KEY_MAX];
};

static _Atomic(struct context *) places[PLACES];

static int suite_index(unsigned suite)
{
	return (int)(suite - AW_SUITE_AES_128_GCM_SHA256);
}

static bool find(void *library, const char *name, void *function)
{
	void *found = dlsym(library, name);

	if (found)
		memcpy(function, &found, sizeof(found));
	else
		snprintf(reason, sizeof(reason), LIBRARY " has no function %s: install OpenSSL 3",
			 name);
	return found;
}

#define FIND(result, name, parameters) found = found && find(library, #name, &crypto.name);

static void load(void)
{
	static const char *const names[] = { "AES-128-GCM", "AES-256-GCM", "ChaCha20-Poly1305" };
	void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
	bool found = library;

	if (!library)
		snprintf(reason, sizeof(reason), "install OpenSSL 3 (Debian: libssl3): %s",
			 dlerror());
	AW_LIBCRYPTO_FUNCTIONS(FIND)
	if (!found)
		return;
	/* Where this is the first use of libcrypto in the process, exit(3) leaves it to threads that go on. */
	found = crypto.OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, NULL) == 1;
	for (size_t i = 0; found && i < 3; i++) {
		ciphers[i] = crypto.EVP_CIPHER_fetch(NULL, names[i], NULL);
		found = ciphers[i];
	}
	hkdf = found ? crypto.EVP_KDF_fetch(NULL, "HKDF", NULL) : NULL;
	if (!hkdf)
		snprintf(reason, sizeof(reason),
			 "OpenSSL lacks TLS 1.3's ciphers or HKDF: look at its openssl.cnf");
	atomic_store(&loaded, hkdf != NULL);
}

bool aw_cipher_load(const char **why)
{
	if (__builtin_expect(atomic_load(&loaded), 1))
		return true;
	(void)pthread_once(&once, load);
	if (why)
		*why = reason;
	return atomic_load(&loaded);
}

static void context_free(struct context *context)
{
	if (!context)
		return;
	crypto.EVP_CIPHER_CTX_free(context->evp);
	explicit_bzero(context, sizeof(*context));
	free(context);
}

static struct context *context_make(void)
{
	struct context *context = calloc(1, sizeof(*context));

	if (context)
		context->evp = crypto.EVP_CIPHER_CTX_new();
	if (context && !context->evp) {
		free(context);
		context = NULL;
	}
	return context;
}

static void context_put(const struct aw_record_key *key, struct context *context)
{
	context_free(atomic_exchange(&places[key->id % PLACES], context));
}

/* Takes the context that belongs to the key, for one TLS record. NULL: there is no memory. */
static struct context *context_take(const struct aw_record_key *key, bool seals)
{
	struct context *context = atomic_exchange(&places[key->id % PLACES], NULL);
	uint8_t nonce[AW_IV_LEN];
	const EVP_CIPHER *cipher;
	bool begun;

	if (!context)
		context = context_make();
	if (!context)
		return NULL;
	aw_key_nonce(key, nonce);
	if (context->suite == key->suite && context->seals == seals &&
	    memcmp(context->key, key->key, sizeof(key->key)) == 0) {
		begun = crypto.EVP_CipherInit_ex(context->evp, NULL, NULL, NULL, nonce, seals) == 1;
	} else {
		cipher = context->suite == key->suite ? NULL : ciphers[suite_index(key->suite)];
		context->suite = 0;
		begun = crypto.EVP_CipherInit_ex(context->evp, cipher, NULL, key->key, nonce,
						 seals) == 1;
		memcpy(context->key, key->key, sizeof(key->key));
		context->seals = seals;
		context->suite = key->suite;
	}
	if (begun)
		return context;
	context_free(context);
	return NULL;
}

static bool cipher_seal(const struct aw_record_key *key, const uint8_t head[AW_TLS_HEAD],
			const struct iovec *pieces, int count, uint8_t *text)
{
	struct context *context = context_take(key, true);
	EVP_CIPHER_CTX *evp = context ? context->evp : NULL;
	bool right = context;
	int len;

	right = right && crypto.EVP_CipherUpdate(evp, NULL, &len, head, AW_TLS_HEAD) == 1;
	for (int i = 0; right && i < count; i++) {
		right = crypto.EVP_CipherUpdate(evp, text, &len, pieces[i].iov_base,
						(int)pieces[i].iov_len) == 1;
		text += pieces[i].iov_len;
	}
	right = right && crypto.EVP_CipherFinal_ex(evp, text, &len) == 1 &&
		crypto.EVP_CIPHER_CTX_ctrl(evp, EVP_CTRL_AEAD_GET_TAG, AW_TAG_LEN, text) == 1;
	if (context)
		context_put(key, context);
	return right;
}

static bool cipher_open(const struct aw_record_key *key, const uint8_t head[AW_TLS_HEAD],
			uint8_t *text, size_t len)
{
	struct context *context = context_take(key, false);
	EVP_CIPHER_CTX *evp = context ? context->evp : NULL;
	uint8_t none[AW_TAG_LEN];
	int done;
	bool right;

	right = context && crypto.EVP_CipherUpdate(evp, NULL, &done, head, AW_TLS_HEAD) == 1 &&
		crypto.EVP_CIPHER_CTX_ctrl(evp, EVP_CTRL_AEAD_SET_TAG, AW_TAG_LEN, text + len) ==
			1 &&
		crypto.EVP_CipherUpdate(evp, text, &done, text, (int)len) == 1 &&
		crypto.EVP_CipherFinal_ex(evp, none, &done) == 1;
	if (context)
		context_put(key, context);
	return right;
}

static OSSL_PARAM octets(const char *name, const void *bytes, size_t len)
{
	return (OSSL_PARAM){ name, OSSL_PARAM_OCTET_STRING, (void *)(uintptr_t)bytes, len, 0 };
}

static OSSL_PARAM word(const char *name, const char *text)
{
	return (OSSL_PARAM){ name, OSSL_PARAM_UTF8_STRING, (void *)(uintptr_t)text, strlen(text),
			     0 };
}

/* HKDF-Expand-Label without context (RFC 8446 7.1), of the key's secret. */
static bool expand(const struct aw_record_key *key, const char *label, uint8_t *to, size_t len)
{
	const char *digest = key->suite == AW_SUITE_AES_256_GCM_SHA384 ? "SHA384" : "SHA256";
	EVP_KDF_CTX *kdf = crypto.EVP_KDF_CTX_new(hkdf);
	uint8_t info[INFO_MAX] = { 0, (uint8_t)len, (uint8_t)(6 + strlen(label)) };
	OSSL_PARAM params[5];
	bool right;

	memcpy(info + 3, "tls13 ", 6);
	memcpy(info + 9, label, strlen(label));
	params[0] = word("mode", "EXPAND_ONLY");
	params[1] = word("digest", digest);
	params[2] = octets("key", key->secret, aw_suite_hash_len(key->suite));
	params[3] = octets("info", info, 9 + strlen(label) + 1);
	params[4] = (OSSL_PARAM){ 0 };
	right = kdf && crypto.EVP_KDF_derive(kdf, to, len, params) == 1;
	crypto.EVP_KDF_CTX_free(kdf);
	return right;
}

static bool cipher_derive(struct aw_record_key *key)
{
	memset(key->key, 0, sizeof(key->key));
	return expand(key, "key", key->key, aw_suite_key_len(key->suite)) &&
	       expand(key, "iv", key->iv, sizeof(key->iv));
}

static bool cipher_advance(struct aw_record_key *key)
{
	uint8_t next[AW_SECRET_MAX];
	bool right = expand(key, "traffic upd", next, aw_suite_hash_len(key->suite));

	if (right)
		memcpy(key->secret, next, sizeof(next));
	explicit_bzero(next, sizeof(next));
	return right;
}

const struct aw_record_cipher aw_cipher = {
	.derive = cipher_derive,
	.advance = cipher_advance,
	.seal = cipher_seal,
	.open = cipher_open,
};
