// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Messages between two ranks, and a reduction.
#include "mpi/ranks.h"

#include "worker/clock.h"
#include "worker/stats.h"

#include <mpi.h>

#include <stdlib.h>
#include <string.h>

#define WARM_UP 50u
#define WINDOW 16
#define PATTERN 131u
#define COMPARED_EVERY 64u /* the rest is only received */

static unsigned char octet_at(size_t at, uint64_t round)
{
	return (unsigned char)(at * PATTERN + round);
}

static void fill(unsigned char *to, size_t size, uint64_t round)
{
	for (size_t i = 0; i < size; i++)
		to[i] = octet_at(i, round);
}

static void compare(const unsigned char *got, size_t size, uint64_t round)
{
	for (size_t i = 0; i < size; i++) {
		if (got[i] != octet_at(i, round))
			wrong("a message is not what was sent");
	}
}

static void there_and_back(void *buf, size_t size)
{
	int count = (int)size;

	if (rank == 0) {
		MPI_Send(buf, count, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
		MPI_Recv(buf, count, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	} else {
		MPI_Recv(buf, count, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		MPI_Send(buf, count, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
	}
}

static double seconds_since(uint64_t began_ns)
{
	return (double)(clock_ns() - began_ns) / NS_PER_SECOND;
}

static void print_usec(struct json *json, const struct stats *stats)
{
	json_open(json, "usec");
	json_real(json, "median", stats_quantile(stats, 0.5) / NS_PER_USEC);
	json_real(json, "mean", stats_mean(stats) / NS_PER_USEC);
	json_real(json, "p99", stats_quantile(stats, 0.99) / NS_PER_USEC);
	json_close(json);
	json_count(json, "operations", stats->count);
}

void measure_latency(size_t size, double seconds, struct json *json)
{
	unsigned char *buf = allocate(size);
	struct stats *stats = stats_create();
	uint64_t began = 0, rounds;

	/* The first half makes the connection. */
	for (unsigned int i = 0; i < 2 * WARM_UP; i++) {
		began = i == WARM_UP ? clock_ns() : began;
		there_and_back(buf, size);
	}
	rounds = rounds_for(seconds, seconds_since(began) / WARM_UP);
	for (uint64_t i = 0; i < rounds; i++) {
		if (rank == 0 && i % COMPARED_EVERY == 0)
			fill(buf, size, i);
		began = clock_ns();
		there_and_back(buf, size);
		stats_add(stats, (clock_ns() - began) / 2);
		if (i % COMPARED_EVERY == 0)
			compare(buf, size, i);
	}
	print_usec(json, stats);
	stats_destroy(stats);
	free(buf);
}

static void window(unsigned char *buf, size_t size)
{
	MPI_Request requests[WINDOW];
	int count = (int)size;
	char octet = 0;

	for (int i = 0; i < WINDOW; i++) {
		unsigned char *at = buf + (size_t)i * size;

		if (rank == 0)
			MPI_Isend(at, count, MPI_BYTE, 1, i, MPI_COMM_WORLD, &requests[i]);
		else
			MPI_Irecv(at, count, MPI_BYTE, 0, i, MPI_COMM_WORLD, &requests[i]);
	}
	MPI_Waitall(WINDOW, requests, MPI_STATUSES_IGNORE);
	if (rank == 0)
		MPI_Recv(&octet, 1, MPI_BYTE, 1, WINDOW, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	else
		MPI_Send(&octet, 1, MPI_BYTE, 0, WINDOW, MPI_COMM_WORLD);
}

void measure_bandwidth(size_t size, double seconds, struct json *json)
{
	unsigned char *buf = allocate(size * WINDOW);
	uint64_t began, rounds;

	if (rank == 0)
		fill(buf, size * WINDOW, 0);
	window(buf, size);
	began = clock_ns();
	window(buf, size);
	rounds = rounds_for(seconds, seconds_since(began));
	began = clock_ns();
	for (uint64_t i = 0; i < rounds; i++)
		window(buf, size);
	seconds = seconds_since(began);
	compare(buf, size * WINDOW, 0);
	json_count(json, "octets", rounds * WINDOW * size);
	json_real(json, "octets_per_second", (double)(rounds * WINDOW * size) / seconds);
	json_count(json, "operations", rounds * WINDOW);
	free(buf);
}

void measure_allreduce(size_t size, double seconds, struct json *json)
{
	size_t count = size / sizeof(double);
	double *in = allocate(size), *out = allocate(size);
	struct stats *stats = stats_create();
	uint64_t began = 0, rounds;

	for (size_t i = 0; i < count; i++)
		in[i] = (double)(i + 1) * (rank + 1);
	for (unsigned int i = 0; i < 2 * WARM_UP; i++) {
		began = i == WARM_UP ? clock_ns() : began;
		MPI_Allreduce(in, out, (int)count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
	}
	rounds = rounds_for(seconds, seconds_since(began) / WARM_UP);
	for (uint64_t i = 0; i < rounds; i++) {
		memset(out, 0, i % COMPARED_EVERY ? 0 : size);
		began = clock_ns();
		MPI_Allreduce(in, out, (int)count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
		stats_add(stats, clock_ns() - began);
		/* The sum over two ranks of what each has: 1 and 2 times i + 1. */
		for (size_t j = 0; j < count && i % COMPARED_EVERY == 0; j++) {
			if (out[j] != (double)(j + 1) * 3)
				wrong("a sum is not that of the ranks");
		}
	}
	print_usec(json, stats);
	stats_destroy(stats);
	free(in);
	free(out);
}
