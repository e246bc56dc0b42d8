// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "base/log.h"

#include "base/array.h"
#include "base/slice.h"

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
	const char *word = secure_getenv("ANYWARP_LOG");
	size_t level;

	aw_log_output.level = AW_LOG_ERROR;
	if (!word || !*word)
		return;
	if (aw_slice_find(aw_slice_of(word), words, ARRAY_LEN(words), &level))
		aw_log_output.level = (enum aw_log_level)level;
	else if (aw_log_output.reports_level)
		say(AW_LOG_ERROR,
		    "ANYWARP_LOG is '%.32s', not error, warn, info or debug: taken as error", word);
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
