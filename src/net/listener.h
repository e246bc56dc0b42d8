// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A listening TCP socket that turns connections into Requests. Bounds what strangers can hold. Or,
// without a socket of its own, what turns connections that the program has made into Requests.
#ifndef NET_LISTENER_H
#define NET_LISTENER_H

#include "net/conn.h"

/* Connections a listener without a whole Request, or AW_FILES_HALF_OPEN of net/bounds.h; then the oldest go. */
#define AW_HALF_OPEN_MAX 1024
/*
 * But none that has been silent for less, in TCP's backlog or here: the Request of a client may have been lost
 * once, which its TCP finds out after 200 ms (Linux's least retransmission time-out), and its threads and
 * this process's have to come to run.
 */
#define AW_HALF_OPEN_YOUNG_MS 250

struct aw_listener;

/*
 * Listens on fd (bound, non-blocking, the listener's from here on success). fn gets REQUEST events of
 * new conns, which are fn's from then on; local is what to negotiate against. 0, ENOMEM,
 * or listen(2)'s error (EADDRINUSE).
 */
int aw_listener_create(int fd, int backlog, const struct aw_mpa_local *local, aw_conn_fn *fn,
		       void *arg, struct aw_listener **listener);

/*
 * The same without a socket: all its connections come by aw_listener_give, which are as many as the
 * program has fds. fn also gets FAILED of those that send no Request, with a conn to be destroyed. 0,
 * ENOMEM, or what aw_watch_add says.
 */
int aw_listener_create_given(const struct aw_mpa_local *local, aw_conn_fn *fn, void *arg,
			     struct aw_listener **listener);

/*
 * fd is a connected, non-blocking TCP socket, the listener's from here on success. One event of it
 * follows. 0, ENOMEM, or what aw_watch_add says.
 */
int aw_listener_give(struct aw_listener *listener, int fd);

/* One part of so many of the process's files (net/bounds.h), for each of the listeners that have a socket. */
uint32_t aw_listener_files(uint32_t part);

/* For net/engine.c, in the child of a fork that does not carry: it has no listener yet. */
void aw_listener_fork_child(void);

/* Closes it and its half-open connections; no event comes after it returned. Not from an event. */
void aw_listener_destroy(struct aw_listener *listener);

/* The same without a word to anybody: the other process has them, too. The progress thread is held. */
void aw_listener_forget(struct aw_listener *listener);

#endif
