// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "check/report/render.h"

#include <string.h>

const char *aw_render_path(const char *directory, const char *path)
{
	size_t len = strlen(directory);

	if (len < 2 || strncmp(path, directory, len) != 0 || path[len] != '/')
		return path;
	return path + len + 1;
}

static void put_trace(struct aw_buffer *buffer, const struct aw_trace *trace, const char *directory)
{
	for (unsigned i = 0; i < trace->frames; i++) {
		const struct aw_symbol *frame = &trace->frame[i];

		aw_buffer_put(buffer, "    #%u %s", i,
			      frame->function[0] ? frame->function : "(no symbol)");
		if (frame->file[0])
			aw_buffer_put(buffer, " %s:%u\n", aw_render_path(directory, frame->file),
				      frame->line);
		else
			aw_buffer_put(buffer, " (%s+0x%lx)\n",
				      frame->module[0] ? frame->module : "no module",
				      (unsigned long)frame->offset);
	}
	if (!trace->frames)
		aw_buffer_put(buffer, "    (its stack was not taken)\n");
}

void aw_render_text(struct aw_buffer *buffer, const struct aw_report_named *report)
{
	const struct aw_rule_text *rule = &aw_rule_texts[report->rule];

	aw_buffer_put(buffer, "==%d== anywarp check: %s: %s\n", report->pid, rule->name,
		      report->message);
	if (report->object[0])
		aw_buffer_put(buffer, "  %s\n", report->object);
	put_trace(buffer, report->at, report->directory);
	for (unsigned i = 0; i < AW_REPORT_EARLIER && report->earlier[i].what; i++) {
		aw_buffer_put(buffer, "  %s:\n", report->earlier[i].what);
		put_trace(buffer, report->earlier[i].trace, report->directory);
	}
	aw_buffer_put(buffer, "  follows: %s\n  remedy: %s\n", rule->reference, rule->remedy);
	if (rule->is_risk)
		aw_buffer_put(buffer, "  This is a risk: it does not change the exit status.\n");
}
