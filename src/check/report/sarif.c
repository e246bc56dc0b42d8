// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// SARIF 2.1.0, 3.27: the members that code hosts show. The command has the document around the results.
#include "check/report/render.h"

#include <stdio.h>

#define MESSAGE_MAX 1536

/* Without debug information the place is the program or the library. */
static void put_place(struct aw_buffer *buffer, const struct aw_trace *trace, const char *directory)
{
	const struct aw_symbol *origin = aw_trace_origin(trace);
	bool has_file = origin && origin->file[0];
	const char *path = has_file ? origin->file : origin ? origin->module : "unknown";
	const char *relative = aw_render_path(directory, path);

	/* A source below the directory has a relative URI, from which a code host finds the file in its repository. */
	aw_buffer_put(buffer, "\"physicalLocation\":{\"artifactLocation\":{\"uri\":\"");
	if (relative[0] == '/')
		aw_buffer_put(buffer, "file://");
	aw_buffer_put_uri(buffer, relative);
	aw_buffer_put(buffer, relative[0] == '/' ? "\"}" : "\",\"uriBaseId\":\"%%SRCROOT%%\"}");
	aw_buffer_put(buffer, ",\"region\":{\"startLine\":%u}}",
		      has_file && origin->line ? origin->line : 1);
	if (origin && origin->function[0]) {
		aw_buffer_put(buffer, ",\"logicalLocations\":[{\"name\":");
		aw_buffer_put_json(buffer, origin->function);
		aw_buffer_put(buffer, ",\"kind\":\"function\"}]");
	}
}

void aw_render_sarif(struct aw_buffer *buffer, const struct aw_report_named *report)
{
	const struct aw_rule_text *rule = &aw_rule_texts[report->rule];
	char message[MESSAGE_MAX];

	snprintf(message, sizeof(message), "%s%s%s. Follows: %s. Remedy: %s.", report->object,
		 report->object[0] ? ": " : "", report->message, rule->reference, rule->remedy);
	aw_buffer_put(buffer,
		      "{\"ruleId\":\"%s\",\"ruleIndex\":%d,\"level\":\"%s\",\"message\":{\"text\":",
		      rule->name, (int)report->rule, rule->is_risk ? "warning" : "error");
	aw_buffer_put_json(buffer, message);
	aw_buffer_put(buffer, "},\"locations\":[{");
	put_place(buffer, report->at, report->directory);
	aw_buffer_put(buffer, "}],\"relatedLocations\":[");
	for (unsigned i = 0; i < AW_REPORT_EARLIER && report->earlier[i].what; i++) {
		aw_buffer_put(buffer, "%s{\"id\":%u,\"message\":{\"text\":", i ? "," : "", i + 1);
		aw_buffer_put_json(buffer, report->earlier[i].what);
		aw_buffer_put(buffer, "},");
		put_place(buffer, report->earlier[i].trace, report->directory);
		aw_buffer_put(buffer, "}");
	}
	aw_buffer_put(buffer, "]}");
}
