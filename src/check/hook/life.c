// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The events of a process: forks, and its end, where what was never destroyed is told.
#include "base/runtime.h"
#include "check/base/inside.h"
#include "check/base/settings.h"
#include "check/model/acked.h"
#include "check/model/cm.h"
#include "check/model/object.h"
#include "check/model/queue.h"
#include "check/model/registered.h"
#include "check/report/report.h"
#include "check/vary/vary.h"

#include <pthread.h>
#include <stddef.h>

static void fork_end(void)
{
	aw_objects_fork_end(false);
}

/* The child follows what it makes and posts itself. */
static void child_begin(void)
{
	aw_objects_fork_end(true);
	aw_memory_forget();
	aw_registered_forget();
	aw_cm_events_forget();
	aw_acked_forget();
}

__attribute__((constructor)) static void process_begin(void)
{
	aw_runtime_leave();
	if (aw_check_settings()->vary_on)
		aw_vary_begin(aw_check_settings()->vary_seed);
	(void)pthread_atfork(aw_objects_fork_begin, fork_end, child_begin);
}

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
