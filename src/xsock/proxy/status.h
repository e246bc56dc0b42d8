// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Tells `anywarp sockets --status PID` of the connections of a process: a socket for each process, sockets.PID, in
// anywarp-UID of XDG_RUNTIME_DIR or /tmp, which writes a line an fd and closes.
#ifndef XSOCK_PROXY_STATUS_H
#define XSOCK_PROXY_STATUS_H

#include <sys/types.h>

#include "xsock/proxy/loop.h"

/* take_requests: what programs have told by now is to be known. */
void aw_status_init(struct aw_loop *loop, void (*take_requests)(void));
/* Our user's directory, where the sockets are (xsock/place.h); empty: there is none. */
const char *aw_status_directory(void);
/* Answers for pid from here on. */
void aw_status_serve(pid_t pid);
/* Stops answering for processes that are gone; all: for every one. */
void aw_status_review(bool all);

#endif
