// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Reads a setting for a library, which has a log.
#include "base/setting.h"

#include "base/log.h"

#include <stdlib.h>

enum aw_setting_found aw_setting_read(enum aw_setting setting, const char *effect,
				      unsigned long *value)
{
	const char *text = secure_getenv(aw_setting_name(setting));
	enum aw_setting_found found = aw_setting_parse(setting, text, value);
	char why[AW_SETTING_WHY_MAX];

	if (found == AW_SETTING_WRONG) {
		aw_setting_explain(setting, text, why);
		aw_log(AW_LOG_ERROR, "%s; %s", why, effect);
	}
	return found;
}

bool aw_setting_wants_tls(void)
{
	unsigned long word = 0;
	const char *text = secure_getenv(aw_setting_name(AW_SETTING_TLS));
	const char *rules = secure_getenv("ANYWARP_TLS_RULES");

	return (rules && *rules) ||
	       aw_setting_parse(AW_SETTING_TLS, text, &word) == AW_SETTING_WRONG || word == 1;
}
