// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Log lines on stderr.
#include "net/base/log.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LINE_MAX_OCTETS 512

static const char *const words[] = {
	[AW_LOG_ERROR] = "error",
	[AW_LOG_WARN] = "warn",
	[AW_LOG_INFO] = "info",
	[AW_LOG_DEBUG] = "debug",
};
enum {
	WORDS = sizeof(words) / sizeof(words[0]),
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static enum aw_log_level level_now = AW_LOG_ERROR;

/* Cuts a line that is too long; a newline always ends it. */
static void put_line(enum aw_log_level level, const char *format, va_list args)
{
	char line[LINE_MAX_OCTETS];
	int head = snprintf(line, sizeof(line), "anywarp[%d] %s: ", (int)getpid(), words[level]);
	int rest = vsnprintf(line + head, sizeof(line) - (size_t)head, format, args);
	size_t len = (size_t)head + (size_t)(rest > 0 ? rest : 0);
	ssize_t written;

	if (len > sizeof(line) - 1)
		len = sizeof(line) - 1;
	line[len++] = '\n';
	written = write(STDERR_FILENO, line, len);
	(void)written; /* a failure cannot be reported anywhere */
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

	if (!word || !*word)
		return;
	for (int level = 0; level < WORDS; level++) {
		if (strcmp(word, words[level]) == 0) {
			level_now = (enum aw_log_level)level;
			return;
		}
	}
	say(AW_LOG_ERROR, "ANYWARP_LOG is '%.32s', not error, warn, info or debug: taken as error",
	    word);
}

enum aw_log_level aw_log_level(void)
{
	pthread_once(&once, read_level);
	return level_now;
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
