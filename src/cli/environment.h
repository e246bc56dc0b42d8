// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The variables of the environment that anything of anywarp reads: 'anywarp help environment' prints
// them, and 'anywarp doctor' finds names that are none.
#ifndef CLI_ENVIRONMENT_H
#define CLI_ENVIRONMENT_H

#include <stdbool.h>
#include <stddef.h>

// Prints each variable with its values, its readers and its meaning.
void aw_environment_print(void);

// The first name in the environment that begins with ANYWARP_ and is no variable of anywarp; NULL: there is none.
// It ends where its '=' is, len bytes on.
const char *aw_environment_unknown(size_t *len);

#endif
