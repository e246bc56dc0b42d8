// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Questions about certificates and keys in files, which OpenSSL answers.
#ifndef CLI_DOCTOR_CRYPTO_H
#define CLI_DOCTOR_CRYPTO_H

#include <stdbool.h>
#include <stddef.h>

#define AW_CRYPTO_LIBRARY "libcrypto.so.3"

// Of OpenSSL 3, whose headers anywarp is built without.
struct aw_crypto {
	void *(*BIO_new_file)(const char *path, const char *mode);
	int (*BIO_free)(void *bio);
	void *(*PEM_read_bio_X509)(void *bio, void **cert, void *password, void *arg);
	void *(*PEM_read_bio_PrivateKey)(void *bio, void **key,
					 int (*password)(char *, int, int, void *), void *arg);
	const void *(*X509_get0_notAfter)(const void *cert);
	const void *(*X509_get0_notBefore)(const void *cert);
	int (*ASN1_TIME_diff)(int *days, int *seconds, const void *from, const void *to);
	int (*X509_check_private_key)(const void *cert, const void *key);
	void (*X509_free)(void *cert);
	void (*EVP_PKEY_free)(void *key);
	void *(*X509_STORE_new)(void);
	void (*X509_STORE_free)(void *store);
	int (*X509_STORE_load_locations)(void *store, const char *file, const char *dir);
	void *(*X509_STORE_CTX_new)(void);
	void (*X509_STORE_CTX_free)(void *ctx);
	int (*X509_STORE_CTX_init)(void *ctx, void *store, void *cert, void *chain);
	int (*X509_STORE_CTX_get_error)(const void *ctx);
	int (*X509_verify_cert)(void *ctx);
	const char *(*X509_verify_cert_error_string)(long error);
	void *(*OPENSSL_sk_new_null)(void);
	int (*OPENSSL_sk_push)(void *stack, const void *item);
	void (*OPENSSL_sk_pop_free)(void *stack, void (*free)(void *));
};

__attribute__((warn_unused_result)) bool aw_crypto_load(struct aw_crypto *crypto);

bool aw_crypto_has_certificate(const struct aw_crypto *crypto, const char *file);

// The days for which certificate i of the file is still valid, below zero where it has expired, and those before it is. False:
// there is none.
bool aw_crypto_dates(const struct aw_crypto *crypto, const char *file, int i, int *left,
		     int *before);

enum aw_crypto_fit {
	AW_CRYPTO_FITS,
	AW_CRYPTO_UNREADABLE, // no key, or one with a passphrase
	AW_CRYPTO_DIFFERS,
};

enum aw_crypto_fit aw_crypto_key(const struct aw_crypto *crypto, const char *cert, const char *key);

// NULL: a CA of the file has issued the first certificate, maybe by way of the others in its file; else why not.
const char *aw_crypto_verify(const struct aw_crypto *crypto, const char *cert, const char *ca);

#endif
