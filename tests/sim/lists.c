// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Scatter/gather lists: a message's octets cut at random over random places of an end's MRs.
#include "world.h"

#include <string.h>

static unsigned int draw_count(struct rng *rng, unsigned int max, uint32_t len)
{
	unsigned int count;

	if (len == 0 && rng_percent(rng, 50))
		return 0;
	if (rng_percent(rng, 60))
		count = 1;
	else if (rng_percent(rng, 90))
		count = (unsigned int)rng_range(rng, 1, 5);
	else
		count = AW_SGE_MAX;
	return count < max ? count : max;
}

/* Octets of piece i of count when rest are left. */
static uint32_t piece(struct rng *rng, unsigned int i, unsigned int count, uint32_t rest)
{
	if (i + 1 == count)
		return rest;
	if (rng_percent(rng, 10))
		return 0;
	return (uint32_t)rng_below(rng, (uint64_t)rest * 2 / (count - i) + 1) % (rest + 1);
}

unsigned int lists_source(struct end *end, uint32_t len, struct aw_sge *sge, uint8_t *data)
{
	struct rng *rng = &end->world->rng;
	unsigned int count = draw_count(rng, end->mem.sge_max, len);
	uint32_t done = 0;

	for (unsigned int i = 0; i < count; i++) {
		struct region *region = memory_pick(end->host, ROLE_SOURCE);
		uint32_t n = piece(rng, i, count, len - done);
		size_t off = rng_range(rng, 0, region->mr.len - n);

		sge[i] = (struct aw_sge){ region->mr.iova + off, n, region->mr.stag };
		memcpy(data + done, memory_shadow_at(region, off), n);
		done += n;
	}
	return count;
}

void lists_release(struct sink *sink, unsigned int count)
{
	for (unsigned int i = 0; i < count; i++)
		memory_release(&sink[i]);
}

unsigned int lists_sink(struct end *end, enum role role, uint32_t len, struct sink *sink)
{
	struct rng *rng = &end->world->rng;
	unsigned int count = draw_count(rng, end->mem.sge_max, len);
	uint32_t done = 0;

	for (unsigned int i = 0; i < count; i++) {
		struct region *region = memory_pick(end->host, role);
		uint32_t n = piece(rng, i, count, len - done);

		if (!region || !memory_claim(region, n, &sink[i])) {
			lists_release(sink, i);
			return UINT32_MAX;
		}
		done += n;
	}
	return count;
}

void lists_sges(const struct sink *sink, unsigned int count, struct aw_sge *sge)
{
	for (unsigned int i = 0; i < count; i++)
		sge[i] = (struct aw_sge){ sink[i].region->mr.iova + sink[i].off, sink[i].len,
					  sink[i].region->mr.stag };
}
