// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Sets of rules, and the lists that name them: "all", "none", or names with '+' between.
#ifndef CHECK_REPORT_WANTED_H
#define CHECK_REPORT_WANTED_H

#include "base/slice.h"
#include "check/report/rule.h"

#include <stdbool.h>
#include <stdint.h>

#define AW_WANTED_ALL ((UINT64_C(1) << AW_RULES) - 1)

_Static_assert(AW_RULES < 64, "a set of rules is a number of 64 bits");

/* True where the set has the rule. */
static inline bool aw_wanted_has(uint64_t set, enum aw_rule rule)
{
	return set >> rule & 1;
}

/* Finds the rule of that name. */
__attribute__((warn_unused_result)) bool aw_wanted_find(struct aw_slice name, enum aw_rule *rule);

/*
 * Writes the set that the list names; an empty list names all. False where a name is of no rule: then *wrong is its part of the
 * list.
 */
__attribute__((warn_unused_result)) bool aw_wanted_parse(struct aw_slice list, uint64_t *set,
							 struct aw_slice *wrong);

/* Writes the names of all rules with blanks between, as far as there is room. */
void aw_wanted_names(char *text, size_t room);

#endif
