// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "check/base/settings.h"

#include "base/array.h"

#include <stdio.h>

#define QUOTE_MAX 48 /* bytes of the user's text that an error repeats */

enum check_key {
	KEY_RULES,
	KEY_EXPLAIN,
	KEY_HALT,
	KEY_EXIT,
	KEY_SUPPRESS,
	KEY_VARY,
	KEY_LIKE
};

static const char *const keys[] = {
	[KEY_RULES] = "rules", [KEY_EXPLAIN] = "explain",   [KEY_HALT] = "halt",
	[KEY_EXIT] = "exit",   [KEY_SUPPRESS] = "suppress", [KEY_VARY] = "vary",
	[KEY_LIKE] = "like",
};
static const char *const right[] = {
	[KEY_RULES] = "rules must be all, none, or names of rules with + between",
	[KEY_EXPLAIN] = "explain must be on or off",
	[KEY_HALT] = "halt must be on or off",
	[KEY_EXIT] = "exit must be a number from 0 to 255",
	[KEY_SUPPRESS] = "suppress must be the path of a file",
	[KEY_VARY] = "vary must be a seed, a number from 0 to 4294967295",
	[KEY_LIKE] = "like must be the name of an adapter",
};

static bool parse_switch(struct aw_slice value, bool *on)
{
	static const char *const words[] = { "off", "on" };
	size_t found;

	if (!aw_slice_find(value, words, ARRAY_LEN(words), &found))
		return false;
	*on = found == 1;
	return true;
}

static bool parse_text(struct aw_slice value, struct aw_slice *text)
{
	*text = value;
	return value.len > 0;
}

static bool parse_value(enum check_key key, struct aw_slice value,
			struct aw_check_settings *settings)
{
	switch (key) {
	case KEY_RULES:
		return parse_text(value, &settings->rules);
	case KEY_EXPLAIN:
		return parse_switch(value, &settings->explain_on);
	case KEY_HALT:
		return parse_switch(value, &settings->halt_on);
	case KEY_EXIT:
		return aw_slice_number(value, AW_CHECK_EXIT_MAX, &settings->exit_status);
	case KEY_SUPPRESS:
		return parse_text(value, &settings->suppress);
	case KEY_VARY:
		settings->vary_on = true;
		return aw_slice_number(value, AW_CHECK_SEED_MAX, &settings->vary_seed);
	case KEY_LIKE:
		return parse_text(value, &settings->like);
	}
	return false;
}

static void explain(char why[AW_CHECK_WHY_MAX], size_t position, struct aw_slice part,
		    const char *words)
{
	size_t at = (size_t)snprintf(why, AW_CHECK_WHY_MAX, "at %zu: ", position);

	at += aw_slice_quote(part, QUOTE_MAX, why + at);
	snprintf(why + at, AW_CHECK_WHY_MAX - at, "%s", words);
}

bool aw_check_settings_parse(const char *text, struct aw_check_settings *settings,
			     char why[AW_CHECK_WHY_MAX])
{
	struct aw_check_settings parsed = { .explain_on = true, .exit_status = AW_CHECK_EXIT };
	struct aw_slice rest = aw_slice_of(text);
	const char *begin = rest.at;
	unsigned seen = 0;

	while (rest.len > 0) {
		struct aw_slice value = aw_slice_cut(&rest, ','), part = value;
		struct aw_slice name = aw_slice_cut(&value, '=');
		size_t key, position = (size_t)(part.at - begin) + 1;

		if (!aw_slice_find(name, keys, ARRAY_LEN(keys), &key)) {
			explain(why, position, part,
				"no such key: the keys are rules, explain, halt, exit, suppress, vary and like, each as in "
				"halt=on, with commas between");
			return false;
		}
		if (seen & 1u << key) {
			explain(why, position, part,
				"the key stands in the list twice: leave one of them out");
			return false;
		}
		seen |= 1u << key;
		if (!parse_value((enum check_key)key, value, &parsed)) {
			explain(why, position, part, right[key]);
			return false;
		}
	}
	*settings = parsed;
	return true;
}
