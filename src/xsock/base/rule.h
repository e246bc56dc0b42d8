// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A rule as it was read; shared by rules.c and rules_text.c.
#ifndef XSOCK_BASE_RULE_H
#define XSOCK_BASE_RULE_H

#include "xsock/base/rules.h"

#include <stdint.h>

#define RULE_GLOB_MAX 255 /* bytes, those of the longest file name */

enum rule_side {
	RULE_EITHER,
	RULE_LISTEN,
	RULE_CONNECT,
};

/* An IPv4 address is in the first four bytes. Bits beyond the prefix are zero. */
struct rule_net {
	sa_family_t family; /* AF_UNSPEC: every address, known or not */
	uint8_t prefix_bits;
	uint8_t bytes[16];
};

struct aw_xs_rule {
	enum aw_xs_mode mode;
	enum rule_side side;
	struct rule_net local, remote;
	uint16_t port_first, port_last; /* 0: every port */
	char program[RULE_GLOB_MAX + 1]; /* "": every program */
};

/* The rules, which do not change once they were read. */
struct aw_xs_rules {
	size_t count;
	struct aw_xs_rule rule[];
};

#endif
