// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The order in which TCP connects to one peer: lists of the connections that lead or wait.
#include "core/turn.h"

#include <stddef.h>

static bool is_same(const struct aw_turns *turns, const struct aw_turn *a, const struct aw_turn *b)
{
	return a->hash == b->hash && turns->is_same_peer(a, b);
}

/* The oldest one in turn's list, and then the next one behind each. */
static struct aw_turn *oldest(const struct aw_turns *turns, const struct aw_turn *turn)
{
	return turns->lists[turn->hash % AW_TURN_LISTS].first;
}

bool aw_turn_is_led(const struct aw_turns *turns, const struct aw_turn *turn)
{
	const struct aw_turn *other = oldest(turns, turn);

	for (; other; other = other->next)
		if (other->leads && is_same(turns, other, turn))
			return true;
	return false;
}

static void append(struct aw_turns *turns, struct aw_turn *turn)
{
	struct aw_turn_list *list = &turns->lists[turn->hash % AW_TURN_LISTS];

	if (!list->first)
		list->end = &list->first;
	turn->next = NULL;
	turn->before = list->end;
	*list->end = turn;
	list->end = &turn->next;
}

static void unlist(struct aw_turns *turns, struct aw_turn *turn)
{
	*turn->before = turn->next;
	if (turn->next)
		turn->next->before = turn->before;
	else
		turns->lists[turn->hash % AW_TURN_LISTS].end = turn->before;
	turn->leads = turn->waits = false;
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
	turn->waits = aw_turn_is_led(turns, turn);
	turn->leads = !turn->waits;
	append(turns, turn);
	return turn->waits;
}

static void wake_waiting(struct aw_turns *turns, const struct aw_turn *turn)
{
	for (struct aw_turn *other = oldest(turns, turn); other; other = other->next) {
		if (!other->waits || !is_same(turns, other, turn))
			continue;
		aw_turn_lead(turns, other);
		turns->wake(other);
		if (turns->one_by_one)
			return;
	}
}

void aw_turn_sent(struct aw_turns *turns, const struct aw_turn *turn)
{
	if (turns->one_by_one)
		wake_waiting(turns, turn);
}

void aw_turn_pass(struct aw_turns *turns, struct aw_turn *turn)
{
	if (!turn->leads && !turn->waits)
		return;
	unlist(turns, turn);
	if (!aw_turn_is_led(turns, turn))
		wake_waiting(turns, turn);
}
