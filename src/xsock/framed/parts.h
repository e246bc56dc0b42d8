// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Keeps from poll(2) and select(2) what a read could not return: the kernel, which knows no FPDUs, reports an fd readable at the first bytes
// of one. Callers hold no lock.
#ifndef XSOCK_FRAMED_PARTS_H
#define XSOCK_FRAMED_PARTS_H

#include <poll.h>
#include <sys/select.h>

/* poll(2) has filled fds: removes POLLIN where only a part of an FPDU is there. Returns how many fds have no event left. */
int aw_parts_hide_poll(struct pollfd *fds, nfds_t count);
/* select(2) has left in: removes such fds below limit. Returns how many. */
int aw_parts_hide_select(fd_set *in, int limit);

#endif
