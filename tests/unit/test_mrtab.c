// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The MRs of the process: which memory is taken, what its STag finds, and when it ends.
#include "../lib/emulated.h"
#include "net/mr/mrtab.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
	MANY = 3000,
	ROUNDS = 3000,
};

static uint8_t memory[4096];
static int pd;

static struct aw_mr mr_over(uint8_t *host, uint64_t len)
{
	return (struct aw_mr){
		.iova = (uint64_t)(uintptr_t)host,
		.host = host,
		.len = len,
		.pd = &pd,
	};
}

static void mr_add__is_found_by_its_stag_only(void **state)
{
	struct aw_mr mr = mr_over(memory, sizeof(memory));

	(void)state;
	assert_int_equal(aw_mr_add(&mr), 0);
	assert_ptr_equal(aw_mr_get(mr.stag), &mr);
	aw_mr_put(&mr);
	for (uint32_t bit = 1; bit; bit <<= 1)
		assert_null(aw_mr_get(mr.stag ^ bit));
	assert_null(aw_mr_get(0));
	assert_null(aw_mr_get(1));
	uint32_t stag = mr.stag;

	aw_mr_remove(&mr);
	assert_null(aw_mr_get(stag));
}

static int by_value(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

static void mr_add__stags_differ_and_are_never_special(void **state)
{
	struct aw_mr *mrs = calloc(MANY, sizeof(*mrs));
	uint32_t *stags = calloc(MANY, sizeof(*stags));
	uint32_t neighbours = 0;

	(void)state;
	for (int i = 0; i < MANY; i++) {
		mrs[i] = mr_over(memory, sizeof(memory));
		assert_int_equal(aw_mr_add(&mrs[i]), 0);
		assert_true(mrs[i].stag > 1);
		stags[i] = mrs[i].stag;
		neighbours += i > 0 && stags[i] - stags[i - 1] < 0x1000;
	}
	/* A random 32-bit step is that small once in a million. */
	assert_true(neighbours < 10);
	qsort(stags, MANY, sizeof(*stags), by_value);
	for (int i = 1; i < MANY; i++)
		assert_int_not_equal(stags[i], stags[i - 1]);
	for (int i = 0; i < MANY; i++) {
		assert_ptr_equal(aw_mr_get(mrs[i].stag), &mrs[i]);
		aw_mr_put(&mrs[i]);
		aw_mr_remove(&mrs[i]);
	}
	free(stags);
	free(mrs);
}

static void mr_add__length_zero(void **state)
{
	struct aw_mr mr = mr_over(NULL, 0);

	(void)state;
	assert_int_equal(aw_mr_add(&mr), 0);
	aw_mr_remove(&mr);
}

static bool may(struct aw_mr *mr)
{
	return mr;
}

static void require_watched(void (*handler)(int))
{
	struct sigaction now;

	for (int i = 0; i < 2; i++) {
		assert_int_equal(sigaction(i ? SIGBUS : SIGSEGV, NULL, &now), 0);
		assert_ptr_not_equal(now.sa_handler, handler);
	}
}

/* Memory may go behind the registration: a fault must not come to the program first (net/mem/fault.h). */
static void mr_add__watches_for_faults(void **state)
{
	struct aw_mr mr = mr_over(memory, sizeof(memory)), want = mr;

	(void)state;
	signal(SIGSEGV, SIG_DFL);
	signal(SIGBUS, SIG_DFL);
	assert_int_equal(aw_mr_add(&mr), 0);
	require_watched(SIG_DFL);
	signal(SIGSEGV, SIG_IGN);
	signal(SIGBUS, SIG_IGN);
	assert_int_equal(aw_mr_change(&mr, &want, may), 0);
	require_watched(SIG_IGN);
	aw_mr_remove(&mr);
}

static void mr_add__unmapped(void **state)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uint8_t *map = mmap(NULL, 3 * page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct aw_mr mr = mr_over(map, 3 * page);

	(void)state;
	/* Where it has 32 bits, qemu-user holds all of them. */
	if (is_emulated() && sizeof(void *) == 4)
		skip();
	assert_int_equal(aw_mr_add(&mr), 0);
	aw_mr_remove(&mr);
	munmap(map + page, page);
	mr = mr_over(map, 3 * page);
	assert_int_equal(aw_mr_add(&mr), EFAULT);
	mr = mr_over(map, page + 1);
	assert_int_equal(aw_mr_add(&mr), EFAULT);
	mr = mr_over(map, page);
	assert_int_equal(aw_mr_add(&mr), 0);
	aw_mr_remove(&mr);
	mr = mr_over(map + 2 * page - 1, 2);
	assert_int_equal(aw_mr_add(&mr), EFAULT);
	mr = mr_over(NULL, 1);
	assert_int_equal(aw_mr_add(&mr), EFAULT);
	munmap(map, 3 * page);
}

static int add_and_remove(uint8_t *host, uint32_t access)
{
	struct aw_mr mr = { .access = access, .iova = 1, .len = 100, .host = host, .pd = &mr };
	int err = aw_mr_add(&mr);

	if (!err)
		aw_mr_remove(&mr);
	return err;
}

static void mr_add__only_what_it_may_touch(void **state)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uint8_t *mapped = mmap(NULL, page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)state;
	if (is_emulated())
		skip();
	assert_ptr_not_equal(mapped, MAP_FAILED);
	assert_int_equal(add_and_remove(mapped, AW_ACCESS_REMOTE_READ), 0);
	assert_int_equal(add_and_remove(mapped, AW_ACCESS_LOCAL_WRITE), EFAULT);
	assert_int_equal(mprotect(mapped, page, PROT_NONE), 0);
	assert_int_equal(add_and_remove(mapped, 0), EFAULT);
	assert_int_equal(mprotect(mapped, page, PROT_READ | PROT_WRITE), 0);
	assert_int_equal(add_and_remove(mapped, AW_ACCESS_LOCAL_WRITE), 0);
	munmap(mapped, page);
}

static void mr_add__wraps(void **state)
{
	struct aw_mr mr = mr_over(memory, UINT64_MAX);

	(void)state;
	assert_int_equal(aw_mr_add(&mr), EINVAL);
	mr = mr_over(memory, UINT64_MAX - (uintptr_t)memory);
	assert_int_equal(aw_mr_add(&mr), EINVAL);
	mr = mr_over(memory, 16);
	mr.iova = UINT64_MAX - 14;
	assert_int_equal(aw_mr_add(&mr), EINVAL);
	mr.iova = UINT64_MAX - 15;
	assert_int_equal(aw_mr_add(&mr), 0);
	aw_mr_remove(&mr);
}

/* As a window has it: one index, a key at a time. */
static void stag_publish__is_found_by_its_key_of_the_moment_only(void **state)
{
	struct aw_mr mr = mr_over(memory, sizeof(memory));
	uint32_t old, fresh;

	(void)state;
	assert_int_equal(aw_stag_reserve(&mr.stag), 0);
	assert_null(aw_mr_get(mr.stag));
	aw_stag_publish(&mr);
	assert_ptr_equal(aw_mr_get(mr.stag), &mr);
	aw_mr_put(&mr);
	old = mr.stag;
	aw_stag_withdraw_wait(old);
	assert_null(aw_mr_get(old));
	assert_int_equal(aw_stag_rekey(old, &fresh), 0);
	mr.stag = fresh;
	aw_stag_publish(&mr);
	assert_null(aw_mr_get(old));
	assert_ptr_equal(aw_mr_get(fresh), &mr);
	aw_mr_put(&mr);
	aw_stag_hide(old);
	assert_null(aw_mr_get(fresh));
	aw_stag_withdraw_wait(old);
	aw_stag_cancel(old);
}

static void stag_rekey__every_key_but_this_one(void **state)
{
	uint32_t fresh;

	(void)state;
	for (uint32_t stag = 0x12345600; stag < 0x12345700; stag += 51) {
		uint32_t seen[256] = { 0 }, kinds = 0;

		for (int i = 0; i < ROUNDS; i++) {
			assert_int_equal(aw_stag_rekey(stag, &fresh), 0);
			assert_int_equal(fresh >> 8, 0x123456);
			kinds += !seen[fresh & 0xff]++;
		}
		assert_int_equal(seen[stag & 0xff], 0);
		/* Each of 255 is missed by all of 3000 draws with a chance of one in 100000. */
		assert_true(kinds >= 252);
	}
}

struct shared {
	_Atomic uint32_t stag;
	_Atomic bool stop;
	_Atomic int wrong;
};

/* A placement as a QP makes it: the memory is ours from get to put. */
static void *place(void *arg)
{
	struct shared *s = arg;

	while (!s->stop) {
		const struct aw_mr *mr = aw_mr_get(s->stag);

		if (!mr)
			continue;
		mr->host[0] = 1;
		s->wrong += mr->host[0] != 1;
		mr->host[0] = 0;
		aw_mr_put(mr);
	}
	return NULL;
}

static void mr_remove__waits_for_a_placement(void **state)
{
	struct shared s = { .stag = 0 };
	pthread_t thread;

	(void)state;
	pthread_create(&thread, NULL, place, &s);
	for (int i = 0; i < ROUNDS; i++) {
		struct aw_mr *mr = malloc(sizeof(*mr));

		*mr = mr_over(memory, sizeof(memory));
		assert_int_equal(aw_mr_add(mr), 0);
		s.stag = mr->stag;
		aw_mr_remove(mr);
		memory[0] = 2; /* nobody places now */
		s.wrong += memory[0] != 2;
		memset(mr, 0xff, sizeof(*mr));
		free(mr);
	}
	s.stop = true;
	pthread_join(thread, NULL);
	assert_int_equal(s.wrong, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(mr_add__is_found_by_its_stag_only),
		cmocka_unit_test(mr_add__stags_differ_and_are_never_special),
		cmocka_unit_test(mr_add__length_zero),
		cmocka_unit_test(mr_add__watches_for_faults),
		cmocka_unit_test(mr_add__unmapped),
		cmocka_unit_test(mr_add__only_what_it_may_touch),
		cmocka_unit_test(mr_add__wraps),
		cmocka_unit_test(stag_publish__is_found_by_its_key_of_the_moment_only),
		cmocka_unit_test(stag_rekey__every_key_but_this_one),
		cmocka_unit_test(mr_remove__waits_for_a_placement),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
