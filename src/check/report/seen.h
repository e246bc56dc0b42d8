// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The reports that were made: each rule broken at each call once, with how often it was broken there again. In memory of its own, without
// an allocation. The caller holds a lock.
#ifndef CHECK_REPORT_SEEN_H
#define CHECK_REPORT_SEEN_H

#include "check/report/rule.h"

#include <stdbool.h>
#include <stdint.h>

#define AW_SEEN_MAX 768
#define AW_SEEN_WHERE_MAX 160

struct aw_seen {
	uint64_t key; /* of the rule and the call's stack; 0: the place is free */
	enum aw_rule rule;
	bool is_suppressed;
	unsigned long again; /* how often it was broken after its report */
	char where[AW_SEEN_WHERE_MAX]; /* function, file and line */
};

/*
 * The entry of that rule and stack; *is_new: it was not there before. Once AW_SEEN_MAX entries are there, all further ones of a
 * rule share one.
 */
struct aw_seen *aw_seen_find(enum aw_rule rule, uint64_t key, bool *is_new);

/* The next entry behind *at, which is 0 at first; NULL: there is no more. */
struct aw_seen *aw_seen_next(unsigned *at);

#endif
