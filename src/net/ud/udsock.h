// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The UDP socket that up to 256 UD QPs share, because their numbers share its port; or the socket
// of a multicast group. A thread that polls a CQ of these QPs reads the socket for all of them.
// Otherwise the progress thread does, which leaves the socket to pollers while they are busy. Lock
// order: CQ.qps_lock, the socket's lock, QP.lock.
#ifndef NET_UDSOCK_H
#define NET_UDSOCK_H

#include "net/ud/ud_ah.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/uio.h>

#define AW_UD_GROUP_PORT 24791 /* the port of every multicast datagram; docs/roce-ud.md */

struct aw_udsock;
struct aw_ud_arrival;

/*
 * Gets the socket of the port of qpn, a number that was taken, with one more reference. 0, or an
 * errno.
 */
int aw_udsock_get(uint32_t qpn, struct aw_udsock **sock);

/*
 * Creates a socket whose datagrams all go to deliver, which is called with only the socket's lock
 * held. 0, and the socket owns fd; or an errno, and fd stays the caller's.
 */
typedef void aw_udsock_fn(void *arg, const struct aw_ud_arrival *arrival);
int aw_udsock_create(int fd, aw_udsock_fn *deliver, void *arg, struct aw_udsock **sock);

/*
 * The last reference waits for the progress thread to leave the socket, so the caller is another
 * thread. By then no CQ serves the socket.
 */
void aw_udsock_put(struct aw_udsock *sock);

/*
 * From now on the port's socket delivers datagrams for qpn to the UD QP with that handle;
 * AW_TABLE_NONE: it drops them.
 */
void aw_udsock_assign(struct aw_udsock *sock, uint32_t qpn, uint32_t handle);

/*
 * For the CQs that the socket has joined. serve, by a poller: reads the socket unless another thread does.
 * await, by a thread that sleeps until an event: the progress thread reads the next datagram.
 */
extern const struct aw_cq_sock_ops aw_udsock_cq_ops;

/*
 * Guards what the socket's deliver reads. In the child of a fork the parent's socket is not locked:
 * no thread reads it there.
 */
void aw_udsock_lock(struct aw_udsock *sock);
void aw_udsock_unlock(struct aw_udsock *sock);

/*
 * Sends one datagram. port: the destination's, ignored for a multicast group. 0; EAGAIN: the socket
 * has no room; any other errno: the datagram was not sent.
 */
int aw_udsock_send(struct aw_udsock *sock, const struct aw_ah *ah, uint16_t port,
		   const struct iovec *iov, size_t count);

/* Has the progress thread call aw_ud_on_room for the port's QPs once the socket has room. */
void aw_udsock_want_room(struct aw_udsock *sock);

/* Around a fork. */
void aw_udsock_fork_prepare(void);
void aw_udsock_fork_done(void);

#endif
