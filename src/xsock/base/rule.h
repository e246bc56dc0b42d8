// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What the files of the rules share: a rule as it was read.
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

/* Of an IPv4 address the first four bytes. Bytes beyond the prefix are zero. */
struct rule_net {
	sa_family_t family; /* AF_UNSPEC: every address, known or not */
	uint8_t prefix_bits;
	uint8_t octets[16];
};

struct aw_xs_rule {
	enum aw_xs_mode mode;
	enum rule_side side;
	struct rule_net local, remote;
	uint16_t port_first, port_last; /* 0: every port */
	char program[RULE_GLOB_MAX + 1]; /* "": every program */
};

/* Fixed once it was read. */
struct aw_xs_rules {
	size_t count;
	struct aw_xs_rule rule[];
};

#endif
