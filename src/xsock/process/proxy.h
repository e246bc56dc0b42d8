// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The proxy process, as the program sees it: a process of its own, which is started when it is
// first needed. The program, its children and the programs that they exec give it their iWARP
// connections. It outlives them while there are bytes to send. Callers hold no lock, except where a
// comment differs.
#ifndef XSOCK_PROCESS_PROXY_H
#define XSOCK_PROCESS_PROXY_H

#include <stdbool.h>
#include <sys/types.h>

#include "xsock/base/request.h"

/* Starts the proxy process if there is none. Returns 0 or an errno. */
int aw_proxy_start(void);
/* Initialises the fields that every request has. */
void aw_request_init(struct aw_request *request, enum aw_request_kind kind);
/*
 * Sends a request without waiting for a reply; the proxy process gets duplicates of fds. Starts the
 * proxy process if there is none, or it has died. Returns 0 or an errno.
 */
int aw_proxy_notify(const struct aw_request *request, const int *fds, int count);
/*
 * Sends a request and waits for the reply. about: the fd that the request is about, or -1. Returns
 * 0, or an errno: ENOTCONN if there is no proxy process.
 */
int aw_proxy_call(const struct aw_request *request, int about, struct aw_reply *reply);
/*
 * The same with count fds, at most AW_REQUEST_FDS - 1; starts the proxy process if there is none.
 * *fd is the fd beside the reply, which the caller then owns, or -1.
 */
int aw_proxy_call_with(const struct aw_request *request, const int *fds, int count,
		       struct aw_reply *reply, int *fd);
/*
 * Calls use, with the table's lock held, with the TCP socket of the connection whose near end is
 * near. Returns 0, or an errno if use was not called.
 */
typedef void aw_proxy_use(int tcp, void *arg);
int aw_proxy_borrow_socket(int near, aw_proxy_use *use, void *arg);
/*
 * Reports this process to the proxy process, if it has inherited bridged sockets: `anywarp sockets
 * --status` then lists it.
 */
void aw_proxy_present(void);

/*
 * Returns this process's end of the control pair for a program that this process execs or spawns. -1: there is no proxy process, or it
 * belongs to a user that this process is no longer.
 */
int aw_proxy_export(void);
/* Takes over the control fd that the process has inherited by exec. */
void aw_proxy_import(int control);
/* Returns a number of the proxy process that no other one has, or 0 if there is none. */
uint64_t aw_proxy_id(void);
/*
 * Duplicates fd to a number beyond those that a program uses. Returns -1 on failure. The table does
 * not know the duplicate.
 */
int aw_proxy_copy_high(int fd);
/* The same; -1, too, where the program may need its numbers: half of them are in use. */
int aw_proxy_copy_spare(int fd);
/* Moves fd, which may be -1, to such a number, and returns that. */
int aw_proxy_move_high(int fd);
/* The program is about to use this fd number: if it is the control fd, or one beside a socket, moves that away. */
void aw_proxy_free_fd(int fd);

#endif
