// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "check/faults/plan.h"

#include "check/faults/units.h"

/* The finalizer of MurmurHash3: each bit of x changes half of the result's. */
static uint64_t mix(uint64_t x)
{
	x ^= x >> 33;
	x *= UINT64_C(0xff51afd7ed558ccd);
	x ^= x >> 33;
	x *= UINT64_C(0xc4ceb9fe1a85ec53);
	return x ^ x >> 33;
}

static bool is_drawn(uint64_t probability, uint64_t seed, unsigned index, uint64_t n)
{
	return mix(mix(mix(seed) ^ index) ^ n) % AW_FAULT_CERTAIN < probability;
}

static bool allows(const struct aw_fault_when *when, uint64_t n)
{
	uint64_t first = when->from ? when->from : when->every ? when->every : 1;

	if (when->nth)
		return n == when->nth;
	return n >= first && (!when->every || (n - first) % when->every == 0);
}

/* Counts an occurrence, unless there were as many as the plan allows. */
static bool has_times(uint64_t times, struct aw_fault_count *count)
{
	uint64_t occurred = atomic_load_explicit(&count->occurred, memory_order_relaxed);

	do {
		if (times && occurred >= times)
			return false;
	} while (!atomic_compare_exchange_weak_explicit(&count->occurred, &occurred, occurred + 1,
							memory_order_relaxed,
							memory_order_relaxed));
	return true;
}

/* The counters order nothing but themselves. */
bool aw_fault_decide(const struct aw_fault_when *when, struct aw_fault_count *count, uint64_t seed,
		     unsigned index, uint64_t elapsed_ns, uint64_t *n)
{
	uint64_t number;

	if (elapsed_ns < when->after_ns)
		return false;
	number = atomic_fetch_add_explicit(&count->occasions, 1, memory_order_relaxed) + 1;
	if (!allows(when, number) ||
	    (when->probability && !is_drawn(when->probability, seed, index, number)) ||
	    !has_times(when->times, count))
		return false;
	*n = number;
	return true;
}

bool aw_fault_plan_needs_wire(const struct aw_fault_plan *plan)
{
	for (unsigned i = 0; i < plan->count; i++)
		if (plan->faults[i].kind == AW_FAULT_WIRE || plan->faults[i].at_byte)
			return true;
	return false;
}
