// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// CPU time and memory of this process, all its threads together; and the machine's CPU time.
#ifndef BENCH_CPU_H
#define BENCH_CPU_H

#include <stdint.h>

struct cpu {
	double user; /* seconds */
	double system;
};

struct memory {
	uint64_t anon; /* bytes: RssAnon of /proc/self/status */
	uint64_t pss; /* bytes: Pss of /proc/self/smaps_rollup; 0 where the kernel has none */
};

struct cpu cpu_now(void);

/* The usage since then; and that of two processes together. */
struct cpu cpu_since(const struct cpu *before);
struct cpu cpu_sum(const struct cpu *a, const struct cpu *b);

/* Seconds that all processors were busy, also with threads of the kernel and interrupts. */
double cpu_machine(void);

struct memory memory_now(void);

#endif
