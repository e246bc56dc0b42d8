// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// TCP sockets that their programs have closed before the MPA Request of a record's client was
// there: the proxy process receives the Request and then closes the socket, so that the client's
// connection ends in order and not by a reset. Called by control.c and main.c.
#ifndef XSOCK_PROXY_FAREWELL_H
#define XSOCK_PROXY_FAREWELL_H

#include <stdbool.h>

/* Receives the Request of tcp's client and closes tcp. Takes tcp. */
void aw_farewell_add(int tcp);
/* Closes the sockets whose clients have sent no Request in time. */
void aw_farewell_review(void);
/* Returns whether any socket still waits for its Request. */
bool aw_farewell_any(void);

#endif
