// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The meaning of an errno for a call when its arguments are not looked at.
#include "check/explain/words.h"

#include <string.h>

/* The first one that matches: rows for one call stand before those for many. */
static const char *text_find(const struct aw_errno_text *texts, const char *call, int err)
{
	for (; texts->call; texts++) {
		size_t len = strlen(texts->call);
		bool is_beginning = len && texts->call[len - 1] == '*';

		if (texts->err == err && (is_beginning ? strncmp(texts->call, call, len - 1) == 0
						       : strcmp(texts->call, call) == 0))
			return texts->text;
	}
	return NULL;
}

void aw_explain_errno(const char *call, int err, char why[AW_EXPLAIN_MAX])
{
	const char *text = text_find(aw_verbs_errnos, call, err);

	if (!text)
		text = text_find(aw_cm_errnos, call, err);
	if (text)
		aw_reason_guess(why, err, "%s", text);
	else if (aw_errno_name(err))
		aw_reason_guess(why, err, "%s", strerrordesc_np(err));
	else
		aw_reason_set(why, "error %d, which is no errno number", err);
}
