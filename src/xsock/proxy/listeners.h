// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Answers the question of clients in `auto` (xsock/question.h) for the program's listeners, for as long as
// they listen, and remembers what was answered: who is told yes and who is taken for a plain client
// exclude each other.
#ifndef XSOCK_PROXY_LISTENERS_H
#define XSOCK_PROXY_LISTENERS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "xsock/proxy/loop.h"

/* take_requests: what programs have told by now is to be known. It may call any of these. */
void aw_listeners_init(struct aw_loop *loop, void (*take_requests)(void));
/* What a listener's program can do: have any UDP port itself; records. */
struct aw_listener_can {
	bool bind, records;
};
/* The listener ino is at local. v6only: IPv6 alone. */
void aw_listeners_add(uint64_t ino, const struct sockaddr_storage *local, bool v6only,
		      const struct aw_listener_can *can);
/* remote's connection was accepted by the program, whose listener at local need not be there when it asks. */
void aw_listeners_accepted(const struct sockaddr_storage *local,
			   const struct sockaddr_storage *remote);
/* The program wants the UDP port. */
void aw_listeners_release(const struct sockaddr_storage *local);
/* Whether remote has asked for its connection to local; if not, it will be told no. */
bool aw_listeners_decide(const struct sockaddr_storage *local,
			 const struct sockaddr_storage *remote);
/* remote's connection has begun, or is over before: what was answered is forgotten. */
void aw_listeners_forget(const struct sockaddr_storage *local,
			 const struct sockaddr_storage *remote);
/* Drops who does not listen any more, and binds what could not be bound. Returns whether any is left. */
bool aw_listeners_review(void);

#endif
