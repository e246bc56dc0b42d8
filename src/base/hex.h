// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Bytes as hexadecimal digits, two each.
#ifndef BASE_HEX_H
#define BASE_HEX_H

#include <stdbool.h>
#include <stddef.h>

/* Writes 2 * len digits and a NUL to text. */
void aw_hex_write(char *text, const void *bytes, size_t len);

/* Reads 2 * len digits. False: text has a NUL or another character among them. */
__attribute__((warn_unused_result)) bool aw_hex_read(const char *text, void *bytes, size_t len);

#endif
