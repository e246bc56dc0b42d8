// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The arena: a table of who is held, and the slots behind it, each in pages of its own.
#include "xsock/framed/arena.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "xsock/preload/fdtab.h"
#include "xsock/preload/keeper.h"
#include "xsock/preload/libc.h"

#define PAGE 4096u
#define WARM 16u /* slots that keep their pages when they are free: 2.3 MB at most */
#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)
#define HOLDERS 0xffffffu /* of a word: how many processes hold the slot */
#define FRESH 0x1000000u /* its socket is not written yet */
#define GENERATION \
	(UINT64_C(1) << 32) /* counts its sockets, so that no two words of a slot are alike */

struct entry {
	_Atomic(uint64_t) word;
	_Atomic(uint64_t) ino;
};

struct arena {
	_Atomic(uint32_t)
		next; /* no slot below it is free, unless it was set free at this moment */
	struct entry entries[AW_ARENA_SLOTS];
};

static _Atomic(struct arena *) arena; /* set once, behind its fd */
static int arena_fd = -1;
static _Atomic(bool)
	claimed[AW_ARENA_SLOTS]; /* by this process: the kernel does not tell it of its own locks */

static size_t slot_size(void)
{
	return (sizeof(struct aw_slot) + PAGE - 1) & ~(size_t)(PAGE - 1);
}

static size_t slots_at(void)
{
	return (sizeof(struct arena) + PAGE - 1) & ~(size_t)(PAGE - 1);
}

static size_t arena_size(void)
{
	return slots_at() + AW_ARENA_SLOTS * slot_size();
}

static struct aw_slot *slot_at(unsigned number)
{
	return (struct aw_slot *)((char *)arena + slots_at() + number * slot_size());
}

unsigned aw_arena_number(const struct aw_slot *slot)
{
	return (unsigned)(((const char *)slot - (const char *)arena - slots_at()) / slot_size());
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
	void *at =
		mmap(NULL, arena_size(), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);

	if (at == MAP_FAILED)
		return false;
	(void)madvise(at, arena_size(), MADV_DONTDUMP);
	arena_fd = aw_keeper_move_high(fd);
	aw_fdtab_hide(arena_fd);
	arena = at;
	return true;
}

/* A file of this size would be a SIGXFSZ otherwise. */
static bool is_within_limits(void)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur >= arena_size();
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
		if (fd >= 0 && (ftruncate(fd, (off_t)arena_size()) != 0 ||
				fcntl(fd, F_ADD_SEALS, SEALS) != 0 || !map(fd)))
			aw_libc()->close(fd);
	}
	pthread_mutex_unlock(&lock);
	return arena != NULL;
}

bool aw_arena_adopt(int fd)
{
	struct stat file;

	return !arena && aw_libc()->fcntl(fd, F_GET_SEALS) == SEALS && fstat(fd, &file) == 0 &&
	       file.st_size == (off_t)arena_size() && map(fd);
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
	atomic_store(&arena->entries[number].ino, ino);
	is_claimed = aw_arena_claim(slot);
	atomic_fetch_sub(&arena->entries[number].word, FRESH + !is_claimed);
	return is_claimed ? slot : NULL;
}

static struct aw_slot *take_free(uint64_t ino)
{
	uint32_t first = atomic_load(&arena->next);

	for (uint32_t i = 0; i < AW_ARENA_SLOTS; i++) {
		uint32_t number = (first + i) % AW_ARENA_SLOTS;
		struct entry *entry = &arena->entries[number];
		uint64_t word = atomic_load(&entry->word);

		if (!(word & HOLDERS) &&
		    atomic_compare_exchange_strong(&entry->word, &word,
						   word + GENERATION + FRESH + 1)) {
			atomic_store(&arena->next, number);
			return make_slot(number, ino);
		}
	}
	return NULL;
}

/* A process locks the byte of each slot that it holds; its locks end with it, however it ends. */
static struct flock lock_of(unsigned number, short type)
{
	return (struct flock){
		.l_type = type, .l_whence = SEEK_SET, .l_start = (off_t)number, .l_len = 1
	};
}

bool aw_arena_claim(const struct aw_slot *slot)
{
	unsigned number = aw_arena_number(slot);
	struct flock lock = lock_of(number, F_RDLCK);

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
	struct flock lock = lock_of(number, F_WRLCK);

	return aw_libc()->fcntl(arena_fd, F_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
}

/* Whoever is killed lets go of nothing: what no process claims is free again. */
static void sweep(void)
{
	for (uint32_t i = 0; i < AW_ARENA_SLOTS; i++) {
		uint64_t word = atomic_load(&arena->entries[i].word);

		if (word & HOLDERS && !(word & FRESH) && !atomic_load(&claimed[i]) &&
		    !is_claimed_by_others(i))
			atomic_compare_exchange_strong(&arena->entries[i].word, &word,
						       word & ~(uint64_t)HOLDERS);
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
	if (!arena || number >= AW_ARENA_SLOTS || atomic_load(&arena->entries[number].ino) != ino ||
	    !(atomic_load(&arena->entries[number].word) & HOLDERS))
		return NULL;
	return slot_at(number);
}

struct aw_slot *aw_arena_look_up(uint64_t ino)
{
	struct aw_slot *slot = NULL;

	for (unsigned i = 0; arena && !slot && i < AW_ARENA_SLOTS; i++)
		slot = aw_arena_find(i, ino);
	return slot;
}

void aw_arena_share(struct aw_slot *slot)
{
	atomic_fetch_add(&arena->entries[aw_arena_number(slot)].word, 1);
}

/* A take looks there first. */
static void lower_next(uint32_t number)
{
	uint32_t next = atomic_load(&arena->next);

	while (number < next && !atomic_compare_exchange_weak(&arena->next, &next, number))
		;
}

/*
 * The pages that long FPDUs have filled go back to the kernel. A program that has few connections at a time, one after the
 * other, has them in the same slots, and spares each of them two page faults and the way to the kernel here.
 */
void aw_arena_unshare(struct aw_slot *slot)
{
	unsigned number = aw_arena_number(slot);
	struct entry *entry = &arena->entries[number];
	uint64_t word = atomic_load(&entry->word);
	bool is_last = (word & HOLDERS) == 1;

	if (is_last && number >= WARM)
		(void)madvise((char *)slot + PAGE, slot_size() - PAGE, MADV_REMOVE);
	while (word & HOLDERS && !atomic_compare_exchange_weak(&entry->word, &word, word - 1))
		;
	if (is_last)
		lower_next(number);
}

void aw_arena_leave(struct aw_slot *slot)
{
	unsigned number = aw_arena_number(slot);
	struct flock lock = lock_of(number, F_UNLCK);

	atomic_store(&claimed[number], false);
	(void)aw_libc()->fcntl(arena_fd, F_SETLK, &lock);
	aw_arena_unshare(slot);
}
