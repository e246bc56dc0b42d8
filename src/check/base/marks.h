// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Marks for the tools that know of each byte whether the program was given a value in it, and report a decision that hangs on one
// without: valgrind's memcheck, and MemorySanitizer. A sink is marked undefined at the post, so that the tool names the line
// that reads it before its completion; the contents stay. At the completion the bytes that arrived are marked defined, also where the tool
// did not see the write: an adapter's, or another process's.
//
// Without such a tool each call is a test of a pointer. AddressSanitizer's poison is not used: its wrappers of libc would refuse the
// device's own recv(2) into the sink.
#ifndef CHECK_BASE_MARKS_H
#define CHECK_BASE_MARKS_H

#include <stdbool.h>
#include <stddef.h>

/* Memory of which a byte is not addressable, since it was freed for example, is left as it is. */
void aw_mark_undefined(void *memory, size_t len);
/* Bytes that are not addressable stay so. */
void aw_mark_defined(void *memory, size_t len);
/* Those bytes alone that are defined in kept, which memcpy filled from the memory before it was marked. */
void aw_mark_defined_like(void *memory, const void *kept, size_t len);

/* A library wrote it that the tool sees only if it was compiled for it: MemorySanitizer takes it as defined. */
void aw_mark_given(void *memory, size_t len);

/* The calling thread's reads of undefined bytes, which are the checker's own, are no faults. */
void aw_marks_hush(void);
void aw_marks_unhush(void);

#endif
