// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Checks what TLS needs where the environment requires it: OpenSSL, the files, and how long the certificate is valid.
#include "cli/doctor.h"

#include "base/setting.h"
#include "cli/finding.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CRYPTO_LIBRARY "libcrypto.so.3"
#define SOON_DAYS 14 // before its certificate's end a user is warned
#define FILE_COUNT 3

static const char *const variables[FILE_COUNT] = { "ANYWARP_TLS_CERT", "ANYWARP_TLS_KEY",
						   "ANYWARP_TLS_CA" };

// Of OpenSSL 3, whose headers anywarp is built without.
struct crypto {
	void *(*BIO_new_file)(const char *path, const char *mode);
	int (*BIO_free)(void *bio);
	void *(*PEM_read_bio_X509)(void *bio, void **cert, void *password, void *arg);
	const void *(*X509_get0_notAfter)(const void *cert);
	int (*ASN1_TIME_diff)(int *days, int *seconds, const void *from, const void *to);
	void (*X509_free)(void *cert);
};

static bool find(void *library, const char *name, void *function)
{
	void *found = dlsym(library, name);

	memcpy(function, &found, sizeof(found));
	return found;
}

static bool load(struct crypto *crypto)
{
	void *library = dlopen(CRYPTO_LIBRARY, RTLD_NOW | RTLD_LOCAL);

	return library && find(library, "BIO_new_file", &crypto->BIO_new_file) &&
	       find(library, "BIO_free", &crypto->BIO_free) &&
	       find(library, "PEM_read_bio_X509", &crypto->PEM_read_bio_X509) &&
	       find(library, "X509_get0_notAfter", &crypto->X509_get0_notAfter) &&
	       find(library, "ASN1_TIME_diff", &crypto->ASN1_TIME_diff) &&
	       find(library, "X509_free", &crypto->X509_free);
}

// False: the file has no certificate.
static bool read_days_left(const struct crypto *crypto, const char *file, int *days, int *seconds)
{
	void *bio = crypto->BIO_new_file(file, "r");
	void *cert = bio ? crypto->PEM_read_bio_X509(bio, NULL, NULL, NULL) : NULL;
	bool read = cert && crypto->ASN1_TIME_diff(days, seconds, NULL,
						   crypto->X509_get0_notAfter(cert)) == 1;

	if (cert)
		crypto->X509_free(cert);
	if (bio)
		crypto->BIO_free(bio);
	return read;
}

static void check_certificate(const char *file)
{
	struct crypto crypto;
	int days = 0, seconds = 0;

	if (!load(&crypto))
		aw_finding_print(FINDING_FAIL, "TLS", "install OpenSSL 3 (Debian: libssl3)",
				 "there is no " CRYPTO_LIBRARY);
	else if (!read_days_left(&crypto, file, &days, &seconds))
		aw_finding_print(FINDING_FAIL, "TLS", "name a PEM file with this end's certificate",
				 "ANYWARP_TLS_CERT: no certificate in %s", file);
	else if (days < 0 || seconds < 0)
		aw_finding_print(FINDING_FAIL, "TLS", "renew it: peers refuse it",
				 "the certificate in %s has expired", file);
	else if (days < SOON_DAYS)
		aw_finding_print(FINDING_WARN, "TLS", "renew it",
				 "the certificate in %s expires in %d days", file, days);
	else
		aw_finding_print(
			FINDING_OK, "TLS", NULL,
			"required; the certificate in %s is valid for %d days more; records are "
			"made in user space",
			file, days);
}

static bool check_files(void)
{
	struct stat st;
	bool right = true;

	for (int i = 0; i < FILE_COUNT; i++) {
		const char *file = getenv(variables[i]);

		if (file && access(file, R_OK) == 0)
			continue;
		aw_finding_print(FINDING_FAIL, "TLS", "name a readable PEM file there", "%s: %s",
				 variables[i], file && *file ? strerror(errno) : "not set");
		right = false;
	}
	if (right && stat(getenv("ANYWARP_TLS_KEY"), &st) == 0 && st.st_mode & (S_IRWXG | S_IRWXO))
		aw_finding_print(FINDING_WARN, "TLS", "chmod 600 it",
				 "the key in %s is for others than its owner, too",
				 getenv("ANYWARP_TLS_KEY"));
	return right;
}

void aw_doctor_tls(void)
{
	unsigned long word = 0;

	(void)aw_setting_parse(AW_SETTING_TLS, getenv("ANYWARP_TLS"), &word);
	if (word == 1 && check_files())
		check_certificate(getenv("ANYWARP_TLS_CERT"));
	if (word == 1 && getenv("ANYWARP_TLS_KEYLOG") && *getenv("ANYWARP_TLS_KEYLOG"))
		aw_finding_print(FINDING_WARN, "TLS", "unset ANYWARP_TLS_KEYLOG",
				 "the keys of every connection are written to %s",
				 getenv("ANYWARP_TLS_KEYLOG"));
	if (word == 1)
		return;
	for (int i = 0; i < FILE_COUNT; i++)
		if (getenv(variables[i]) && *getenv(variables[i]))
			aw_finding_print(FINDING_FAIL, "TLS",
					 "set ANYWARP_TLS=require, or unset it",
					 "%s is set without ANYWARP_TLS: nothing connects",
					 variables[i]);
}
