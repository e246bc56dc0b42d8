// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Connections that are direct in a program: what is known of them here, and how they end if it is killed. The
// peer is told of the end in order if all that the program wrote is with TCP and all that it received
// was read; else TCP's end comes without a word, which a peer takes for a reset.
#ifndef XSOCK_KEEPER_WILLS_H
#define XSOCK_KEEPER_WILLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "xsock/ep.h"
#include "xsock/keeper/loop.h"
#include "xsock/order.h"

#define AW_WILL_FDS 3

/* AW_ORDER_DIRECT with its TCP socket, lifeline and will, which are ours from here on. */
void aw_wills_add(struct aw_loop *loop, const struct aw_order *order, const int fds[AW_WILL_FDS]);
/* Of the connection whose near end is ino. False: there is none, or it is not direct any more. */
bool aw_wills_find(uint64_t ino, uint8_t *mode, struct sockaddr_storage *remote,
		   struct aw_xs_stats *stats);
/* Calls see for what pid had begun, as it had it then. */
void aw_wills_each(pid_t pid, void (*see)(int to, int fd, uint64_t ino), int to);
/* Gives up what takes too long. */
void aw_wills_review(void);
size_t aw_wills_count(void);

#endif
