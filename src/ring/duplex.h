// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Two byte rings in memory that two processes share, one for each direction: single producer,
// single consumer. The other end may write to any of that memory at any time: each of its values is
// copied once and then checked, and every position that decides something is this end's own. No
// function here waits: an end that is about to sleep sets a flag first.
#ifndef RING_DUPLEX_H
#define RING_DUPLEX_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The values that one end publishes to the other. Each line has one writer, but for the flags that
 * the other end clears.
 */
struct aw_duplex_side {
	_Alignas(64) _Atomic uint64_t tail; /* bytes sent, ever */
	_Atomic uint64_t origin; /* the position of the byte at the ring's beginning */
	_Atomic uint32_t closed; /* no more bytes follow */
	_Atomic uint32_t left; /* this end reads no more bytes */
	_Alignas(64) _Atomic uint64_t head; /* bytes received, ever */
	/* this end does not look at the memory: it wants to be woken */
	_Alignas(64) _Atomic uint32_t asleep;
	_Atomic uint32_t full; /* this end wants to be woken for room, too */
};

struct aw_duplex {
	struct aw_duplex_side *own, *peer; /* shared */
	uint8_t *tx, *rx; /* shared: each ring's bytes, mapped twice in a row */
	uint64_t size; /* of a ring: a power of two */
	uint64_t tail, head; /* this end's own */
	uint64_t tail_seen, head_seen; /* the peer's, as they were checked last */
	uint64_t tx_origin, rx_origin;
	uint64_t room_looked; /* this end's tail when it last looked at the peer's head */
	uint64_t wake_looked; /* this end's head when it last looked whether the peer wants room */
	bool broken; /* the peer has published an impossible position, or changed bytes behind one */
};

/* Positions start at 0: nothing was sent yet. */
void aw_duplex_init(struct aw_duplex *d, struct aw_duplex_side sides[2], uint8_t *bytes[2],
		    unsigned int side, uint64_t size);

/* The room, and the bytes that wait. 0 once the peer was found to have lied (broken). */
size_t aw_duplex_room(struct aw_duplex *d);
size_t aw_duplex_ready(struct aw_duplex *d);
/*
 * As room, but at least so much may be what was seen at an earlier look: with each message of this end the peer writes the line
 * that a look would take from it.
 */
size_t aw_duplex_room_seen(struct aw_duplex *d, size_t enough);

/* The place where that many bytes can be written, or read, in one piece. */
static inline uint8_t *aw_duplex_tx(const struct aw_duplex *d)
{
	return d->tx + ((d->tail - d->tx_origin) & (d->size - 1));
}

static inline const uint8_t *aw_duplex_rx(const struct aw_duplex *d)
{
	return d->rx + ((d->head - d->rx_origin) & (d->size - 1));
}

/* Called when n bytes were written, or read; at most the last result of room or ready. */
void aw_duplex_produce(struct aw_duplex *d, size_t n);
void aw_duplex_consume(struct aw_duplex *d, size_t n);

/*
 * Called after the last of several: true when the peer sleeps and is to be woken, by this call
 * alone. For room a look once in a share of the ring suffices: a peer that wants to be woken has filled more.
 */
bool aw_duplex_wakes_reader(struct aw_duplex *d);
bool aw_duplex_wakes_writer(struct aw_duplex *d);

/* True when there is as much room as is worth a wake. */
bool aw_duplex_has_room(struct aw_duplex *d);

/*
 * sleep: this end is about to sleep, and looks once more after this call. wake: this end is awake.
 * await_room: this end waits for room, and looks once more after this call.
 */
void aw_duplex_sleep(struct aw_duplex *d);
void aw_duplex_wake(struct aw_duplex *d);
void aw_duplex_await_room(struct aw_duplex *d);

/* close: no more bytes follow. leave: this end reads no more bytes. */
void aw_duplex_close(struct aw_duplex *d);
void aw_duplex_leave(struct aw_duplex *d);
/* Called before ready, which then sees the bytes that came before the end. */
bool aw_duplex_peer_closed(const struct aw_duplex *d);
bool aw_duplex_peer_left(const struct aw_duplex *d);

/* True when the peer has read all that was sent. */
bool aw_duplex_is_drained(struct aw_duplex *d);

#endif
