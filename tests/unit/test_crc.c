// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Each form of CRC32c that this processor has is the table's, whatever the length and wherever the bytes lie; its copy is the bytes and no
// byte more; and it folds what it has copied while another thread changes the source.
#define _GNU_SOURCE // MAP_ANONYMOUS
#include "crc/crc.h"
#include "crc/form.h"
#include "crc/powers.h"
#include "wire/crc32c.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define POLYNOMIAL 0x82f63b78u /* bit-reflected */
#define SHORT_MAX 1100u /* every length up to here */
#define ALIGNMENTS 64u
#define ROOM (70u * 1024) /* a multiple of every size of page */
#define CANARY 0xa5

/* Two areas with a page on either side that cannot be accessed. */
static uint8_t *source, *target;

static uint8_t *area_map(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), room = (ROOM + page - 1) / page * page;
	uint8_t *at = mmap(NULL, room + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(at, MAP_FAILED);
	assert_int_equal(mprotect(at + page, room, PROT_READ | PROT_WRITE), 0);
	return at + page;
}

static uint8_t *area_end(uint8_t *area)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	return area + (ROOM + page - 1) / page * page;
}

static int areas_map(void **state)
{
	uint32_t seed = 1;

	(void)state;
	source = area_map();
	target = area_map();
	for (uint8_t *p = source; p < area_end(source); p++) {
		seed = seed * 1664525u + 1013904223u;
		*p = (uint8_t)(seed >> 24);
	}
	return 0;
}

/* x to the power n modulo the polynomial, bit-reflected. */
static uint32_t power(unsigned int n)
{
	uint32_t x = 0x80000000u;

	for (; n > 0; n--)
		x = x >> 1 ^ (x & 1 ? POLYNOMIAL : 0);
	return x;
}

static void powers__are_the_polynomials(void **state)
{
	(void)state;
	assert_int_equal(AW_CRC_FIRST_16, power(8 * 16 + 31));
	assert_int_equal(AW_CRC_FIRST_32, power(8 * 32 + 31));
	assert_int_equal(AW_CRC_FIRST_64, power(8 * 64 + 31));
	assert_int_equal(AW_CRC_FIRST_128, power(8 * 128 + 31));
	assert_int_equal(AW_CRC_FIRST_256, power(8 * 256 + 31));
	assert_int_equal(AW_CRC_SECOND_16, power(8 * 16 - 33));
	assert_int_equal(AW_CRC_SECOND_32, power(8 * 32 - 33));
	assert_int_equal(AW_CRC_SECOND_64, power(8 * 64 - 33));
	assert_int_equal(AW_CRC_SECOND_128, power(8 * 128 - 33));
	assert_int_equal(AW_CRC_SECOND_256, power(8 * 256 - 33));
	assert_int_equal(AW_CRC_SECOND_1024, power(8 * 1024 - 33));
	assert_int_equal(AW_CRC_SECOND_2048, power(8 * 2048 - 33));
}

/* The next form that this processor has; NULL behind the table. */
static const struct aw_crc_form *form_next(const struct aw_crc_form *form)
{
	if (form && !form->name)
		return NULL;
	form = form ? form + 1 : aw_crc_forms;
	while (!form->is_there())
		form++;
	return form;
}

static void form_check(const struct aw_crc_form *form, uint8_t *dst, const uint8_t *src, size_t len)
{
	uint32_t init = (uint32_t)(len * 2654435761u) ^ (uint32_t)(uintptr_t)src;
	uint32_t right = crc32c_update(init, src, len);

	assert_int_equal(form->fold(init, src, len), right);
	assert_int_equal(form->copy(init, dst, src, len), right);
	assert_memory_equal(dst, src, len);
}

/* As form_check, and the bytes beside the copy are as they were. */
static void form_check_between(const struct aw_crc_form *form, size_t at, size_t from, size_t len)
{
	uint8_t before[ALIGNMENTS], *dst = target + sizeof(before) + at;

	memset(before, CANARY, sizeof(before));
	memset(dst - sizeof(before), CANARY, len + 2 * sizeof(before));
	form_check(form, dst, source + from, len);
	assert_memory_equal(dst - sizeof(before), before, sizeof(before));
	assert_memory_equal(dst + len, before, sizeof(before));
}

static void form__every_length_and_alignment(void **state)
{
	(void)state;
	for (const struct aw_crc_form *form = form_next(NULL); form; form = form_next(form))
		for (size_t len = 0; len <= SHORT_MAX; len++)
			for (size_t from = 0; from < ALIGNMENTS; from++)
				form_check_between(form, (from * 29 + len) % ALIGNMENTS, from, len);
}

static void form__long_ones(void **state)
{
	static const size_t lens[] = { 1460, 1535, 1536, 1537,	     3071,  3072,  3073,
				       3455, 3456, 4095, 4096,	     4097,  4159,  4160,
				       6143, 6144, 6533, 16384 + 18, 65535, 65536, 65536 + 20 };

	(void)state;
	for (const struct aw_crc_form *form = form_next(NULL); form; form = form_next(form))
		for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++)
			for (size_t from = 0; from < ALIGNMENTS; from++)
				form_check_between(form, (from * 45) % ALIGNMENTS, from, lens[i]);
}

/* A byte beyond either end of source or copy faults. */
static void form__touches_nothing_else(void **state)
{
	(void)state;
	for (const struct aw_crc_form *form = form_next(NULL); form; form = form_next(form)) {
		for (size_t len = 0; len <= SHORT_MAX; len++) {
			form_check(form, target, source, len);
			form_check(form, area_end(target) - len, area_end(source) - len, len);
		}
		for (size_t len = ROOM - 300; len <= ROOM; len++)
			form_check(form, area_end(target) - len, area_end(source) - len, len);
	}
}

static void form__goes_on(void **state)
{
	const size_t len = 5000;
	uint32_t whole = crc32c_update(CRC32C_INIT, source, len);

	(void)state;
	for (const struct aw_crc_form *form = form_next(NULL); form; form = form_next(form)) {
		for (size_t cut = 0; cut <= len; cut++) {
			uint32_t crc = form->fold(CRC32C_INIT, source, cut);

			assert_int_equal(form->fold(crc, source + cut, len - cut), whole);
			crc = form->copy(CRC32C_INIT, target, source, cut);
			crc = form->copy(crc, target + cut, source + cut, len - cut);
			assert_int_equal(crc, whole);
		}
		assert_memory_equal(target, source, len);
	}
}

static atomic_bool over;

static void *source_change(void *unused)
{
	volatile uint8_t *bytes = source;

	(void)unused;
	while (!atomic_load(&over))
		for (size_t i = 0; i < 20000; i++)
			bytes[i]++;
	return NULL;
}

static void form__folds_what_it_copies(void **state)
{
	static const size_t lens[] = { 7, 100, 500, 1460, 20000 };
	pthread_t thread;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, source_change, NULL), 0);
	for (const struct aw_crc_form *form = form_next(NULL); form; form = form_next(form))
		for (size_t i = 0; i < 5000; i++) {
			size_t len = lens[i % (sizeof(lens) / sizeof(lens[0]))];
			uint32_t crc = form->copy(CRC32C_INIT, target, source, len);

			assert_int_equal(crc, crc32c_update(CRC32C_INIT, target, len));
		}
	atomic_store(&over, true);
	assert_int_equal(pthread_join(thread, NULL), 0);
}

static void crc__is_the_best_form(void **state)
{
	const struct aw_crc_form *best = form_next(NULL);

	(void)state;
	print_message("CRC32c by %s\n", best->name ? best->name : "the table");
	assert_ptr_equal(aw_crc32c_instructions(), best->name);
	assert_int_equal(crc32c_final(aw_crc32c(CRC32C_INIT, "123456789", 9)), 0xe3069283u);
	assert_int_equal(crc32c_final(aw_crc32c_copy(CRC32C_INIT, target, "123456789", 9)),
			 0xe3069283u);
	assert_memory_equal(target, "123456789", 9);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(powers__are_the_polynomials),
		cmocka_unit_test(form__every_length_and_alignment),
		cmocka_unit_test(form__long_ones),
		cmocka_unit_test(form__touches_nothing_else),
		cmocka_unit_test(form__goes_on),
		cmocka_unit_test(form__folds_what_it_copies),
		cmocka_unit_test(crc__is_the_best_form),
	};

	return cmocka_run_group_tests(tests, areas_map, NULL);
}
