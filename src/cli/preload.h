// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Another verbs library that the loader would take before anywarp's.
#ifndef CLI_PRELOAD_H
#define CLI_PRELOAD_H

#include <limits.h>
#include <stdbool.h>

#define PRELOAD_FILE "/etc/ld.so.preload"

// Writes the first libibverbs or librdmacm, not of anywarp, that LD_PRELOAD or PRELOAD_FILE names, and which of the two
// does. False: neither does. A program that brings its own is given ours there.
bool aw_preload_find(char file[PATH_MAX], const char **where);

#endif
