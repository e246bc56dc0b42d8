// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Serves the requests of programs (xsock/base/request.h). Called by main.c and status.c
// in the proxy process's one thread.
#ifndef XSOCK_PROXY_CONTROL_H
#define XSOCK_PROXY_CONTROL_H

#include <stdbool.h>

/* Has the loop serve the requests that come in on fd. Returns 0 or an errno. */
int aw_control_init(int fd);
/* Serves the requests that have come by now. */
void aw_control_catch_up(void);
/* Returns whether every process that could send requests has closed its end. */
bool aw_control_is_over(void);

#endif
