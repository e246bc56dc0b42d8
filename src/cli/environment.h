// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The variables of the environment that anything of anywarp reads: 'anywarp help environment' prints
// them, and 'anywarp doctor' finds names that are none.
#ifndef CLI_ENVIRONMENT_H
#define CLI_ENVIRONMENT_H

#include "base/setting.h"

#include <stdbool.h>
#include <stddef.h>

// Prints each variable with its values, its readers and its meaning.
void aw_environment_print(void);

// A name in the environment that begins with ANYWARP_ and is no variable of anywarp, or that is almost one of them.
struct environment_unknown {
	const char *name; // ends where its '=' is
	int len;
	const char *nearest; // the variable that the user may mean; NULL: none
};

// Finds the next one, behind *at, which is 0 at first. False: there is no more.
bool aw_environment_next_unknown(size_t *at, struct environment_unknown *unknown);

// Finds the next variable from *setting on whose value is wrong, and writes why. False: there is none.
bool aw_environment_next_wrong(enum aw_setting *setting, char why[AW_SETTING_WHY_MAX]);

#endif
