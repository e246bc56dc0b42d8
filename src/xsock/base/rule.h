// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A rule as it was read; shared by rules.c and rules_text.c.
#ifndef XSOCK_BASE_RULE_H
#define XSOCK_BASE_RULE_H

#include "base/prefix.h"
#include "xsock/base/rules.h"

#define RULE_GLOB_MAX 255 /* bytes, those of the longest file name */

enum rule_side {
	RULE_EITHER,
	RULE_LISTEN,
	RULE_CONNECT,
};

struct aw_xs_rule {
	enum aw_xs_mode mode;
	enum rule_side side;
	struct aw_prefix local, remote;
	struct aw_ports ports;
	char program[RULE_GLOB_MAX + 1]; /* "": every program */
};

/* The rules, which do not change once they were read. */
struct aw_xs_rules {
	size_t count;
	struct aw_xs_rule rule[];
};

#endif
