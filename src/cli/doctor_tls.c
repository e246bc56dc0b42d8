// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Checks what TLS needs where the environment asks for it: OpenSSL, the files, whether they fit together and for how long the
// certificates are valid, and the rules.
#include "cli/doctor.h"

#include "base/kernel_tls.h"
#include "base/setting.h"
#include "base/tls_rules.h"
#include "cli/doctor_crypto.h"
#include "cli/finding.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SOON_DAYS 14 // before its certificate's end a user is warned
#define FILE_COUNT 3
#define RULES "ANYWARP_TLS_RULES"

static const char *const variables[FILE_COUNT] = { "ANYWARP_TLS_CERT", "ANYWARP_TLS_KEY",
						   "ANYWARP_TLS_CA" };

static const char *text_of(const char *variable)
{
	const char *text = getenv(variable);

	return text && *text ? text : NULL;
}

// Prints what is wrong with the certificates of a file. False: something is, or will soon be; *days is otherwise the least left.
static bool check_dates(const struct aw_crypto *crypto, const char *file, const char *whose,
			int *days)
{
	int left, before, i = 0;

	*days = 0;
	for (; aw_crypto_dates(crypto, file, i, &left, &before); i++) {
		if (before > 0)
			aw_finding_print(FINDING_FAIL, "TLS", "look at this host's clock",
					 "the certificate in %s is not valid yet", file);
		else if (left < 0)
			aw_finding_print(FINDING_FAIL, "TLS", whose,
					 "the certificate in %s has expired", file);
		else if (left < SOON_DAYS)
			aw_finding_print(FINDING_WARN, "TLS", "renew it",
					 "the certificate in %s expires in %d days", file, left);
		if (before > 0 || left < SOON_DAYS)
			return false;
		*days = i == 0 || left < *days ? left : *days;
	}
	return i > 0;
}

static bool check_key(const struct aw_crypto *crypto, const char *cert, const char *key)
{
	switch (aw_crypto_key(crypto, cert, key)) {
	case AW_CRYPTO_FITS:
		return true;
	case AW_CRYPTO_UNREADABLE:
		aw_finding_print(FINDING_FAIL, "TLS",
				 "name a PEM file with the key, without a passphrase",
				 "ANYWARP_TLS_KEY: no key in %s", key);
		return false;
	case AW_CRYPTO_DIFFERS:
		aw_finding_print(FINDING_FAIL, "TLS",
				 "name the key with which the certificate was made",
				 "the key in %s does not fit the certificate in %s", key, cert);
		return false;
	}
	return false;
}

// The CA of this end's certificate may be another than that of the peers'.
static bool check_issuer(const struct aw_crypto *crypto, const char *cert, const char *ca)
{
	const char *why = aw_crypto_verify(crypto, cert, ca);

	if (why)
		aw_finding_print(
			FINDING_WARN, "TLS",
			"name that ca by ANYWARP_TLS_CA, or by the peers' if theirs differs",
			"no ca in %s has issued the certificate in %s: %s", ca, cert, why);
	return !why;
}

static const char *mode_text(enum aw_tls_mode mode)
{
	switch (mode) {
	case AW_TLS_OFF:
		return "off";
	case AW_TLS_REQUIRE:
		return "required";
	case AW_TLS_OFFER:
		return "offered";
	}
	return "unknown";
}

static void check_certificates(enum aw_tls_mode mode)
{
	const char *cert = getenv(variables[0]), *key = getenv(variables[1]);
	const char *ca = getenv(variables[2]);
	char why[AW_LIBCRYPTO_WHY_MAX];
	struct aw_crypto crypto;
	int days = 0, ca_days = 0;
	bool right;

	if (!aw_crypto_load(&crypto, why)) {
		aw_finding_print(FINDING_FAIL, "TLS", why, AW_LIBCRYPTO_LIBRARY " is of no use");
		return;
	}
	if (!aw_crypto_has_certificate(&crypto, cert)) {
		aw_finding_print(FINDING_FAIL, "TLS", "name a PEM file with this end's certificate",
				 "ANYWARP_TLS_CERT: no certificate in %s", cert);
		return;
	}
	if (!aw_crypto_has_certificate(&crypto, ca)) {
		aw_finding_print(FINDING_FAIL, "TLS", "name a PEM file with the ca's certificate",
				 "ANYWARP_TLS_CA: no certificate in %s", ca);
		return;
	}
	right = check_dates(&crypto, cert, "renew it: peers refuse it", &days);
	right = check_dates(&crypto, ca, "renew it: it makes every peer's certificate wrong",
			    &ca_days) &&
		right;
	right = check_key(&crypto, cert, key) && right;
	// Of one that has expired its issuer is not the point.
	if (right)
		right = check_issuer(&crypto, cert, ca);
	if (right)
		aw_finding_print(FINDING_OK, "TLS", NULL,
				 "%s%s; the certificate in %s is valid for %d days more",
				 mode_text(mode), text_of(RULES) ? " where no rule matches" : "",
				 cert, days);
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

static void check_lines(const struct aw_tls_rules *rules, const char *file)
{
	bool right = true;

	for (size_t i = 0; i < aw_tls_rules_count(rules); i++) {
		const struct aw_tls_rule *rule = aw_tls_rules_at(rules, i);

		if (aw_tls_rules_is_hidden(rules, i)) {
			aw_finding_print(
				FINDING_WARN, "TLS rules", "delete the line, or move it up",
				"%s: line %u decides nothing: an earlier one matches all that "
				"it does",
				file, rule->line);
			right = false;
		}
	}
	if (right)
		aw_finding_print(FINDING_OK, "TLS rules", NULL, "%s: %zu rules", file,
				 aw_tls_rules_count(rules));
}

static void check_rules(void)
{
	const char *file = text_of(RULES);
	char why[AW_TLS_RULES_WHY_MAX];
	struct aw_tls_rules *rules;

	if (!file)
		return;
	if (!aw_tls_rules_read(file, &rules, why)) {
		aw_finding_print(FINDING_FAIL, "TLS rules",
				 "mend the line: nothing connects until then", "%s", why);
		return;
	}
	check_lines(rules, file);
	aw_tls_rules_put(rules);
}

// Tells whether the library makes the records or the kernel, and what this kernel has for it.
static void check_records(void)
{
	unsigned long by_kernel = 0;
	struct aw_kernel_tls kernel;

	(void)aw_setting_parse(AW_SETTING_TLS_RECORDS, getenv("ANYWARP_TLS_RECORDS"), &by_kernel);
	aw_kernel_tls_ask(&kernel);
	if (!by_kernel)
		aw_finding_print(FINDING_OK, "TLS records", NULL, "made in user space; %s%s",
				 kernel.has ? "this kernel's TLS can do it, too: "
					      "ANYWARP_TLS_RECORDS=kernel"
					    : "not by this kernel's TLS: ",
				 kernel.why);
	else if (!kernel.has)
		aw_finding_print(FINDING_WARN, "TLS records",
				 "do that, or unset ANYWARP_TLS_RECORDS",
				 "made in user space: the kernel's TLS cannot do it: %s",
				 kernel.why);
	else if (!kernel.changes_keys)
		aw_finding_print(
			FINDING_WARN, "TLS records",
			"set Ciphersuites = TLS_CHACHA20_POLY1305_SHA256 in openssl.cnf, or run "
			"Linux 6.14",
			"made by the kernel with ChaCha20-Poly1305 alone: it cannot change keys, "
			"as AES-GCM has to");
	else
		aw_finding_print(FINDING_OK, "TLS records", NULL, "made by the kernel");
}

// A word that is wrong is a finding about the environment.
static void check_host_path(void)
{
	const char *found =
		"connections with TLS go through memory as others do, between ends that "
		"have proven who they are";
	unsigned long off = 0, by_kernel = 0;

	(void)aw_setting_parse(AW_SETTING_TLS_HOST_PATH, getenv("ANYWARP_TLS_HOST_PATH"), &off);
	(void)aw_setting_parse(AW_SETTING_TLS_RECORDS, getenv("ANYWARP_TLS_RECORDS"), &by_kernel);
	if (off)
		found = "off, by ANYWARP_TLS_HOST_PATH: connections with TLS stay on TCP";
	else if (by_kernel)
		found = "off, by ANYWARP_TLS_RECORDS=kernel: connections with TLS stay on TCP";
	aw_finding_print(FINDING_OK, "TLS host path", NULL, "%s", found);
}

void aw_doctor_tls(void)
{
	unsigned long word = AW_TLS_OFF;

	(void)aw_setting_parse(AW_SETTING_TLS, getenv("ANYWARP_TLS"), &word);
	check_rules();
	if (word != AW_TLS_OFF || text_of(RULES)) {
		if (check_files())
			check_certificates((enum aw_tls_mode)word);
		check_records();
		check_host_path();
		if (text_of("ANYWARP_TLS_KEYLOG"))
			aw_finding_print(FINDING_WARN, "TLS", "unset ANYWARP_TLS_KEYLOG",
					 "the keys of every connection are written to %s",
					 getenv("ANYWARP_TLS_KEYLOG"));
		return;
	}
	for (int i = 0; i < FILE_COUNT; i++)
		if (text_of(variables[i]))
			aw_finding_print(FINDING_FAIL, "TLS",
					 "set ANYWARP_TLS=require, or unset it",
					 "%s is set without ANYWARP_TLS: nothing connects",
					 variables[i]);
}
