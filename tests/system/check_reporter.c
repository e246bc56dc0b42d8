// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A library in the place of libanywarp-check.so, for test_cli_check.py: it reports what check_program.c asks for.
#include "check/report/report.h"
#include "check/report/wanted.h"

#include <stdlib.h>

__attribute__((visibility("default"))) void check_break(const char *name, int times);
__attribute__((visibility("default"))) void check_break(const char *name, int times)
{
	static struct aw_stack earlier;
	struct aw_report report = { .object = "QP 0x12",
				    .earlier = { { "posted here", &earlier } } };

	if (!aw_wanted_find(aw_slice_of(name), &report.rule))
		abort();
	if (!earlier.frames)
		aw_stack_take(&earlier);
	for (int i = 0; i < times; i++)
		aw_report(&report, "the \"SGE\" at %p was changed", (void *)0x1000);
}

__attribute__((destructor)) static void reporter_end(void)
{
	aw_report_end();
}
