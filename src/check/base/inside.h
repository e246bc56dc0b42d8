// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The calls of this library that a thread is in. A call of libc that it makes then is the verbs library's doing and not the
// program's, and an object that is made belongs to the call that the program made.
#ifndef CHECK_BASE_INSIDE_H
#define CHECK_BASE_INSIDE_H

/* Each enter has its leave. Both keep errno. */
void aw_inside_enter(void);
void aw_inside_leave(void);

/* How many calls the thread is in: 1 in one that the program made, more in one that a library made inside it. */
unsigned aw_inside_depth(void);

#endif
