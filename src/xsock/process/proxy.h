// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The proxy process, as the program sees it: a process of its own, started when first needed, to which the
// program, its children and what they exec hand their iWARP connections. It outlives them for as
// long as there is something to send.
#ifndef XSOCK_PROCESS_PROXY_H
#define XSOCK_PROCESS_PROXY_H

#include <stdbool.h>
#include <sys/types.h>

#include "xsock/base/request.h"

/* Starts it unless there is one. 0 or an errno. */
int aw_proxy_start(void);
/* Fills in what every order has. */
void aw_request_init(struct aw_request *request, enum aw_request_kind kind);
/* Gives an order; the proxy process gets duplicates of fds. 0 or an errno. */
int aw_proxy_notify(const struct aw_request *request, const int *fds, int count);
/*
 * The same, and waits for the answer; about: the fd that the order is about, or -1. ENOTCONN without a proxy process. 0 or an
 * errno.
 */
int aw_proxy_call(const struct aw_request *request, int about, struct aw_reply *answer);
/*
 * The same with so many fds, at most AW_REQUEST_FDS - 1; a proxy process is started if there is none. *fd: what has come beside the
 * answer, if anything has; the caller's.
 */
int aw_proxy_call_with(const struct aw_request *request, const int *fds, int count,
		       struct aw_reply *answer, int *fd);
/* AW_REQUEST_LISTEN; a proxy process is started if there is none. */
int aw_proxy_announce(const struct aw_request *request, int listener);
/* Calls use with the TCP socket of the connection near, unless there is an error; with the table's lock. 0 or an errno. */
typedef void aw_proxy_use(int tcp, void *arg);
int aw_proxy_borrow_socket(int near, aw_proxy_use *use, void *arg);
/* This process has another's bridged sockets from here on, if there are any: its status can be asked for. */
void aw_proxy_present(void);

/* Our end of the pair, -1 without a proxy process; what is inherited by exec is taken up. */
int aw_proxy_control(void);
/* The same for what is exec'ed: -1, too, where the proxy process is of a user that we are not any more. */
int aw_proxy_export(void);
void aw_proxy_import(int control);
/* Which proxy process there is; 0: none. */
uint64_t aw_proxy_id(void);
/* Moves fd, which may be -1, away from the numbers that a program uses; returns where it is. */
int aw_proxy_move_high(int fd);
/* The program wants this fd number: move away. */
void aw_proxy_free_fd(int fd);

#endif
