// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "net/tls/keylog.h"

#include "base/log.h"
#include "net/tls/secrets.h"
#include "net/tls/tls_env.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

/* Fixed once begun; empty: there is no key log. The program may change its working directory. */
static char file[PATH_MAX];

/* A pipe or a terminal could keep a handshake waiting. */
static int open_file(const char *name, int flags)
{
	int fd = open(name, O_WRONLY | O_APPEND | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | flags, 0600);
	struct stat st;

	if (fd < 0 || (fstat(fd, &st) == 0 && S_ISREG(st.st_mode)))
		return fd;
	close(fd);
	errno = EINVAL;
	return -1;
}

int aw_tls_keylog_begin(void)
{
	const char *name = aw_tls_getenv(AW_TLS_KEYLOG_ENV);
	int fd;

	if (!name || !*name)
		return 0;
	fd = open_file(name, O_CREAT);
	if (fd < 0 || !realpath(name, file)) {
		aw_log(AW_LOG_ERROR,
		       AW_TLS_KEYLOG_ENV " is '%s': %s: it must be a file that can be written, or "
					 "unset; nothing connects",
		       name, fd < 0 && errno == EINVAL ? "no regular file" : strerror(errno));
		*file = '\0';
	} else {
		aw_log(AW_LOG_ERROR,
		       AW_TLS_KEYLOG_ENV
		       ": the keys of every connection are written to %s, and by "
		       "them a capture can be read; unset it but for a search for a fault",
		       file);
	}
	if (fd >= 0)
		close(fd);
	return *file ? 0 : EINVAL;
}

/*
 * Opened for each line, since a program may close all fds that it does not know, and have a file of its own under the
 * number then. One write a line: processes share the file.
 */
static void write_line(const char *line)
{
	struct iovec parts[] = { { (void *)(uintptr_t)line, strlen(line) }, { "\n", 1 } };
	int fd = open_file(file, 0);

	if (fd < 0 || writev(fd, parts, 2) < 0)
		aw_log(aw_log_has_room() ? AW_LOG_WARN : AW_LOG_INFO,
		       "tls: a connection's keys are not in the key log %s: %s", file,
		       strerror(errno));
	if (fd >= 0)
		close(fd);
}

static void take_line(const SSL *ssl, const char *line)
{
	aw_tls_secrets_note(ssl, line);
	if (*file)
		write_line(line);
}

void aw_tls_keylog_use(SSL_CTX *ctx)
{
	aw_openssl.SSL_CTX_set_keylog_callback(ctx, take_line);
}
