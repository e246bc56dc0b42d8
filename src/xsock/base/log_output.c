// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The log of the preload library and of the proxy process.
#include "base/log.h"

#include <sys/stat.h>
#include <sys/un.h>

#include "xsock/base/libc.h"

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

static void write_stderr(const char *line, size_t len)
{
	ssize_t written;

	if (!is_for_log(STDERR_FILENO))
		return;
	written = aw_libc()->write(STDERR_FILENO, line, len);
	(void)written;
}

struct aw_log_output aw_log_output = {
	.write = write_stderr,
	.reports_level = true,
	.once = PTHREAD_ONCE_INIT,
};
