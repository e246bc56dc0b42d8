// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Two cores in the simulator, each of its choices taken from the string: programs, faults,
// schedules. All the simulator's checkers hold; see tests/sim.
#include "fuzz.h"
#include "world.h"

#define STEPS_MAX 400

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static struct world world;
	struct rng rng = { .state = 1, .octets = data, .left = len };

	world_init(&world, rng, GENERATION, STEPS_MAX, false);
	if (!world_run(&world)) {
		trace_print(&world.trace);
		fprintf(stderr, "%s\n", world.why);
		abort();
	}
	world_fini(&world);
	return 0;
}
