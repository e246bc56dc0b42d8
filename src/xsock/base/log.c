// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Log lines on stderr.
#include "xsock/base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "xsock/base/libc.h"

#define LINE_MAX_BYTES 512

static const char *const words[] = {
	[AW_XS_LOG_ERROR] = "error",
	[AW_XS_LOG_WARN] = "warn",
	[AW_XS_LOG_INFO] = "info",
	[AW_XS_LOG_DEBUG] = "debug",
};

/* Returns the level of ANYWARP_LOG. The libraries report an unknown word. */
static int level_now(void)
{
	static int known = -1;
	const char *word;

	if (known >= 0)
		return known;
	word = secure_getenv("ANYWARP_LOG");
	known = AW_XS_LOG_ERROR;
	for (int level = 0; word && level < (int)(sizeof(words) / sizeof(words[0])); level++) {
		if (strcmp(word, words[level]) == 0)
			known = level;
	}
	return known;
}

/*
 * A service's stderr may be its connection. Among sockets only a logger's is AF_UNIX with a named
 * peer.
 */
static bool is_for_log(int fd)
{
	struct sockaddr_un peer;
	socklen_t len = sizeof(peer);
	struct stat file;

	if (fstat(fd, &file) != 0 || !S_ISSOCK(file.st_mode))
		return true;
	return aw_libc()->getpeername(fd, (struct sockaddr *)&peer, &len) == 0 &&
	       peer.sun_family == AF_UNIX && len > sizeof(peer.sun_family);
}

void aw_xs_log(enum aw_xs_log_level level, const char *format, ...)
{
	int saved = errno, head, rest;
	char line[LINE_MAX_BYTES];
	size_t len;
	va_list args;
	ssize_t written;

	if ((int)level > level_now() || !is_for_log(STDERR_FILENO)) {
		errno = saved;
		return;
	}
	head = snprintf(line, sizeof(line), "anywarp[%d] %s: ", (int)getpid(), words[level]);
	va_start(args, format);
	rest = vsnprintf(line + head, sizeof(line) - (size_t)head, format, args);
	va_end(args);
	len = (size_t)head + (size_t)(rest > 0 ? rest : 0);
	if (len > sizeof(line) - 1)
		len = sizeof(line) - 1;
	line[len++] = '\n';
	written = aw_libc()->write(STDERR_FILENO, line, len);
	(void)written;
	errno = saved;
}
