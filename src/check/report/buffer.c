// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "check/report/buffer.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct aw_buffer aw_buffer_of(char *at, size_t room)
{
	at[0] = '\0';
	return (struct aw_buffer){ at, room, 0, false };
}

void aw_buffer_put(struct aw_buffer *buffer, const char *format, ...)
{
	size_t left = buffer->room - buffer->len;
	va_list args;
	int len;

	va_start(args, format);
	len = vsnprintf(buffer->at + buffer->len, left, format, args);
	va_end(args);
	if (len < 0)
		len = 0;
	buffer->is_cut = buffer->is_cut || (size_t)len >= left;
	buffer->len += (size_t)len < left ? (size_t)len : left - 1;
}

static bool is_between(unsigned char byte, unsigned lowest, unsigned highest)
{
	return byte >= lowest && byte <= highest;
}

/* The bytes of the character at text, by RFC 3629's grammar; 0: it is none. */
static size_t character_len(const unsigned char *text)
{
	unsigned lowest = text[0] == 0xe0 ? 0xa0 : text[0] == 0xf0 ? 0x90 : 0x80;
	unsigned highest = text[0] == 0xed ? 0x9f : text[0] == 0xf4 ? 0x8f : 0xbf;
	size_t len = text[0] < 0x80		       ? 1
		     : is_between(text[0], 0xc2, 0xdf) ? 2
		     : is_between(text[0], 0xe0, 0xef) ? 3
		     : is_between(text[0], 0xf0, 0xf4) ? 4
						       : 0;

	if (len > 1 && !is_between(text[1], lowest, highest))
		return 0;
	for (size_t i = 2; i < len; i++)
		if (!is_between(text[i], 0x80, 0xbf))
			return 0;
	return len;
}

void aw_buffer_put_json(struct aw_buffer *buffer, const char *text)
{
	const unsigned char *at = (const unsigned char *)text;

	aw_buffer_put(buffer, "\"");
	while (*at) {
		size_t len = character_len(at);

		if (*at == '"' || *at == '\\')
			aw_buffer_put(buffer, "\\%c", *at);
		else if (*at < ' ' || *at == 0x7f)
			aw_buffer_put(buffer, "\\u%04x", *at);
		else if (len)
			aw_buffer_put(buffer, "%.*s", (int)len, (const char *)at);
		else
			aw_buffer_put(buffer, "?");
		at += len ? len : 1;
	}
	aw_buffer_put(buffer, "\"");
}

void aw_buffer_put_uri(struct aw_buffer *buffer, const char *path)
{
	static const char kept[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/+@,=";

	for (; *path; path++)
		aw_buffer_put(buffer, strchr(kept, *path) ? "%c" : "%%%02X", (unsigned char)*path);
}
