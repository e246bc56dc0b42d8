// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Marks by the interface of clang's MemorySanitizer, whose run-time library is a part of a program that was compiled with it.
#include "check/base/marker.h"

#include <stdint.h>

/* As in <sanitizer/msan_interface.h>, which other compilers lack. */
__attribute__((weak)) void __msan_poison(const volatile void *memory, size_t len);
__attribute__((weak)) void __msan_unpoison(const volatile void *memory, size_t len);
/* The place of the first poisoned byte; -1: there is none. */
__attribute__((weak)) intptr_t __msan_test_shadow(const volatile void *memory, size_t len);
__attribute__((weak)) void __msan_scoped_disable_interceptor_checks(void);
__attribute__((weak)) void __msan_scoped_enable_interceptor_checks(void);

static void memory_undefine(void *memory, size_t len)
{
	__msan_poison(memory, len);
}

static void memory_define(void *memory, size_t len)
{
	__msan_unpoison(memory, len);
}

static void memory_define_like(void *memory, const void *kept, size_t len)
{
	for (size_t at = 0; at < len; at++) {
		const intptr_t first = __msan_test_shadow((const char *)kept + at, len - at);
		const size_t defined = first < 0 ? len - at : (size_t)first;

		__msan_unpoison((char *)memory + at, defined);
		at += defined;
	}
}

static void checks_hush(void)
{
	__msan_scoped_disable_interceptor_checks();
}

static void checks_unhush(void)
{
	__msan_scoped_enable_interceptor_checks();
}

const struct aw_marker *aw_marker_msan(void)
{
	static const struct aw_marker marker = { .undefined = memory_undefine,
						 .defined = memory_define,
						 .defined_like = memory_define_like,
						 .given = memory_define,
						 .hush = checks_hush,
						 .unhush = checks_unhush };

	return __msan_poison && __msan_unpoison && __msan_test_shadow &&
			       __msan_scoped_disable_interceptor_checks &&
			       __msan_scoped_enable_interceptor_checks
		       ? &marker
		       : NULL;
}
