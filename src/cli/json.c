// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "cli/json.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

static bool is_between(unsigned char byte, unsigned lowest, unsigned highest)
{
	return byte >= lowest && byte <= highest;
}

// The bytes of the character beyond ASCII at text, by RFC 3629's grammar; 0: it is none.
static size_t character_len(const unsigned char *text)
{
	unsigned lowest = text[0] == 0xe0 ? 0xa0 : text[0] == 0xf0 ? 0x90 : 0x80;
	unsigned highest = text[0] == 0xed ? 0x9f : text[0] == 0xf4 ? 0x8f : 0xbf;
	size_t len = is_between(text[0], 0xc2, 0xdf)   ? 2
		     : is_between(text[0], 0xe0, 0xef) ? 3
		     : is_between(text[0], 0xf0, 0xf4) ? 4
						       : 0;

	if (!len || !is_between(text[1], lowest, highest))
		return 0;
	for (size_t i = 2; i < len; i++)
		if (!is_between(text[i], 0x80, 0xbf))
			return 0;
	return len;
}

void aw_json_string(const char *text)
{
	const unsigned char *at = (const unsigned char *)text;

	putchar('"');
	for (; *at; at++) {
		size_t len = *at < 0x80 ? 1 : character_len(at);

		if (*at == '"' || *at == '\\')
			printf("\\%c", *at);
		else if (*at < ' ' || *at == 0x7f)
			printf("\\u%04x", *at);
		else if (!len)
			putchar('?');
		else
			fwrite(at, len, 1, stdout);
		at += len ? len - 1 : 0;
	}
	putchar('"');
}
