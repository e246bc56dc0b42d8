// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The arena of this process. The process maps slots in chunks, each when it first uses a slot of
// the chunk; a chunk stays mapped. The words of the table are atomic.
//
// The word of a slot counts its holds, and a process locks the byte of each slot that it holds: what is held and locked by nobody is a
// killed process's. So this process claims a slot before its hold counts, or while that is FRESH, and gives the claim up after the hold:
// a sweep between the two would free the slot for another connection, and the hold that goes then would be that one's. A child cannot: its hold
// is UNBORN until it has claimed the slot.
#include "xsock/framed/arena.h"

#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/tsan.h"
#include "xsock/base/libc.h"
#include "xsock/process/fdtab.h"
#include "xsock/process/proxy.h"
#include "xsock/process/quiet.h"

#define CHUNK_SLOTS 64u /* 12.6 MB of address space */
#define SWEEP_SLOTS 64u /* so many slots of killed processes may keep their pages */

static _Atomic(struct aw_arena_table *) arena; /* set after arena_fd */
static _Atomic(char *) chunks[AW_ARENA_SLOTS / CHUNK_SLOTS];
static int arena_fd = -1;
/* How many holds of this process lock each slot: F_GETLK does not report a process's own locks. */
static _Atomic(uint16_t) claims[AW_ARENA_SLOTS];
/* Held while a count of claims and the file's lock change: one thread may take the slot that another one has just left. */
static pthread_mutex_t claims_lock = PTHREAD_MUTEX_INITIALIZER;

/*
 * Maps a part of the arena; it uses memory only for pages that are used, and is left out of core
 * files.
 */
static void *map_part(int fd, size_t at, size_t len)
{
	void *part =
		mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, (off_t)at);

	if (part == MAP_FAILED)
		return NULL;
	(void)madvise(part, len, MADV_DONTDUMP);
	return part;
}

static size_t chunk_size(void)
{
	return CHUNK_SLOTS * aw_arena_slot_size();
}

/* Returns slot number, or NULL without address space for it. */
static struct aw_slot *slot_at(unsigned number)
{
	_Atomic(char *) *place = &chunks[number / CHUNK_SLOTS];
	char *chunk = atomic_load(place), *there = NULL;

	if (!chunk) {
		chunk = map_part(arena_fd, aw_arena_slot_at(number - number % CHUNK_SLOTS),
				 chunk_size());
		aw_tsan_release(place);
		if (chunk && !atomic_compare_exchange_strong(place, &there, chunk)) {
			munmap(chunk, chunk_size());
			chunk = there;
		}
	}
	aw_tsan_acquire(place);
	return chunk ? (struct aw_slot *)(chunk + number % CHUNK_SLOTS * aw_arena_slot_size())
		     : NULL;
}

unsigned aw_arena_number(const struct aw_slot *slot)
{
	for (unsigned i = 0; i < AW_ARENA_SLOTS / CHUNK_SLOTS; i++) {
		size_t at = (size_t)((uintptr_t)slot - (uintptr_t)atomic_load(&chunks[i]));

		if (at < chunk_size())
			return i * CHUNK_SLOTS + (unsigned)(at / aw_arena_slot_size());
	}
	return AW_ARENA_SLOTS;
}

int aw_arena_fd(void)
{
	return arena_fd;
}

int aw_arena_fd_for_exec(void)
{
	struct stat file;

	return arena_fd >= 0 && fstat(arena_fd, &file) == 0 && file.st_uid == geteuid() &&
			       file.st_gid == getegid()
		       ? arena_fd
		       : -1;
}

static bool arena_map(int fd)
{
	void *at = map_part(fd, 0, sizeof(struct aw_arena_table));

	if (!at)
		return false;
	arena_fd = aw_proxy_move_high(fd);
	aw_fdtab_hide(arena_fd);
	arena = at;
	return true;
}

bool aw_arena_open(void)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	uid_t real, effective, saved;
	struct rlimit limit;
	int fd;

	if (arena)
		return true;
	pthread_mutex_lock(&lock);
	/*
	 * Above its limit ftruncate() could raise SIGXFSZ. A process that is about to change its user makes no arena: neither user may
	 * write to the other's memory.
	 */
	if (!arena && getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur >= aw_arena_size() &&
	    getresuid(&real, &effective, &saved) == 0 && real == effective && real == saved) {
		fd = memfd_create(AW_ARENA_NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING);
		if (fd >= 0 && (ftruncate(fd, (off_t)aw_arena_size()) != 0 ||
				fcntl(fd, F_ADD_SEALS, AW_ARENA_SEALS) != 0 || !arena_map(fd)))
			aw_libc()->close(fd);
	}
	pthread_mutex_unlock(&lock);
	return arena != NULL;
}

bool aw_arena_adopt(int fd)
{
	struct stat file;

	return !arena && aw_arena_is_one(fd, aw_libc()->fcntl(fd, F_GET_SEALS), &file) &&
	       arena_map(fd);
}

static void lock_init(pthread_mutex_t *lock)
{
	pthread_mutexattr_t attr;

	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
	pthread_mutex_init(lock, &attr);
	pthread_mutexattr_destroy(&attr);
}

/* Returns the slot's entry, or NULL if the process has given up the arena. A thread that was too late for that meets empty memory. */
static struct aw_arena_entry *entry_of(const struct aw_slot *slot)
{
	struct aw_arena_table *table = arena;
	unsigned number = aw_arena_number(slot);

	return table && number < AW_ARENA_SLOTS ? &table->entries[number] : NULL;
}

uint64_t aw_arena_ino(const struct aw_slot *slot)
{
	struct aw_arena_entry *entry = entry_of(slot);

	return entry ? atomic_load(&entry->ino) : 0;
}

/* Returns whether it was the process's last one of this slot. */
static bool give_up_claim(unsigned number)
{
	struct flock lock = aw_entry_lock(number, F_UNLCK);
	struct aw_quiet before;
	bool is_last;

	aw_quiet_begin(&before);
	pthread_mutex_lock(&claims_lock);
	is_last = atomic_fetch_sub(&claims[number], 1) == 1;
	if (is_last)
		(void)aw_libc()->fcntl(arena_fd, F_SETLK, &lock);
	pthread_mutex_unlock(&claims_lock);
	aw_quiet_end(&before);
	return is_last;
}

static struct aw_slot *slot_init(unsigned number, uint64_t ino)
{
	struct aw_slot *slot = slot_at(number);
	bool is_claimed;

	if (!slot) {
		atomic_fetch_sub(&arena->entries[number].word, AW_ENTRY_FRESH + 1);
		return NULL;
	}
	lock_init(&slot->rx_lock);
	lock_init(&slot->tx_lock);
	atomic_store(&slot->broken, false);
	atomic_store(&slot->failure, 0);
	atomic_store(&slot->mode, 0);
	atomic_store(&slot->role, 0);
	atomic_store(&slot->ended_first, false);
	atomic_store(&slot->readers, 0);
	atomic_store(&slot->given, 0);
	atomic_store(&slot->proxy, 0);
	atomic_store(&slot->bridging, 0);
	atomic_store(&slot->linger, 0);
	atomic_store(&arena->entries[number].ino, ino);
	is_claimed = aw_arena_claim(slot);
	if (!is_claimed)
		(void)give_up_claim(number);
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
			aw_tsan_acquire(entry);
			return slot_init(number, ino);
		}
	}
	return NULL;
}

bool aw_arena_claim(const struct aw_slot *slot)
{
	unsigned number = aw_arena_number(slot);
	struct flock lock = aw_entry_lock(number, F_RDLCK);
	struct aw_quiet before;
	bool is_locked;

	aw_quiet_begin(&before);
	pthread_mutex_lock(&claims_lock);
	atomic_fetch_add(&claims[number], 1);
	is_locked = aw_libc()->fcntl(arena_fd, F_SETLK, &lock) == 0;
	pthread_mutex_unlock(&claims_lock);
	aw_quiet_end(&before);
	return is_locked;
}

void aw_arena_renew_lock(void)
{
	pthread_mutex_init(&claims_lock, NULL);
}

void aw_arena_disclaim(void)
{
	for (unsigned i = 0; i < AW_ARENA_SLOTS; i++)
		atomic_store_explicit(&claims[i], 0, memory_order_relaxed);
}

void aw_arena_sweep(void)
{
	uint32_t end = arena ? atomic_load(&arena->end) : 0, others = 0;

	for (uint32_t i = 0; i < end; i++) {
		struct aw_arena_entry *entry = &arena->entries[i];
		uint64_t word = atomic_load(&entry->word), mine;
		struct flock lock = aw_entry_lock(i, F_WRLCK);

		if (!(word & AW_ENTRY_HOLDERS) || word & (AW_ENTRY_FRESH | AW_ENTRY_UNBORN) ||
		    atomic_load(&claims[i]))
			continue;
		if (aw_libc()->fcntl(arena_fd, F_GETLK, &lock) != 0 || lock.l_type != F_UNLCK) {
			others++; /* and cost a system call */
			continue;
		}

		/* No living process has locked the slot: it becomes free. FRESH keeps others off while its pages go back. */
		mine = (word & ~(uint64_t)AW_ENTRY_HOLDERS) + AW_ENTRY_FRESH + 1;
		if (!atomic_compare_exchange_strong(&entry->word, &word, mine))
			continue;
		(void)fallocate(arena_fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
				(off_t)aw_arena_slot_at(i), (off_t)aw_arena_slot_size());
		atomic_fetch_sub(&entry->word, AW_ENTRY_FRESH + 1);
		aw_table_lower_next(arena, i);
	}
	if (arena)
		atomic_store(&arena->takes_left, (int32_t)(others + SWEEP_SLOTS));
}

struct aw_slot *aw_arena_take(uint64_t ino)
{
	struct aw_slot *slot = aw_arena_open() ? take_free(ino) : NULL;
	uint32_t number, end;

	if (!slot && arena) {
		aw_arena_sweep();
		return take_free(ino);
	}
	if (!slot)
		return NULL;
	number = aw_arena_number(slot);
	end = atomic_load(&arena->end);
	while (end <= number && !atomic_compare_exchange_weak(&arena->end, &end, number + 1))
		;
	/* Every so many takes, of all processes, one looks for slots that killed processes have left. */
	if (atomic_fetch_sub(&arena->takes_left, 1) <= 0)
		aw_arena_sweep();
	return slot;
}

struct aw_slot *aw_arena_find(unsigned number)
{
	return arena && atomic_load(&arena->entries[number].word) & AW_ENTRY_HOLDERS
		       ? slot_at(number)
		       : NULL;
}

uint32_t aw_arena_bridges(void)
{
	const struct aw_arena_table *table = atomic_load_explicit(&arena, memory_order_relaxed);

	return table ? atomic_load_explicit(&table->bridges, memory_order_acquire) : 0;
}

/* A thread that sees the new count also sees the slot's proxy process. */
void aw_arena_bridge(struct aw_slot *slot, uint64_t proxy)
{
	atomic_store(&slot->proxy, proxy);
	atomic_fetch_add_explicit(&arena->bridges, 1, memory_order_release);
}

bool aw_arena_is_alone(const struct aw_slot *slot)
{
	struct aw_arena_entry *entry = entry_of(slot);

	return entry && (atomic_load(&entry->word) & AW_ENTRY_HOLDERS) == 1;
}

void aw_arena_share(struct aw_slot *slot)
{
	struct aw_arena_entry *entry = entry_of(slot);

	if (entry)
		aw_entry_share(entry);
}

void aw_arena_hold(struct aw_slot *slot)
{
	(void)aw_arena_claim(slot);
	aw_arena_share(slot);
}

void aw_arena_unshare(struct aw_slot *slot)
{
	aw_tsan_release(entry_of(slot));
	aw_table_unshare(arena, aw_arena_number(slot), slot, 1);
}

void aw_arena_expect(struct aw_slot *slot)
{
	struct aw_arena_entry *entry = entry_of(slot);

	if (entry)
		atomic_fetch_add(&entry->word, 1 + AW_ENTRY_UNBORN_ONE);
}

bool aw_arena_arrive(const struct aw_slot *slot)
{
	struct aw_arena_entry *entry = entry_of(slot);
	uint64_t word = entry ? atomic_load(&entry->word) : 0;
	bool is_claimed = aw_arena_claim(slot);

	while (word & AW_ENTRY_UNBORN &&
	       !atomic_compare_exchange_weak(&entry->word, &word, word - AW_ENTRY_UNBORN_ONE))
		;
	return is_claimed;
}

void aw_arena_unexpect(struct aw_slot *slot)
{
	aw_tsan_release(entry_of(slot));
	aw_table_unshare(arena, aw_arena_number(slot), slot, 1 + AW_ENTRY_UNBORN_ONE);
}

void aw_arena_leave(struct aw_slot *slot)
{
	unsigned number = aw_arena_number(slot);
	struct aw_record_key_ids ids;

	if (number == AW_ARENA_SLOTS)
		return;
	/* Once the hold is given up, the slot may be another connection's. */
	ids = aw_record_key_ids(&slot->record);
	aw_arena_unshare(slot);
	if (give_up_claim(number))
		aw_record_leave_keys(ids);
}

bool aw_arena_leave_to_others(struct aw_slot *slot)
{
	struct aw_arena_entry *entry = entry_of(slot);
	struct aw_record_key_ids ids = aw_record_key_ids(&slot->record);
	uint64_t word = entry ? atomic_load(&entry->word) : 0;

	do {
		if ((word & AW_ENTRY_HOLDERS) <= 1)
			return false;
		aw_tsan_release(entry);
	} while (!atomic_compare_exchange_weak(&entry->word, &word, word - 1));
	if (give_up_claim(aw_arena_number(slot)))
		aw_record_leave_keys(ids);
	return true;
}

bool aw_arena_is_of(const uid_t users[3])
{
	struct stat file;

	if (arena_fd < 0 || fstat(arena_fd, &file) != 0)
		return true;
	return users[0] == file.st_uid || users[1] == file.st_uid || users[2] == file.st_uid;
}

/*
 * Puts empty memory of this process in the place of a part, at one moment: a thread that still reads there meets no fault. Where the
 * kernel cannot do that, the part goes in any case.
 */
static void replace_part(void *part, size_t len)
{
	if (mmap(part, len, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == MAP_FAILED)
		munmap(part, len);
}

void aw_arena_abandon(void)
{
	struct aw_arena_table *table = arena;
	int fd = arena_fd;

	if (!table)
		return;
	arena = NULL;
	arena_fd = -1;
	replace_part(table, sizeof(*table));
	for (unsigned i = 0; i < AW_ARENA_SLOTS / CHUNK_SLOTS; i++) {
		char *part = atomic_exchange(&chunks[i], NULL);

		if (part)
			replace_part(part, chunk_size());
	}
	aw_arena_disclaim();
	aw_fdtab_forget(fd);
	aw_libc()->close(fd);
}
