// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A report whose addresses have names, and the three forms that it is written in: text for people, a JSON object on one line, a
// result of SARIF 2.1.0 on one line.
#ifndef CHECK_REPORT_RENDER_H
#define CHECK_REPORT_RENDER_H

#include "check/report/buffer.h"
#include "check/report/report.h"
#include "check/report/trace.h"

struct aw_report_named {
	enum aw_rule rule;
	int pid, tid;
	const char *object; /* "": none */
	const char *message;
	const struct aw_trace *at;
	struct {
		const char *what; /* NULL ends them */
		const struct aw_trace *trace;
	} earlier[AW_REPORT_EARLIER];
	const char *directory; /* paths below it are written relative to it; "": none are */
};

void aw_render_text(struct aw_buffer *buffer, const struct aw_report_named *report);
void aw_render_json(struct aw_buffer *buffer, const struct aw_report_named *report);
void aw_render_sarif(struct aw_buffer *buffer, const struct aw_report_named *report);

/* The path, relative to the directory where it is below that. */
const char *aw_render_path(const char *directory, const char *path);

#endif
