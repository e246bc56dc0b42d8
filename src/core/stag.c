// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A Feistel network over two halves, which is a permutation whatever round_of does.
#include "core/stag.h"

#define HALF_BITS 12
#define HALF_MASK ((1u << HALF_BITS) - 1)
#define ROUNDS 4

/* A random multiplier's upper bits: cheap, and even over the inputs. */
static uint32_t round_of(uint32_t half, const uint64_t key[2])
{
	return (uint32_t)(((half ^ key[0]) * (key[1] | 1)) >> (64 - HALF_BITS));
}

uint32_t aw_stag_scramble(const struct aw_stag_secret *secret, uint32_t index)
{
	uint32_t left = index >> HALF_BITS & HALF_MASK, right = index & HALF_MASK;

	for (int i = 0; i < ROUNDS; i++) {
		uint32_t next = left ^ round_of(right, secret->rounds[i]);

		left = right;
		right = next;
	}
	return left << HALF_BITS | right;
}

uint32_t aw_stag_unscramble(const struct aw_stag_secret *secret, uint32_t scrambled)
{
	uint32_t left = scrambled >> HALF_BITS & HALF_MASK, right = scrambled & HALF_MASK;

	for (int i = ROUNDS - 1; i >= 0; i--) {
		uint32_t previous = right ^ round_of(left, secret->rounds[i]);

		right = left;
		left = previous;
	}
	return left << HALF_BITS | right;
}
