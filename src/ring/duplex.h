// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Two byte rings in memory that two processes share, one for each direction: single producer, single consumer. The
// other end may write to any of that memory at any time: what it says is copied once and judged, and every
// position that decides something is this end's own. Neither end waits here: who sleeps says so first.
#ifndef RING_DUPLEX_H
#define RING_DUPLEX_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What one end says to the other. Each line has one writer, but for the flags that the other end takes down. */
struct aw_duplex_side {
	_Alignas(64) _Atomic uint64_t tail; /* bytes sent, ever */
	_Atomic uint32_t closed; /* none follow */
	_Atomic uint32_t left; /* and none are read any more */
	_Alignas(64) _Atomic uint64_t head; /* bytes received, ever */
	_Alignas(64) _Atomic uint32_t asleep; /* it looks no more: it wants to be woken */
	_Atomic uint32_t full; /* for room, too */
};

struct aw_duplex {
	struct aw_duplex_side *own, *peer; /* shared */
	uint8_t *tx, *rx; /* shared: each ring's bytes, mapped twice in a row */
	uint64_t size; /* of a ring: a power of two */
	uint64_t tail, head; /* this end's own */
	uint64_t tail_seen, head_seen; /* the peer's, as judged last */
	bool broken; /* the peer said what cannot be */
};

/* Positions start at 0: nothing was sent yet. */
void aw_duplex_init(struct aw_duplex *d, struct aw_duplex_side sides[2], uint8_t *bytes[2],
		    unsigned int side, uint64_t size);

/* Room, and bytes that wait. 0 from the moment on at which the peer is found to have lied (broken). */
size_t aw_duplex_room(struct aw_duplex *d);
size_t aw_duplex_ready(struct aw_duplex *d);

/* Where to write or read so many in one piece. */
static inline uint8_t *aw_duplex_tx(const struct aw_duplex *d)
{
	return d->tx + (d->tail & (d->size - 1));
}

static inline const uint8_t *aw_duplex_rx(const struct aw_duplex *d)
{
	return d->rx + (d->head & (d->size - 1));
}

/* So many bytes were written, or read; at most what room or ready said last. */
void aw_duplex_produce(struct aw_duplex *d, size_t n);
void aw_duplex_consume(struct aw_duplex *d, size_t n);

/* After the last of several: whether the peer sleeps and is to be woken, by this call alone. */
bool aw_duplex_wakes_reader(struct aw_duplex *d);
bool aw_duplex_wakes_writer(struct aw_duplex *d);

/* Whether there is as much room as is worth a wake. */
bool aw_duplex_has_room(struct aw_duplex *d);

/* This end is about to sleep, and looks once more behind that; it is awake; it waits for room (likewise). */
void aw_duplex_sleep(struct aw_duplex *d);
void aw_duplex_wake(struct aw_duplex *d);
void aw_duplex_await_room(struct aw_duplex *d);

/* No more bytes follow; and none are read. */
void aw_duplex_close(struct aw_duplex *d);
void aw_duplex_leave(struct aw_duplex *d);
/* Ask before ready: bytes that came before it are seen then. */
bool aw_duplex_peer_closed(const struct aw_duplex *d);
bool aw_duplex_peer_left(const struct aw_duplex *d);

/* Whether the peer has read all that was sent. */
bool aw_duplex_is_drained(struct aw_duplex *d);

#endif
