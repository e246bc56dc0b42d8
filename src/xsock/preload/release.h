// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A proxy process answers questions at a listener's port (xsock/question.h), until a program wants that port for itself.
#ifndef XSOCK_PRELOAD_RELEASE_H
#define XSOCK_PRELOAD_RELEASE_H

#include <stdbool.h>
#include <sys/socket.h>

/* UDP's addr is in use. Has our own proxy process, or those of all other programs of our user's, let go of it. */
bool aw_release_ours(const struct sockaddr *addr, socklen_t len);
bool aw_release_others(const struct sockaddr *addr, socklen_t len);

#endif
