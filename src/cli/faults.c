// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "cli/faults.h"

#include "base/setting.h"
#include "base/slice.h"
#include "check/faults/plan.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool set(const char *who, const char *variable, const char *value)
{
	if (setenv(variable, value, 1) == 0)
		return true;
	fprintf(stderr, "%s: cannot set the environment: out of memory\n", who);
	return false;
}

static bool read_plan(const char *who, const char *spec, struct aw_fault_plan *plan)
{
	char lines[2 * AW_FAULTS_SHOWN_MAX + 4];
	struct aw_fault_problem problem;

	if (!spec || !*spec) {
		fprintf(stderr,
			"%s: --faults needs a plan, for example ibv_reg_mr:nth=3:error=ENOMEM "
			"(man anywarp-faults)\n",
			who);
		return false;
	}
	if (aw_fault_plan_parse(spec, plan, &problem))
		return true;
	aw_fault_problem_show(spec, &problem, lines);
	fprintf(stderr, "%s: --faults: %s\n%s\n", who, problem.why, lines);
	return false;
}

bool aw_cli_faults(const char *who, const char *spec, const char *seed, bool has_wire)
{
	static struct aw_fault_plan plan;
	const char *host_path = aw_setting_name(AW_SETTING_HOST_PATH), *value = getenv(host_path);
	unsigned long number;

	if (!read_plan(who, spec, &plan))
		return false;
	if (seed && !aw_slice_number(aw_slice_of(seed), ULONG_MAX, &number)) {
		fprintf(stderr, "%s: --seed needs a number, for example 1\n", who);
		return false;
	}
	if (aw_fault_plan_needs_wire(&plan) && !has_wire) {
		fprintf(stderr,
			"%s: --faults: the plan has a fault of the wire, which only anywarp's device "
			"has: leave it out, or use --device anywarp\n",
			who);
		return false;
	}
	// Shared memory has no wire.
	if (aw_fault_plan_needs_wire(&plan) && (!value || strcmp(value, "off") != 0)) {
		fprintf(stderr, "%s: note: the plan has faults of the wire, so %s is off\n", who,
			host_path);
		if (!set(who, host_path, "off"))
			return false;
	}
	return set(who, AW_FAULTS_ENV, spec) && (!seed || set(who, AW_FAULTS_SEED_ENV, seed));
}
