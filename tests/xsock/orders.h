// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A keeper as a program starts it, and orders to it.
#ifndef TESTS_XSOCK_ORDERS_H
#define TESTS_XSOCK_ORDERS_H

#include <sys/types.h>
#include <unistd.h>

#include "xsock/order.h"

#define PATIENCE_S 20 /* an answer takes a moment; a loaded machine may take long over it */
#define NO_ANSWER (-1)
#define NOT_ALLOWED 77 /* an exit of as_another's: the machine does not let us */
#define CHECK(claim) ((claim) ? (void)0 : _exit(1))

/* A keeper and a connection of it, begun by who has started it. */
struct scene {
	pid_t keeper;
	int control, tcp, near, listener;
};

struct aw_order new_order(enum aw_order_kind kind);
void tell(const struct scene *s, const struct aw_order *order, const int *fds, int count);
/* The answer's error, or NO_ANSWER. about: fds before the socket for the answer. */
int ask(const struct scene *s, const struct aw_order *order, const int *about, int count,
	struct aw_answer *answer);
/* Gets or sets SO_KEEPALIVE. */
int option(const struct scene *s, enum aw_order_kind kind, int near, int value,
	   struct aw_answer *answer);
int keepalive(const struct scene *s);
int listen_at(int port);
int dial(int listener);
int setup(void **state);
int teardown(void **state);
/* What root's program may become; its failed asserts are its exit. */
void as_another(void (*act)(const struct scene *s), const struct scene *s);

#endif
