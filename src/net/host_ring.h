// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The memory of a connection between two processes of one host and one user: a sealed memfd with two byte rings
// (ring/duplex.h). The responder makes it and says in a hello behind its Reply where it is; the initiator opens it under
// /proc, for which the kernel asks whether it may look into that process. Each end shows the other a secret that only
// who has the memory, or the TCP connection, can know. The initiator's verdict goes first on the stream.
#ifndef NET_HOST_RING_H
#define NET_HOST_RING_H

#include "ring/duplex.h"

#include <stdbool.h>
#include <stdint.h>

#define AW_HOST_SECRET_LEN 16
#define AW_HOST_HELLO_LEN \
	(12 + AW_HOST_SECRET_LEN) /* process, fd, the responder's port, its peer's, a secret */
#define AW_HOST_VERDICT_LEN \
	AW_HOST_SECRET_LEN /* the other secret; or zeros: TCP carries the stream */

/* Of each direction: room for three of the largest FPDUs, within what a core's cache holds. */
#define AW_HOST_RING_BYTES (256u * 1024)
/* Connections of a process that have one at a time: the kernel bounds its mappings. */
#define AW_HOST_RINGS_MAX 4096

struct sockaddr;

struct aw_host_ring {
	struct aw_duplex duplex;
	void *base;
	size_t len;
	int fd; /* responder: until the initiator has decided; or -1 */
	uint8_t secret[AW_HOST_SECRET_LEN]; /* which the verdict shows */
	bool gone; /* the TCP connection has ended: nobody wakes, and nobody reads */
	bool drained; /* the bells were taken off the socket, and nobody promised to ring again */
	bool more; /* another turn is due, whatever is posted or polled before it: bytes may be there of which no bell tells */
	bool closed_seen;
	uint64_t looked; /* up to where the last turn saw the peer's bytes */
};

/* Whether both addresses of a connection are one host's. */
bool aw_host_is_one(const struct sockaddr *local, const struct sockaddr *peer);

/* Into a hello: between which ports its connection is. And whether that is this one: a relay in between is passed by no stream. */
void aw_host_put_ports(uint8_t *hello, const struct sockaddr *local, const struct sockaddr *peer);
bool aw_host_are_ports(const uint8_t *hello, const struct sockaddr *local,
		       const struct sockaddr *peer);

/*
 * Responder: makes the memory, and hello's octets. NULL with *cause where it cannot be had.
 * Initiator: the memory that a hello tells of, and verdict's octets; likewise: then they are zeros.
 */
struct aw_host_ring *aw_host_ring_make(uint8_t *hello, const char **cause);
struct aw_host_ring *aw_host_ring_open(const uint8_t *hello, uint8_t *verdict, const char **cause);

/* Ends this process's use of it; what is in it stays the peer's. NULL is allowed. */
void aw_host_ring_free(struct aw_host_ring *ring);

enum aw_host_verdict {
	AW_HOST_TCP,
	AW_HOST_RING,
	AW_HOST_LIE,
};

/* Responder: what the initiator has decided; the fd is closed then. */
enum aw_host_verdict aw_host_ring_decide(struct aw_host_ring *ring, const uint8_t *verdict);

#endif
