// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The functions of libcrypto 3 that judge certificates and keys, over the names of its structs, which the file that includes this has
// declared: doctor_crypto.h, or OpenSSL's own headers in the test that compares the two.
#ifndef CLI_DOCTOR_CRYPTO_FUNCTIONS_H
#define CLI_DOCTOR_CRYPTO_FUNCTIONS_H

typedef int aw_crypto_password_fn(char *buf, int size, int rwflag, void *arg);

// F(result, name, parameters).
// clang-format off
#define AW_CRYPTO_FUNCTIONS(F) \
	F(BIO *, BIO_new_file, (const char *path, const char *mode)) \
	F(int, BIO_free, (BIO *bio)) \
	F(X509 *, PEM_read_bio_X509, (BIO *bio, X509 **cert, aw_crypto_password_fn *password, void *arg)) \
	F(EVP_PKEY *, PEM_read_bio_PrivateKey, (BIO *bio, EVP_PKEY **key, aw_crypto_password_fn *password, void *arg)) \
	F(const ASN1_TIME *, X509_get0_notAfter, (const X509 *cert)) \
	F(const ASN1_TIME *, X509_get0_notBefore, (const X509 *cert)) \
	F(int, ASN1_TIME_diff, (int *days, int *seconds, const ASN1_TIME *from, const ASN1_TIME *to)) \
	F(int, X509_check_private_key, (const X509 *cert, const EVP_PKEY *key)) \
	F(void, X509_free, (X509 *cert)) \
	F(void, EVP_PKEY_free, (EVP_PKEY *key)) \
	F(X509_STORE *, X509_STORE_new, (void)) \
	F(void, X509_STORE_free, (X509_STORE *store)) \
	F(int, X509_STORE_load_locations, (X509_STORE *store, const char *file, const char *dir)) \
	F(X509_STORE_CTX *, X509_STORE_CTX_new, (void)) \
	F(void, X509_STORE_CTX_free, (X509_STORE_CTX *ctx)) \
	F(int, X509_STORE_CTX_init, (X509_STORE_CTX *ctx, X509_STORE *store, X509 *cert, struct stack_st_X509 *chain)) \
	F(int, X509_STORE_CTX_get_error, (const X509_STORE_CTX *ctx)) \
	F(int, X509_verify_cert, (X509_STORE_CTX *ctx)) \
	F(const char *, X509_verify_cert_error_string, (long error)) \
	F(OPENSSL_STACK *, OPENSSL_sk_new_null, (void)) \
	F(int, OPENSSL_sk_push, (OPENSSL_STACK *stack, const void *item)) \
	F(void *, OPENSSL_sk_pop, (OPENSSL_STACK *stack)) \
	F(void, OPENSSL_sk_free, (OPENSSL_STACK *stack))
// clang-format on

#endif
