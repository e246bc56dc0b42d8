// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "check/report/render.h"

static void put_member(struct aw_buffer *buffer, const char *name, const char *value)
{
	aw_buffer_put(buffer, ",\"%s\":", name);
	aw_buffer_put_json(buffer, value);
}

/* A member that is not known is null. */
static void put_stack(struct aw_buffer *buffer, const struct aw_trace *trace, const char *directory)
{
	aw_buffer_put(buffer, ",\"stack\":[");
	for (unsigned i = 0; i < trace->frames; i++) {
		const struct aw_symbol *frame = &trace->frame[i];

		aw_buffer_put(buffer, "%s{\"function\":", i ? "," : "");
		if (frame->function[0])
			aw_buffer_put_json(buffer, frame->function);
		else
			aw_buffer_put(buffer, "null");
		if (frame->file[0]) {
			put_member(buffer, "file", aw_render_path(directory, frame->file));
			aw_buffer_put(buffer, ",\"line\":%u", frame->line);
		} else {
			aw_buffer_put(buffer, ",\"file\":null,\"line\":null");
		}
		put_member(buffer, "module", frame->module);
		aw_buffer_put(buffer, ",\"offset\":%lu}", (unsigned long)frame->offset);
	}
	aw_buffer_put(buffer, "]");
}

void aw_render_json(struct aw_buffer *buffer, const struct aw_report_named *report)
{
	const struct aw_rule_text *rule = &aw_rule_texts[report->rule];

	aw_buffer_put(buffer,
		      "{\"rule\":\"%s\",\"class\":%u,\"level\":\"%s\",\"pid\":%d,\"tid\":%d",
		      rule->name, rule->class, rule->is_risk ? "warning" : "error", report->pid,
		      report->tid);
	put_member(buffer, "title", rule->title);
	put_member(buffer, "message", report->message);
	put_member(buffer, "object", report->object);
	put_stack(buffer, report->at, report->directory);
	aw_buffer_put(buffer, ",\"earlier\":[");
	for (unsigned i = 0; i < AW_REPORT_EARLIER && report->earlier[i].what; i++) {
		aw_buffer_put(buffer, "%s{\"what\":", i ? "," : "");
		aw_buffer_put_json(buffer, report->earlier[i].what);
		put_stack(buffer, report->earlier[i].trace, report->directory);
		aw_buffer_put(buffer, "}");
	}
	aw_buffer_put(buffer, "]");
	put_member(buffer, "follows", rule->reference);
	put_member(buffer, "remedy", rule->remedy);
	aw_buffer_put(buffer, "}");
}
