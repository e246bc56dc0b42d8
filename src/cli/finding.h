// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// One finding of 'anywarp doctor': the thing checked, what was found, and the remedy. It is a line, or an object of JSON.
// Several processes print findings, one after the other.
#ifndef CLI_FINDING_H
#define CLI_FINDING_H

#include <stdbool.h>

enum finding {
	FINDING_OK,
	FINDING_WARN, // something is slower or missing; the main job works
	FINDING_FAIL, // the main job does not work
};

// From here on findings are members of an array of JSON. is_first: this process begins it.
void aw_finding_json(bool is_first);

// True after aw_finding_json.
bool aw_finding_is_json(void);

// Prints a finding; remedy may be NULL. Output is flushed, so that those of two processes keep their order.
void aw_finding_print(enum finding kind, const char *what, const char *remedy, const char *why, ...)
	__attribute__((format(printf, 4, 5)));

// True when this process has printed a FINDING_FAIL.
bool aw_finding_any_failed(void);

// Prints the end: whether RDMA programs run here.
void aw_finding_end(bool runs);

#endif
