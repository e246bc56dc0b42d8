// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// An MPI program that checks every result: mpi_check point|collective|onesided. Rank 0 says how many
// octets it has compared; the first wrong one ends all ranks. Built by test_mpi.py.
#include <mpi.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	OCTETS_MAX = 1 << 20,
	COUNT = 4096,
	ROUNDS = 10
};

static int rank, ranks;
static unsigned long compared;

static void wrong(const char *what, int peer, size_t at)
{
	fprintf(stderr, "mpi_check: rank %d: %s with %d is wrong at %zu\n", rank, what, peer, at);
	MPI_Abort(MPI_COMM_WORLD, 1);
}

// What the octet at a place has to be, of a message from one rank to another.
static uint8_t octet_of(int from, int to, size_t size, size_t at)
{
	return (uint8_t)(from * 131 + to * 31 + size * 7 + at * 13 + at / 251);
}

static void exchange(size_t size, int to, int from)
{
	uint8_t *out = malloc(size + 1);
	uint8_t *in = calloc(size + 1, 1);

	if (!out || !in)
		MPI_Abort(MPI_COMM_WORLD, 1);
	for (size_t i = 0; i < size; i++)
		out[i] = octet_of(rank, to, size, i);
	MPI_Sendrecv(out, (int)size, MPI_BYTE, to, 1, in, (int)size, MPI_BYTE, from, 1,
		     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	for (size_t i = 0; i < size; i++)
		if (in[i] != octet_of(from, rank, size, i))
			wrong("a message", from, i);
	compared += size;
	free(out);
	free(in);
}

// Every pair, with sizes on both sides of every protocol's bounds.
static void check_point(void)
{
	static const size_t sizes[] = { 0, 1, 63, 64, 1000, 8191, 8193, 65537, OCTETS_MAX };

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		for (int step = 1; step < ranks; step++)
			exchange(sizes[i], (rank + step) % ranks, (rank - step + ranks) % ranks);
}

static void check_sums(void)
{
	static long in[COUNT], out[COUNT];

	for (int i = 0; i < COUNT; i++)
		in[i] = (long)rank * COUNT + i;
	MPI_Allreduce(in, out, COUNT, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
	for (int i = 0; i < COUNT; i++)
		if (out[i] != (long)COUNT * ranks * (ranks - 1) / 2 + (long)i * ranks)
			wrong("a sum", -1, (size_t)i);
	MPI_Scan(in, out, COUNT, MPI_LONG, MPI_MAX, MPI_COMM_WORLD);
	for (int i = 0; i < COUNT; i++)
		if (out[i] != in[i])
			wrong("a scan", -1, (size_t)i);
	compared += 2 * sizeof(out);
}

static void check_broadcast(int root)
{
	static uint8_t octets[OCTETS_MAX];

	for (size_t i = 0; i < sizeof(octets); i++)
		octets[i] = rank == root ? octet_of(root, 0, 5, i) : 0;
	MPI_Bcast(octets, sizeof(octets), MPI_BYTE, root, MPI_COMM_WORLD);
	for (size_t i = 0; i < sizeof(octets); i++)
		if (octets[i] != octet_of(root, 0, 5, i))
			wrong("a broadcast", root, i);
	compared += sizeof(octets);
}

static void check_all_to_all(void)
{
	int *in = malloc((size_t)ranks * COUNT * sizeof(*in));
	int *out = malloc((size_t)ranks * COUNT * sizeof(*out));

	if (!in || !out)
		MPI_Abort(MPI_COMM_WORLD, 1);
	for (int i = 0; i < ranks * COUNT; i++)
		out[i] = rank * ranks * COUNT + i;
	MPI_Alltoall(out, COUNT, MPI_INT, in, COUNT, MPI_INT, MPI_COMM_WORLD);
	for (int i = 0; i < ranks * COUNT; i++)
		if (in[i] != i / COUNT * ranks * COUNT + rank * COUNT + i % COUNT)
			wrong("an all-to-all", i / COUNT, (size_t)i);
	compared += (size_t)ranks * COUNT * sizeof(*in);
	free(in);
	free(out);
}

static void check_collective(void)
{
	for (int round = 0; round < ROUNDS; round++) {
		check_sums();
		check_broadcast(round % ranks);
		check_all_to_all();
		MPI_Barrier(MPI_COMM_WORLD);
	}
}

// Everybody puts into his right neighbour's window, and gets from it what came from its left one's.
static void check_put_and_get(MPI_Win window, const int *mine)
{
	static int out[COUNT], in[COUNT];
	int right = (rank + 1) % ranks;
	int left = (rank - 1 + ranks) % ranks;

	for (int i = 0; i < COUNT; i++)
		out[i] = rank * COUNT + i;
	MPI_Win_fence(0, window);
	MPI_Put(out, COUNT, MPI_INT, right, 0, COUNT, MPI_INT, window);
	MPI_Win_fence(0, window);
	for (int i = 0; i < COUNT; i++)
		if (mine[i] != left * COUNT + i)
			wrong("a put", left, (size_t)i);
	MPI_Get(in, COUNT, MPI_INT, right, 0, COUNT, MPI_INT, window);
	MPI_Win_fence(0, window);
	for (int i = 0; i < COUNT; i++)
		if (in[i] != out[i])
			wrong("a get", right, (size_t)i);
	compared += 2 * sizeof(in);
}

// All count up rank 0's last word; each value is seen by one of them.
static void check_atomics(MPI_Win window, const int *mine)
{
	int one = 1;
	long seen = 0, sum = 0;
	long all = (long)ranks * ROUNDS;

	for (int i = 0; i < ROUNDS; i++) {
		int before;

		MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window);
		MPI_Fetch_and_op(&one, &before, MPI_INT, 0, COUNT, MPI_SUM, window);
		MPI_Win_unlock(0, window);
		seen += before;
	}
	MPI_Allreduce(&seen, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
	MPI_Win_fence(0, window);
	if (sum != all * (all - 1) / 2 || (rank == 0 && mine[COUNT] != all))
		wrong("an atomic", 0, (size_t)sum);
	compared += sizeof(sum);
}

static void check_onesided(void)
{
	MPI_Win window;
	int *mine;

	MPI_Win_allocate((COUNT + 1) * sizeof(*mine), sizeof(*mine), MPI_INFO_NULL, MPI_COMM_WORLD,
			 &mine, &window);
	memset(mine, 0, (COUNT + 1) * sizeof(*mine));
	check_put_and_get(window, mine);
	MPI_Win_fence(0, window);
	check_atomics(window, mine);
	MPI_Win_free(&window);
}

int main(int argc, char **argv)
{
	char host[MPI_MAX_PROCESSOR_NAME];
	int len;

	MPI_Init(&argc, &argv);
	MPI_Get_processor_name(host, &len);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	if (argc == 2 && !strcmp(argv[1], "point"))
		check_point();
	else if (argc == 2 && !strcmp(argv[1], "collective"))
		check_collective();
	else if (argc == 2 && !strcmp(argv[1], "onesided"))
		check_onesided();
	if (rank == 0)
		printf("compared %lu octets among %d ranks\n", compared, ranks);
	else
		printf("rank %d is on %s\n", rank, host);
	MPI_Finalize();
	return compared ? 0 : 2;
}
