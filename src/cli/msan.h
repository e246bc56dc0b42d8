// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Programs that were compiled with MemorySanitizer. It takes what a library writes for undefined unless the library was compiled with it,
// too. The checker tells it what the calls of verbs and rdma_cm give to the program (check/base/msan.c): so such a program gets the
// checker, with no rule to check. By the options MemorySanitizer does not judge what libraries allocate and send.
#ifndef CLI_MSAN_H
#define CLI_MSAN_H

#include <stdbool.h>

// program is as execvp(3) takes it. False, too, for a script.
bool aw_cli_msan_is_in(const char *program);

// Sets MSAN_OPTIONS; the user's own options go behind, and hold. False when out of memory, which was printed and begins with who.
__attribute__((warn_unused_result)) bool aw_cli_msan_export(const char *who);

#endif
