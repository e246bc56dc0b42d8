// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Looks at all sockets when the first deadline has come. A shut socket is ready in every set that has it, so that each thread that
// waits for it wakes.
#include "xsock/preload/overdue.h"

#include <sys/param.h>

#include "base/clock.h"
#include "xsock/framed/answer.h"
#include "xsock/framed/framed.h"
#include "xsock/preload/first_io.h"

#define OVER_MAX 64 /* sockets that one look at the table finds */

/* The sockets whose deadline is over at now_ns, and whether there are more of them. */
struct over {
	int64_t now_ns;
	int fds[OVER_MAX];
	int count;
	bool more;
};

const struct timespec *aw_overdue_left(const struct aw_deadline *deadline, struct timespec *left)
{
	struct aw_deadline sooner = { aw_deadline_first_ns() };

	if (sooner.at_ns == AW_DEADLINE_NEVER ||
	    (deadline->at_ns >= 0 && deadline->at_ns < sooner.at_ns))
		sooner = *deadline;
	return aw_deadline_left(&sooner, left);
}

static void collect_over(struct aw_sock *sock, int fd, void *arg) AW_REQUIRES(aw_fdtab_mutex)
{
	bool pending = sock->state == AW_FD_PENDING;
	bool begun_by_other = pending && sock->slot && aw_framed_is_begun(sock->slot);
	struct over *over = arg;
	int64_t next_ns = over->now_ns + AW_DEADLINE_LOOK_NS;
	bool due;

	if (!sock->due_ns)
		return;
	/* The peer has still to send its Request or Reply. */
	due = sock->state == AW_FD_FRAMED ? aw_answer_is_due(sock->slot)
					  : sock->state >= AW_FD_CONNECTING && !sock->error;
	if (!due)
		sock->due_ns = 0;
	else if ((sock->due_ns > over->now_ns && !begun_by_other) || sock->state == AW_FD_STARTING)
		aw_deadline_note(pending && aw_first_io_is_shared(sock) ? MIN(next_ns, sock->due_ns)
									: sock->due_ns);
	else if (over->count < OVER_MAX)
		over->fds[over->count++] = fd;
	else
		over->more = true;
}

void aw_overdue_settle(void)
{
	struct over over = { .more = true };

	while (over.more && aw_deadline_first_ns() <= aw_now_ns()) {
		over = (struct over){ .now_ns = aw_now_ns() };
		aw_fdtab_lock();
		(void)aw_deadline_take_first_ns();
		aw_fdtab_each(collect_over, &over);
		aw_fdtab_unlock();
		for (int i = 0; i < over.count; i++) {
			struct aw_slot *slot = aw_framed_slot(over.fds[i]);

			if (slot)
				aw_answer_expire(slot, over.fds[i]);
			else if (aw_fdtab_is_undecided(over.fds[i]))
				(void)aw_first_io_make(over.fds[i], AW_FIRST_POLL, true);
		}
		if (over.more)
			aw_deadline_note(over.now_ns);
	}
}
