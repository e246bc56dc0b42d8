// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The arena of records: as many slots as it has and one more, whose they are, and those of the dead.
#include "../lib/emulated.h"
#include "xsock/framed/arena.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "xsock/base/libc.h"
#include "xsock/process/proxy.h"
#include "xsock/proxy/share.h"

/* Linked in place of the table's other users. */
int aw_proxy_move_high(int fd)
{
	return fd;
}

#define MOMENT_NS 100000000

static struct aw_slot *slots[AW_ARENA_SLOTS];

/* So many, of sockets with the numbers from first on. */
static void take(unsigned count, uint64_t first)
{
	for (unsigned i = 0; i < count; i++) {
		slots[i] = aw_arena_take(first + i);
		assert_non_null(slots[i]);
	}
}

static void leave(unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		aw_arena_leave(slots[i]);
}

static void arena__is_sealed(void **state)
{
	(void)state;
	assert_true(aw_arena_open());
	assert_int_equal(ftruncate(aw_arena_fd(), 1), -1);
	assert_int_equal(fcntl(aw_arena_fd(), F_ADD_SEALS, F_SEAL_WRITE), -1);
}

static void arena__has_so_many_slots_and_no_more(void **state)
{
	(void)state;
	take(AW_ARENA_SLOTS, 1000);
	assert_null(aw_arena_take(7));
	aw_arena_leave(slots[5]);
	slots[5] = aw_arena_take(7);
	assert_non_null(slots[5]);
	assert_null(aw_arena_take(8));
	leave(AW_ARENA_SLOTS);
	take(AW_ARENA_SLOTS, 1000000);
	leave(AW_ARENA_SLOTS);
}

static void arena__finds_a_slot_that_is_held(void **state)
{
	struct aw_slot *slot = aw_arena_take(42);

	(void)state;
	assert_ptr_equal(aw_arena_find(aw_arena_number(slot)), slot);
	assert_int_equal(aw_arena_ino(slot), 42);
	aw_arena_leave(slot);
	assert_null(aw_arena_find(aw_arena_number(slot)));
}

/* Who shares it last leaves it. */
static void arena__a_slot_is_held_by_several(void **state)
{
	struct aw_slot *slot = aw_arena_take(42);

	(void)state;
	assert_true(aw_arena_is_alone(slot));
	aw_arena_share(slot);
	assert_false(aw_arena_is_alone(slot));
	aw_arena_leave(slot);
	assert_ptr_equal(aw_arena_find(aw_arena_number(slot)), slot);
	aw_arena_unshare(slot);
	assert_null(aw_arena_find(aw_arena_number(slot)));
}

static unsigned holders(const struct aw_slot *slot)
{
	struct aw_arena_table *table =
		mmap(NULL, sizeof(*table), PROT_READ, MAP_SHARED, aw_arena_fd(), 0);
	unsigned count;

	assert_ptr_not_equal(table, MAP_FAILED);
	count = (unsigned)(table->entries[aw_arena_number(slot)].word & AW_ENTRY_HOLDERS);
	munmap(table, sizeof(*table));
	return count;
}

/* A child that the parent has counted: it comes to its slot when it is told to, tells so, and waits to be killed. */
static pid_t expect_child(struct aw_slot *slot, int *tell, int *told)
{
	int down[2], up[2];
	pid_t child;
	char byte;

	assert_int_equal(pipe(down), 0);
	assert_int_equal(pipe(up), 0);
	aw_arena_expect(slot);
	child = fork();
	if (child == 0) {
		close(down[1]); /* it ends with its parent */
		aw_arena_disclaim();
		if (read(down[0], &byte, 1) == 1 && aw_arena_arrive(slot) &&
		    write(up[1], "x", 1) == 1)
			pause();
		_exit(1);
	}
	close(down[0]);
	close(up[1]);
	*tell = down[1];
	*told = up[0];
	return child;
}

/* A parent may close its fd, and any relative sweep, before the child of a fork has run at all. */
static void arena__a_child_has_its_slots_before_it_runs(void **state)
{
	struct aw_slot *slot = aw_arena_take(42);
	int tell, told, status;
	pid_t child = expect_child(slot, &tell, &told);
	char byte;

	(void)state;
	aw_arena_leave(slot);
	aw_arena_sweep();
	assert_int_equal(holders(slot), 1);
	assert_int_equal(write(tell, "x", 1), 1);
	assert_int_equal(read(told, &byte, 1), 1);
	aw_arena_sweep();
	assert_int_equal(holders(slot), 1);
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, &status, 0), child);
	aw_arena_sweep();
	assert_int_equal(holders(slot), 0);
	close(tell);
	close(told);
}

/* The proxy process closes the program's end of a bridge once nobody else can fetch it. */
static void arena__a_share_is_not_alone_beside_a_child_that_has_not_run(void **state)
{
	struct aw_slot *slot = aw_arena_take(42);
	struct aw_share share;

	(void)state;
	assert_int_equal(aw_share_take(&share, aw_arena_fd(), aw_arena_number(slot), 42), 0);
	assert_false(aw_share_is_alone(&share));
	aw_arena_expect(slot);
	aw_arena_leave(slot);
	assert_false(aw_share_is_alone(&share));
	aw_arena_unexpect(slot);
	assert_true(aw_share_is_alone(&share));
	aw_share_put(&share);
	assert_int_equal(holders(slot), 0);
}

/* Of several that give a slot up at one moment one is told that it is the last, and keeps its hold. */
static void arena__one_of_all_that_leave_is_the_last(void **state)
{
	struct aw_slot *slot = aw_arena_take(42);

	(void)state;
	aw_arena_hold(slot);
	aw_arena_hold(slot);
	assert_true(aw_arena_leave_to_others(slot));
	assert_true(aw_arena_leave_to_others(slot));
	assert_false(aw_arena_leave_to_others(slot));
	assert_int_equal(holders(slot), 1);
	aw_arena_leave(slot);
	assert_int_equal(holders(slot), 0);
}

static void arena__a_child_that_is_not_made_has_nothing(void **state)
{
	struct aw_slot *slot = aw_arena_take(42);

	(void)state;
	aw_arena_expect(slot);
	aw_arena_unexpect(slot);
	aw_arena_unexpect(slot); /* of another thread's slot, which no child was expected for */
	assert_true(aw_arena_is_alone(slot));
	aw_arena_leave(slot);
	assert_int_equal(holders(slot), 0);
}

/* A child that takes all, and waits to be killed. */
static pid_t fill_in_child(void)
{
	int ready[2];
	pid_t child;
	char byte;

	assert_int_equal(pipe(ready), 0);
	child = fork();
	if (child == 0) {
		for (unsigned i = 0; i < AW_ARENA_SLOTS; i++)
			if (!aw_arena_take(5000 + i))
				_exit(1);
		if (write(ready[1], "x", 1) == 1)
			pause();
		_exit(1);
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	return child;
}

static void arena__what_the_dead_have_held_is_free(void **state)
{
	pid_t child = fill_in_child();
	struct aw_slot *slot;
	int status;

	(void)state;
	assert_null(aw_arena_take(7)); /* it lives */
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, &status, 0), child);
	slot = aw_arena_take(7);
	assert_non_null(slot);
	aw_arena_leave(slot);
	take(AW_ARENA_SLOTS, 1000);
	leave(AW_ARENA_SLOTS);
}

/* The hook of a test that watches the locks of the arena's file: runs when this process is about to unlock a slot. */
static void (*at_unlock)(void);
static struct aw_slot *left;
static int seen;

static int watched_fcntl(int fd, int cmd, ...)
{
	va_list args;
	struct flock *lock;

	va_start(args, cmd);
	lock = va_arg(args, void *);
	va_end(args);
	if (cmd == F_SETLK && lock->l_type == F_UNLCK && at_unlock)
		at_unlock();
	return fcntl(fd, cmd, lock);
}

static void leave_watched(struct aw_slot *slot, void (*hook)(void))
{
	(void)aw_libc();
	aw_libc_table.fcntl = watched_fcntl; /* for good: the hook's thread may outlast this call */
	left = slot;
	seen = 0;
	at_unlock = hook;
	aw_arena_leave(slot);
	at_unlock = NULL;
}

static void sweep(void)
{
	seen++;
	assert_null(aw_arena_find(aw_arena_number(left)));
	aw_arena_sweep();
}

/* Another thread may sweep when a lock has gone: a hold that still counted would be a dead process's. */
static void arena__a_hold_goes_before_its_lock(void **state)
{
	struct aw_slot *slot = aw_arena_take(42);

	(void)state;
	aw_arena_hold(slot);
	leave_watched(slot, sweep);
	assert_int_equal(seen, 0); /* it has the other hold */
	leave_watched(slot, sweep);
	assert_int_equal(seen, 1);
}

static struct aw_slot *retaken;
static sem_t is_retaken;

static void *retake(void *unused)
{
	(void)unused;
	retaken = aw_arena_take(43);
	sem_post(&is_retaken);
	return NULL;
}

static pthread_t retaker;

/* Gives another thread a moment to overtake. */
static void retake_meanwhile(void)
{
	struct timespec end = aw_clock_after(CLOCK_REALTIME, MOMENT_NS);

	at_unlock = NULL;
	assert_int_equal(pthread_create(&retaker, NULL, retake, NULL), 0);
	(void)sem_timedwait(&is_retaken, &end);
}

/* Returns whether a child of this process sees its lock. */
static bool is_locked(const struct aw_slot *slot)
{
	struct flock lock = aw_entry_lock(aw_arena_number(slot), F_WRLCK);
	pid_t child = fork();
	int status;

	assert_true(child >= 0);
	if (child == 0)
		_exit(fcntl(aw_arena_fd(), F_GETLK, &lock) != 0 || lock.l_type == F_UNLCK);
	assert_int_equal(waitpid(child, &status, 0), child);
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void arena__a_slot_that_is_taken_while_it_is_left_is_locked(void **state)
{
	struct aw_slot *slot = aw_arena_take(42);

	(void)state;
	assert_int_equal(sem_init(&is_retaken, 0, 0), 0);
	leave_watched(slot, retake_meanwhile);
	assert_int_equal(pthread_join(retaker, NULL), 0);
	assert_ptr_equal(retaken, slot);
	assert_true(is_locked(slot));
	aw_arena_leave(slot);
	assert_false(is_locked(slot));
}

static uint64_t arena_bytes(void)
{
	struct stat file;

	assert_int_equal(fstat(aw_arena_fd(), &file), 0);
	return (uint64_t)file.st_blocks * 512;
}

/* A thread of the process goes on with a slot whose fd the process has closed. */
static void arena__a_slot_is_the_process_s_until_its_last_hold(void **state)
{
	(void)state;
	take(AW_ARENA_SLOTS, 1000);
	aw_arena_hold(slots[5]);
	aw_arena_leave(slots[5]);
	assert_null(aw_arena_take(7));
	leave(AW_ARENA_SLOTS);
}

/* A slot gives back what long FPDUs have filled; sixteen of the five hundred keep their pages, and all keep their first. */
static void arena__slots_that_are_free_give_their_pages_back(void **state)
{
	const unsigned count = 500;
	const uint64_t filled = count * sizeof(slots[0]->record.rx.bytes);
	uint64_t before = arena_bytes();

	(void)state;
	if (is_emulated())
		skip();
	take(count, 1000);
	for (unsigned i = 0; i < count; i++)
		memset(slots[i]->record.rx.bytes, 1, sizeof(slots[i]->record.rx.bytes));
	assert_true(arena_bytes() > before + filled / 2);
	leave(count);
	assert_true(arena_bytes() < before + filled / 8);
}

/* A child that takes and fills slots, and is killed with them. */
static void fill_and_die(unsigned count)
{
	pid_t child = fork();
	int status;

	assert_true(child >= 0);
	if (child == 0) {
		for (unsigned i = 0; i < count; i++) {
			struct aw_slot *slot = aw_arena_take(9000 + i);

			if (!slot)
				_exit(1);
			memset(slot->record.rx.bytes, 1, sizeof(slot->record.rx.bytes));
		}
		raise(SIGKILL);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status));
}

static void arena__slots_of_the_dead_give_their_pages_back(void **state)
{
	const unsigned count = 100;
	const uint64_t filled = count * sizeof(slots[0]->record.rx.bytes);
	uint64_t before = arena_bytes();

	(void)state;
	if (is_emulated())
		skip();
	for (int i = 0; i < 12; i++)
		fill_and_die(count);
	assert_true(arena_bytes() < before + 3 * filled);
	aw_arena_sweep();
	assert_true(arena_bytes() < before + filled / 8);
}

static bool is_mapped(void)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[256];
	bool found = false;

	assert_non_null(maps);
	while (fgets(line, sizeof(line), maps))
		found |= strstr(line, AW_ARENA_NAME) != NULL;
	fclose(maps);
	return found;
}

/* A thread that is late with a slot of an arena that has been given up meets empty memory, and no other process's. */
static void arena__a_given_up_one_is_empty_memory(void **state)
{
	struct aw_slot *slot = aw_arena_take(42);

	(void)state;
	atomic_store(&slot->mode, 3);
	aw_arena_leave(slot);
	assert_true(is_mapped());
	aw_arena_abandon();
	assert_false(is_mapped());
	assert_int_equal(atomic_load(&slot->mode), 0);
	assert_false(aw_arena_has(slot));
	assert_int_equal(aw_arena_ino(slot), 0);
	aw_arena_leave(slot);
	slot = aw_arena_take(43); /* of a new one */
	assert_true(is_mapped());
	assert_int_equal(aw_arena_ino(slot), 43);
	aw_arena_leave(slot);
}

static void arena__the_lowest_free_slot_is_taken(void **state)
{
	(void)state;
	take(100, 1000);
	aw_arena_leave(slots[50]);
	aw_arena_leave(slots[20]);
	aw_arena_leave(slots[70]);
	assert_ptr_equal(aw_arena_take(7), slots[20]);
	assert_ptr_equal(aw_arena_take(8), slots[50]);
	assert_ptr_equal(aw_arena_take(9), slots[70]);
	leave(100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(arena__is_sealed),
		cmocka_unit_test(arena__has_so_many_slots_and_no_more),
		cmocka_unit_test(arena__finds_a_slot_that_is_held),
		cmocka_unit_test(arena__a_slot_is_held_by_several),
		cmocka_unit_test(arena__a_child_has_its_slots_before_it_runs),
		cmocka_unit_test(arena__one_of_all_that_leave_is_the_last),
		cmocka_unit_test(arena__a_child_that_is_not_made_has_nothing),
		cmocka_unit_test(arena__a_share_is_not_alone_beside_a_child_that_has_not_run),
		cmocka_unit_test(arena__what_the_dead_have_held_is_free),
		cmocka_unit_test(arena__a_slot_is_the_process_s_until_its_last_hold),
		cmocka_unit_test(arena__a_hold_goes_before_its_lock),
		cmocka_unit_test(arena__a_slot_that_is_taken_while_it_is_left_is_locked),
		cmocka_unit_test(arena__slots_that_are_free_give_their_pages_back),
		cmocka_unit_test(arena__slots_of_the_dead_give_their_pages_back),
		cmocka_unit_test(arena__the_lowest_free_slot_is_taken),
		cmocka_unit_test(arena__a_given_up_one_is_empty_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
