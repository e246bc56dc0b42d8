// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "worker/stats.h"

#include "worker/fail.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define DIRECT (2 * STATS_PARTS)

static unsigned int bucket_of(uint64_t ns);
static double bucket_middle(unsigned int bucket);

struct stats *stats_create(void)
{
	struct stats *stats = malloc(sizeof(*stats));

	if (!stats)
		fail("no memory for %zu bytes of statistics", sizeof(*stats));
	stats_clear(stats);
	return stats;
}

void stats_destroy(struct stats *stats)
{
	free(stats);
}

void stats_clear(struct stats *stats)
{
	memset(stats, 0, sizeof(*stats));
}

void stats_add(struct stats *stats, uint64_t ns)
{
	if (stats->count == 0 || ns < stats->min)
		stats->min = ns;
	if (ns > stats->max)
		stats->max = ns;
	stats->count++;
	stats->sum += ns;
	stats->buckets[bucket_of(ns)]++;
}

double stats_quantile(const struct stats *stats, double part)
{
	uint64_t wanted = (uint64_t)ceil(part * (double)stats->count);
	uint64_t seen = 0;
	unsigned int bucket;
	double middle;

	if (wanted <= 1)
		return (double)stats->min;
	if (wanted >= stats->count)
		return (double)stats->max;
	for (bucket = 0; bucket < STATS_BUCKETS - 1; bucket++) {
		seen += stats->buckets[bucket];
		if (seen >= wanted)
			break;
	}
	/* The middle of a bucket may lie outside what was there. */
	middle = bucket_middle(bucket);
	return fmin(fmax(middle, (double)stats->min), (double)stats->max);
}

double stats_mean(const struct stats *stats)
{
	return stats->count ? (double)stats->sum / (double)stats->count : 0;
}

/* How far 2^10 and more is shifted right to lie in STATS_PARTS to DIRECT - 1. */
static unsigned int shift_of(uint64_t ns)
{
	return 63u - (unsigned int)__builtin_clzll(ns / STATS_PARTS);
}

static unsigned int bucket_of(uint64_t ns)
{
	unsigned int shift;

	if (ns < DIRECT)
		return (unsigned int)ns;
	shift = shift_of(ns);
	if (shift > STATS_OCTAVES)
		return STATS_BUCKETS - 1;
	return shift * STATS_PARTS + (unsigned int)(ns >> shift);
}

static double bucket_middle(unsigned int bucket)
{
	unsigned int shift;
	uint64_t first;

	if (bucket < DIRECT)
		return bucket;
	shift = bucket / STATS_PARTS - 1;
	first = (uint64_t)(bucket - shift * STATS_PARTS) << shift;
	return (double)first + (double)((1ull << shift) - 1) / 2;
}
