// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Which memory may be registered, looked at as a whole, and that looking at it does not bring it in.
#define _GNU_SOURCE // memfd_create
#include "../lib/emulated.h"
#include "net/mem/mapping.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/utsname.h>
#include <unistd.h>

enum {
	PAGES = 64,
	READS = PROT_READ,
	WRITES = PROT_READ | PROT_WRITE,
};

static size_t page;

/* Of WRITES memory; file -1: nobody's. */
static uint8_t *map(int file)
{
	int flags = file < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
	uint8_t *at = mmap(NULL, PAGES * page, WRITES, flags, file, 0);

	assert_ptr_not_equal(at, MAP_FAILED);
	return at;
}

static size_t pages_in(uint8_t *at)
{
	unsigned char seen[PAGES];
	size_t in = 0;

	assert_int_equal(mincore(at, PAGES * page, seen), 0);
	for (size_t i = 0; i < PAGES; i++)
		in += seen[i] & 1;
	return in;
}

/* Linux can be asked about each mapping. */
static bool kernel_tells(void)
{
	struct utsname name;
	int major = 0, minor = 0;

	uname(&name);
	return !is_emulated() && sscanf(name.release, "%d.%d", &major, &minor) == 2 &&
	       (major > 6 || (major == 6 && minor >= 11));
}

static void check__whole(void **state)
{
	uint8_t *at = map(-1);

	(void)state;
	assert_int_equal(aw_mapping_check(at, PAGES * page, true), 0);
	assert_int_equal(aw_mapping_check(at + 1, 1, true), 0);
	assert_int_equal(aw_mapping_check(NULL, 0, true), 0);
	assert_int_equal(aw_mapping_check(at + PAGES * page - 1, 1, false), 0);
	munmap(at, PAGES * page);
}

static void check__hole_in_the_middle(void **state)
{
	uint8_t *at = map(-1);

	(void)state;
	/* Where it has 32 bits, qemu-user holds all of them. */
	if (is_emulated() && sizeof(void *) == 4)
		skip();
	munmap(at + 30 * page, page);
	assert_int_equal(aw_mapping_check(at, PAGES * page, false), EFAULT);
	assert_int_equal(aw_mapping_check(at, 30 * page, true), 0);
	assert_int_equal(aw_mapping_check(at, 30 * page + 1, true), EFAULT);
	assert_int_equal(aw_mapping_check(at + 31 * page, 33 * page, true), 0);
	assert_int_equal(aw_mapping_check(at + 31 * page - 1, 33 * page, true), EFAULT);
	munmap(at, PAGES * page);
}

static void check__no_access_in_the_middle(void **state)
{
	uint8_t *at = map(-1);

	(void)state;
	if (!kernel_tells())
		skip();
	mprotect(at + 30 * page, page, READS);
	assert_int_equal(aw_mapping_check(at, PAGES * page, false), 0);
	assert_int_equal(aw_mapping_check(at, PAGES * page, true), EFAULT);
	assert_int_equal(aw_mapping_check(at, 30 * page, true), 0);
	mprotect(at + 30 * page, page, PROT_NONE);
	assert_int_equal(aw_mapping_check(at, PAGES * page, false), EFAULT);
	assert_int_equal(aw_mapping_check(at, 30 * page, false), 0);
	munmap(at, PAGES * page);
}

static void check__behind_the_end_of_a_file(void **state)
{
	int file = memfd_create("mapping", MFD_CLOEXEC);
	uint8_t *at = map(file);

	(void)state;
	if (is_emulated())
		skip();
	assert_int_equal(ftruncate(file, (off_t)(40 * page - 5)), 0);
	assert_int_equal(aw_mapping_check(at, 40 * page, true), 0);
	assert_int_equal(aw_mapping_check(at, 40 * page + 1, true), EFAULT);
	assert_int_equal(aw_mapping_check(at, PAGES * page, false), EFAULT);
	munmap(at, PAGES * page);
	close(file);
}

/* Two files side by side, of which the first has an end before its mapping's. */
static void check__end_of_a_file_in_the_middle(void **state)
{
	int file = memfd_create("mapping", MFD_CLOEXEC);
	uint8_t *at = map(-1);

	(void)state;
	if (!kernel_tells())
		skip();
	assert_int_equal(ftruncate(file, (off_t)(5 * page)), 0);
	assert_ptr_equal(mmap(at + 20 * page, 10 * page, WRITES, MAP_SHARED | MAP_FIXED, file, 0),
			 at + 20 * page);
	assert_int_equal(aw_mapping_check(at, PAGES * page, false), EFAULT);
	assert_int_equal(ftruncate(file, (off_t)(10 * page)), 0);
	assert_int_equal(aw_mapping_check(at, PAGES * page, false), 0);
	munmap(at, PAGES * page);
	close(file);
}

static void check__brings_nothing_in(void **state)
{
	int file = memfd_create("mapping", MFD_CLOEXEC);
	uint8_t *anonymous = map(-1), *shared = map(file);

	(void)state;
	if (!kernel_tells())
		skip();
	assert_int_equal(ftruncate(file, (off_t)(PAGES * page)), 0);
	assert_int_equal(aw_mapping_check(anonymous, PAGES * page, true), 0);
	assert_int_equal(pages_in(anonymous), 0);
	assert_int_equal(aw_mapping_check(shared, PAGES * page, true), 0);
	assert_true(pages_in(shared) <= 1);
	munmap(anonymous, PAGES * page);
	munmap(shared, PAGES * page);
	close(file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(check__whole),
		cmocka_unit_test(check__hole_in_the_middle),
		cmocka_unit_test(check__no_access_in_the_middle),
		cmocka_unit_test(check__behind_the_end_of_a_file),
		cmocka_unit_test(check__end_of_a_file_in_the_middle),
		cmocka_unit_test(check__brings_nothing_in),
	};

	page = (size_t)sysconf(_SC_PAGESIZE);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
