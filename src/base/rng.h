// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Chance from a seed: SplitMix64 (Steele, Lea, Flood). Each queue, QP or thread has a stream of its own, so that what one
// of them draws does not depend on when the others do.
#ifndef BASE_RNG_H
#define BASE_RNG_H

#include <stdbool.h>
#include <stdint.h>

struct aw_rng {
	uint64_t state;
};

static inline uint64_t aw_rng_next(struct aw_rng *rng)
{
	uint64_t z = rng->state += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

/* The stream of that number, of all that the seed has. */
static inline struct aw_rng aw_rng_stream(uint64_t seed, uint64_t number)
{
	struct aw_rng of_seed = { seed };
	struct aw_rng of_number = { aw_rng_next(&of_seed) ^ number };

	return (struct aw_rng){ aw_rng_next(&of_number) };
}

/* 0 to n - 1; n > 0. */
static inline uint64_t aw_rng_below(struct aw_rng *rng, uint64_t n)
{
	return aw_rng_next(rng) % n;
}

/* True in one of n cases; n > 0. */
static inline bool aw_rng_one_in(struct aw_rng *rng, uint64_t n)
{
	return aw_rng_below(rng, n) == 0;
}

#endif
