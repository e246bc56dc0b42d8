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

/* The counters order nothing but themselves. */
bool aw_fault_decide(const struct aw_fault_when *when, struct aw_fault_count *count, uint64_t seed,
		     unsigned index, uint64_t elapsed_ns, uint64_t *n)
{
	uint64_t first = when->from ? when->from : when->every ? when->every : 1;
	uint64_t number, occurred;

	if (elapsed_ns < when->after_ns)
		return false;
	number = atomic_fetch_add_explicit(&count->occasions, 1, memory_order_relaxed) + 1;
	if (when->nth ? number != when->nth
		      : number < first || (when->every && (number - first) % when->every != 0))
		return false;
	if (when->probability &&
	    mix(mix(mix(seed) ^ index) ^ number) % AW_FAULT_CERTAIN >= when->probability)
		return false;

	/* An occurrence is counted, unless there were as many as the plan allows. */
	occurred = atomic_load_explicit(&count->occurred, memory_order_relaxed);
	do {
		if (when->times && occurred >= when->times)
			return false;
	} while (!atomic_compare_exchange_weak_explicit(&count->occurred, &occurred, occurred + 1,
							memory_order_relaxed,
							memory_order_relaxed));
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
