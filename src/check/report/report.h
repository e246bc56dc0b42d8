// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A report: a rule that was broken, by which object, at which call, and against which earlier call.
#ifndef CHECK_REPORT_REPORT_H
#define CHECK_REPORT_REPORT_H

#include "check/base/stack.h"
#include "check/report/rule.h"

#include <stdbool.h>

#define AW_REPORT_EARLIER 2 /* earlier calls that a report can name */
#define AW_REPORT_MESSAGE_MAX 512
#define AW_REPORTS_ENV "ANYWARP_CHECK_REPORTS" /* the file of 'anywarp check' */

struct aw_report {
	enum aw_rule rule;
	const char *
		object; /* "QP 0x12", "MR of lkey 0x100": as the program knows it; "" where there is none */
	const struct aw_stack *at; /* the call at fault; NULL: the call that the thread is in */
	struct { /* the calls that it conflicts with, the nearest first; a NULL stack ends them */
		const char *what; /* "posted here" */
		const struct aw_stack *stack;
	} earlier[AW_REPORT_EARLIER];
};

/*
 * Reports a broken rule on standard error, with the message that format makes (one line without the rule's title or
 * newline: "the SGE at 0x7f.. of 4096 bytes was changed before its completion"), and to the files that the settings name.
 * The same rule broken at the same call is reported once and counted from then on. A suppressed one does nothing. With
 * --halt the process ends here. May be called with locks held; takes none but its own. Keeps errno.
 */
void aw_report(const struct aw_report *report, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* True where the setting wants the rule looked for at all. */
bool aw_report_wants(enum aw_rule rule);

/*
 * True while the calling thread makes a report, for which libdw allocates and frees memory, opens files and maps them: the hooks of
 * libc's functions then do nothing but call libc.
 */
bool aw_report_is_under_way(void);

/* Once, at the process's end: how often each repeated report occurred. */
void aw_report_end(void);

#endif
