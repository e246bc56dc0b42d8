// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Reads the settings for the library, which has a log.
#define _GNU_SOURCE // secure_getenv
#include "check/base/settings.h"

#include "base/log.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct {
	pthread_once_t once;
	char text[AW_CHECK_TEXT_MAX]; /* a copy, since a program may write over its environment */
	struct aw_check_settings settings;
} process = { .once = PTHREAD_ONCE_INIT };

static void read_settings(void)
{
	const char *text = secure_getenv(AW_CHECK_ENV);
	char why[AW_CHECK_WHY_MAX];
	size_t len = text ? strlen(text) : 0;
	bool is_right = false;

	if (len >= sizeof(process.text))
		snprintf(why, sizeof(why), "is longer than %zu bytes", sizeof(process.text) - 1);
	else if (len > 0)
		memcpy(process.text, text, len);
	is_right = len < sizeof(process.text) &&
		   aw_check_settings_parse(process.text, &process.settings, why);
	if (is_right)
		return;
	aw_log(AW_LOG_ERROR, AW_CHECK_ENV " %s; it has no effect", why);
	is_right = aw_check_settings_parse(NULL, &process.settings, why);
	(void)is_right;
}

const struct aw_check_settings *aw_check_settings(void)
{
	pthread_once(&process.once, read_settings);
	return &process.settings;
}

size_t aw_check_settings_position(struct aw_slice part)
{
	return (size_t)(part.at - process.text) + 1;
}
