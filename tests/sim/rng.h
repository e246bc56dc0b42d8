// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A world's only source of chance: SplitMix64 (Steele, Lea, Flood) from a seed, before which a
// fuzzer's octets, one a draw, may come. Nothing else may decide anything.
#ifndef SIM_RNG_H
#define SIM_RNG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rng {
	uint64_t state;
	const uint8_t *octets;
	size_t left;
};

static inline uint64_t rng_next(struct rng *rng)
{
	uint64_t z = rng->state += 0x9e3779b97f4a7c15u;

	if (rng->left) {
		rng->left--;
		z = *rng->octets++;
	}
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

/* 0 to n - 1; n > 0. */
static inline uint64_t rng_below(struct rng *rng, uint64_t n)
{
	return rng_next(rng) % n;
}

/* lo to hi, both included. */
static inline uint64_t rng_range(struct rng *rng, uint64_t lo, uint64_t hi)
{
	return lo + rng_below(rng, hi - lo + 1);
}

static inline bool rng_percent(struct rng *rng, unsigned int percent)
{
	return rng_below(rng, 100) < percent;
}

/* Random octets, from one draw. */
void rng_fill(struct rng *rng, uint8_t *p, size_t len);

#endif
