// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The UDP socket under up to 256 UD QPs, whose numbers share its port; and the one of a multicast
// group. Whoever polls a CQ of its QPs reads it for all of them, else the progress thread does,
// which leaves it to pollers while they are busy. Locks: CQ.qps_lock -> the socket's -> QP.lock.
#ifndef NET_UDSOCK_H
#define NET_UDSOCK_H

#include "net/ud_ah.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/uio.h>

#define AW_UD_GROUP_PORT 24791 /* of every multicast datagram; docs/roce-ud.md */

struct aw_udsock;
struct aw_ud_arrival;

/* The socket of the port of a number that was taken, with one more reference. 0, or an errno. */
int aw_udsock_get(uint32_t qpn, struct aw_udsock **sock);

/*
 * A socket for datagrams that nobody but deliver is asked about, which is called with no lock but
 * the socket's held. From here on fd is the socket's to close. 0, or an errno, and fd the caller's.
 */
typedef void aw_udsock_fn(void *arg, const struct aw_ud_arrival *arrival);
int aw_udsock_create(int fd, aw_udsock_fn *deliver, void *arg, struct aw_udsock **sock);

/* The last one waits for the progress thread to leave it, so not from there. No CQ has it any more. */
void aw_udsock_put(struct aw_udsock *sock);

/*
 * From here on the port's socket hands what arrives for that number to the UD QP of that handle;
 * AW_TABLE_NONE: to nobody.
 */
void aw_udsock_assign(struct aw_udsock *sock, uint32_t qpn, uint32_t handle);

/* A poller's turn. */
void aw_udsock_serve(struct aw_udsock *sock);

/* Around what the socket's deliver looks at; of a parent's socket nothing is locked, and nobody looks. */
void aw_udsock_lock(struct aw_udsock *sock);
void aw_udsock_unlock(struct aw_udsock *sock);

/*
 * One datagram. port: of the destination, unless that is a multicast group. 0; EAGAIN: no room; else it
 * was lost.
 */
int aw_udsock_send(struct aw_udsock *sock, const struct aw_ah *ah, uint16_t port,
		   const struct iovec *iov, size_t count);

/* The progress thread calls aw_ud_on_room for the port's QPs once there is room. */
void aw_udsock_want_room(struct aw_udsock *sock);

/* Around a fork. */
void aw_udsock_fork_prepare(void);
void aw_udsock_fork_done(void);

#endif
