// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The calling thread's stack. The library is a part of this program here, of which only the innermost frame is left out.
#include "check/base/stack.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>

#define RANGE 512 /* bytes of take_deep, also with a sanitizer's checks */

static struct aw_stack stack;

__attribute__((noinline)) static void take_deep(unsigned depth)
{
	if (depth)
		take_deep(depth - 1);
	else
		aw_stack_take(&stack);
	__asm__ volatile("" ::: "memory");
}

static void take__begins_at_the_caller(void **state)
{
	(void)state;
	errno = 4711;
	take_deep(0);
	assert_int_equal(errno, 4711);
	assert_true(stack.frames > 1);
	assert_true((uintptr_t)stack.pc[0] - (uintptr_t)take_deep < RANGE);
}

static void take__keeps_the_innermost_frames(void **state)
{
	(void)state;
	take_deep(3 * AW_STACK_FRAMES);
	assert_int_equal(stack.frames, AW_STACK_FRAMES);
	for (unsigned i = 0; i < AW_STACK_FRAMES; i++)
		assert_true((uintptr_t)stack.pc[i] - (uintptr_t)take_deep < RANGE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(take__begins_at_the_caller),
		cmocka_unit_test(take__keeps_the_innermost_frames),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
