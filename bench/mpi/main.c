// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// bench-mpi TEST SIZE SECONDS [FILE], by mpirun with two ranks: latency, bandwidth, allreduce, sort, tiles. Rank 0 prints one JSON
// object; a result that is not what it should be ends all ranks.
#include "mpi/ranks.h"

#include <mpi.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int rank, ranks;

void wrong(const char *what)
{
	fprintf(stderr, "bench-mpi: rank %d: WRONG OUTPUT: %s\n", rank, what);
	MPI_Abort(MPI_COMM_WORLD, 1);
	abort();
}

void *allocate(size_t octets)
{
	void *memory = calloc(octets + 1, 1);

	if (!memory) {
		fprintf(stderr, "bench-mpi: out of memory\n");
		MPI_Abort(MPI_COMM_WORLD, 1);
	}
	return memory;
}

uint64_t rounds_for(double seconds, double each)
{
	uint64_t rounds = each > 0 ? (uint64_t)(seconds / each) : 1;

	if (rounds < 1)
		rounds = 1;
	MPI_Bcast(&rounds, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
	return rounds;
}

static void measure(char **argv, const char *path, struct json *json)
{
	size_t size = strtoull(argv[1], NULL, 10);
	double seconds = strtod(argv[2], NULL);

	if (strcmp(argv[0], "latency") == 0)
		measure_latency(size, seconds, json);
	else if (strcmp(argv[0], "bandwidth") == 0)
		measure_bandwidth(size, seconds, json);
	else if (strcmp(argv[0], "allreduce") == 0)
		measure_allreduce(size, seconds, json);
	else if (strcmp(argv[0], "sort") == 0)
		measure_sort(size, seconds, json);
	else if (path)
		measure_tiles(size, seconds, path, json);
}

int main(int argc, char **argv)
{
	struct json json;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	if (argc < 4 || ranks != 2) {
		fprintf(stderr, "usage: mpirun -np 2 bench-mpi TEST SIZE SECONDS [FILE]\n");
		MPI_Abort(MPI_COMM_WORLD, 2);
	}
	json_begin(&json);
	measure(argv + 1, argc > 4 ? argv[4] : NULL, &json);
	json_end(&json);
	if (rank == 0 && !json_print(&json, stdout))
		wrong("cannot print");
	MPI_Finalize();
	return 0;
}
