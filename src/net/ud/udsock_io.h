// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Inside the socket of UD QPs: reading and writing datagrams.
#ifndef NET_UDSOCK_IO_H
#define NET_UDSOCK_IO_H

#include "base/thread_safety.h"
#include "net/progress/watch.h"
#include "net/roce/qpn.h"
#include "net/ud/udsock.h"

#include <stdatomic.h>
#include <stddef.h>

#define AW_UD_BATCH 16 /* datagrams per read */
#define AW_UD_CONTROL 128 /* bytes: an address, a hop limit, a traffic class */

/*
 * A datagram as it is read: the header apart, and room before the payload for the GRH that
 * describes its route.
 */
struct aw_ud_slot {
	struct sockaddr_storage from;
	uint8_t header[UD_HDR_LEN];
	uint8_t body[UD_GRH_LEN + UD_PAYLOAD_MAX];
	_Alignas(16) uint8_t control[AW_UD_CONTROL];
};

struct aw_ud_stage {
	struct aw_ud_slot slots[AW_UD_BATCH];
};

struct aw_udsock {
	/* fixed after create */
	int fd;
	int family;
	bool owns_fd;
	uint32_t generation; /* the engine's: a child does not touch its parent's sockets */
	uint16_t port; /* the port of its QP numbers; 0: a group's socket */
	aw_udsock_fn *deliver;
	void *arg;

	uint32_t refs; /* guarded by udsock.c's lock */
	TAILQ_ENTRY(aw_udsock) entry; /* likewise */

	_Atomic uint32_t turns; /* turns of pollers */
	uint32_t turns_seen; /* at the progress thread's last look */
	struct aw_watch watch;

	aw_mutex lock; /* guards what follows, and what deliver looks at */
	struct aw_ud_stage *stage;
	uint32_t handles[AW_QPN_OF_PORT]; /* handles of the port's UD QPs; AW_TABLE_NONE: none */

	aw_mutex listen_lock; /* comes after QP locks; guards the watch's events */
	bool wants_room;
	bool lent; /* left to pollers */
	bool awaited; /* a CQ was armed since the last event */
};

static inline struct aw_udsock *aw_udsock_of(struct aw_watch *w)
{
	return (struct aw_udsock *)(void *)((char *)w - offsetof(struct aw_udsock, watch));
}

/* Has the kernel report each datagram's route, and sets the receive buffer. 0, or an errno. */
int aw_udsock_prepare(struct aw_udsock *sock);

/* Reads one batch and delivers it; true when there may be more. */
bool aw_udsock_read(struct aw_udsock *sock) AW_REQUIRES(sock->lock);

#endif
