// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "check/hook/hook.h"

#include "check/explain/explain.h"
#include "check/faults/faults.h"
#include "check/vary/vary.h"

#include <errno.h>

bool aw_hook_may(const char *call)
{
	int err;

	aw_vary_pause(AW_VARY_OBJECT);
	if (!aw_fault_call(call, &err))
		return true;
	errno = err;
	return false;
}

void aw_hook_failed(const char *call, int err)
{
	char why[AW_EXPLAIN_MAX];

	aw_explain_errno(call, err, why);
	aw_explain_log(call, why);
	errno = err;
}

bool aw_destroy_begin(const char *call, struct aw_object *object)
{
	if (!aw_hook_may(call))
		return false;
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
	if (err)
		aw_hook_failed(call, err);
}
