// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The arena of this process.
#include "xsock/framed/arena.h"

#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "xsock/preload/fdtab.h"
#include "xsock/preload/keeper.h"
#include "xsock/preload/libc.h"

static _Atomic(struct aw_arena_table *) arena; /* set once, behind its fd */
static int arena_fd = -1;
static _Atomic(bool)
	claimed[AW_ARENA_SLOTS]; /* by this process: the kernel does not tell it of its own locks */

static struct aw_slot *slot_at(unsigned number)
{
	return (struct aw_slot *)((char *)arena + aw_arena_slot_at(number));
}

unsigned aw_arena_number(const struct aw_slot *slot)
{
	return (unsigned)(((const char *)slot - (const char *)slot_at(0)) /
			  (ptrdiff_t)aw_arena_slot_size());
}

int aw_arena_fd(void)
{
	return arena_fd;
}

int aw_arena_bequest(void)
{
	struct stat file;

	return arena_fd >= 0 && fstat(arena_fd, &file) == 0 && file.st_uid == geteuid() &&
			       file.st_gid == getegid()
		       ? arena_fd
		       : -1;
}

/* A page of it is there once it is used. It is in no core file. */
static bool map(int fd)
{
	void *at = mmap(NULL, aw_arena_size(), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE,
			fd, 0);

	if (at == MAP_FAILED)
		return false;
	(void)madvise(at, aw_arena_size(), MADV_DONTDUMP);
	arena_fd = aw_keeper_move_high(fd);
	aw_fdtab_hide(arena_fd);
	arena = at;
	return true;
}

/* A file of this size would be a SIGXFSZ otherwise. */
static bool is_within_limits(void)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur >= aw_arena_size();
}

bool aw_arena_open(void)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	int fd;

	if (arena)
		return true;
	pthread_mutex_lock(&lock);
	if (!arena && is_within_limits()) {
		fd = memfd_create("anywarp-records", MFD_CLOEXEC | MFD_ALLOW_SEALING);
		if (fd >= 0 && (ftruncate(fd, (off_t)aw_arena_size()) != 0 ||
				fcntl(fd, F_ADD_SEALS, AW_ARENA_SEALS) != 0 || !map(fd)))
			aw_libc()->close(fd);
	}
	pthread_mutex_unlock(&lock);
	return arena != NULL;
}

bool aw_arena_adopt(int fd)
{
	struct stat file;

	return !arena && aw_arena_is_one(fd, aw_libc()->fcntl(fd, F_GET_SEALS), &file) && map(fd);
}

static void make_lock(pthread_mutex_t *lock)
{
	pthread_mutexattr_t attr;

	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
	pthread_mutex_init(lock, &attr);
	pthread_mutexattr_destroy(&attr);
}

static struct aw_slot *make_slot(unsigned number, uint64_t ino)
{
	struct aw_slot *slot = slot_at(number);
	bool is_claimed;

	make_lock(&slot->rx_lock);
	make_lock(&slot->tx_lock);
	atomic_store(&slot->broken, false);
	atomic_store(&slot->flushing, false);
	atomic_store(&slot->waiters, 0);
	atomic_store(&slot->keeper, 0);
	atomic_store(&arena->entries[number].ino, ino);
	is_claimed = aw_arena_claim(slot);
	atomic_fetch_sub(&arena->entries[number].word, AW_ENTRY_FRESH + !is_claimed);
	return is_claimed ? slot : NULL;
}

static struct aw_slot *take_free(uint64_t ino)
{
	uint32_t first = atomic_load(&arena->next);

	for (uint32_t i = 0; i < AW_ARENA_SLOTS; i++) {
		uint32_t number = (first + i) % AW_ARENA_SLOTS;
		struct aw_arena_entry *entry = &arena->entries[number];
		uint64_t word = atomic_load(&entry->word);

		if (!(word & AW_ENTRY_HOLDERS) &&
		    atomic_compare_exchange_strong(
			    &entry->word, &word, word + AW_ENTRY_GENERATION + AW_ENTRY_FRESH + 1)) {
			atomic_store(&arena->next, number);
			return make_slot(number, ino);
		}
	}
	return NULL;
}

bool aw_arena_claim(const struct aw_slot *slot)
{
	unsigned number = aw_arena_number(slot);
	struct flock lock = aw_entry_lock(number, F_RDLCK);

	atomic_store(&claimed[number], true);
	return aw_libc()->fcntl(arena_fd, F_SETLK, &lock) == 0;
}

void aw_arena_disclaim(void)
{
	for (unsigned i = 0; i < AW_ARENA_SLOTS; i++)
		atomic_store_explicit(&claimed[i], false, memory_order_relaxed);
}

static bool is_claimed_by_others(unsigned number)
{
	struct flock lock = aw_entry_lock(number, F_WRLCK);

	return aw_libc()->fcntl(arena_fd, F_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
}

/* Whoever is killed lets go of nothing: what no process claims is free again. */
static void sweep(void)
{
	for (uint32_t i = 0; i < AW_ARENA_SLOTS; i++) {
		uint64_t word = atomic_load(&arena->entries[i].word);

		if (word & AW_ENTRY_HOLDERS && !(word & AW_ENTRY_FRESH) &&
		    !atomic_load(&claimed[i]) && !is_claimed_by_others(i))
			atomic_compare_exchange_strong(&arena->entries[i].word, &word,
						       word & ~(uint64_t)AW_ENTRY_HOLDERS);
	}
}

struct aw_slot *aw_arena_take(uint64_t ino)
{
	struct aw_slot *slot = aw_arena_open() ? take_free(ino) : NULL;

	if (slot || !arena)
		return slot;
	sweep();
	return take_free(ino);
}

struct aw_slot *aw_arena_find(unsigned number, uint64_t ino)
{
	return arena && number < AW_ARENA_SLOTS && aw_entry_is_of(&arena->entries[number], ino)
		       ? slot_at(number)
		       : NULL;
}

uint32_t aw_arena_bridges(void)
{
	const struct aw_arena_table *table = atomic_load_explicit(&arena, memory_order_relaxed);

	return table ? atomic_load_explicit(&table->bridges, memory_order_acquire) : 0;
}

/* Whoever sees the count finds the slot's keeper. */
void aw_arena_bridge(struct aw_slot *slot, uint64_t keeper)
{
	atomic_store(&slot->keeper, keeper);
	atomic_fetch_add_explicit(&arena->bridges, 1, memory_order_release);
}

bool aw_arena_is_alone(const struct aw_slot *slot)
{
	return (atomic_load(&arena->entries[aw_arena_number(slot)].word) & AW_ENTRY_HOLDERS) == 1;
}

void aw_arena_share(struct aw_slot *slot)
{
	aw_entry_share(&arena->entries[aw_arena_number(slot)]);
}

void aw_arena_unshare(struct aw_slot *slot)
{
	aw_table_unshare(arena, aw_arena_number(slot), slot);
}

void aw_arena_leave(struct aw_slot *slot)
{
	unsigned number = aw_arena_number(slot);
	struct flock lock = aw_entry_lock(number, F_UNLCK);

	atomic_store(&claimed[number], false);
	(void)aw_libc()->fcntl(arena_fd, F_SETLK, &lock);
	aw_arena_unshare(slot);
}
