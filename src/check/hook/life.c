// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The process's end: what was never destroyed, and the counts of reports.
#include "check/base/inside.h"
#include "check/model/object.h"
#include "check/report/report.h"

#include <stddef.h>

/* A PD goes with its context, and the like; of what is inside another object that is left, the report of that one is enough. */
static void leak_report(struct aw_object *object, void *arg)
{
	char name[AW_OBJECT_NAME_MAX];

	(void)arg;
	if (object->is_inner)
		return;
	aw_object_name(object, name);
	aw_report(&(struct aw_report){ .rule = AW_RULE_LEAK, .object = name, .at = &object->made },
		  "%s was never destroyed", name);
}

__attribute__((destructor)) static void process_end(void)
{
	aw_inside_enter();
	aw_object_each(leak_report, NULL);
	aw_report_end();
	aw_inside_leave();
}
