// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "check/report/seen.h"

#include <stddef.h>

#define PLACES 1024 /* a power of two above AW_SEEN_MAX, so that a search ends at a free place */

_Static_assert(PLACES > AW_SEEN_MAX && (PLACES & (PLACES - 1)) == 0, "a search ends");

static struct aw_seen
	places[PLACES + AW_RULES]; /* the last ones are for each rule's further entries */
static unsigned taken;

struct aw_seen *aw_seen_find(enum aw_rule rule, uint64_t key, bool *is_new)
{
	struct aw_seen *seen;
	unsigned at;

	key = key ? key : 1;
	at = (unsigned)(key >> 32) & (PLACES - 1);
	while (places[at].key && places[at].key != key)
		at = (at + 1) & (PLACES - 1);
	seen = &places[at];
	if (!seen->key && taken == AW_SEEN_MAX)
		seen = &places[PLACES + rule];
	*is_new = !seen->key;
	if (!*is_new)
		return seen;
	if (seen < &places[PLACES])
		taken++;
	seen->key = key;
	seen->rule = rule;
	return seen;
}

struct aw_seen *aw_seen_next(unsigned *at)
{
	while (*at < PLACES + AW_RULES) {
		struct aw_seen *seen = &places[(*at)++];

		if (seen->key)
			return seen;
	}
	return NULL;
}
