// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "check/report/wanted.h"

#include <stdio.h>
#include <string.h>

bool aw_wanted_find(struct aw_slice name, enum aw_rule *rule)
{
	for (unsigned i = 0; i < AW_RULES; i++) {
		if (aw_slice_equals(name, aw_rule_texts[i].name)) {
			*rule = (enum aw_rule)i;
			return true;
		}
	}
	return false;
}

bool aw_wanted_parse(struct aw_slice list, uint64_t *set, struct aw_slice *wrong)
{
	uint64_t named = 0;

	if (list.len == 0 || aw_slice_equals(list, "all")) {
		*set = AW_WANTED_ALL;
		return true;
	}
	if (aw_slice_equals(list, "none")) {
		*set = 0;
		return true;
	}
	do {
		/* A '+' at the end is followed by an empty name, which is wrong. */
		bool is_last = !memchr(list.at, '+', list.len);
		struct aw_slice name = aw_slice_cut(&list, '+');
		enum aw_rule rule;

		if (!aw_wanted_find(name, &rule)) {
			*wrong = name;
			return false;
		}
		named |= UINT64_C(1) << rule;
		if (is_last)
			break;
	} while (true);
	*set = named;
	return true;
}

void aw_wanted_names(char *text, size_t room)
{
	size_t at = 0;

	text[0] = '\0';
	for (unsigned i = 0; i < AW_RULES && at < room; i++)
		at += (size_t)snprintf(text + at, room - at, "%s%s", i ? " " : "",
				       aw_rule_texts[i].name);
}
