// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// In the place of src/check's reports and stacks: keeps the rules that were told.
#ifndef TESTS_UNIT_CHECK_REPORTS_H
#define TESTS_UNIT_CHECK_REPORTS_H

#include "check/report/rule.h"

/* The rule of the only report since the last call; AW_RULES: there was none. Fails where there were more. */
enum aw_rule report_only(void);

/* The message of the last report. */
const char *report_message(void);

#endif
