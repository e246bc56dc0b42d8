// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The hosts' MRs with red zones round them, and a shadow of what each octet ought to be. An octet
// may differ from its shadow only inside a claimed sink; everything else is a stray placement.
#include "world.h"

#include <stdlib.h>
#include <string.h>

static const struct {
	enum role role;
	uint32_t access;
	unsigned int count;
	uint32_t len_factor; /* times the largest message */
} kinds[] = {
	{ ROLE_SOURCE, AW_ACCESS_REMOTE_READ, 2, 2 },
	{ ROLE_RECV, AW_ACCESS_LOCAL_WRITE, 2, 4 },
	{ ROLE_WRITE, AW_ACCESS_LOCAL_WRITE | AW_ACCESS_REMOTE_WRITE, 2, 3 },
	{ ROLE_READ, AW_ACCESS_LOCAL_WRITE, 1, 4 },
	{ ROLE_SPARE, AW_ACCESS_LOCAL_WRITE | AW_ACCESS_REMOTE_WRITE | AW_ACCESS_REMOTE_READ, 3,
	  0 },
	{ ROLE_FOREIGN, AW_ACCESS_LOCAL_WRITE | AW_ACCESS_REMOTE_WRITE | AW_ACCESS_REMOTE_READ, 1,
	  0 },
	{ ROLE_ATOMIC, AW_ACCESS_LOCAL_WRITE | AW_ACCESS_REMOTE_ATOMIC, 1, 0 },
};

static size_t whole_len(const struct region *region)
{
	return RED_ZONE + region->mr.len + RED_ZONE;
}

static uint32_t fresh_stag(struct host *host)
{
	uint32_t stag;

	do
		stag = (uint32_t)rng_next(&host->world->rng);
	while (stag == 0 || memory_find(host, stag));
	return stag;
}

/* Where nobody may write by chance into what atomics alone change. */
static uint32_t more_rights(const struct host *host, enum role role)
{
	const struct plan *plan = &host->world->plan;
	uint32_t rights = 0;

	if (!plan->placement)
		return 0;
	if (role == ROLE_ATOMIC || role == ROLE_WRITE)
		rights = AW_ACCESS_FLUSH;
	if (role == ROLE_ATOMIC && !plan->hostile && !plan->flip)
		rights |= AW_ACCESS_REMOTE_WRITE;
	return rights;
}

static void region_add(struct host *host, unsigned int kind)
{
	struct rng *rng = &host->world->rng;
	struct region *region = &host->region[host->region_count];
	size_t len = (size_t)kinds[kind].len_factor * host->world->plan.len_max + 4096 +
		     rng_below(rng, 64);

	region->role = kinds[kind].role;
	region->mr = (struct aw_mr){
		.stag = fresh_stag(host),
		.access = kinds[kind].access | more_rights(host, kinds[kind].role),
		.iova = rng_percent(rng, 30) ? 0 : rng_next(rng) >> 1,
		.len = len,
		.pd = region->role == ROLE_FOREIGN ? &host->foreign_pd : &host->pd,
	};
	region->memory = malloc(whole_len(region));
	region->shadow = malloc(whole_len(region));
	region->mr.host = region->memory + RED_ZONE;
	region->live = true;
	rng_fill(rng, region->memory, whole_len(region));
	memcpy(region->shadow, region->memory, whole_len(region));
	host->region_count++;
}

void memory_init(struct host *host)
{
	for (unsigned int kind = 0; kind < sizeof(kinds) / sizeof(kinds[0]); kind++)
		for (unsigned int i = 0;
		     i < kinds[kind].count &&
		     (kinds[kind].role != ROLE_ATOMIC || host->world->plan.extended);
		     i++)
			region_add(host, kind);
}

void memory_fini(struct host *host)
{
	for (unsigned int i = 0; i < host->region_count; i++) {
		free(host->region[i].memory);
		free(host->region[i].shadow);
	}
}

struct region *memory_find(struct host *host, uint32_t stag)
{
	for (unsigned int i = 0; i < host->region_count; i++)
		if (host->region[i].mr.stag == stag)
			return &host->region[i];
	return NULL;
}

struct region *memory_pick(struct host *host, enum role role)
{
	unsigned int start = (unsigned int)rng_below(&host->world->rng, host->region_count);

	for (unsigned int i = 0; i < host->region_count; i++) {
		struct region *region = &host->region[(start + i) % host->region_count];

		if (region->role == role && region->live && !region->named)
			return region;
	}
	return NULL;
}

uint8_t *memory_at(const struct region *region, size_t off)
{
	return region->memory + RED_ZONE + off;
}

uint8_t *memory_shadow_at(const struct region *region, size_t off)
{
	return region->shadow + RED_ZONE + off;
}

struct region *memory_add_window(struct host *host)
{
	struct region *region;

	if (host->region_count == REGIONS_MAX)
		return NULL;
	region = &host->region[host->region_count++];
	region->role = ROLE_WINDOW;
	region->mr.stag = fresh_stag(host);
	return region;
}

static struct sink *overlapping(const struct region *region, size_t off, uint32_t len)
{
	for (struct sink *s = region->sinks; s; s = s->next)
		if (off < s->off + s->len && s->off < off + len)
			return s;
	return NULL;
}

static void hold(struct region *region, size_t off, uint32_t len, struct sink *sink)
{
	*sink = (struct sink){ .region = region, .off = off, .len = len, .held = len != 0 };
	if (!sink->held)
		return;
	sink->next = region->sinks;
	region->sinks = sink;
}

bool memory_claim_at(struct region *region, size_t off, uint32_t len, struct sink *sink)
{
	if (overlapping(region, off, len))
		return false;
	hold(region, off, len, sink);
	return true;
}

bool memory_claim(struct region *region, uint32_t len, struct sink *sink)
{
	size_t off = region->cursor;

	for (int tries = 0; tries < 8; tries++) {
		struct sink *other;

		if (len > region->mr.len - off)
			off = 0;
		other = overlapping(region, off, len);
		if (other) {
			off = other->off + other->len;
			continue;
		}
		hold(region, off, len, sink);
		region->cursor = off + len;
		return true;
	}
	return false;
}

void memory_release(struct sink *sink)
{
	struct sink **link = sink->region ? &sink->region->sinks : NULL;

	if (!sink->held)
		return;
	while (*link != sink)
		link = &(*link)->next;
	*link = sink->next;
	sink->held = false;
}

void memory_settle(struct sink *sink)
{
	if (sink->len)
		memcpy(memory_shadow_at(sink->region, sink->off),
		       memory_at(sink->region, sink->off), sink->len);
}

void memory_accept(struct world *w, struct sink *sink, bool anything)
{
	const uint8_t *memory = memory_at(sink->region, sink->off);
	const uint8_t *shadow = memory_shadow_at(sink->region, sink->off);

	for (uint32_t i = 0; i < sink->len && !anything; i++) {
		if (memory[i] == shadow[i])
			continue;
		if (!sink->want || i >= sink->want_len || memory[i] != sink->want[i]) {
			world_fail(w, "octet %u of a sink of %u in MR %08x is neither old nor new",
				   i, sink->len, sink->region->mr.stag);
			return;
		}
	}
	memory_settle(sink);
}

bool memory_matches(const struct sink *sink)
{
	const uint8_t *memory = memory_at(sink->region, sink->off);
	const uint8_t *shadow = memory_shadow_at(sink->region, sink->off);
	uint32_t n = sink->want_len < sink->len ? sink->want_len : sink->len;

	return (n == 0 || memcmp(memory, sink->want, n) == 0) &&
	       memcmp(memory + n, shadow + n, sink->len - n) == 0;
}

static void region_check(struct world *w, const struct region *region, char host)
{
	size_t i = 0;

	if (region->refs)
		world_fail(w, "host %c: MR %08x is held %u times at the end", host, region->mr.stag,
			   region->refs);
	if (region->role == ROLE_WINDOW)
		return;
	if (memcmp(region->memory, region->shadow, whole_len(region)) == 0)
		return;
	while (region->memory[i] == region->shadow[i])
		i++;
	world_fail(w, "host %c: MR %08x role %d len %zu: octet %zd changed", host, region->mr.stag,
		   region->role, (size_t)region->mr.len, (ssize_t)i - RED_ZONE);
}

void memory_check(struct world *w)
{
	bool anything = false;

	for (unsigned int i = 0; i < w->plan.conns; i++)
		anything |= w->conn[i].untrusted;
	for (int h = 0; h < 2; h++) {
		for (unsigned int i = 0; i < w->host[h].region_count; i++) {
			struct region *region = &w->host[h].region[i];

			if (anything && region->live && region->role != ROLE_WINDOW &&
			    region->mr.access & AW_ACCESS_REMOTE_WRITE &&
			    region->role != ROLE_FOREIGN)
				memcpy(memory_shadow_at(region, 0), memory_at(region, 0),
				       region->mr.len);
			for (struct sink *s = region->sinks; s; s = s->next)
				memory_accept(w, s, anything);
			region_check(w, region, h ? 'B' : 'A');
		}
	}
}
