// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// bench-mpi: what its parts share. Whatever fails ends all ranks.
#ifndef BENCH_RANKS_H
#define BENCH_RANKS_H

#include "worker/json.h"

#include <stddef.h>
#include <stdint.h>

extern int rank, ranks; /* fixed after the start */

void wrong(const char *what) __attribute__((noreturn));
void *allocate(size_t octets);

/* How often something that took so long is to be done in this time; the same for all ranks. */
uint64_t rounds_for(double seconds, double each);

/* Each measures, compares what came, and puts rank 0's numbers into json. */
void measure_latency(size_t size, double seconds, struct json *json);
void measure_bandwidth(size_t size, double seconds, struct json *json);
void measure_allreduce(size_t size, double seconds, struct json *json);
void measure_sort(size_t keys, double seconds, struct json *json);
void measure_tiles(size_t edge, double seconds, const char *path, struct json *json);

#endif
