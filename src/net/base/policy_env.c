// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// ANYWARP_MPA and ANYWARP_HOST_PATH, read once a process. An error in them fails every connection:
// a user who asked for something must not get something else.
#include "net/base/policy_env.h"

#include "base/log.h"
#include "base/setting.h"
#include "net/base/policy.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct aw_policy policy;
/* In the order of the setting's words. */
enum {
	AUTO,
	ON,
	OFF
};
static unsigned long host_path = AUTO;
static int policy_err;

static void read_environment(void)
{
	char text[AW_POLICY_TEXT_MAX];
	char why[AW_POLICY_WHY_MAX];

	if (aw_setting_read(AW_SETTING_HOST_PATH, "nothing connects", &host_path) ==
	    AW_SETTING_WRONG)
		policy_err = EINVAL;
	if (!aw_policy_parse(secure_getenv(AW_POLICY_ENV), &policy, why)) {
		policy_err = EINVAL;
		aw_log(AW_LOG_ERROR, "%s: %s", AW_POLICY_ENV, why);
		return;
	}
	if (aw_policy_is_default(&policy))
		return;
	aw_policy_print(&policy, text);
	aw_log(AW_LOG_INFO, "mpa policy %s", text);
}

int aw_policy_check(void)
{
	pthread_once(&once, read_environment);
	return policy_err;
}

int aw_policy_local(struct aw_mpa_local *local)
{
	int err = aw_policy_check();

	if (err)
		return err;
	local->revision = policy.revision;
	local->markers = policy.markers;
	local->crc = policy.crc;
	local->crc_asked = policy.crc_given;
	local->p2p = policy.p2p;
	local->rtr = policy.rtr;
	local->extensions = local->placement = policy.extensions;
	local->large_fpdus = policy.large_fpdus;
	local->host = host_path != OFF;
	local->waits = true;
	local->ird_ord_ulp = policy.ird_ord_ulp;
	return 0;
}

uint32_t aw_policy_host_path_calls(void)
{
	aw_policy_check();
	return host_path == ON ? 1 : AW_HOST_PATH_CALLS;
}
