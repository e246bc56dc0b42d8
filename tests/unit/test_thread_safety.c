// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// aw_held's assertion, as a build with a sanitizer has it.
#undef AW_CHECK_HELD
#define AW_CHECK_HELD
#include "base/thread_safety.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdnoreturn.h>

#include <cmocka.h>

static jmp_buf failed;

noreturn void __assert_fail(const char *text, const char *file, unsigned int line,
			    const char *function)
{
	(void)text;
	(void)file;
	(void)line;
	(void)function;
	longjmp(failed, 1);
}

static void held__accepts_a_lock_that_is_taken(void **state)
{
	aw_mutex lock = PTHREAD_MUTEX_INITIALIZER;

	(void)state;
	pthread_mutex_lock(&lock);
	aw_held(&lock);
	pthread_mutex_unlock(&lock);
}

static void held__fails_for_a_lock_that_is_free(void **state)
{
	static aw_mutex lock = PTHREAD_MUTEX_INITIALIZER;

	(void)state;
	if (setjmp(failed) == 0) {
		aw_held(&lock);
		fail_msg("aw_held accepts a lock that nobody holds");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(held__accepts_a_lock_that_is_taken),
		cmocka_unit_test(held__fails_for_a_lock_that_is_free),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
