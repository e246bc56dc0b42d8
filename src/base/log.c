// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "base/log.h"

#include "base/setting.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const char *const words[] = {
	[AW_LOG_ERROR] = "error",
	[AW_LOG_WARN] = "warn",
	[AW_LOG_INFO] = "info",
	[AW_LOG_DEBUG] = "debug",
};

/* Cuts a line that is too long; a newline always ends it. */
static void put_line(enum aw_log_level level, const char *format, va_list args)
{
	char line[AW_LOG_LINE_MAX];
	int head = snprintf(line, sizeof(line), "anywarp[%d] %s: ", (int)getpid(), words[level]);
	int rest = vsnprintf(line + head, sizeof(line) - (size_t)head, format, args);
	size_t len = (size_t)head + (size_t)(rest > 0 ? rest : 0);

	if (len > sizeof(line) - 1)
		len = sizeof(line) - 1;
	line[len++] = '\n';
	aw_log_output.write(line, len);
}

__attribute__((format(printf, 2, 3))) static void say(enum aw_log_level level, const char *format,
						      ...)
{
	va_list args;

	va_start(args, format);
	put_line(level, format, args);
	va_end(args);
}

static void read_level(void)
{
	const char *word = secure_getenv(aw_setting_name(AW_SETTING_LOG));
	unsigned long level = AW_LOG_ERROR;
	char why[AW_SETTING_WHY_MAX];
	enum aw_setting_found found = aw_setting_parse(AW_SETTING_LOG, word, &level);

	aw_log_output.level = (enum aw_log_level)level;
	if (found != AW_SETTING_WRONG || !aw_log_output.reports_level)
		return;
	aw_setting_explain(AW_SETTING_LOG, word, why);
	say(AW_LOG_ERROR, "%s; taken as error", why);
}

enum aw_log_level aw_log_level(void)
{
	pthread_once(&aw_log_output.once, read_level);
	return aw_log_output.level;
}

void aw_log(enum aw_log_level level, const char *format, ...)
{
	int saved = errno;
	va_list args;

	if (level <= aw_log_level()) {
		va_start(args, format);
		put_line(level, format, args);
		va_end(args);
	}
	errno = saved;
}
