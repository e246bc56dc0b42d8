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
static void write_stderr(const char *line, size_t len)
{
	struct sockaddr_un peer;
	socklen_t peer_len = sizeof(peer);
	struct stat file;

	if (fstat(STDERR_FILENO, &file) == 0 && S_ISSOCK(file.st_mode) &&
	    (aw_libc()->getpeername(STDERR_FILENO, (struct sockaddr *)&peer, &peer_len) != 0 ||
	     peer.sun_family != AF_UNIX || peer_len <= sizeof(peer.sun_family)))
		return;
	(void)!aw_libc()->write(STDERR_FILENO, line, len);
}

struct aw_log_output aw_log_output = {
	.write = write_stderr,
	.reports_level = true,
	.once = PTHREAD_ONCE_INIT,
};
