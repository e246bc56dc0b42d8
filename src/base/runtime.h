// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A sanitizer's runtime at the beginning of LD_PRELOAD. The command puts it there for the one program that was compiled with that
// sanitizer (cli/runtime.h). The programs which that one starts inherit LD_PRELOAD, and most of them, a shell for example, were not:
// the runtime would judge their memory all the same. So the first library that the command has preloaded takes it out again.
#ifndef BASE_RUNTIME_H
#define BASE_RUNTIME_H

/* Names the runtime as LD_PRELOAD does. */
#define AW_RUNTIME_ENV "ANYWARP_RUNTIME"

/* Takes the runtime out of LD_PRELOAD. Called by a library's constructor, in place: libc's own constructors may not have run yet. */
void aw_runtime_leave(void);

#endif
