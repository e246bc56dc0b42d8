// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Whether the test runs under qemu-user (./dev test --arch), which knows not all of Linux: no madvise, no process_vm_readv, no
// ioctl of the newer ones, no thread in the child of a process with threads.
#ifndef LIB_EMULATED_H
#define LIB_EMULATED_H

#include <stdbool.h>
#include <stdlib.h>

/* ctest sets the variable in a build for another machine. */
static inline bool is_emulated(void)
{
	return getenv("AW_TEST_EMULATED") != NULL;
}

#endif
