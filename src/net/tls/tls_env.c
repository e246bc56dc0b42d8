// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "net/tls/tls_env.h"

#include "base/log.h"
#include "base/setting.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct aw_tls_settings settings;
static bool required, wrong;

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
	const char *text = getenv("ANYWARP_TLS");

	return text && *text && strcmp(text, "off") != 0 && !secure_getenv("ANYWARP_TLS");
}

static void check_file(const char *name, const char *file)
{
	if (required && !file)
		aw_log(AW_LOG_ERROR,
		       "ANYWARP_TLS is require, and %s is not set: name the PEM file there, or by anywarp "
		       "run --tls-cert, --tls-key and --tls-ca; nothing connects",
		       name);
	else if (!required && file)
		aw_log(AW_LOG_ERROR,
		       "%s is set, and ANYWARP_TLS is not require: set that, or unset this; nothing "
		       "connects",
		       name);
	wrong |= required != (bool)file;
}

static void read_files(void)
{
	settings = (struct aw_tls_settings){
		.cert = text_of(secure_getenv(AW_TLS_CERT_ENV)),
		.key = text_of(secure_getenv(AW_TLS_KEY_ENV)),
		.ca = text_of(secure_getenv(AW_TLS_CA_ENV)),
		.name = text_of(secure_getenv(AW_TLS_NAME_ENV)),
	};
	check_file(AW_TLS_CERT_ENV, settings.cert);
	check_file(AW_TLS_KEY_ENV, settings.key);
	check_file(AW_TLS_CA_ENV, settings.ca);
}

static void read_environment(void)
{
	unsigned long word = 0;

	if (is_withheld()) {
		aw_log(AW_LOG_ERROR,
		       "ANYWARP_TLS is set, and a program with more rights than its "
		       "user's takes no files from the environment; nothing connects");
		required = wrong = true;
		return;
	}
	wrong = aw_setting_read(AW_SETTING_TLS, "nothing connects", &word) == AW_SETTING_WRONG;
	required = word == 1;
	if (!wrong)
		read_files();
	/* A wrong word may have been meant to require it. */
	required |= wrong;
}

bool aw_tls_is_required(void)
{
	pthread_once(&once, read_environment);
	return required;
}

const struct aw_tls_settings *aw_tls_settings(void)
{
	return aw_tls_is_required() && !wrong ? &settings : NULL;
}

int aw_tls_refuse(const char *what)
{
	if (!aw_tls_is_required())
		return 0;
	aw_log(aw_log_has_room() ? AW_LOG_ERROR : AW_LOG_INFO,
	       "%s refused: TLS cannot protect it, and ANYWARP_TLS is require: use connected qps, or "
	       "run the program without --tls require",
	       what);
	return EOPNOTSUPP;
}
