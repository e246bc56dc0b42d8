// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Maps the arena's table and one slot. The memory must belong to this user: no other user's process
// writes to what this process reads. A slot of another user's arena is copied, and the copy is
// checked.
#include "xsock/proxy/share.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "xsock/framed/bridged.h"

static void *map_at(int fd, size_t at, size_t len)
{
	void *mapped = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)at);

	return mapped == MAP_FAILED ? NULL : mapped;
}

static void share_unmap(struct aw_share *share)
{
	if (share->slot)
		munmap(share->slot, aw_arena_slot_size());
	if (share->table)
		munmap(share->table, sizeof(*share->table));
	close(share->fd);
}

int aw_share_take(struct aw_share *share, int memory, unsigned number, uint64_t ino)
{
	struct flock lock = aw_entry_lock(number, F_RDLCK);
	struct stat file;
	char path[32];
	int err = 0;

	if (number >= AW_ARENA_SLOTS)
		return EINVAL;
	*share = (struct aw_share){ .fd = -1, .number = number };
	if (!aw_arena_is_one(memory, fcntl(memory, F_GET_SEALS), &file) || file.st_uid != geteuid())
		return EPERM;
	/*
	 * The memory is opened again: locks of an open file description that another process has, too, would be that process's as
	 * well; and POSIX locks end when any fd of the file is closed.
	 */
	snprintf(path, sizeof(path), "/proc/self/fd/%d", memory);
	share->fd = open(path, O_RDWR | O_CLOEXEC);
	if (share->fd < 0)
		return errno;

	share->table = map_at(share->fd, 0, sizeof(*share->table));
	share->slot = map_at(share->fd, aw_arena_slot_at(number), aw_arena_slot_size());
	if (!share->table || !share->slot)
		err = ENOMEM;
	else if (fcntl(share->fd, F_OFD_SETLK, &lock) != 0)
		err = errno;
	if (!err && !aw_entry_is_of(&share->table->entries[number], ino))
		err = ENOENT;
	if (err) {
		share_unmap(share);
		return err;
	}
	(void)aw_bridged_review(share->slot, share->fd, number);
	aw_entry_share(&share->table->entries[number]);
	return 0;
}

static void make_locks(struct aw_slot *slot)
{
	pthread_mutex_init(&slot->rx_lock, NULL);
	pthread_mutex_init(&slot->tx_lock, NULL);
}

int aw_share_make(struct aw_share *share)
{
	*share = (struct aw_share){ .fd = -1, .slot = calloc(1, sizeof(*share->slot)) };
	if (!share->slot)
		return ENOMEM;
	make_locks(share->slot);
	return 0;
}

/* The seals guarantee that the memory keeps its size. */
int aw_share_copy(struct aw_share *share, int memory, unsigned number)
{
	size_t len = aw_arena_slot_size();
	struct stat file;
	void *theirs;

	if (number >= AW_ARENA_SLOTS || !aw_arena_is_one(memory, fcntl(memory, F_GET_SEALS), &file))
		return EPERM;
	*share = (struct aw_share){ .fd = -1,
				    .number = number,
				    .slot = calloc(1, sizeof(*share->slot)) };
	theirs = mmap(NULL, len, PROT_READ, MAP_SHARED, memory, (off_t)aw_arena_slot_at(number));
	if (!share->slot || theirs == MAP_FAILED) {
		free(share->slot);
		return ENOMEM;
	}
	memcpy(&share->slot->record, &((const struct aw_slot *)theirs)->record,
	       sizeof(struct aw_record));
	munmap(theirs, len);
	make_locks(share->slot);
	if (aw_record_is_sound(&share->slot->record))
		return 0;
	aw_record_forget_keys(&share->slot->record);
	free(share->slot);
	return EPROTO;
}

void aw_share_put(struct aw_share *share)
{
	struct aw_record_key_ids ids = aw_record_key_ids(&share->slot->record);

	if (share->fd < 0) {
		aw_record_forget_keys(&share->slot->record);
		free(share->slot);
		return;
	}
	aw_table_unshare(share->table, share->number, share->slot, 1);
	aw_record_leave_keys(ids);
	share_unmap(share);
}

bool aw_share_is_alone(const struct aw_share *share)
{
	struct flock lock = aw_entry_lock(share->number, F_WRLCK);

	if (share->fd < 0)
		return true;
	if (atomic_load(&share->table->entries[share->number].word) & AW_ENTRY_UNBORN)
		return false;
	return fcntl(share->fd, F_OFD_GETLK, &lock) == 0 && lock.l_type == F_UNLCK;
}
