// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Threads that wait in a read or write. As in the kernel, a waiting thread keeps its connection until its
// call returns, even if another thread closes the fd or has it bridged meanwhile. Only atomics, where
// no duplicate is made or closed: that takes the fd table's lock.
#include <unistd.h>

#include "xsock/base/libc.h"
#include "xsock/framed/answer.h"
#include "xsock/framed/bridge.h"
#include "xsock/framed/framed.h"
#include "xsock/framed/slot.h"
#include "xsock/process/proxy.h"

/* By slot number: how many threads wait, and the kept fd plus one (0: none). The last place is for slots that the process has given up. */
static _Atomic(uint32_t) waiters[AW_ARENA_SLOTS + 1];
static _Atomic(int) kept[AW_ARENA_SLOTS + 1];

static void close_copy(struct aw_slot *slot, int fd)
{
	aw_fdtab_forget(fd);
	aw_libc()->close(fd);
	aw_arena_leave(slot);
}

static void close_kept(struct aw_slot *slot)
{
	unsigned number = aw_arena_number(slot);
	int fd = atomic_load(&waiters[number]) ? -1 : atomic_exchange(&kept[number], 0) - 1;

	if (fd >= 0)
		close_copy(slot, fd);
}

void aw_slot_forget_waiters(void)
{
	for (unsigned i = 0; i < AW_ARENA_SLOTS; i++) {
		int fd = atomic_load_explicit(&kept[i], memory_order_relaxed) - 1;

		if (fd >= 0) {
			atomic_store(aw_fdtab_users_of(fd), 0);
			aw_libc()->close(fd);
		}
		if (fd >= 0 || atomic_load_explicit(&waiters[i], memory_order_relaxed)) {
			atomic_store(&kept[i], 0);
			atomic_store(&waiters[i], 0);
		}
	}
}

void aw_slot_drain_copies(void)
{
	for (unsigned i = 0; i < AW_ARENA_SLOTS; i++) {
		int fd = atomic_load_explicit(&kept[i], memory_order_relaxed) - 1;

		if (fd >= 0)
			(void)aw_fdtab_drain(fd);
	}
}

void aw_slot_drop_copies(void)
{
	for (unsigned i = 0; i < AW_ARENA_SLOTS; i++) {
		int fd = atomic_exchange(&kept[i], 0) - 1;

		if (fd >= 0) {
			aw_fdtab_forget(fd);
			aw_libc()->close(fd);
		}
		atomic_store(&waiters[i], 0);
	}
}

void aw_framed_closing(int fd)
{
	struct aw_slot *slot = aw_framed_slot(fd);
	struct aw_sock sock;

	/* The parent's fd stays open in a child of vfork. */
	if (!slot || aw_fdtab_is_vfork_child() ||
	    (!aw_slot_has_debt(slot) && !aw_answer_is_due(slot)) || !aw_fdtab_look(fd, &sock) ||
	    sock.slot != slot || sock.fds != 1)
		return;
	if (aw_slot_has_debt(slot) || aw_answer_is_owed(slot, fd))
		(void)aw_framed_bridge(fd);
	else
		aw_answer_close(slot, fd);
}

void aw_slot_keep(struct aw_slot *slot, int fd)
{
	unsigned number = aw_arena_number(slot);
	int copy, none = 0;

	/* A copy is there already where a dup2() over the fd has failed. */
	if (!atomic_load(&waiters[number]) || atomic_load(&kept[number]))
		return;
	copy = aw_libc()->fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	if (copy < 0)
		return;
	copy = aw_proxy_move_high(copy);
	aw_fdtab_hide(copy);
	aw_arena_hold(slot);
	/* Another thread may have closed another duplicate meanwhile. */
	if (atomic_compare_exchange_strong(&kept[number], &none, copy + 1))
		close_kept(slot);
	else
		close_copy(slot, copy);
}

void aw_slot_begin_wait(struct aw_slot *slot)
{
	atomic_fetch_add(&waiters[aw_arena_number(slot)], 1);
}

void aw_slot_leave_wait(struct aw_slot *slot)
{
	atomic_fetch_sub(&waiters[aw_arena_number(slot)], 1);
	close_kept(slot);
}

int aw_slot_kept(const struct aw_slot *slot)
{
	return atomic_load(&kept[aw_arena_number(slot)]) - 1;
}
