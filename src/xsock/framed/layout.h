// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The arena's memory: a table of the processes that hold each slot, and behind it the slots, each
// in pages of its own. A program maps the table and those chunks of slots that it uses (arena.h),
// because it may limit its address space; the proxy process maps the slots that it has a share of.
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

/* The connections of a process and its relatives; further ones become BRIDGED. */
#if __SIZEOF_POINTER__ > 4
#define AW_ARENA_SLOTS 16384u
#else
#define AW_ARENA_SLOTS 4096u /* a file's size and the addresses have 32 bits */
#endif
#define AW_ARENA_PAGE 4096u
#define AW_ARENA_WARM 16u /* free slots that keep their pages: 3.1 MB at most */
/*
 * Grows with each change of what is in the memory. As many pages follow the last slot, so that a process of another version of
 * the library, which knows the file by its size, does not use it.
 */
#define AW_ARENA_LAYOUT 6u
#define AW_ARENA_NAME "anywarp-records"
#define AW_ARENA_SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

struct aw_slot {
	pthread_mutex_t rx_lock, tx_lock; /* robust; of the record's halves */
	_Atomic(bool) broken; /* a process was killed in the middle of an FPDU */
	/* the errno of the connection's failure that a call with bytes could not return; 0: none */
	_Atomic(int) failure;
	_Atomic(uint8_t) mode; /* enum aw_xs_mode of the socket */
	_Atomic(uint8_t)
		role; /* enum aw_role of the socket; 0: no process has begun the connection */
	_Atomic(bool)
		ended_first; /* the program has shut down writing before the server's Reply came */
	_Atomic(uint32_t) readers; /* threads that sleep in a read of the socket */
	/* bytes at the front of the socket that the proxy process has put into the pair as well; under rx_lock */
	_Atomic(uint32_t) given;
	/*
	 * The proxy process (aw_proxy_id) that has bridged the slot, for all that hold it; 0: none.
	 */
	_Atomic(uint64_t) proxy;
	_Atomic(uint32_t) bridging; /* odd while a proxy process works on the slot (bridged.h) */
	/* the program's own SO_LINGER while the TCP socket has the bridge's (bridged.h); 0: it has not */
	_Atomic(uint64_t) linger;
	struct aw_record record;
};

/* Of entry.word: how many processes hold the slot. Linux has no more (PID_MAX_LIMIT). */
#define AW_ENTRY_HOLDERS 0x3fffffu
#define AW_ENTRY_FRESH 0x400000u /* the slot's inode is not written yet */
/*
 * How many of these processes are children that have not locked the slot's byte yet: until then no sweep takes the hold for that of a
 * killed process. A child that is killed so early leaves its slots taken for as long as the arena is there.
 */
#define AW_ENTRY_UNBORN_ONE (UINT64_C(1) << 23)
#define AW_ENTRY_UNBORN (AW_ENTRY_HOLDERS * AW_ENTRY_UNBORN_ONE)
/* Counts the sockets that a slot has had, so that no two values of entry.word are equal. */
#define AW_ENTRY_GENERATION (UINT64_C(1) << 45)

struct aw_arena_entry {
	_Atomic(uint64_t) word;
	_Atomic(uint64_t) ino;
};

struct aw_arena_table {
	/* the slots below it are held, but for one that has been freed at this moment */
	_Atomic(uint32_t) next;
	_Atomic(uint32_t) bridges; /* how many slots have been bridged so far */
	_Atomic(uint32_t) end; /* no slot from this number on has been used */
	_Atomic(int32_t) takes_left; /* until a process looks for slots of killed ones */
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
	return aw_arena_slot_at(AW_ARENA_SLOTS) + AW_ARENA_LAYOUT * AW_ARENA_PAGE;
}

/* Only memfds have seals: fstat() of another file might wait. */
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

/* Has the next aw_arena_take() look at this slot first. */
static inline void aw_table_lower_next(struct aw_arena_table *table, uint32_t number)
{
	uint32_t next = atomic_load(&table->next);

	while (number < next && !atomic_compare_exchange_weak(&table->next, &next, number))
		;
}

/*
 * Gives up a hold: 1, or that of a child that was not made, 1 + AW_ENTRY_UNBORN_ONE. The last holder wipes the keys, and returns the pages that
 * long FPDUs have filled to the kernel. A program with few connections at a time uses the first slots over and over; these keep their
 * pages, which spares each connection two page faults and a system call.
 */
static inline void aw_table_unshare(struct aw_arena_table *table, unsigned number,
				    struct aw_slot *slot, uint64_t hold)
{
	struct aw_arena_entry *entry = &table->entries[number];
	uint64_t word = atomic_load(&entry->word);
	bool is_last;

	do {
		if (!(word & AW_ENTRY_HOLDERS) || (hold > 1 && !(word & AW_ENTRY_UNBORN)))
			return;
		is_last = (word & AW_ENTRY_HOLDERS) == 1;
		if (is_last)
			aw_record_forget_keys(&slot->record);
		if (is_last && number >= AW_ARENA_WARM)
			(void)madvise((char *)slot + AW_ARENA_PAGE,
				      aw_arena_slot_size() - AW_ARENA_PAGE, MADV_REMOVE);
	} while (!atomic_compare_exchange_weak(&entry->word, &word, word - hold));
	if (is_last)
		aw_table_lower_next(table, number);
}

/*
 * A process locks the byte of each slot that it holds; the kernel releases its locks when it ends.
 */
static inline struct flock aw_entry_lock(unsigned number, short type)
{
	return (struct flock){
		.l_type = type, .l_whence = SEEK_SET, .l_start = (off_t)number, .l_len = 1
	};
}

#endif
