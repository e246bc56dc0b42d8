// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// An integer sort as the NAS kernel IS does it: counts of buckets are summed, each rank gets the keys of its half of all
// keys by MPI_Alltoallv, and counts them. Written anew; the order, number and sum of the keys are checked at each round.
#include "mpi/ranks.h"

#include "worker/clock.h"

#include <mpi.h>

#include <stdlib.h>
#include <string.h>

#define KEY_BITS 19
#define KEY_MAX (1u << KEY_BITS)
#define BUCKET_BITS 10
#define BUCKETS (1u << BUCKET_BITS)
#define RANKS 2

struct sort {
	size_t count; /* keys of a rank before the exchange */
	uint32_t *keys, *ordered, *got;
	uint32_t *counts; /* of each key; 0 between rounds */
	uint32_t first, last; /* the keys that this rank gets: first <= key < last */
};

static void make_keys(struct sort *sort)
{
	uint64_t state = 88172645463325252u + (uint64_t)rank;

	for (size_t i = 0; i < sort->count; i++) {
		state ^= state << 13;
		state ^= state >> 7;
		state ^= state << 17;
		sort->keys[i] = (uint32_t)(state >> 20) % KEY_MAX;
	}
}

static uint32_t bucket_of(uint32_t key)
{
	return key >> (KEY_BITS - BUCKET_BITS);
}

/* Puts the keys into the order of their buckets; the first bucket of rank 1, so that both get about as many. */
static uint32_t partition(struct sort *sort, int *to_first)
{
	static uint32_t own[BUCKETS], all[BUCKETS], at[BUCKETS];
	uint32_t border = 0;
	uint64_t sum = 0;

	memset(own, 0, sizeof(own));
	for (size_t i = 0; i < sort->count; i++)
		own[bucket_of(sort->keys[i])]++;
	MPI_Allreduce(own, all, BUCKETS, MPI_UINT32_T, MPI_SUM, MPI_COMM_WORLD);
	while (border < BUCKETS && sum < sort->count)
		sum += all[border++];
	at[0] = 0;
	for (uint32_t i = 1; i < BUCKETS; i++)
		at[i] = at[i - 1] + own[i - 1];
	*to_first = border < BUCKETS ? (int)at[border] : (int)sort->count;
	for (size_t i = 0; i < sort->count; i++)
		sort->ordered[at[bucket_of(sort->keys[i])]++] = sort->keys[i];
	return border << (KEY_BITS - BUCKET_BITS);
}

/* The number of keys that this rank has then. */
static size_t exchange(struct sort *sort, int to_first)
{
	int out[RANKS] = { to_first, (int)sort->count - to_first }, in[RANKS];
	int out_at[RANKS] = { 0, to_first }, in_at[RANKS];

	MPI_Alltoall(out, 1, MPI_INT, in, 1, MPI_INT, MPI_COMM_WORLD);
	in_at[0] = 0;
	in_at[1] = in[0];
	MPI_Alltoallv(sort->ordered, out, out_at, MPI_UINT32_T, sort->got, in, in_at, MPI_UINT32_T,
		      MPI_COMM_WORLD);
	return (size_t)(in[0] + in[1]);
}

/* Writes the keys in their order over those that came. */
static void count_keys(struct sort *sort, size_t got)
{
	size_t at = 0;

	for (size_t i = 0; i < got; i++) {
		if (sort->got[i] < sort->first || sort->got[i] >= sort->last)
			wrong("a key came to the other rank");
		sort->counts[sort->got[i]]++;
	}
	for (uint32_t key = sort->first; key < sort->last; key++) {
		for (; sort->counts[key]; sort->counts[key]--)
			sort->got[at++] = key;
	}
}

static void check(const struct sort *sort, size_t got)
{
	uint64_t mine[4] = { sort->count, 0, got, 0 }, all[4];

	for (size_t i = 0; i < sort->count; i++)
		mine[1] += sort->keys[i];
	for (size_t i = 0; i < got; i++) {
		mine[3] += sort->got[i];
		if (i && sort->got[i] < sort->got[i - 1])
			wrong("keys are out of order");
	}
	MPI_Allreduce(mine, all, 4, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
	if (all[0] != all[2] || all[1] != all[3])
		wrong("keys were lost");
}

static void sort_once(struct sort *sort)
{
	int to_first;
	uint32_t border = partition(sort, &to_first);
	size_t got;

	sort->first = rank == 0 ? 0 : border;
	sort->last = rank == 0 ? border : KEY_MAX;
	got = exchange(sort, to_first);
	count_keys(sort, got);
	check(sort, got);
}

void measure_sort(size_t keys, double seconds, struct json *json)
{
	const size_t octets = keys * sizeof(uint32_t);
	struct sort sort = { .count = keys };
	uint64_t began, rounds;

	sort.keys = allocate(octets);
	sort.ordered = allocate(octets);
	sort.got = allocate(octets * RANKS);
	sort.counts = allocate(KEY_MAX * sizeof(uint32_t));
	make_keys(&sort);
	began = clock_ns();
	sort_once(&sort);
	rounds = rounds_for(seconds, (double)(clock_ns() - began) / NS_PER_SECOND);
	MPI_Barrier(MPI_COMM_WORLD);
	began = clock_ns();
	for (uint64_t i = 0; i < rounds; i++)
		sort_once(&sort);
	MPI_Barrier(MPI_COMM_WORLD);
	seconds = (double)(clock_ns() - began) / NS_PER_SECOND;
	json_real(json, "keys_per_second", (double)(rounds * keys * RANKS) / seconds);
	json_count(json, "operations", rounds * keys * RANKS);
	free(sort.keys);
	free(sort.ordered);
	free(sort.got);
	free(sort.counts);
}
