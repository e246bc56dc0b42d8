// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "base/setting.h"

#include "base/slice.h"

#include <stddef.h>
#include <stdio.h>

#define QUOTE_MAX 32 /* bytes of the user's text that an error repeats */

static const struct {
	const char *name;
	const char *words;
	unsigned long max; /* of a number */
} settings[AW_SETTINGS] = {
	[AW_SETTING_LOG] = { "ANYWARP_LOG", "error warn info debug", 0 },
	[AW_SETTING_PERSONA] = { "ANYWARP_PERSONA", "iwarp roce", 0 },
	[AW_SETTING_HOST_PATH] = { "ANYWARP_HOST_PATH", "auto on off", 0 },
	[AW_SETTING_RECORD] = { "ANYWARP_SOCKETS_RECORD", "on off tls", 0 },
	[AW_SETTING_PAIR_MS] = { "ANYWARP_SOCKETS_PAIR_MS", NULL, 60000 },
	[AW_SETTING_VARY] = { "ANYWARP_VARY", NULL, 4294967295 },
	[AW_SETTING_TLS] = { "ANYWARP_TLS", "off require offer", 0 },
	[AW_SETTING_TLS_RECORDS] = { "ANYWARP_TLS_RECORDS", "user kernel", 0 },
	[AW_SETTING_TLS_HOST_PATH] = { "ANYWARP_TLS_HOST_PATH", "on off", 0 },
};

const char *aw_setting_name(enum aw_setting setting)
{
	return settings[setting].name;
}

const char *aw_setting_words(enum aw_setting setting)
{
	return settings[setting].words;
}

enum aw_setting_found aw_setting_parse(enum aw_setting setting, const char *text,
				       unsigned long *value)
{
	if (!text || !*text)
		return AW_SETTING_UNSET;
	if (!settings[setting].words)
		return aw_slice_number(aw_slice_of(text), settings[setting].max, value)
			       ? AW_SETTING_RIGHT
			       : AW_SETTING_WRONG;
	struct aw_slice words = aw_slice_of(settings[setting].words);

	for (unsigned long i = 0; words.len > 0; i++) {
		if (!aw_slice_equals(aw_slice_cut(&words, ' '), text))
			continue;
		*value = i;
		return AW_SETTING_RIGHT;
	}
	return AW_SETTING_WRONG;
}

void aw_setting_explain(enum aw_setting setting, const char *text, char why[AW_SETTING_WHY_MAX])
{
	size_t at = (size_t)snprintf(why, AW_SETTING_WHY_MAX, "%s is ", settings[setting].name);

	at += aw_slice_quote(aw_slice_of(text), QUOTE_MAX, why + at);
	at += (size_t)snprintf(why + at, AW_SETTING_WHY_MAX - at, "it must be ");
	if (!settings[setting].words) {
		snprintf(why + at, AW_SETTING_WHY_MAX - at, "a number from 0 to %lu",
			 settings[setting].max);
		return;
	}
	struct aw_slice words = aw_slice_of(settings[setting].words);

	for (bool first = true; words.len > 0; first = false) {
		struct aw_slice word = aw_slice_cut(&words, ' ');
		const char *before = first ? "" : words.len > 0 ? ", " : " or ";

		at += (size_t)snprintf(why + at, AW_SETTING_WHY_MAX - at, "%s%.*s", before,
				       (int)word.len, word.at);
	}
}
