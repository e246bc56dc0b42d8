// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The library knows which listeners may take an offer: without that a client would wait for plain servers. A wrong answer costs time, and nothing
// else: the offer alone decides (offer.h). Callers hold no lock.
#ifndef XSOCK_PAIR_HINT_H
#define XSOCK_PAIR_HINT_H

#include <stdbool.h>

#include "xsock/pair/name.h"
#include "xsock/pair/plain.h"

/*
 * Registers a listener at that address: binds a datagram socket, which gets none, to the listener's name. Returns its fd, which the
 * caller owns, close-on-exec; 0: the name is another listener's, or there is no fd.
 */
int aw_hint_register(const struct aw_tcp_end *at);

/*
 * Returns AW_PLAIN_NOT where a listener of this user is registered for clients of that address, and has taken the last offers: after n
 * offers in a row that it has not taken, 2^n - 1 connections do without. Else why no offer is made.
 */
enum aw_plain aw_hint_refuses(const struct aw_tcp_end *server);
/* Notes whether the server has taken an offer. */
void aw_hint_note(const struct aw_tcp_end *server, bool taken);

#endif
