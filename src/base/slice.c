// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "base/slice.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

struct aw_slice aw_slice_of(const char *text)
{
	return (struct aw_slice){ text ? text : "", text ? strlen(text) : 0 };
}

bool aw_slice_equals(struct aw_slice slice, const char *word)
{
	return slice.len == strlen(word) && memcmp(slice.at, word, slice.len) == 0;
}

bool aw_slice_find(struct aw_slice slice, const char *const *words, size_t count, size_t *found)
{
	for (size_t i = 0; i < count; i++) {
		if (aw_slice_equals(slice, words[i])) {
			*found = i;
			return true;
		}
	}
	return false;
}

struct aw_slice aw_slice_cut(struct aw_slice *rest, char separator)
{
	const char *end = memchr(rest->at, separator, rest->len);
	struct aw_slice part = { rest->at, end ? (size_t)(end - rest->at) : rest->len };
	size_t taken = part.len + (end ? 1 : 0);

	rest->at += taken;
	rest->len -= taken;
	return part;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

struct aw_slice aw_slice_word(struct aw_slice *rest)
{
	struct aw_slice word;

	while (rest->len && is_blank(*rest->at)) {
		rest->at++;
		rest->len--;
	}
	word = (struct aw_slice){ rest->at, 0 };
	while (word.len < rest->len && !is_blank(rest->at[word.len]))
		word.len++;
	rest->at += word.len;
	rest->len -= word.len;
	return word;
}

bool aw_slice_number(struct aw_slice slice, unsigned long max, unsigned long *number)
{
	unsigned long n = 0;

	for (size_t i = 0; i < slice.len; i++) {
		unsigned long digit = (unsigned char)slice.at[i] - '0';

		if (digit > 9 || digit > max || n > (max - digit) / 10)
			return false;
		n = n * 10 + digit;
	}
	if (!slice.len)
		return false;
	*number = n;
	return true;
}

size_t aw_slice_quote(struct aw_slice slice, size_t max, char *text)
{
	size_t len = slice.len < max ? slice.len : max;
	size_t at = 0;

	text[at++] = '\'';
	for (size_t i = 0; i < len; i++)
		text[at++] = isprint((unsigned char)slice.at[i]) ? slice.at[i] : '?';
	return at + (size_t)sprintf(text + at, "%s': ", len < slice.len ? "..." : "");
}
