// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What counts as kept, and the thread that writes it back. msync(2) is the test's own here, since nothing else tells
// whether it was called.
#define _GNU_SOURCE // memfd_create, mkostemp
#include "net/mem/writeback.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGES 4
#define ENDS_MAX 16

static size_t page;
static char name[32];
static int fd;

/* What the thread was told to write, and what it told. */
static struct {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool holds; /* msync waits */
	int err; /* of the next msync */
	uint8_t *at;
	size_t len;
	int flags;
	unsigned int synced;
	struct {
		uint32_t handle;
		uint64_t number;
		int err;
	} told[ENDS_MAX];
	unsigned int ends;
} seen = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };

int msync(void *at, size_t len, int flags)
{
	pthread_mutex_lock(&seen.lock);
	while (seen.holds)
		pthread_cond_wait(&seen.changed, &seen.lock);
	seen.at = at;
	seen.len = len;
	seen.flags = flags;
	seen.synced++;
	errno = seen.err;
	int result = seen.err ? -1 : 0;

	pthread_mutex_unlock(&seen.lock);
	return result;
}

static void tell(uint32_t handle, uint64_t number, int err)
{
	pthread_mutex_lock(&seen.lock);
	assert_true(seen.ends < ENDS_MAX);
	seen.told[seen.ends].handle = handle;
	seen.told[seen.ends].number = number;
	seen.told[seen.ends++].err = err;
	pthread_cond_broadcast(&seen.changed);
	pthread_mutex_unlock(&seen.lock);
}

static void start(const uint8_t *at, size_t len, uint64_t number)
{
	const struct aw_writeback what = {
		.at = at, .len = len, .told = tell, .handle = 7, .number = number
	};

	assert_int_equal(aw_writeback_start(&what), 0);
}

static void wait_ends(unsigned int ends)
{
	pthread_mutex_lock(&seen.lock);
	while (seen.ends < ends)
		pthread_cond_wait(&seen.changed, &seen.lock);
	assert_int_equal(seen.ends, ends);
	pthread_mutex_unlock(&seen.lock);
}

static void hold(bool holds)
{
	pthread_mutex_lock(&seen.lock);
	seen.holds = holds;
	pthread_cond_broadcast(&seen.changed);
	pthread_mutex_unlock(&seen.lock);
}

static uint8_t *map(int flags, int file)
{
	uint8_t *at = mmap(NULL, PAGES * page, PROT_READ | PROT_WRITE, flags, file, 0);

	assert_true(at != MAP_FAILED);
	return at;
}

static int file_make(void **state)
{
	(void)state;
	page = (size_t)sysconf(_SC_PAGESIZE);
	strcpy(name, "writeback.XXXXXX");
	fd = mkostemp(name, O_CLOEXEC);
	seen.ends = seen.synced = 0;
	seen.err = 0;
	return fd < 0 || ftruncate(fd, (off_t)(PAGES * page)) != 0;
}

static int file_drop(void **state)
{
	(void)state;
	unlink(name);
	close(fd);
	return 0;
}

/* Where the tests run in memory alone there is nothing to keep. */
static void need_disk(void)
{
	struct statfs fs;

	assert_int_equal(fstatfs(fd, &fs), 0);
	if (fs.f_type == TMPFS_MAGIC || fs.f_type == RAMFS_MAGIC)
		skip();
}

static void aw_writeback_can__memory_alone(void **state)
{
	uint8_t *anonymous = map(MAP_PRIVATE | MAP_ANONYMOUS, -1);
	uint8_t *shared = map(MAP_SHARED | MAP_ANONYMOUS, -1);
	uint8_t *copy = map(MAP_PRIVATE, fd);
	int shm = memfd_create("writeback", MFD_CLOEXEC);
	uint8_t *in_shm;

	(void)state;
	assert_int_equal(ftruncate(shm, (off_t)(PAGES * page)), 0);
	in_shm = map(MAP_SHARED, shm);
	assert_false(aw_writeback_can(anonymous, 1));
	assert_false(aw_writeback_can(shared, 1));
	assert_false(aw_writeback_can(copy, 1));
	assert_false(aw_writeback_can(in_shm, 1));
	assert_false(aw_writeback_can((uint8_t *)page, 1));
	munmap(anonymous, PAGES * page);
	munmap(shared, PAGES * page);
	munmap(copy, PAGES * page);
	munmap(in_shm, PAGES * page);
	close(shm);
}

static void aw_writeback_can__file(void **state)
{
	uint8_t *at;

	(void)state;
	need_disk();
	at = map(MAP_SHARED, fd);
	assert_true(aw_writeback_can(at, PAGES * page));
	assert_true(aw_writeback_can(at + 5, 1));
	assert_true(aw_writeback_can(at, 0));
	/* Two mappings beside each other, the second with other rights. */
	assert_int_equal(mprotect(at + 2 * page, page, PROT_READ), 0);
	assert_true(aw_writeback_can(at, PAGES * page));
	/* A hole, and memory in the place of the file's. */
	munmap(at + 2 * page, page);
	assert_false(aw_writeback_can(at, PAGES * page));
	assert_true(aw_writeback_can(at, 2 * page));
	assert_true(aw_writeback_can(at + 3 * page, page));
	assert_ptr_equal(mmap(at + 2 * page, page, PROT_READ,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
			 at + 2 * page);
	assert_false(aw_writeback_can(at, PAGES * page));
	/* Nobody finds it after a crash. */
	assert_int_equal(unlink(name), 0);
	assert_false(aw_writeback_can(at, page));
	munmap(at, PAGES * page);
}

static void aw_writeback_start__whole_pages(void **state)
{
	uint8_t *at;

	(void)state;
	need_disk();
	at = map(MAP_SHARED, fd);
	start(at + page + 5, page, 1);
	wait_ends(1);
	assert_ptr_equal(seen.at, at + page);
	assert_int_equal(seen.len, page + 5);
	assert_int_equal(seen.flags, MS_SYNC);
	assert_int_equal(seen.told[0].handle, 7);
	assert_int_equal(seen.told[0].number, 1);
	assert_int_equal(seen.told[0].err, 0);
	start(at, 0, 2); /* nothing to write */
	wait_ends(2);
	assert_int_equal(seen.synced, 1);
	assert_int_equal(seen.told[1].err, 0);
	munmap(at, PAGES * page);
}

static void aw_writeback_start__errors(void **state)
{
	uint8_t *at;

	(void)state;
	need_disk();
	at = map(MAP_SHARED, fd);
	seen.err = EIO;
	start(at, 1, 1);
	wait_ends(1);
	assert_int_equal(seen.told[0].err, EIO);
	assert_int_equal(unlink(name), 0);
	start(at, 1, 2);
	wait_ends(2);
	assert_int_equal(seen.told[1].err, ENOMEM);
	assert_int_equal(seen.synced, 1);
	munmap(at, PAGES * page);
}

/* While one takes its time others queue up behind it; the thread ends, and comes again. */
static void aw_writeback_start__in_order(void **state)
{
	uint8_t *at;

	(void)state;
	need_disk();
	at = map(MAP_SHARED, fd);
	for (uint64_t turn = 0; turn < 3; turn++) {
		hold(true);
		for (uint64_t i = 1; i <= 4; i++)
			start(at, 1, 4 * turn + i);
		assert_int_equal(seen.ends, 4 * turn);
		hold(false);
		wait_ends((unsigned int)(4 * turn + 4));
	}
	for (uint64_t i = 0; i < 12; i++)
		assert_int_equal(seen.told[i].number, i + 1);
	munmap(at, PAGES * page);
}

/* The child has neither the thread nor what waits for it. */
static void aw_writeback_start__after_fork(void **state)
{
	uint8_t *at;
	pid_t child;
	int status;

	(void)state;
	need_disk();
	at = map(MAP_SHARED, fd);
	hold(true);
	start(at, 1, 1);
	start(at, 1, 2);
	child = fork();
	if (child == 0) {
		pthread_mutex_init(&seen.lock, NULL);
		pthread_cond_init(&seen.changed, NULL);
		seen.holds = false;
		start(at, 1, 3);
		wait_ends(1);
		_exit(seen.told[0].number == 3 ? 0 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	hold(false);
	wait_ends(2);
	munmap(at, PAGES * page);
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, file_make, file_drop)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH(aw_writeback_can__memory_alone),  WITH(aw_writeback_can__file),
		WITH(aw_writeback_start__whole_pages), WITH(aw_writeback_start__errors),
		WITH(aw_writeback_start__in_order),    WITH(aw_writeback_start__after_fork),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
