// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// An order as it has come, and what the kernel says of it: who has sent it, and what its fds are. Programs that have
// given up root have their proxy process still: nothing is believed that its sender says and the kernel can say.
#ifndef XSOCK_PROXY_REQUEST_MSG_H
#define XSOCK_PROXY_REQUEST_MSG_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "xsock/base/request.h"

struct aw_request_msg {
	struct aw_request request;
	struct ucred from; /* pid 0: who that is cannot be told here */
	int fds[AW_REQUEST_FDS]; /* as the order's kind has them */
	int count;
};

/* Whoever has read one closes it. 1: there is one; 0: none for now; -1: nobody can send any more. */
int aw_request_msg_recv(int control, struct aw_request_msg *msg);
/* Whether it is an order, in order, with what the proxy process finds out filled in. */
bool aw_request_msg_check(struct aw_request_msg *msg);
/* The fd at that place is the caller's from here on. */
int aw_request_msg_take_fd(struct aw_request_msg *msg, int at);
void aw_request_msg_close(struct aw_request_msg *msg);
/* Whether the sender may bind any port, now: it is of our own user, with CAP_NET_BIND_SERVICE. */
bool aw_request_msg_may_bind(const struct aw_request_msg *msg);

#endif
