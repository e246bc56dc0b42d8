// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "cli/doctor_crypto.h"

#include <stdio.h>

#define CHAIN_MAX 16 // certificates of a file that are looked at

#define FIND(result, name, parameters) \
	found = found && aw_libcrypto_find(library, #name, &crypto->name, why);

bool aw_crypto_load(struct aw_crypto *crypto, char why[AW_LIBCRYPTO_WHY_MAX])
{
	const char *reason;
	void *library;
	bool found;

	if (!aw_libcrypto_load(&reason)) {
		snprintf(why, AW_LIBCRYPTO_WHY_MAX, "%s", reason);
		return false;
	}
	library = aw_libcrypto_open(AW_LIBCRYPTO_LIBRARY, why);
	found = library;
	AW_CRYPTO_FUNCTIONS(FIND)
	return found;
}

static int refuse_password(char *buf, int size, int rwflag, void *arg)
{
	(void)buf, (void)size, (void)rwflag, (void)arg;
	return 0;
}

// Certificate i of the file, which the caller frees, or NULL.
static X509 *read_certificate(const struct aw_crypto *crypto, const char *file, int i)
{
	BIO *bio = i < CHAIN_MAX ? crypto->BIO_new_file(file, "r") : NULL;
	X509 *cert = NULL;

	for (int at = 0; bio && at <= i; at++) {
		if (cert)
			crypto->X509_free(cert);
		cert = crypto->PEM_read_bio_X509(bio, NULL, NULL, NULL);
		if (!cert)
			break;
	}
	if (bio)
		crypto->BIO_free(bio);
	return cert;
}

bool aw_crypto_has_certificate(const struct aw_crypto *crypto, const char *file)
{
	X509 *cert = read_certificate(crypto, file, 0);

	if (cert)
		crypto->X509_free(cert);
	return cert;
}

bool aw_crypto_dates(const struct aw_crypto *crypto, const char *file, int i, int *left,
		     int *before)
{
	X509 *cert = read_certificate(crypto, file, i);
	int seconds = 0, seconds_before = 0;
	bool known;

	if (!cert)
		return false;
	known = crypto->ASN1_TIME_diff(left, &seconds, NULL, crypto->X509_get0_notAfter(cert)) ==
			1 &&
		crypto->ASN1_TIME_diff(before, &seconds_before, NULL,
				       crypto->X509_get0_notBefore(cert)) == 1;
	crypto->X509_free(cert);
	if (known && seconds < 0)
		(*left)--;
	if (known && seconds_before > 0)
		(*before)++;
	return known;
}

enum aw_crypto_fit aw_crypto_key(const struct aw_crypto *crypto, const char *cert_file,
				 const char *key_file)
{
	BIO *bio = crypto->BIO_new_file(key_file, "r");
	EVP_PKEY *key = bio ? crypto->PEM_read_bio_PrivateKey(bio, NULL, refuse_password, NULL)
			    : NULL;
	X509 *cert = read_certificate(crypto, cert_file, 0);
	enum aw_crypto_fit fit = AW_CRYPTO_UNREADABLE;

	if (key && cert)
		fit = crypto->X509_check_private_key(cert, key) == 1 ? AW_CRYPTO_FITS
								     : AW_CRYPTO_DIFFERS;
	if (cert)
		crypto->X509_free(cert);
	if (key)
		crypto->EVP_PKEY_free(key);
	if (bio)
		crypto->BIO_free(bio);
	return fit;
}

// The certificates behind the first one.
static OPENSSL_STACK *read_chain(const struct aw_crypto *crypto, const char *file)
{
	OPENSSL_STACK *chain = crypto->OPENSSL_sk_new_null();
	X509 *cert;

	for (int i = 1; chain && (cert = read_certificate(crypto, file, i)); i++)
		if (crypto->OPENSSL_sk_push(chain, cert) <= 0)
			crypto->X509_free(cert);
	return chain;
}

static void free_chain(const struct aw_crypto *crypto, OPENSSL_STACK *chain)
{
	X509 *cert;

	while ((cert = crypto->OPENSSL_sk_pop(chain)))
		crypto->X509_free(cert);
	crypto->OPENSSL_sk_free(chain);
}

const char *aw_crypto_verify(const struct aw_crypto *crypto, const char *cert_file, const char *ca)
{
	X509_STORE *store = crypto->X509_STORE_new();
	X509_STORE_CTX *ctx = crypto->X509_STORE_CTX_new();
	X509 *cert = read_certificate(crypto, cert_file, 0);
	OPENSSL_STACK *chain = read_chain(crypto, cert_file);
	const char *why = "out of memory";

	if (store && ctx && cert && chain &&
	    crypto->X509_STORE_load_locations(store, ca, NULL) == 1 &&
	    crypto->X509_STORE_CTX_init(ctx, store, cert, (struct stack_st_X509 *)chain) == 1) {
		why = NULL;
		if (crypto->X509_verify_cert(ctx) != 1)
			why = crypto->X509_verify_cert_error_string(
				crypto->X509_STORE_CTX_get_error(ctx));
	}
	if (ctx)
		crypto->X509_STORE_CTX_free(ctx);
	if (store)
		crypto->X509_STORE_free(store);
	if (chain)
		free_chain(crypto, chain);
	if (cert)
		crypto->X509_free(cert);
	return why;
}
