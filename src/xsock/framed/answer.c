// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Looks for the Reply beside the program's own calls.
#include "xsock/framed/answer.h"

#include <errno.h>

#include "xsock/base/libc.h"
#include "xsock/base/sockopt.h"
#include "xsock/framed/framed.h"
#include "xsock/framed/refusal.h"
#include "xsock/process/fdtab.h"

void aw_answer_look(struct aw_slot *slot, int fd)
{
	int saved = errno;
	struct aw_half half;

	if (aw_half_enter_for(&half, slot, &slot->rx_lock, fd) == 0) {
		(void)aw_record_take_answer(&slot->record, fd);
		aw_half_leave(&half);
	}
	errno = saved;
}

void aw_answer_expire(struct aw_slot *slot, int fd)
{
	struct aw_half half;
	bool is_over;

	if (aw_half_enter_for(&half, slot, &slot->rx_lock, fd) != 0)
		return;
	is_over = !aw_record_take_answer(&slot->record, fd);
	if (is_over)
		aw_record_give_up(&slot->record);
	aw_half_leave(&half);
	if (!is_over)
		return;
	aw_refusal_log(fd, NULL, AW_REFUSAL_SILENT_SERVER);
	aw_slot_note_failure(slot, -EPROTO);
	(void)aw_libc()->shutdown(fd, SHUT_RDWR);
}

bool aw_answer_is_owed(struct aw_slot *slot, int fd)
{
	if (!aw_answer_is_due(slot) || !aw_arena_is_alone(slot) || aw_sockopt_aborts(fd))
		return false;
	aw_answer_look(slot, fd);
	return aw_answer_is_due(slot);
}

void aw_answer_close(struct aw_slot *slot, int fd)
{
	int saved = errno;

	if (aw_answer_is_due(slot) && aw_arena_is_alone(slot) && !aw_sockopt_aborts(fd))
		(void)aw_libc()->shutdown(fd, SHUT_WR);
	errno = saved;
}

bool aw_answer_is_wrong(struct aw_slot *slot, ssize_t n)
{
	if (n == -EAGAIN || !slot->record.rx.reply_due)
		return false;
	slot->record.rx.reply_due = false;
	/* A server that has seen the program's end first sends no Reply alone. */
	return n != 0 || !atomic_load(&slot->ended_first);
}

/* The kernel forgets the peer of a connection that has ended. */
void aw_answer_tell(int fd, ssize_t n)
{
	struct aw_sock sock;
	bool known = aw_fdtab_look(fd, &sock) && sock.remote.any.sa_family;
	const struct aw_slot *slot = aw_framed_slot(fd);

	if (slot && slot->record.rx.alert) {
		aw_refusal_log_alert(fd, known ? &sock.remote : NULL, slot->record.rx.alert);
		return;
	}
	aw_refusal_log(fd, known ? &sock.remote : NULL,
		       n == -EPROTO ? AW_REFUSAL_OTHER_SERVER : AW_REFUSAL_ENDED);
}

void aw_answer_note_end(struct aw_slot *slot, int fd)
{
	struct aw_half half;
	bool wrong = false;

	if (aw_half_enter_for(&half, slot, &slot->rx_lock, fd) != 0)
		return;
	if (!aw_record_take_answer(&slot->record, fd))
		wrong = aw_answer_is_wrong(slot, -EPIPE);
	aw_half_leave(&half);
	if (wrong)
		aw_answer_tell(fd, -EPIPE);
}
