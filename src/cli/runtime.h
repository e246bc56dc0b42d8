// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Programs that were compiled with a sanitizer, and what else of theirs is in LD_PRELOAD beside our libraries.
//
// The runtime of AddressSanitizer ends the program unless it is the first of all libraries, and each runtime sees most where its
// functions come before ours: it then judges what the program passes to a call, and none of our own calls. So it goes first where the
// command can know it: where LD_PRELOAD names it, and where the program's own file needs it. A runtime that only a library of the
// program needs is not looked for, because such a program does not start without LD_PRELOAD by itself.
//
// A program that a script or another program starts, which the command does not know, has the runtime behind our libraries:
// ASAN_OPTIONS has AddressSanitizer allow it. A runtime that is a part of the program's own file, as clang's are by default, comes
// before every library, and needs nothing.
#ifndef CLI_RUNTIME_H
#define CLI_RUNTIME_H

#include <stdbool.h>

// Puts the runtime first in LD_PRELOAD, if that has our libraries, and sets ASAN_OPTIONS. program is as execvp(3) takes it. False when
// out of memory, which was printed and begins with who.
__attribute__((warn_unused_result)) bool aw_cli_runtime_export(const char *who,
							       const char *program);

#endif
