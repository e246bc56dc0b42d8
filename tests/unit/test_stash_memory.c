// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The bound over the stashes of all QPs.
#include "net/qp/stash_memory.h"

#include "core/stash.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define CHUNKS (AW_STASHES_MAX / AW_STASH_CHUNK_MAX)

static void aw_stash_memory_get__up_to_the_bound_and_no_further(void **state)
{
	static void *chunks[CHUNKS];

	(void)state;
	for (size_t i = 0; i < CHUNKS; i++) {
		chunks[i] = aw_stash_memory_get(AW_STASH_CHUNK_MAX);
		assert_non_null(chunks[i]);
	}
	assert_null(aw_stash_memory_get(AW_STASH_CHUNK_MAX));
	assert_null(aw_stash_memory_get(1));
	/* What was refused counts for nothing. */
	aw_stash_memory_put(chunks[0], AW_STASH_CHUNK_MAX);
	chunks[0] = aw_stash_memory_get(AW_STASH_CHUNK_MAX);
	assert_non_null(chunks[0]);
	assert_null(aw_stash_memory_get(1));
	for (size_t i = 0; i < CHUNKS; i++)
		aw_stash_memory_put(chunks[i], AW_STASH_CHUNK_MAX);
	chunks[0] = aw_stash_memory_get(1);
	assert_non_null(chunks[0]);
	aw_stash_memory_put(chunks[0], 1);
}

static void aw_stash_memory_get__of_more_than_the_bound(void **state)
{
	(void)state;
	assert_null(aw_stash_memory_get(AW_STASHES_MAX + 1));
	assert_null(aw_stash_memory_get(SIZE_MAX));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(aw_stash_memory_get__up_to_the_bound_and_no_further),
		cmocka_unit_test(aw_stash_memory_get__of_more_than_the_bound),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
