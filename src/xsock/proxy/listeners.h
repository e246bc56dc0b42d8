// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Answers the probes (xsock/base/probe_wire.h) of clients in `auto` for the program's listeners, as
// long as they listen, and remembers each answer: a client that was answered yes is never served as
// a TCP client, and the other way round. Called by control.c, door.c and main.c in the proxy
// process's one thread.
#ifndef XSOCK_PROXY_LISTENERS_H
#define XSOCK_PROXY_LISTENERS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

/*
 * The abilities of a listener's program: to bind any UDP port (CAP_NET_BIND_SERVICE); records; to share the TCP port with
 * other programs (SO_REUSEPORT).
 */
struct aw_listener_can {
	bool bind, records, share;
};
/*
 * Adds the listener with inode ino at address local. v6only: IPv6 alone. Without memory, probes
 * stay unanswered.
 */
void aw_listeners_add(uint64_t ino, const struct sockaddr_storage *local, bool v6only,
		      const struct aw_listener_can *can);
/*
 * The program has accepted remote's connection: remote's probe is answered yes, even if the
 * listener is closed.
 */
void aw_listeners_accepted(const struct sockaddr_storage *local,
			   const struct sockaddr_storage *remote);
/* Closes the UDP sockets with local's port, for good: the program binds the port. */
void aw_listeners_release(const struct sockaddr_storage *local);
/*
 * Returns whether remote's probe was answered yes. If not, a probe after this call is answered no.
 */
bool aw_listeners_decide(const struct sockaddr_storage *local,
			 const struct sockaddr_storage *remote);
/* Forgets the answer: remote's connection has begun, or has ended before. */
void aw_listeners_forget(const struct sockaddr_storage *local,
			 const struct sockaddr_storage *remote);
/*
 * Drops the listeners that do not listen any more, and tries again to bind UDP ports. Returns
 * whether any is left.
 */
bool aw_listeners_review(void);

#endif
