// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Threads that wait in a read or write. As in the kernel, a waiting thread keeps its connection until its
// call returns, even if another thread closes the fd or has it bridged meanwhile. Only atomics, where
// no duplicate is made or closed: that takes the fd table's lock.
#include <unistd.h>

#include "xsock/base/libc.h"
#include "xsock/framed/slot.h"
#include "xsock/process/fdtab.h"
#include "xsock/process/proxy.h"

/*
 * By slot number: how many threads wait (the low half), and the kept fd plus one (the high half; 0: none). In one word, so that the last
 * thread takes the fd as it leaves. The last place is for slots that the process has given up.
 */
static _Atomic(uint64_t) waits[AW_ARENA_SLOTS + 1];

static uint32_t waiters_in(uint64_t word)
{
	return (uint32_t)word;
}

/* Returns the kept fd, or -1. */
static int kept_in(uint64_t word)
{
	return (int)(word >> 32) - 1;
}

aw_slot_finish_fn *aw_slot_finish;

static void close_copy(struct aw_slot *slot, int fd)
{
	if (aw_slot_finish)
		aw_slot_finish(slot, fd);
	aw_fdtab_forget(fd);
	aw_libc()->close(fd);
	aw_arena_leave(slot);
}

void aw_slot_forget_waiters(void)
{
	for (unsigned i = 0; i < AW_ARENA_SLOTS; i++) {
		uint64_t word = atomic_load_explicit(&waits[i], memory_order_relaxed);

		if (kept_in(word) >= 0)
			aw_fdtab_close_hidden(kept_in(word));
		if (word)
			atomic_store(&waits[i], 0);
	}
}

void aw_slot_drain_copies(void)
{
	for (unsigned i = 0; i < AW_ARENA_SLOTS; i++) {
		int fd = kept_in(atomic_load_explicit(&waits[i], memory_order_relaxed));

		if (fd >= 0)
			(void)aw_fdtab_drain(fd);
	}
}

void aw_slot_drop_copies(void)
{
	for (unsigned i = 0; i < AW_ARENA_SLOTS; i++) {
		int fd = kept_in(atomic_exchange(&waits[i], 0));

		if (fd >= 0) {
			aw_fdtab_forget(fd);
			aw_libc()->close(fd);
		}
	}
}

void aw_slot_keep(struct aw_slot *slot, int fd)
{
	_Atomic(uint64_t) *at = &waits[aw_arena_number(slot)];
	uint64_t word = atomic_load(at);
	int copy;

	/* A copy is there already where a dup2() over the fd has failed. */
	if (!waiters_in(word) || kept_in(word) >= 0)
		return;
	copy = aw_libc()->fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	if (copy < 0)
		return;
	copy = aw_proxy_move_high(copy);
	aw_fdtab_hide(copy);
	aw_arena_hold(slot);
	do {
		/* The threads have left, or another one has closed another duplicate. */
		if (!waiters_in(word) || kept_in(word) >= 0) {
			close_copy(slot, copy);
			return;
		}
	} while (!atomic_compare_exchange_weak(at, &word, word | (uint64_t)(copy + 1) << 32));
}

bool aw_slot_is_awaited(const struct aw_slot *slot)
{
	return waiters_in(atomic_load(&waits[aw_arena_number(slot)])) > 0;
}

void aw_slot_begin_wait(struct aw_slot *slot)
{
	atomic_fetch_add(&waits[aw_arena_number(slot)], 1);
}

void aw_slot_leave_wait(struct aw_slot *slot)
{
	_Atomic(uint64_t) *at = &waits[aw_arena_number(slot)];
	uint64_t word = atomic_load(at);

	while (!atomic_compare_exchange_weak(at, &word, waiters_in(word) > 1 ? word - 1 : 0))
		;
	if (waiters_in(word) <= 1 && kept_in(word) >= 0)
		close_copy(slot, kept_in(word));
}

int aw_slot_kept(const struct aw_slot *slot)
{
	return kept_in(atomic_load(&waits[aw_arena_number(slot)]));
}
