// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The order in which TCP connects to one peer: lists of the connections that lead or wait.
#include "core/turn.h"

#include <stddef.h>

static struct aw_turn **list_of(struct aw_turns *turns, const struct aw_turn *turn)
{
	return &turns->first[turn->hash % AW_TURN_LISTS];
}

static bool is_same(const struct aw_turns *turns, const struct aw_turn *a, const struct aw_turn *b)
{
	return a->hash == b->hash && turns->is_same_peer(a, b);
}

bool aw_turn_is_led(const struct aw_turns *turns, const struct aw_turn *turn)
{
	const struct aw_turn *other = turns->first[turn->hash % AW_TURN_LISTS];

	for (; other; other = other->next)
		if (other->leads && is_same(turns, other, turn))
			return true;
	return false;
}

static void append(struct aw_turns *turns, struct aw_turn *turn)
{
	struct aw_turn **end = list_of(turns, turn);

	while (*end)
		end = &(*end)->next;
	turn->next = NULL;
	*end = turn;
}

void aw_turn_lead(struct aw_turns *turns, struct aw_turn *turn)
{
	if (!turn->leads && !turn->waits)
		append(turns, turn);
	turn->leads = true;
	turn->waits = false;
}

bool aw_turn_wait(struct aw_turns *turns, struct aw_turn *turn)
{
	append(turns, turn);
	turn->waits = aw_turn_is_led(turns, turn);
	turn->leads = !turn->waits;
	return turn->waits;
}

static void unlist(struct aw_turns *turns, struct aw_turn *turn)
{
	struct aw_turn **at = list_of(turns, turn);

	while (*at != turn)
		at = &(*at)->next;
	*at = turn->next;
	turn->leads = turn->waits = false;
}

void aw_turn_pass(struct aw_turns *turns, struct aw_turn *turn)
{
	if (!turn->leads && !turn->waits)
		return;
	unlist(turns, turn);
	if (aw_turn_is_led(turns, turn))
		return;
	for (struct aw_turn *other = *list_of(turns, turn); other; other = other->next)
		if (other->waits && is_same(turns, other, turn)) {
			aw_turn_lead(turns, other);
			turns->wake(other);
		}
}
