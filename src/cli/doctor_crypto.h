// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Questions about certificates and keys in files, which OpenSSL answers.
#ifndef CLI_DOCTOR_CRYPTO_H
#define CLI_DOCTOR_CRYPTO_H

#include "crypto/libcrypto.h"

typedef struct bio_st BIO;
typedef struct x509_st X509;
typedef struct x509_store_st X509_STORE;
typedef struct x509_store_ctx_st X509_STORE_CTX;
typedef struct evp_pkey_st EVP_PKEY;
typedef struct asn1_string_st ASN1_TIME;
typedef struct stack_st OPENSSL_STACK;
struct stack_st_X509; // a stack whose items are certificates, by OpenSSL's name

#include "cli/doctor_crypto_functions.h"

struct aw_crypto {
	AW_CRYPTO_FUNCTIONS(AW_LIBCRYPTO_MEMBER)
};

// False: a program's TLS would find no libcrypto that will do, either; why says what to install or to look at.
__attribute__((warn_unused_result)) bool aw_crypto_load(struct aw_crypto *crypto,
							char why[AW_LIBCRYPTO_WHY_MAX]);

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
