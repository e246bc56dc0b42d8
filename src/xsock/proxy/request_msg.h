// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A request as received, with what the kernel reports about it: its sender, and its fds. A program
// that has given up root keeps its socket to the proxy process. The proxy process therefore trusts
// nothing in a request that the kernel can tell it. Called by control.c.
#ifndef XSOCK_PROXY_REQUEST_MSG_H
#define XSOCK_PROXY_REQUEST_MSG_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "xsock/base/request.h"

struct aw_request_msg {
	struct aw_request request;
	struct ucred from; /* the sender; pid 0: it is in another pid namespace */
	int fds[AW_REQUEST_FDS]; /* in the order of the request's kind */
	int count;
};

/*
 * Receives a request, which the caller then closes. 1: there is one; 0: none for now; -1: no
 * process can send any more.
 */
int aw_request_msg_recv(int control, struct aw_request_msg *msg);
/* Returns whether the request is valid. Fills in what the proxy process finds out itself. */
bool aw_request_msg_check(struct aw_request_msg *msg);
/* Returns the fd at that place, which the caller then owns. */
int aw_request_msg_take_fd(struct aw_request_msg *msg, int at);
/* Closes the fds that were not taken. */
void aw_request_msg_close(struct aw_request_msg *msg);

#endif
