// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Asks the libibverbs to be told of each request that this end refuses its peer: anywarp's does so, another one's peer alone is
// told.
#include "check/model/refusal_report.h"

#include "check/base/inside.h"
#include "check/report/report.h"

#include <dlfcn.h>
#include <string.h>

static void refused(const struct anywarp_refusal *refusal)
{
	aw_inside_enter();
	aw_refused_report(refusal);
	aw_inside_leave();
}

__attribute__((constructor)) static void refusals_watch(void)
{
	__typeof__(avb_refusal_watch) *watch;
	void *found = dlsym(RTLD_DEFAULT, "avb_refusal_watch");

	/* POSIX has dlsym give a function as an object's pointer; the copy says so to the compiler. */
	memcpy(&watch, &found, sizeof(watch));
	if (watch && aw_report_wants(AW_RULE_REMOTE_ACCESS))
		watch(refused);
}
