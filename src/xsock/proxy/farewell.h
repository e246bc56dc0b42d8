// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// TCP sockets whose programs have closed them before the MPA Request of a record's client was there: the proxy process takes the
// Request and then closes, so that the client's connection ends in order and not by a reset.
#ifndef XSOCK_PROXY_FAREWELL_H
#define XSOCK_PROXY_FAREWELL_H

#include "xsock/proxy/loop.h"

/* The socket is the proxy process's from here on. */
void aw_farewell_add(struct aw_loop *loop, int tcp);
/* Closes the sockets whose clients have not kept their word in time. */
void aw_farewell_review(void);
int aw_farewell_count(void);

#endif
