// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The settings in ANYWARP_CHECK: a list key=value,... that 'anywarp check' makes of its options. The grammar is pure, for the command
// to use as well.
#ifndef CHECK_BASE_SETTINGS_H
#define CHECK_BASE_SETTINGS_H

#include "base/slice.h"

#include <stdbool.h>
#include <stddef.h>

#define AW_CHECK_ENV "ANYWARP_CHECK"
#define AW_CHECK_TEXT_MAX 8192 /* bytes of the list with its NUL, which has a path in it */
#define AW_CHECK_WHY_MAX 320
#define AW_CHECK_EXIT 66 /* the exit status where a rule was broken */
#define AW_CHECK_EXIT_MAX 255
#define AW_CHECK_SEED_MAX 4294967295ul

/* The slices are parts of the text that was parsed; of length 0 where the list lacks the key. */
struct aw_check_settings {
	struct aw_slice
		rules; /* "all" (also where it is absent), "none", or names with '+' between: see check/report/wanted.h */
	struct aw_slice suppress; /* the path of a file: check/report/suppress.h */
	struct aw_slice like; /* the adapter to be like */
	bool explain_on; /* failed calls are logged with their reasons; true where it is absent */
	bool halt_on; /* the process ends at the first report */
	bool vary_on;
	unsigned long vary_seed;
	unsigned long exit_status; /* with halt_on */
};

/*
 * False where the text is wrong: then why tells where and what is right, and *settings is left alone. NULL or an empty
 * text is right. Names of rules, of adapters and of files are not looked at.
 */
__attribute__((warn_unused_result)) bool aw_check_settings_parse(const char *text,
								 struct aw_check_settings *settings,
								 char why[AW_CHECK_WHY_MAX]);

/* Those of this process, read once. A wrong list is logged as an error, and then everything is as without a list. */
const struct aw_check_settings *aw_check_settings(void);

/* Where in the list of aw_check_settings a part of it begins, counted from 1. */
size_t aw_check_settings_position(struct aw_slice part);

#endif
