// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// One line of 'anywarp doctor': the thing checked, the finding, and the remedy.
#ifndef CLI_FINDING_H
#define CLI_FINDING_H

#include <stdbool.h>

enum finding {
	FINDING_OK,
	FINDING_WARN, // something is slower or missing; the main job works
	FINDING_FAIL, // the main job does not work
};

// Prints a line; remedy may be NULL. Output is flushed, so that lines of two processes keep their
// order.
void aw_finding_print(enum finding kind, const char *what, const char *remedy, const char *why, ...)
	__attribute__((format(printf, 4, 5)));

// True when this process has printed a FINDING_FAIL.
bool aw_finding_any_failed(void);

#endif
