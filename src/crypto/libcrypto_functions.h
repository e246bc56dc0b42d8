// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The functions of libcrypto 3 that seal and open records, over the names of its structs, which the file that includes this has
// declared: libcrypto.h, or OpenSSL's own headers in the test that compares the two.
#ifndef CRYPTO_LIBCRYPTO_FUNCTIONS_H
#define CRYPTO_LIBCRYPTO_FUNCTIONS_H

#include <stddef.h>
#include <stdint.h>

/* F(result, name, parameters). */
// clang-format off
#define AW_LIBCRYPTO_FUNCTIONS(F) \
	F(int, OPENSSL_init_crypto, (uint64_t opts, const OPENSSL_INIT_SETTINGS *settings)) \
	F(EVP_CIPHER *, EVP_CIPHER_fetch, (OSSL_LIB_CTX *libctx, const char *name, const char *properties)) \
	F(EVP_CIPHER_CTX *, EVP_CIPHER_CTX_new, (void)) \
	F(void, EVP_CIPHER_CTX_free, (EVP_CIPHER_CTX *ctx)) \
	F(int, EVP_CIPHER_CTX_ctrl, (EVP_CIPHER_CTX *ctx, int type, int arg, void *ptr)) \
	F(int, EVP_CipherInit_ex, (EVP_CIPHER_CTX *ctx, const EVP_CIPHER *cipher, ENGINE *engine, const unsigned char *key, const unsigned char *iv, int enc)) \
	F(int, EVP_CipherUpdate, (EVP_CIPHER_CTX *ctx, unsigned char *out, int *out_len, const unsigned char *in, int in_len)) \
	F(int, EVP_CipherFinal_ex, (EVP_CIPHER_CTX *ctx, unsigned char *out, int *out_len)) \
	F(const EVP_MD *, EVP_sha256, (void)) \
	F(const EVP_MD *, EVP_sha384, (void)) \
	F(unsigned char *, HMAC, (const EVP_MD *hash, const void *key, int key_len, const unsigned char *from, size_t len, unsigned char *to, unsigned int *to_len))
// clang-format on

#endif
