// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "check/hook/hook.h"

#include "check/base/settings.h"
#include "check/explain/explain.h"
#include "check/faults/faults.h"
#include "check/hook/failure.h"
#include "check/vary/vary.h"

#include <errno.h>

/* The plan has had the call fail in which the thread is, or a call inside it. */
static _Thread_local bool is_by_plan;

void aw_hook_by_plan(void)
{
	is_by_plan = true;
}

bool aw_hook_may(const char *call)
{
	int err;

	aw_vary_pause(AW_VARY_OBJECT);
	if (!aw_fault_planned())
		return true;
	if (aw_inside_depth() <= 1)
		is_by_plan = false;
	if (!aw_fault_call(call, &err))
		return true;
	is_by_plan = true;
	errno = err;
	return false;
}

int aw_hook_post(const char *call, unsigned wrs, int *err)
{
	int accepted = aw_fault_planned() ? aw_fault_post(call, wrs, err) : -1;

	is_by_plan = accepted >= 0;
	return accepted;
}

void aw_hook_explain(const char *call, const char *why)
{
	bool planned = is_by_plan;

	if (aw_inside_depth() <= 1)
		is_by_plan = false;
	if (aw_check_settings()->explain_on)
		aw_explain_log(call, planned ? "fails by the plan of --faults" : why);
}

void aw_hook_failed(const char *call, int err)
{
	char why[AW_EXPLAIN_MAX];

	aw_explain_errno(call, err, why);
	aw_hook_explain(call, why);
	errno = err;
}

int aw_hook_end(const char *call, int err)
{
	if (err)
		aw_hook_failed(call, err);
	aw_inside_leave();
	return err;
}

int aw_hook_end_minus(const char *call, int rc)
{
	if (rc)
		aw_hook_failed(call, errno);
	aw_inside_leave();
	return rc;
}

bool aw_destroy_begin(const char *call, struct aw_object *object)
{
	if (!aw_hook_may(call)) {
		aw_hook_failed(call, errno);
		return false;
	}
	if (!object)
		return true;
	if (aw_object_enter(object, true) && aw_object_goes(object))
		return true;
	aw_object_leave(object);
	errno = EINVAL;
	return false;
}

void aw_destroy_end(const char *call, struct aw_object *object, int err)
{
	if (object && err)
		aw_object_stays(object);
	if (object)
		aw_object_leave(object);
	if (err && object)
		aw_failure_explain_destroy(call, object, err);
	else if (err)
		aw_hook_failed(call, err);
	if (err)
		errno = err;
}
