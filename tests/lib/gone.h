// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Memory for tests that unmap it: what others map meanwhile is not put there.
#ifndef TESTS_LIB_GONE_H
#define TESTS_LIB_GONE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

#define GONE_ROOM (256u << 20) /* far more than a test and a sanitizer map meanwhile */

/* Of a file; the first len bytes of much free address space, which the kernel gives away from its end. */
static inline uint8_t *gone_map(int file, size_t len)
{
	uint8_t *at = mmap(NULL, GONE_ROOM, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		return MAP_FAILED;
	munmap(at + len, GONE_ROOM - len);
	return mmap(at, len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0);
}

#endif
