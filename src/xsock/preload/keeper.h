// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The keeper, as the program sees it: a process of its own, started when first needed, to which the
// program, its children and what they exec hand their iWARP connections. It outlives them for as
// long as there is something to send.
#ifndef XSOCK_PRELOAD_KEEPER_H
#define XSOCK_PRELOAD_KEEPER_H

#include <stdbool.h>
#include <sys/types.h>

#include "xsock/order.h"

/* Starts it unless there is one. 0 or an errno. */
int aw_keeper_wake(void);
/* Fills in what every order has. */
void aw_keeper_begin(struct aw_order *order, enum aw_order_kind kind);
/* Gives an order; the keeper gets duplicates of fds. 0 or an errno. */
int aw_keeper_tell(const struct aw_order *order, const int *fds, int count);
/*
 * The same, and waits for the answer; about: the fd that the order is about, or -1. ENOTCONN without a keeper. 0 or an
 * errno.
 */
int aw_keeper_ask(const struct aw_order *order, int about, struct aw_answer *answer);
/*
 * The same with so many fds, at most AW_ORDER_FDS - 1; a keeper is started if there is none. *fd: what has come beside the
 * answer, if anything has; the caller's.
 */
int aw_keeper_ask_with(const struct aw_order *order, const int *fds, int count,
		       struct aw_answer *answer, int *fd);
/* AW_ORDER_LISTEN; a keeper is started if there is none. */
int aw_keeper_announce(const struct aw_order *order, int listener);
/* Calls use with the TCP socket of the connection near, unless there is an error; with the table's lock. 0 or an errno. */
typedef void aw_keeper_use(int tcp, void *arg);
int aw_keeper_borrow_socket(int near, aw_keeper_use *use, void *arg);
/* This process has another's bridged sockets from here on, if there are any: its status can be asked for. */
void aw_keeper_present(void);

/* Our end of the pair, -1 without a keeper; what is inherited by exec is taken up. */
int aw_keeper_control(void);
/* The same for what is exec'ed: -1, too, where the keeper is of a user that we are not any more. */
int aw_keeper_bequest(void);
void aw_keeper_inherit(int control);
/* Which keeper there is; 0: none. */
uint64_t aw_keeper_number(void);
/* Moves fd, which may be -1, away from the numbers that a program uses; returns where it is. */
int aw_keeper_move_high(int fd);
/* The program wants this fd number: move away. */
void aw_keeper_evade(int fd);

#endif
