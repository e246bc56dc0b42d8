// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Registered memory with red zones: every region stands between two pages that nobody may touch,
// and whatever is between them, granted or not, is compared with a copy of what it must be.
#include "victim.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define REGIONS_MAX 4096
#define MIDDLE 64 /* octets of red zone before a region in the middle, and as many behind it */

enum place {
	PLACE_MIDDLE,
	PLACE_START, /* right behind an untouchable page */
	PLACE_END, /* right before one */
	PLACE_BIG, /* never written and too large for a copy: only the pages around it watch */
};

struct region {
	uint8_t *pages; /* between the untouchable ones */
	size_t pages_len;
	uint8_t *copy; /* what the pages must hold; NULL for a big one */
	uint8_t *base;
	size_t len;
	struct ibv_mr *mr; /* NULL: not registered now */
};

static struct region regions[REGIONS_MAX];
static uint64_t region_count;

static struct region *region_at(uint64_t number)
{
	CHECK(number < region_count);
	return &regions[number];
}

/* Octets that are the same nowhere near. */
static void fill(uint8_t *p, size_t len, uint64_t seed)
{
	uint64_t x = seed * 0x9E3779B97F4A7C15u + 1;

	for (size_t i = 0; i < len; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		p[i] = (uint8_t)(x >> 32);
	}
}

static uint8_t *map_pages(size_t len)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uint8_t *all = mmap(NULL, len + 2 * page, PROT_NONE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	CHECK(all != MAP_FAILED);
	CHECK(mprotect(all + page, len, PROT_READ | PROT_WRITE) == 0);
	return all + page;
}

static size_t offset_of(enum place place, size_t pages_len, size_t len)
{
	switch (place) {
	case PLACE_MIDDLE:
		return MIDDLE;
	case PLACE_END:
		return pages_len - len;
	case PLACE_START:
	case PLACE_BIG:
		return 0;
	}
	return 0;
}

static void register_region(struct region *region, uint64_t pd, uint64_t access)
{
	region->mr = ibv_reg_mr(victim_pd(pd), region->base, region->len, (int)access);
	CHECK(region->mr);
	CHECK(region->mr->rkey == region->mr->lkey);
	printf("%u %u %llu\n", (unsigned int)(region - regions), region->mr->rkey,
	       (unsigned long long)(uintptr_t)region->base);
}

void regions_open(const struct ask *ask)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	enum place place = (enum place)ask->n[3];
	struct region *region = &regions[region_count];

	CHECK(region_count < REGIONS_MAX && place <= PLACE_BIG);
	region_count++;
	region->len = ask->n[2];
	region->pages_len = (region->len + 2 * MIDDLE + page - 1) / page * page;
	region->pages = map_pages(region->pages_len);
	region->base = region->pages + offset_of(place, region->pages_len, region->len);
	if (place != PLACE_BIG) {
		fill(region->pages, region->pages_len, region_count);
		region->copy = malloc(region->pages_len);
		CHECK(region->copy);
		memcpy(region->copy, region->pages, region->pages_len);
	}
	register_region(region, ask->n[0], ask->n[1]);
}

static void deregister(struct region *region)
{
	CHECK(region->mr && ibv_dereg_mr(region->mr) == 0);
	region->mr = NULL;
}

void regions_close(const struct ask *ask)
{
	deregister(region_at(ask->n[0]));
	printf("ok\n");
}

void regions_register(const struct ask *ask)
{
	struct region *region = region_at(ask->n[0]);

	CHECK(!region->mr);
	register_region(region, ask->n[1], ask->n[2]);
}

void regions_revoke(const struct ask *ask)
{
	struct region *region = region_at(ask->n[0]);

	deregister(region);
	/* From here on the peer must neither change an octet nor see one. */
	memset(region->base, 0x5E, region->len);
	memcpy(region->copy, region->pages, region->pages_len);
	printf("ok\n");
}

static unsigned int nibble(char c)
{
	return c <= '9' ? (unsigned int)(c - '0') : (unsigned int)(c - 'a' + 10);
}

void regions_expect(const struct ask *ask)
{
	struct region *region = region_at(ask->n[0]);
	size_t len = strlen(ask->text) / 2;
	uint8_t *copy = region->copy + (region->base - region->pages) + ask->n[1];

	CHECK(ask->n[1] <= region->len && len <= region->len - ask->n[1]);
	for (size_t i = 0; i < len; i++)
		copy[i] = (uint8_t)(nibble(ask->text[2 * i]) << 4 | nibble(ask->text[2 * i + 1]));
	printf("ok\n");
}

/* The first octet that is not what it must be; pages_len when all are. */
static size_t damage(const struct region *region)
{
	size_t i = 0;

	if (!region->copy || memcmp(region->pages, region->copy, region->pages_len) == 0)
		return region->pages_len;
	while (region->pages[i] == region->copy[i])
		i++;
	return i;
}

void regions_check(const struct ask *ask)
{
	(void)ask;
	for (uint64_t i = 0; i < region_count; i++) {
		const struct region *region = &regions[i];
		size_t at = damage(region);

		if (at == region->pages_len)
			continue;
		printf("damage to region %llu at offset %td of %zu\n", (unsigned long long)i,
		       region->pages + at - region->base, region->len);
		return;
	}
	printf("ok\n");
}

void regions_dump(const struct ask *ask)
{
	const struct region *region = region_at(ask->n[0]);

	CHECK(ask->n[1] <= region->len && ask->n[2] <= region->len - ask->n[1]);
	for (uint64_t i = 0; i < ask->n[2]; i++)
		printf("%02x", region->base[ask->n[1] + i]);
	printf("\n");
}

struct ibv_mr *regions_mr(uint64_t number)
{
	CHECK(region_at(number)->mr);
	return region_at(number)->mr;
}

struct ibv_sge regions_sge(uint64_t number, uint64_t offset, uint64_t len)
{
	const struct region *region = region_at(number);

	CHECK(region->mr);
	return (struct ibv_sge){
		.addr = (uintptr_t)region->base + offset,
		.length = (uint32_t)len,
		.lkey = region->mr->lkey,
	};
}
