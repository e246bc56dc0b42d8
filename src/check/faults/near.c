// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "check/faults/near.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#define WORD_MAX 48 /* longer words are near to none */
#define TAIL_MIN 3 /* characters of an end that is taken for the word */

static unsigned least(unsigned a, unsigned b, unsigned c)
{
	unsigned ab = a < b ? a : b;

	return ab < c ? ab : c;
}

/* The characters to insert, delete or replace. */
static unsigned edits_between(struct aw_slice from, const char *to)
{
	unsigned row[WORD_MAX + 1];
	size_t width = strlen(to);

	for (unsigned i = 0; i <= width; i++)
		row[i] = i;
	for (unsigned y = 0; y < from.len; y++) {
		unsigned diagonal = row[0];

		row[0] = y + 1;
		for (size_t x = 0; x < width; x++) {
			unsigned same = diagonal + (tolower((unsigned char)from.at[y]) !=
						    tolower((unsigned char)to[x]));

			diagonal = row[x + 1];
			row[x + 1] = least(same, row[x] + 1, diagonal + 1);
		}
	}
	return row[width];
}

struct aw_near aw_near_to(struct aw_slice meant)
{
	/* A third of the characters may be wrong. */
	return (struct aw_near){ meant, NULL, (unsigned)meant.len / 3 + 1 };
}

void aw_near_try(struct aw_near *near, const char *word)
{
	struct aw_slice meant = near->meant;
	size_t len = strlen(word);
	unsigned edits;

	if (len > WORD_MAX || meant.len > WORD_MAX || !meant.len)
		return;
	edits = edits_between(meant, word);
	if (meant.len >= TAIL_MIN && len > meant.len && word[len - meant.len - 1] == '_' &&
	    strncasecmp(word + len - meant.len, meant.at, meant.len) == 0)
		edits = 1;
	if (edits < near->edits || (edits == near->edits && !near->word)) {
		near->word = word;
		near->edits = edits;
	}
}
