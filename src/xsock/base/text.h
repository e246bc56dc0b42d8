// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Writes text where printf's two kilobytes of stack are too much: before an exec, a thread or a child of vfork may have little. at has
// the room. Each function ends the text with a NUL, and returns where that is.
#ifndef XSOCK_BASE_TEXT_H
#define XSOCK_BASE_TEXT_H

#include <string.h>

static inline char *aw_text_add_part(char *at, const char *text, size_t len)
{
	memcpy(at, text, len);
	at[len] = '\0';
	return at + len;
}

static inline char *aw_text_add(char *at, const char *text)
{
	return aw_text_add_part(at, text, strlen(text));
}

/* Adds number to a base of at most 16, with zeros before it if it has fewer digits. */
static inline char *aw_text_add_digits(char *at, unsigned long number, unsigned base, int digits)
{
	char text[24];
	char *first = text + sizeof(text);

	do {
		*--first = "0123456789abcdef"[number % base];
		number /= base;
		digits--;
	} while (number || digits > 0);
	return aw_text_add_part(at, first, (size_t)(text + sizeof(text) - first));
}

static inline char *aw_text_add_number(char *at, long number)
{
	unsigned long size = number < 0 ? -(unsigned long)number : (unsigned long)number;

	if (number < 0)
		at = aw_text_add(at, "-");
	return aw_text_add_digits(at, size, 10, 1);
}

#endif
