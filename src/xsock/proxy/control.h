// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Carries out the program's orders (xsock/order.h).
#ifndef XSOCK_PROXY_CONTROL_H
#define XSOCK_PROXY_CONTROL_H

#include <stdbool.h>

#include "xsock/proxy/loop.h"

int aw_control_init(struct aw_loop *loop, int fd);
/* Takes the orders that have come by now. */
void aw_control_catch_up(void);
/* No process can give orders any more. */
bool aw_control_is_over(void);
/* Answers who waits for a connection to drain. Returns whether anyone still waits. */
bool aw_control_review(void);

#endif
