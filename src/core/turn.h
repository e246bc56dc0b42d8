// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The order in which TCP connects to one peer. A driver tries a refused connection again; a connection that was begun later
// could find the peer's new listener meanwhile, and would be accepted first. Programs take the order in which
// they connect for the one in which their peer accepts (perftest, between several QPs). So a connection to a peer leads until TCP has
// connected it or has failed. Others wait meanwhile; then all of them lead.
#ifndef CORE_TURN_H
#define CORE_TURN_H

#include <stdbool.h>
#include <stdint.h>

#define AW_TURN_LISTS 64u

/* One connection's place. */
struct aw_turn {
	struct aw_turn *next, **before; /* in its list, oldest first */
	uint32_t hash; /* of the peer, by the driver */
	bool leads, waits; /* neither: in no list */
};

struct aw_turn_list {
	struct aw_turn *first, **end;
};

/* Those of a driver, which holds a lock of its own during each call, and sets what is fixed. */
struct aw_turns {
	/* True when two connections, whose hashes are equal, go to the same address and port. */
	bool (*is_same_peer)(const struct aw_turn *a, const struct aw_turn *b);
	/* A turn that waited is to connect now, and leads. */
	void (*wake)(struct aw_turn *turn);
	/*
	 * Turns that wait are woken one at a time, the next by aw_turn_sent: for a driver whose threads would connect them at the
	 * same time.
	 */
	bool one_by_one;
	struct aw_turn_list lists[AW_TURN_LISTS];
};

/* Another connection to the peer leads. turn is in no list. */
bool aw_turn_is_led(const struct aw_turns *turns, const struct aw_turn *turn);

/* The connection connects now, and leads, whether it waited or not. */
void aw_turn_lead(struct aw_turns *turns, struct aw_turn *turn);

/* True: the connection waits, and is woken. False: no other leads; it does, and is to connect now. */
bool aw_turn_wait(struct aw_turns *turns, struct aw_turn *turn);

/* TCP has been asked to connect it after it was woken. */
void aw_turn_sent(struct aw_turns *turns, const struct aw_turn *turn);

/*
 * TCP has connected it, or it has ended. Where none leads any more those that wait are woken, oldest first. Nothing happens to
 * a turn that is in no list.
 */
void aw_turn_pass(struct aw_turns *turns, struct aw_turn *turn);

#endif
