// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "base/hex.h"

static const char digits[] = "0123456789abcdef";

void aw_hex_write(char *text, const void *bytes, size_t len)
{
	const unsigned char *from = bytes;

	for (size_t i = 0; i < len; i++) {
		*text++ = digits[from[i] >> 4];
		*text++ = digits[from[i] & 15];
	}
	*text = '\0';
}

/* The value of a digit, or -1. */
static int digit_value(char digit)
{
	for (int value = 0; value < 16; value++) {
		if (digits[value] == digit)
			return value;
	}
	return -1;
}

bool aw_hex_read(const char *text, void *bytes, size_t len)
{
	unsigned char *to = bytes;

	for (size_t i = 0; i < len; i++) {
		int high = digit_value(text[2 * i]);
		int low = high < 0 ? -1 : digit_value(text[2 * i + 1]);

		if (low < 0)
			return false;
		to[i] = (unsigned char)(high << 4 | low);
	}
	return true;
}
