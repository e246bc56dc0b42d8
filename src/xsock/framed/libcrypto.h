// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The functions of libcrypto 3 that cipher.c uses, over the names of its structs, which the file that includes this has
// declared: cipher.c, or OpenSSL's own headers in the test that compares the two.
#ifndef XSOCK_FRAMED_LIBCRYPTO_H
#define XSOCK_FRAMED_LIBCRYPTO_H

#include <stddef.h>
#include <stdint.h>

/* F(result, name, parameters). */
// clang-format off
#define AW_LIBCRYPTO_FUNCTIONS(F) \
	F(int, OPENSSL_init_crypto, (uint64_t opts, const OPENSSL_INIT_SETTINGS *settings)) \
	F(EVP_CIPHER *, EVP_CIPHER_fetch, (OSSL_LIB_CTX *libctx, const char *name, const char *properties)) \
	F(EVP_CIPHER_CTX *, EVP_CIPHER_CTX_new, (void)) \
	F(void, EVP_CIPHER_CTX_free, (EVP_CIPHER_CTX *ctx)) \
	F(int, EVP_CipherInit_ex, (EVP_CIPHER_CTX *ctx, const EVP_CIPHER *cipher, ENGINE *impl, const unsigned char *key, const unsigned char *iv, int enc)) \
	F(int, EVP_CipherUpdate, (EVP_CIPHER_CTX *ctx, unsigned char *out, int *outl, const unsigned char *in, int inl)) \
	F(int, EVP_CipherFinal_ex, (EVP_CIPHER_CTX *ctx, unsigned char *outm, int *outl)) \
	F(int, EVP_CIPHER_CTX_ctrl, (EVP_CIPHER_CTX *ctx, int type, int arg, void *ptr)) \
	F(EVP_KDF *, EVP_KDF_fetch, (OSSL_LIB_CTX *libctx, const char *name, const char *properties)) \
	F(EVP_KDF_CTX *, EVP_KDF_CTX_new, (EVP_KDF *kdf)) \
	F(void, EVP_KDF_CTX_free, (EVP_KDF_CTX *ctx)) \
	F(int, EVP_KDF_derive, (EVP_KDF_CTX *ctx, unsigned char *key, size_t keylen, const OSSL_PARAM params[]))
// clang-format on

#endif
