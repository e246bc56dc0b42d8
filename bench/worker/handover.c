// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// How long a word takes from one CPU to another and back: two threads, each on a CPU of its own, hand a
// number to each other. The best that two processes of this machine can do depends on it, and a virtual
// machine's CPUs are not always the same two.
#include "worker/clock.h"
#include "worker/fail.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdio.h>

#define BATCHES 64
#define TRIPS 64 /* in a batch: short enough to be whole between two interruptions */
#define LINE 128 /* bytes that a CPU fetches at once, the neighbouring line included */
#define TOTAL (BATCHES * TRIPS)

static alignas(LINE) _Atomic unsigned int ping;
static alignas(LINE) _Atomic unsigned int pong;

/* The nth of the CPUs that this process may use. */
static int nth_cpu(int n)
{
	cpu_set_t allowed;

	if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0)
		fail_errno("sched_getaffinity");
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &allowed) && n-- == 0)
			return cpu;
	fail("this process may use one CPU alone: there is no other to hand to");
}

static void stay_on(int cpu)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	if (pthread_setaffinity_np(pthread_self(), sizeof(one), &one) != 0)
		fail("cannot stay on CPU %d", cpu);
}

static void *answer(void *cpu)
{
	stay_on(*(int *)cpu);
	for (unsigned int i = 1; i <= TOTAL; i++) {
		while (atomic_load_explicit(&ping, memory_order_acquire) != i)
			;
		atomic_store_explicit(&pong, i, memory_order_release);
	}
	return NULL;
}

static uint64_t batch_ns(unsigned int first)
{
	uint64_t began = clock_ns();

	for (unsigned int i = first; i < first + TRIPS; i++) {
		atomic_store_explicit(&ping, i, memory_order_release);
		while (atomic_load_explicit(&pong, memory_order_acquire) != i)
			;
	}
	return clock_ns() - began;
}

int main(void)
{
	int cpus[2] = { nth_cpu(0), nth_cpu(1) };
	uint64_t least = UINT64_MAX;
	pthread_t other;

	fail_after(10, "the CPUs are too busy for a measurement");
	if (pthread_create(&other, NULL, answer, &cpus[1]) != 0)
		fail("cannot start a thread");
	stay_on(cpus[0]);
	for (unsigned int i = 0; i < BATCHES; i++) {
		uint64_t ns = batch_ns(1 + i * TRIPS);

		least = ns < least ? ns : least;
	}
	pthread_join(other, NULL);
	if (printf("{\"handover_ns\": %.1f}\n", (double)least / TRIPS / 2) < 0 ||
	    fflush(stdout) != 0)
		fail_errno("cannot print");
	return 0;
}
