// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#ifndef XSOCK_PRELOAD_URING_H
#define XSOCK_PRELOAD_URING_H

#include <stdbool.h>

#include "xsock/base/log.h"

/* Whether this process must not have an io_uring, since a socket of its own may be in iWARP mode. Logs a refusal. */
bool aw_uring_is_refused(enum aw_xs_log_level level);

#endif
