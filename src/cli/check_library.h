// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// libanywarp-check.so in the environment of a program.
#ifndef CLI_CHECK_LIBRARY_H
#define CLI_CHECK_LIBRARY_H

#include <stdbool.h>

// Has the program load the library, which is to be in dir. False after an error, which was printed and begins with who.
__attribute__((warn_unused_result)) bool aw_check_library_preload(const char *who, const char *dir);

#endif
