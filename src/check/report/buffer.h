// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Text that is put together in memory of the caller's. The part that does not fit is left out, which
// the flag tells.
#ifndef CHECK_REPORT_BUFFER_H
#define CHECK_REPORT_BUFFER_H

#include <stdbool.h>
#include <stddef.h>

struct aw_buffer {
	char *at;
	size_t room; /* bytes at 'at' */
	size_t len; /* without a NUL, which always follows */
	bool is_cut;
};

struct aw_buffer aw_buffer_of(char *at, size_t room);

void aw_buffer_put(struct aw_buffer *buffer, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Puts the text in quotes, as JSON has it. A byte that is no UTF-8 becomes a question mark. */
void aw_buffer_put_json(struct aw_buffer *buffer, const char *text);

/* Puts the path as a part of a URI (RFC 3986 2.1): '%' and two digits for what a path may not have there. */
void aw_buffer_put_uri(struct aw_buffer *buffer, const char *path);

#endif
