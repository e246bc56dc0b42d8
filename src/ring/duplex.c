// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The rings. Positions are published with release. Between a position, or the end of the stream, and
// the flag of an end that sleeps all four accesses are sequentially consistent: either the sleeper
// sees the position, or the end that moved it sees the flag. To this end each look at the peer's is
// so.
#include "ring/duplex.h"

/* A ring that is empty begins again once this much of its memory was used, so that few small messages take few pages. */
#define REWIND_AT 4096
/* A wake for less room than this share of a ring is not worth it. */
#define ROOM_SHARE 4
/* Two looks whether the peer wants room are so far apart: each takes a cache line from the peer. */
#define LOOK_SHARE 8

void aw_duplex_init(struct aw_duplex *d, struct aw_duplex_side sides[2], uint8_t *bytes[2],
		    unsigned int side, uint64_t size)
{
	*d = (struct aw_duplex){
		.own = &sides[side],
		.peer = &sides[1 - side],
		.tx = bytes[side],
		.rx = bytes[1 - side],
		.size = size,
	};
}

/* Checks a position of the peer's: it only grows, and never over what this end allows. */
static bool judge(struct aw_duplex *d, uint64_t said, uint64_t *seen, uint64_t limit)
{
	if (said - *seen > limit - *seen)
		d->broken = true;
	else
		*seen = said;
	return !d->broken;
}

size_t aw_duplex_room(struct aw_duplex *d)
{
	uint64_t said = atomic_load(&d->peer->head);

	if (d->broken || !judge(d, said, &d->head_seen, d->tail))
		return 0;
	if (d->head_seen == d->tail && d->tail - d->tx_origin >= REWIND_AT) {
		/* Published with the tail. The reader has read all, so it holds no place of the ring. */
		d->tx_origin = d->tail;
		atomic_store_explicit(&d->own->origin, d->tail, memory_order_relaxed);
	}
	return (size_t)(d->size - (d->tail - d->head_seen));
}

size_t aw_duplex_room_seen(struct aw_duplex *d, size_t enough)
{
	size_t room = (size_t)(d->size - (d->tail - d->head_seen));

	/* Until a message is known to be read, each call looks: net/qp asks whether one was. */
	if (room >= enough && d->tail - d->room_looked < REWIND_AT && d->head_seen > 0 &&
	    !d->broken)
		return room;
	d->room_looked = d->tail;
	return aw_duplex_room(d);
}

size_t aw_duplex_ready(struct aw_duplex *d)
{
	uint64_t said = atomic_load(&d->peer->tail);

	if (d->broken || !judge(d, said, &d->tail_seen, d->head + d->size))
		return 0;
	/* While bytes wait the peer leaves it as it is. Any value gives a place within the ring. */
	d->rx_origin = atomic_load_explicit(&d->peer->origin, memory_order_relaxed);
	return (size_t)(d->tail_seen - d->head);
}

void aw_duplex_produce(struct aw_duplex *d, size_t n)
{
	d->tail += n;
	atomic_store_explicit(&d->own->tail, d->tail, memory_order_release);
}

void aw_duplex_consume(struct aw_duplex *d, size_t n)
{
	d->head += n;
	atomic_store_explicit(&d->own->head, d->head, memory_order_release);
}

/*
 * The peer may set the flag again at once, and is woken again: that costs the peer more than this
 * end.
 */
static bool takes_down(_Atomic uint32_t *flag)
{
	return atomic_load(flag) != 0 && atomic_exchange(flag, 0) != 0;
}

bool aw_duplex_wakes_reader(struct aw_duplex *d)
{
	atomic_store(&d->own->tail, d->tail);
	return takes_down(&d->peer->asleep);
}

bool aw_duplex_wakes_writer(struct aw_duplex *d)
{
	/*
	 * A peer that sleeps for room has found less than ROOM_SHARE of it behind its flag, so most of the ring lies between
	 * the head that it saw and the end of its bytes. The last look there comes behind that head, with fewer bytes left than
	 * LOOK_SHARE: it finds the flag, or the peer has found that room.
	 */
	if (d->head - d->wake_looked < d->size / LOOK_SHARE)
		return false;
	atomic_store(&d->own->head, d->head);
	bool wants = atomic_load(&d->peer->full) != 0;

	if (wants && d->size - aw_duplex_ready(d) < d->size / ROOM_SHARE)
		return false;
	d->wake_looked = d->head;
	if (!wants)
		return false;
	atomic_store_explicit(&d->peer->full, 0, memory_order_relaxed);
	return takes_down(&d->peer->asleep);
}

bool aw_duplex_has_room(struct aw_duplex *d)
{
	return aw_duplex_room(d) >= d->size / ROOM_SHARE;
}

void aw_duplex_sleep(struct aw_duplex *d)
{
	atomic_store(&d->own->asleep, 1);
}

void aw_duplex_wake(struct aw_duplex *d)
{
	/*
	 * Written only when it changes, because the peer reads the line: each poll would take it
	 * from the peer.
	 */
	if (atomic_load_explicit(&d->own->asleep, memory_order_relaxed) != 0)
		atomic_store_explicit(&d->own->asleep, 0, memory_order_relaxed);
}

void aw_duplex_await_room(struct aw_duplex *d)
{
	atomic_store(&d->own->full, 1);
}

void aw_duplex_close(struct aw_duplex *d)
{
	atomic_store(&d->own->closed, 1);
}

void aw_duplex_leave(struct aw_duplex *d)
{
	atomic_store(&d->own->left, 1);
}

bool aw_duplex_peer_closed(const struct aw_duplex *d)
{
	return atomic_load(&d->peer->closed) != 0;
}

bool aw_duplex_peer_left(const struct aw_duplex *d)
{
	return atomic_load_explicit(&d->peer->left, memory_order_acquire) != 0;
}

bool aw_duplex_is_drained(struct aw_duplex *d)
{
	return aw_duplex_room(d) == d->size;
}
