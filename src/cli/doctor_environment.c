// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The findings about the environment: what is preloaded, names that are mistyped, and values that are wrong, with which
// 'anywarp run' starts no program.
#include "cli/doctor.h"

#include "base/setting.h"
#include "cli/cli.h"
#include "cli/environment.h"
#include "cli/finding.h"
#include "cli/preload.h"
#include "cli/sockets.h"
#include "net/base/policy.h"
#include "xsock/base/rules.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Prints the policy only when it is not the default.
static void check_policy(void)
{
	const char *list = getenv(AW_POLICY_ENV);
	char text[AW_POLICY_TEXT_MAX];
	char why[AW_POLICY_WHY_MAX];
	struct aw_policy policy;

	if (!aw_policy_parse(list, &policy, why)) {
		aw_finding_print(FINDING_FAIL, "MPA policy", "correct or unset " AW_POLICY_ENV,
				 AW_POLICY_ENV ": %s", why);
		unsetenv(AW_POLICY_ENV);
		return;
	}
	if (aw_policy_is_default(&policy))
		return;
	aw_policy_print(&policy, text);
	aw_finding_print(FINDING_OK, "MPA policy", NULL, "by " AW_POLICY_ENV ": %s", text);
}

void aw_doctor_environment(void)
{
	struct environment_unknown unknown;
	char file[PATH_MAX], remedy[64], why[AW_SETTING_WHY_MAX];
	const char *where;
	size_t at = 0;

	if (!aw_preload_find(file, &where))
		aw_finding_print(FINDING_OK, "environment", NULL,
				 "nothing is preloaded before anywarp's libraries");
	else
		aw_finding_print(FINDING_FAIL, "environment",
				 strcmp(where, PRELOAD_FILE) ? "unset LD_PRELOAD"
							     : "take it out of " PRELOAD_FILE,
				 "%s puts another library before anywarp's: %s", where, file);

	while (aw_environment_next_unknown(&at, &unknown)) {
		snprintf(remedy, sizeof(remedy), "correct it to %s, or unset it",
			 unknown.nearest ? unknown.nearest : "");
		aw_finding_print(FINDING_WARN, "environment",
				 unknown.nearest ? remedy
						 : "unset it; 'anywarp help environment' lists "
						   "those that there are",
				 "%.*s is no variable of anywarp", unknown.len, unknown.name);
	}

	// The rest is tried with the default in the place of a wrong value.
	for (enum aw_setting setting = 0; aw_environment_next_wrong(&setting, why); setting++) {
		aw_finding_print(FINDING_FAIL, "environment", "correct or unset it", "%s", why);
		unsetenv(aw_setting_name(setting));
	}
	check_policy();
}

// RDMA programs run without the sockets library, so its absence is only a warning.
void aw_doctor_sockets(void)
{
	const char *text = getenv(AW_XS_RULES_ENV);
	char why[AW_XS_RULES_WHY_MAX], dir[PATH_MAX];
	struct aw_xs_rules *rules;
	int line = aw_xs_rules_parse(text, &rules, why, sizeof(why));

	if (line) {
		aw_finding_print(FINDING_FAIL, "sockets rules", "correct or unset " AW_XS_RULES_ENV,
				 AW_XS_RULES_ENV ":%d: %s", line, why);
		return;
	}
	aw_xs_rules_destroy(rules);
	if (!aw_libdir_find(dir))
		return; /* the finding about the libraries says so */
	if (!aw_sockets_library_in(dir))
		aw_finding_print(FINDING_WARN, "sockets", "build it ('./dev build')",
				 "no " SOCKETS_LIB " in %s: no sockets programs over anywarp", dir);
	else
		aw_finding_print(FINDING_OK, "sockets", NULL,
				 "sockets programs: anywarp sockets -- PROGRAM%s",
				 text ? ", by the rules in " AW_XS_RULES_ENV : "");
}
