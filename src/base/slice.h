// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Parts of a user's text, and what the grammars of options are read with. No function allocates
// memory or keeps a pointer.
#ifndef BASE_SLICE_H
#define BASE_SLICE_H

#include <stdbool.h>
#include <stddef.h>

/* A borrowed part of a text, without a NUL. */
struct aw_slice {
	const char *at;
	size_t len;
};

/* All of the text; of length 0 for NULL. */
struct aw_slice aw_slice_of(const char *text);

bool aw_slice_equals(struct aw_slice slice, const char *word);

/* Finds the word among count words and writes its index to *found. False: it is none of them. */
__attribute__((warn_unused_result)) bool aw_slice_find(struct aw_slice slice,
						       const char *const *words, size_t count,
						       size_t *found);

/* Removes the part before the separator from rest, and the separator, and returns it. */
struct aw_slice aw_slice_cut(struct aw_slice *rest, char separator);

/* Removes the next word, between blanks, from rest and returns it; of length 0 if there is none. */
struct aw_slice aw_slice_word(struct aw_slice *rest);

/*
 * Reads a decimal number, digits alone, of at most max. False, with *number left alone, for
 * anything else.
 */
__attribute__((warn_unused_result)) bool aw_slice_number(struct aw_slice slice, unsigned long max,
							 unsigned long *number);

/*
 * Writes "'slice': " to text, which has room for max + 8 bytes: the slice is cut to max bytes, and
 * unprintable characters are replaced. Returns the length without the NUL.
 */
size_t aw_slice_quote(struct aw_slice slice, size_t max, char *text);

#endif
