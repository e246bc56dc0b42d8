// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Durations in ns as a histogram: constant memory however many there are. Minimum, maximum and mean
// are exact, quantiles within one part in STATS_PARTS.
#ifndef BENCH_STATS_H
#define BENCH_STATS_H

#include <stdint.h>

#define STATS_PARTS 512 /* buckets from one power of two to the next */
#define STATS_OCTAVES 36 /* beyond the first 2 * STATS_PARTS ns, each of which has its own bucket */
#define STATS_BUCKETS (STATS_PARTS * (STATS_OCTAVES + 2))

struct stats {
	uint64_t count;
	uint64_t sum;
	uint64_t min, max; /* of nothing: 0 */
	uint32_t buckets[STATS_BUCKETS];
};

/* Allocated and touched, so that the first durations meet no page faults. */
struct stats *stats_create(void);
void stats_destroy(struct stats *stats);
void stats_clear(struct stats *stats);
void stats_add(struct stats *stats, uint64_t ns);

/* The smallest duration that at least this part (0 to 1) of all does not exceed; 0 of nothing. */
double stats_quantile(const struct stats *stats, double part);
double stats_mean(const struct stats *stats);

#endif
