// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The end of a FRAMED fd by shutdown(2), of which the record's half learns, or close(2). The stream's end comes behind the rest of
// an FPDU that TCP has yet to take.
#include <errno.h>

#include "xsock/base/libc.h"
#include "xsock/base/sockopt.h"
#include "xsock/framed/answer.h"
#include "xsock/framed/bridge.h"
#include "xsock/framed/framed.h"
#include "xsock/framed/slot.h"
#include "xsock/process/memory.h"

#define NOTIFIES_MAX 256 /* fds that are found at a time */

/*
 * Notes whether the program has shut the reading direction. Noted before the kernel's call, which wakes
 * threads that read: without the note they would take the end for one within an FPDU.
 */
static bool note_shut(struct aw_slot *slot, int fd, bool shut)
{
	struct aw_half half;
	bool before = false;

	if (aw_half_enter_for(&half, slot, &slot->rx_lock, fd) != 0)
		return before;
	before = slot->record.rx.shut;
	slot->record.rx.shut = shut;
	aw_half_leave(&half);
	return before;
}

/*
 * Returns whether TCP has yet to take the rest of an FPDU, and a thread sends it and the stream's end behind it. Where no thread can be
 * started, fd is BRIDGED afterwards, and the proxy process sends the rest.
 */
static bool end_behind_rest(struct aw_slot *slot, int fd)
{
	struct aw_half half;
	bool due, later;

	if (aw_half_enter_for(&half, slot, &slot->tx_lock, fd) != 0)
		return false;
	due = aw_record_finish(&slot->record, fd) == -EAGAIN;
	later = due && aw_slot_flush_later(slot, fd);
	slot->record.tx.ended |= later;
	slot->record.tx.fin_due = later;
	aw_half_leave(&half);
	if (due && !later)
		(void)aw_framed_bridge(fd);
	return later;
}

bool aw_framed_shutdown(int fd, int how, int *result)
{
	struct aw_slot *slot = aw_framed_slot(fd);
	bool reads = how == SHUT_RD || how == SHUT_RDWR,
	     writes = how == SHUT_WR || how == SHUT_RDWR;
	bool later, before = false;
	int saved = errno;

	if (!slot)
		return false;
	if (reads)
		before = note_shut(slot, fd, true);
	if (writes && aw_answer_is_due(slot))
		atomic_store(&slot->ended_first, true);
	later = writes && end_behind_rest(slot, fd);
	*result = 0;
	if (!later)
		*result = aw_libc()->shutdown(fd, how);
	else if (how == SHUT_RDWR)
		*result = aw_libc()->shutdown(fd, SHUT_RD);
	if (*result == 0) {
		errno = saved;
		return true;
	}
	saved = errno;
	if (reads)
		(void)note_shut(slot, fd, before);
	errno = saved;
	return true;
}

/* The kernel answers for bytes that nobody has read by a reset, in front of which close_notify would be taken for the stream's end. */
static bool has_unread(int fd)
{
	int count = 0;

	return aw_framed_pending(fd, &count) && count > 0;
}

/* TCP may have yet to take what it sends: it is the rest of an FPDU then. */
void aw_framed_notify_end(struct aw_slot *slot, int fd)
{
	struct aw_half half;

	if (!aw_framed_is_tls(slot) || !aw_arena_is_alone(slot) || aw_sockopt_aborts(fd) ||
	    aw_half_enter_either(&half, slot, &slot->tx_lock, fd) != 0)
		return;
	(void)aw_record_finish(&slot->record, fd);
	aw_half_leave(&half);
}

struct notify_set {
	int fds[NOTIFIES_MAX], count;
	int behind; /* only fds above it */
};

static void set_add(struct aw_sock *sock, int fd, void *arg) AW_REQUIRES(aw_fdtab_mutex)
{
	struct notify_set *set = arg;

	if (sock->state == AW_FD_FRAMED && sock->slot && aw_framed_is_tls(sock->slot) &&
	    fd > set->behind && set->count < NOTIFIES_MAX && fd == aw_fdtab_next_fd(sock, -1))
		set->fds[set->count++] = fd;
}

void aw_framed_notify_all(void)
{
	struct notify_set *set = aw_memory_map(sizeof(*set));

	if (!set)
		return;
	set->behind = -1;
	do {
		set->count = 0;
		aw_fdtab_lock();
		aw_fdtab_each(set_add, set);
		aw_fdtab_unlock();
		for (int i = 0; i < set->count; i++) {
			struct aw_slot *slot = aw_framed_slot(set->fds[i]);

			set->behind = set->fds[i];
			if (slot)
				aw_framed_notify_end(slot, set->fds[i]);
		}
	} while (set->count == NOTIFIES_MAX);
	aw_memory_unmap(set, sizeof(*set));
}

void aw_framed_closing(int fd)
{
	struct aw_slot *slot = aw_framed_slot(fd);
	struct aw_sock sock;

	/* The parent's fd stays open in a child of vfork. */
	if (!slot || aw_fdtab_is_vfork_child() ||
	    (!aw_slot_has_debt(slot) && !aw_answer_is_due(slot) && !aw_framed_is_tls(slot)) ||
	    !aw_fdtab_look(fd, &sock) || sock.slot != slot || sock.fds != 1)
		return;
	/* As TCP's, the stream ends when the last thread has left its call. */
	if (!aw_slot_is_awaited(slot) && !has_unread(fd))
		aw_framed_notify_end(slot, fd);
	if ((aw_slot_has_debt(slot) || aw_answer_is_owed(slot, fd)) && aw_framed_bridge(fd))
		aw_answer_close(slot, fd);
}
