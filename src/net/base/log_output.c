// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The log of libibverbs.so.1, and of librdmacm.so.1, which finds it there.
#include "base/log.h"
#include "net/base/io_now.h"

#include <unistd.h>

static void write_stderr(const char *line, size_t len)
{
	ssize_t written = aw_write_now(STDERR_FILENO, line, len);

	(void)written;
}

struct aw_log_output aw_log_output = {
	.write = write_stderr,
	.reports_level = true,
	.once = PTHREAD_ONCE_INIT,
};
