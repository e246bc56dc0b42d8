// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// An order as it has come, and what the kernel says of it: who has sent it, and what its fds are. Programs that have
// given up root have their keeper still: nothing is believed that its sender says and the kernel can say.
#ifndef XSOCK_KEEPER_LETTER_H
#define XSOCK_KEEPER_LETTER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "xsock/order.h"

struct aw_letter {
	struct aw_order order;
	struct ucred from; /* pid 0: who that is cannot be told here */
	int fds[AW_ORDER_FDS]; /* as the order's kind has them */
	int count;
};

/* Whoever has read one closes it. 1: there is one; 0: none for now; -1: nobody can send any more. */
int aw_letter_read(int control, struct aw_letter *letter);
/* Whether it is an order, in order, with what the keeper finds out filled in. */
bool aw_letter_check(struct aw_letter *letter);
/* The fd at that place is the caller's from here on. */
int aw_letter_keep(struct aw_letter *letter, int at);
void aw_letter_close(struct aw_letter *letter);
/* Whether the sender may bind any port, now: it is of our own user, with CAP_NET_BIND_SERVICE. */
bool aw_letter_may_bind(const struct aw_letter *letter);

#endif
