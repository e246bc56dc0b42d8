// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "net/tls/tls_env.h"

#include "base/log.h"
#include "base/setting.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static char *get_variable(const char *name)
{
	return secure_getenv(name);
}

aw_tls_getenv_fn *aw_tls_getenv = get_variable;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct aw_tls_settings settings;
static bool used, wrong;

static const char *text_of(const char *text)
{
	return text && *text ? text : NULL;
}

/*
 * A program with more rights than its user's takes no files from the environment. It must not go on without TLS either, where
 * its user has asked for it.
 */
static bool is_withheld(void)
{
	const char *mode = text_of(getenv("ANYWARP_TLS"));
	const char *rules = text_of(getenv("ANYWARP_TLS_RULES"));

	return (mode && strcmp(mode, "off") != 0 && !secure_getenv("ANYWARP_TLS")) ||
	       (rules && !secure_getenv(AW_TLS_RULES_ENV));
}

static const char *mode_text(void)
{
	if (settings.rules)
		return AW_TLS_RULES_ENV " is set";
	return settings.mode == AW_TLS_REQUIRE ? "ANYWARP_TLS is require" : "ANYWARP_TLS is offer";
}

static void check_file(const char *name, const char *file)
{
	if (used && !file)
		aw_log(AW_LOG_ERROR,
		       "%s, and %s is not set: name the PEM file there, or by anywarp "
		       "run --tls-cert, --tls-key and --tls-ca; nothing connects",
		       mode_text(), name);
	else if (!used && file)
		aw_log(AW_LOG_ERROR,
		       "%s is set, and ANYWARP_TLS is not require or offer: set that, or " AW_TLS_RULES_ENV
		       ", or unset this; nothing connects",
		       name);
	wrong |= used != (bool)file;
}

static void read_files(void)
{
	settings.cert = text_of(aw_tls_getenv(AW_TLS_CERT_ENV));
	settings.key = text_of(aw_tls_getenv(AW_TLS_KEY_ENV));
	settings.ca = text_of(aw_tls_getenv(AW_TLS_CA_ENV));
	settings.name = text_of(aw_tls_getenv(AW_TLS_NAME_ENV));
	check_file(AW_TLS_CERT_ENV, settings.cert);
	check_file(AW_TLS_KEY_ENV, settings.key);
	check_file(AW_TLS_CA_ENV, settings.ca);
}

/* A wrong word changes nothing but who makes the records: not whether there are any. */
static void read_records(void)
{
	const char *text = aw_tls_getenv(aw_setting_name(AW_SETTING_TLS_RECORDS));
	unsigned long word = 0;

	if (aw_setting_parse(AW_SETTING_TLS_RECORDS, text, &word) == AW_SETTING_WRONG)
		(void)aw_setting_read(AW_SETTING_TLS_RECORDS, "records are made in user space",
				      &word);
	settings.by_kernel = word == 1;
}

/* A wrong word may have been meant to forbid it. */
static void read_host_path(void)
{
	enum aw_setting_found found;
	unsigned long word = 0;

	found = aw_setting_parse(AW_SETTING_TLS_HOST_PATH,
				 aw_tls_getenv(aw_setting_name(AW_SETTING_TLS_HOST_PATH)), &word);
	if (found == AW_SETTING_WRONG)
		(void)aw_setting_read(AW_SETTING_TLS_HOST_PATH, "connections with tls stay on tcp",
				      &word);
	settings.host_path = found != AW_SETTING_WRONG && word == 0;
}

static void read_environment(void)
{
	unsigned long word = AW_TLS_OFF;

	if (is_withheld()) {
		aw_log(AW_LOG_ERROR,
		       "ANYWARP_TLS or " AW_TLS_RULES_ENV
		       " is set, and a program with more rights than "
		       "its user's takes no files from the environment; nothing connects");
		used = wrong = true;
		return;
	}
	wrong = aw_setting_parse(AW_SETTING_TLS, aw_tls_getenv(aw_setting_name(AW_SETTING_TLS)),
				 &word) == AW_SETTING_WRONG;
	if (wrong)
		(void)aw_setting_read(AW_SETTING_TLS, "nothing connects", &word);
	settings.mode = (enum aw_tls_mode)word;
	settings.rules = text_of(aw_tls_getenv(AW_TLS_RULES_ENV));
	read_records();
	read_host_path();
	used = settings.mode != AW_TLS_OFF || settings.rules;
	if (!wrong)
		read_files();
	/* A wrong word may have been meant to require it. */
	used |= wrong;
}

bool aw_tls_is_used(void)
{
	pthread_once(&once, read_environment);
	return used;
}

const struct aw_tls_settings *aw_tls_settings(void)
{
	return aw_tls_is_used() && !wrong ? &settings : NULL;
}
