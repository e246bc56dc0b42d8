// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// STags that reveal nothing of each other (RFC 5042 6.1.1): 24 bits are the index in a driver's
// table, scrambled by a secret permutation, and 8 bits are a key. A look-up still goes straight to
// its slot.
#ifndef CORE_STAG_H
#define CORE_STAG_H

#include <stdint.h>

#define AW_STAG_KEY_BITS 8
#define AW_STAG_KEY_MASK ((1u << AW_STAG_KEY_BITS) - 1)
#define AW_STAG_INDEX_MAX ((1u << 24) - 1)

/* Random octets, drawn once. */
struct aw_stag_secret {
	uint64_t rounds[4][2];
};

/* The 24 upper bits of an index's STags, and back. Bits above 24 are ignored. */
uint32_t aw_stag_scramble(const struct aw_stag_secret *secret, uint32_t index);
uint32_t aw_stag_unscramble(const struct aw_stag_secret *secret, uint32_t scrambled);

#endif
