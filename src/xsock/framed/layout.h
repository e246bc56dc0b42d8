// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The arena as it lies in its memfd: a table of the slots' holders, and the slots behind it, each in pages of its own. A program
// maps the table and the stretches of slots that it has come to (arena.h), because it may limit its address space; the proxy
// process maps the slots that it has a share of.
#ifndef XSOCK_FRAMED_LAYOUT_H
#define XSOCK_FRAMED_LAYOUT_H

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "record/record.h"

/* Connections of a process and its relatives. More of them are carried by the proxy process. */
#define AW_ARENA_SLOTS 16384u
#define AW_ARENA_PAGE 4096u
#define AW_ARENA_WARM 16u /* slots that keep their pages when they are free: 2.3 MB at most */
#define AW_ARENA_NAME "anywarp-records"
#define AW_ARENA_SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

struct aw_slot {
	pthread_mutex_t rx_lock, tx_lock; /* robust: of the record's halves */
	_Atomic(bool) broken; /* somebody has died within a half */
	_Atomic(bool) flushing; /* a thread sends what TCP did not take at once */
	_Atomic(uint8_t)
		mode; /* the socket's, enum aw_xs_mode: for `anywarp sockets --status` alone */
	_Atomic(uint32_t) waiters; /* threads that sleep in a read of the socket */
	/* The proxy process (aw_proxy_id) that has it in a bridge, which all that hold the slot are to use; 0: none. */
	_Atomic(uint64_t) proxy;
	struct aw_record record;
};

#define AW_ENTRY_HOLDERS 0xffffffu /* of a word: how many processes hold the slot */
#define AW_ENTRY_FRESH 0x1000000u /* its socket is not written yet */
/* Counts a slot's sockets, so that no two of its words are alike. */
#define AW_ENTRY_GENERATION (UINT64_C(1) << 32)

struct aw_arena_entry {
	_Atomic(uint64_t) word;
	_Atomic(uint64_t) ino;
};

struct aw_arena_table {
	_Atomic(uint32_t)
		next; /* no slot below it is free, unless it was set free at this moment */
	_Atomic(uint32_t) bridges; /* how many slots have got one so far */
	struct aw_arena_entry entries[AW_ARENA_SLOTS];
};

static inline size_t aw_arena_pages(size_t bytes)
{
	return (bytes + AW_ARENA_PAGE - 1) & ~(size_t)(AW_ARENA_PAGE - 1);
}

static inline size_t aw_arena_slot_size(void)
{
	return aw_arena_pages(sizeof(struct aw_slot));
}

static inline size_t aw_arena_slot_at(unsigned number)
{
	return aw_arena_pages(sizeof(struct aw_arena_table)) + number * aw_arena_slot_size();
}

static inline size_t aw_arena_size(void)
{
	return aw_arena_slot_at(AW_ARENA_SLOTS);
}

/* No question goes to a file that is no memory. */
static inline bool aw_arena_is_one(int fd, int seals, struct stat *file)
{
	return seals == AW_ARENA_SEALS && fstat(fd, file) == 0 &&
	       file->st_size == (off_t)aw_arena_size();
}

static inline bool aw_entry_is_of(struct aw_arena_entry *entry, uint64_t ino)
{
	return atomic_load(&entry->ino) == ino && atomic_load(&entry->word) & AW_ENTRY_HOLDERS;
}

static inline void aw_entry_share(struct aw_arena_entry *entry)
{
	atomic_fetch_add(&entry->word, 1);
}

/* A take looks there first. */
static inline void aw_table_lower_next(struct aw_arena_table *table, uint32_t number)
{
	uint32_t next = atomic_load(&table->next);

	while (number < next && !atomic_compare_exchange_weak(&table->next, &next, number))
		;
}

/*
 * The pages that long FPDUs have filled go back to the kernel. A program that has few connections at a time, one after the
 * other, has them in the same slots, and spares each of them two page faults and the way to the kernel here.
 */
static inline void aw_table_unshare(struct aw_arena_table *table, unsigned number,
				    struct aw_slot *slot)
{
	struct aw_arena_entry *entry = &table->entries[number];
	uint64_t word = atomic_load(&entry->word);
	bool is_last = (word & AW_ENTRY_HOLDERS) == 1;

	if (is_last && number >= AW_ARENA_WARM)
		(void)madvise((char *)slot + AW_ARENA_PAGE, aw_arena_slot_size() - AW_ARENA_PAGE,
			      MADV_REMOVE);
	while (word & AW_ENTRY_HOLDERS &&
	       !atomic_compare_exchange_weak(&entry->word, &word, word - 1))
		;
	if (is_last)
		aw_table_lower_next(table, number);
}

/* A process locks the byte of each slot that it holds; its locks end with it, however it ends. */
static inline struct flock aw_entry_lock(unsigned number, short type)
{
	return (struct flock){
		.l_type = type, .l_whence = SEEK_SET, .l_start = (off_t)number, .l_len = 1
	};
}

#endif
