// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Looks for a secret in the process's own memory.
#ifndef LIB_MEMORY_SCAN_H
#define LIB_MEMORY_SCAN_H

#include <stddef.h>
#include <stdint.h>

#define SCAN_BYTES 16

/* A secret's first bytes, complemented: so this is no place where they are. */
struct scan_needle {
	uint8_t not_bytes[SCAN_BYTES];
};

struct scan_needle scan_needle_of(const uint8_t *secret);

/* In how many places of the memory that the process can write, the stacks aside, the bytes are. */
size_t scan_count(const struct scan_needle *needle);

#endif
