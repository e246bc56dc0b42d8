// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "stream.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define WATCHED_MAX 8
#define SHOWN 16

static __thread const struct end *watched;
static const struct end *all[WATCHED_MAX]; /* of this process */
static atomic_uint count;

void stream_watch(const struct end *e)
{
	unsigned at = watched == e ? WATCHED_MAX : atomic_fetch_add(&count, 1);
	watched = e;
	if (at < WATCHED_MAX)
		all[at] = e;
}

static void tell(const struct end *e)
{
	char text[512];
	int len = snprintf(
		text, sizeof(text),
		"%s%s%s: in %llu of %llu%s, out %llu of %llu, waiter %d, %s, %s: ", e->side,
		e->does_in ? "" : ", out alone", e->does_out ? "" : ", in alone",
		(unsigned long long)e->in.offset, (unsigned long long)e->in.total,
		e->in_ended ? " and the end" : "", (unsigned long long)e->out.offset,
		(unsigned long long)e->out.total, e->waiter,
		e->blocking ? "blocking" : "not blocking", e->call ? e->call : "no call");
	if (write(STDERR_FILENO, text, (size_t)len) != len)
		_exit(1);
}

void stream_failed(const char *file, int line, const char *claim)
{
	int err = errno;
	if (watched)
		tell(watched);
	fprintf(stderr, "%s:%d: not so: %s (errno %s)\n", file, line, claim, strerror(err));
	_exit(1);
}

void stream_tell_all(int number)
{
	unsigned known = atomic_load(&count);
	(void)number;
	if (!known)
		return;
	for (unsigned i = 0; i < known && i < WATCHED_MAX; i++) {
		tell(all[i]);
		fprintf(stderr, "no end\n");
	}
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

static void tell_octets(const char *what, const uint8_t *octets, size_t len)
{
	fprintf(stderr, "%s:", what);
	for (size_t i = 0; i < len && i < SHOWN; i++)
		fprintf(stderr, " %02x", octets[i]);
	fprintf(stderr, "\n");
}

void flow_check(const struct flow *f, const void *octets, size_t len)
{
	const uint8_t *got = octets;
	uint8_t wanted[SHOWN];
	CHECK(len <= f->total - f->offset);
	for (size_t i = 0; i < len; i++) {
		if (got[i] == octet_at(f->seed, f->offset + i))
			continue;
		flow_fill(f, f->offset + i, wanted, SHOWN);
		fprintf(stderr, "octet %llu, %zu of %zu in this call\n",
			(unsigned long long)(f->offset + i), i, len);
		tell_octets("wanted", wanted, SHOWN);
		tell_octets("got", got + i, len - i);
		CHECK(!"the octets that were sent");
	}
}
