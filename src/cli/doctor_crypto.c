// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "cli/doctor_crypto.h"

#include <dlfcn.h>
#include <string.h>

#define CHAIN_MAX 16 // certificates of a file that are looked at

static bool find(void *library, const char *name, void *function)
{
	void *found = dlsym(library, name);

	memcpy(function, &found, sizeof(found));
	return found;
}

#define FIND(name) find(library, #name, &crypto->name)

bool aw_crypto_load(struct aw_crypto *crypto)
{
	void *library = dlopen(AW_CRYPTO_LIBRARY, RTLD_NOW | RTLD_LOCAL);

	return library && FIND(BIO_new_file) && FIND(BIO_free) && FIND(PEM_read_bio_X509) &&
	       FIND(PEM_read_bio_PrivateKey) && FIND(X509_get0_notAfter) &&
	       FIND(X509_get0_notBefore) && FIND(ASN1_TIME_diff) && FIND(X509_check_private_key) &&
	       FIND(X509_free) && FIND(EVP_PKEY_free) && FIND(X509_STORE_new) &&
	       FIND(X509_STORE_free) && FIND(X509_STORE_load_locations) &&
	       FIND(X509_STORE_CTX_new) && FIND(X509_STORE_CTX_free) && FIND(X509_STORE_CTX_init) &&
	       FIND(X509_STORE_CTX_get_error) && FIND(X509_verify_cert) &&
	       FIND(X509_verify_cert_error_string) && FIND(OPENSSL_sk_new_null) &&
	       FIND(OPENSSL_sk_push) && FIND(OPENSSL_sk_pop_free);
}

static int refuse_password(char *buf, int size, int rwflag, void *arg)
{
	(void)buf, (void)size, (void)rwflag, (void)arg;
	return 0;
}

// Certificate i of the file, which the caller frees, or NULL.
static void *read_certificate(const struct aw_crypto *crypto, const char *file, int i)
{
	void *bio = i < CHAIN_MAX ? crypto->BIO_new_file(file, "r") : NULL;
	void *cert = NULL;

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
	void *cert = read_certificate(crypto, file, 0);

	if (cert)
		crypto->X509_free(cert);
	return cert;
}

bool aw_crypto_dates(const struct aw_crypto *crypto, const char *file, int i, int *left,
		     int *before)
{
	void *cert = read_certificate(crypto, file, i);
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
	void *bio = crypto->BIO_new_file(key_file, "r");
	void *key = bio ? crypto->PEM_read_bio_PrivateKey(bio, NULL, refuse_password, NULL) : NULL;
	void *cert = read_certificate(crypto, cert_file, 0);
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
static void *read_chain(const struct aw_crypto *crypto, const char *file)
{
	void *chain = crypto->OPENSSL_sk_new_null();
	void *cert;

	for (int i = 1; chain && (cert = read_certificate(crypto, file, i)); i++)
		if (crypto->OPENSSL_sk_push(chain, cert) <= 0)
			crypto->X509_free(cert);
	return chain;
}

const char *aw_crypto_verify(const struct aw_crypto *crypto, const char *cert_file, const char *ca)
{
	void *store = crypto->X509_STORE_new(), *ctx = crypto->X509_STORE_CTX_new();
	void *cert = read_certificate(crypto, cert_file, 0), *chain = read_chain(crypto, cert_file);
	const char *why = "out of memory";

	if (store && ctx && cert && chain &&
	    crypto->X509_STORE_load_locations(store, ca, NULL) == 1 &&
	    crypto->X509_STORE_CTX_init(ctx, store, cert, chain) == 1) {
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
		crypto->OPENSSL_sk_pop_free(chain, crypto->X509_free);
	if (cert)
		crypto->X509_free(cert);
	return why;
}
