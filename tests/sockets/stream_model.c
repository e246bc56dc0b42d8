// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "stream.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static __thread const struct end *watched;

void stream_watch(const struct end *e)
{
	watched = e;
}

void stream_failed(const char *file, int line, const char *claim)
{
	int err = errno;
	char text[512] = "";
	const struct end *e = watched;
	if (e)
		snprintf(text, sizeof(text),
			 "%s: in %llu of %llu, out %llu of %llu, waiter %d, %s, %s: ", e->side,
			 (unsigned long long)e->in.offset, (unsigned long long)e->in.total,
			 (unsigned long long)e->out.offset, (unsigned long long)e->out.total,
			 e->waiter, e->blocking ? "blocking" : "not blocking",
			 e->call ? e->call : "no call");
	fprintf(stderr, "%s%s:%d: not so: %s (errno %s)\n", text, file, line, claim, strerror(err));
	_exit(1);
}

uint64_t rng_next(struct rng *r)
{
	uint64_t x = r->state += 0x9e3779b97f4a7c15;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
	x = (x ^ x >> 27) * 0x94d049bb133111eb;
	return x ^ x >> 31;
}

uint64_t rng_below(struct rng *r, uint64_t bound)
{
	return rng_next(r) % bound;
}

bool rng_chance(struct rng *r, unsigned one_in)
{
	return rng_below(r, one_in) == 0;
}

size_t rng_size(struct rng *r, size_t max)
{
	static const size_t bounds[] = { 8, 64, 1500, 9000, CHUNK_MAX };
	size_t bound = bounds[rng_below(r, ARRAY_LEN(bounds))];
	return 1 + rng_below(r, bound < max ? bound : max);
}

static uint8_t octet_at(uint32_t seed, uint64_t offset)
{
	uint64_t x = (offset >> 3) * 0x9e3779b97f4a7c15 + seed;
	x ^= x >> 29;
	return (uint8_t)(x >> (offset & 7) * 8);
}

void flow_fill(const struct flow *f, uint64_t offset, void *octets, size_t len)
{
	for (size_t i = 0; i < len; i++)
		((uint8_t *)octets)[i] = octet_at(f->seed, offset + i);
}

void flow_check(const struct flow *f, const void *octets, size_t len)
{
	CHECK(len <= f->total - f->offset);
	for (size_t i = 0; i < len; i++)
		CHECK(((const uint8_t *)octets)[i] == octet_at(f->seed, f->offset + i));
}
