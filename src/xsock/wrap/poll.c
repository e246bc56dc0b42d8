// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Wrappers: poll and select. They call libc unless one of the fds is undecided.
#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "xsock/base/libc.h"
#include "xsock/base/sets.h"
#include "xsock/framed/bridge.h"
#include "xsock/framed/parts.h"
#include "xsock/pair/attend.h"
#include "xsock/pair/hangup.h"
#include "xsock/preload/extended.h"
#include "xsock/preload/first_io.h"
#include "xsock/preload/overdue.h"
#include "xsock/preload/wait.h"
#include "xsock/process/memory.h"

/* Has the peer's bytes put into the fds' pairs. Returns whether an fd is undecided, or a peer's Request or Reply due. */
static bool prepare_fds(struct pollfd *fds, nfds_t count)
{
	bool direct = aw_extended_any_direct(), due = aw_overdue_may_be();

	aw_attend_poll(fds, count);
	if (!aw_fdtab_any_undecided() && !direct)
		return due;
	for (nfds_t i = 0; i < count; i++) {
		if (aw_fdtab_is_undecided(fds[i].fd))
			due = true;
		else if (direct)
			aw_extended_watch_bridged(fds[i].fd);
	}
	return due;
}

/* A poll has returned ready. Polls again while only parts of FPDUs have come. */
static int poll_on(int ready, struct pollfd *fds, nfds_t count, const struct aw_deadline *deadline,
		   const sigset_t *mask)
{
	struct timespec left;

	while (ready > 0) {
		ready -= aw_parts_hide_poll(fds, count);
		if (ready > 0 || aw_deadline_is_over(deadline))
			break;
		ready = aw_libc()->ppoll(fds, count, aw_deadline_left(deadline, &left), mask);
	}
	return aw_hangup_hide_poll(ready, fds, count);
}

AW_WRAPPER int poll(struct pollfd *fds, nfds_t count, int timeout_ms)
{
	struct timespec timeout = { timeout_ms / 1000, timeout_ms % 1000 * 1000000L };
	struct aw_deadline deadline;

	aw_framed_follow();
	if (prepare_fds(fds, count))
		return aw_hangup_hide_poll(aw_wait_poll(fds, count,
							timeout_ms < 0 ? NULL : &timeout, NULL),
					   fds, count);
	deadline = aw_deadline_after_ms(timeout_ms);
	return poll_on(aw_libc()->poll(fds, count, timeout_ms), fds, count, &deadline, NULL);
}
AW_WRAPPER_ALIAS(__poll, poll);

AW_WRAPPER int __poll_chk(struct pollfd *fds, nfds_t count, int timeout_ms, size_t room)
{
	aw_check_room(count, room / sizeof(*fds));
	return poll(fds, count, timeout_ms);
}

AW_WRAPPER int ppoll(struct pollfd *fds, nfds_t count, const struct timespec *timeout,
		     const sigset_t *mask)
{
	struct aw_deadline deadline;

	aw_framed_follow();
	if (prepare_fds(fds, count))
		return aw_hangup_hide_poll(aw_wait_poll(fds, count, timeout, mask), fds, count);
	deadline = aw_deadline_after(timeout);
	return poll_on(aw_libc()->ppoll(fds, count, timeout, mask), fds, count, &deadline, mask);
}

AW_WRAPPER int __ppoll_chk(struct pollfd *fds, nfds_t count, const struct timespec *timeout,
			   const sigset_t *mask, size_t room)
{
	aw_check_room(count, room / sizeof(*fds));
	return ppoll(fds, count, timeout, mask);
}

/* As prepare_fds. */
static bool prepare_sets(const struct aw_select_sets *sets, int limit)
{
	bool direct = aw_extended_any_direct(), due = aw_overdue_may_be();

	aw_attend_select(sets, limit);
	if (limit > FD_SETSIZE)
		return false;
	if (!aw_fdtab_any_undecided() && !direct)
		return due;
	for (int fd = 0; fd < limit; fd++) {
		if (aw_fdtab_is_undecided(fd) && aw_sets_have(sets, fd))
			due = true;
		else if (direct && aw_sets_have(sets, fd))
			aw_extended_watch_bridged(fd);
	}
	return due;
}

#define POLLFDS_BYTES (FD_SETSIZE * sizeof(struct pollfd))

static void unmap_pollfds(void *fds)
{
	aw_memory_unmap(fds, POLLFDS_BYTES);
}

/* The fds of poll(2) are too many for a small stack. */
static int select_by_poll(const struct aw_select_sets *sets, int limit,
			  const struct timespec *timeout, const sigset_t *mask)
{
	struct pollfd *fds = aw_memory_map(POLLFDS_BYTES);
	nfds_t count;
	int ready;

	if (!fds)
		return aw_fail_with(ENOMEM);
	count = aw_sets_to_poll(sets, limit, fds);
	pthread_cleanup_push(unmap_pollfds, fds);
	ready = aw_wait_poll(fds, count, timeout, mask) < 0 ? -errno
							    : aw_sets_from_poll(sets, fds, count);
	pthread_cleanup_pop(true);
	return ready < 0 ? aw_fail_with(-ready) : ready;
}

/* The sets as select(2) takes them, which leaves the ready fds in them: it reads and writes whole longs. */
struct kept_sets {
	fd_set in, out, except;
	size_t bytes;
};

static void copy_set(fd_set *to, const fd_set *from, size_t bytes)
{
	if (to && from)
		memcpy(to, from, bytes);
}

static void keep_sets(struct kept_sets *kept, const struct aw_select_sets *sets, int limit)
{
	kept->bytes = ((size_t)limit + NFDBITS - 1) / NFDBITS * sizeof(fd_mask);
	copy_set(&kept->in, sets->in, kept->bytes);
	copy_set(&kept->out, sets->out, kept->bytes);
	copy_set(&kept->except, sets->except, kept->bytes);
}

static void bring_back_sets(const struct kept_sets *kept, const struct aw_select_sets *sets)
{
	copy_set(sets->in, &kept->in, kept->bytes);
	copy_set(sets->out, &kept->out, kept->bytes);
	copy_set(sets->except, &kept->except, kept->bytes);
}

/* Returns whether fds may be hidden from a select: sets that are larger than libc's are not looked at. */
static bool may_hide(const struct aw_select_sets *sets, int limit)
{
	return sets->in && limit > 0 && limit <= FD_SETSIZE;
}

/* Linux writes the time that was left to timeout, also where select is called again because only parts of FPDUs have come. */
static int select_whole(const struct aw_select_sets *sets, int limit, struct timeval *timeout)
{
	struct kept_sets kept;
	int ready;

	if (!may_hide(sets, limit))
		return aw_libc()->select(limit, sets->in, sets->out, sets->except, timeout);
	keep_sets(&kept, sets, limit);
	for (;;) {
		ready = aw_libc()->select(limit, sets->in, sets->out, sets->except, timeout);
		if (ready <= 0)
			return ready;
		ready -= aw_parts_hide_select(sets->in, limit);
		if (ready > 0 || (timeout && !timeout->tv_sec && !timeout->tv_usec))
			return ready;
		bring_back_sets(&kept, sets);
	}
}

/* As select_whole. pselect(2) leaves its timeout as it is. */
static int pselect_whole(const struct aw_select_sets *sets, int limit,
			 const struct timespec *timeout, const sigset_t *mask)
{
	struct aw_deadline deadline = aw_deadline_after(timeout);
	struct kept_sets kept;
	struct timespec left;
	int ready;

	if (!may_hide(sets, limit))
		return aw_libc()->pselect(limit, sets->in, sets->out, sets->except, timeout, mask);
	keep_sets(&kept, sets, limit);
	for (;;) {
		ready = aw_libc()->pselect(limit, sets->in, sets->out, sets->except, timeout, mask);
		if (ready <= 0)
			return ready;
		ready -= aw_parts_hide_select(sets->in, limit);
		if (ready > 0 || aw_deadline_is_over(&deadline))
			return ready;
		bring_back_sets(&kept, sets);
		timeout = aw_deadline_left(&deadline, &left);
	}
}

/* Linux writes the time that was left to timeout. */
AW_WRAPPER int select(int limit, fd_set *in, fd_set *out, fd_set *except, struct timeval *timeout)
{
	struct aw_select_sets sets = { in, out, except };
	struct timespec after, left;
	struct aw_deadline deadline;
	int ready;

	aw_framed_follow();
	if (!prepare_sets(&sets, limit))
		return select_whole(&sets, limit, timeout);
	if (!timeout)
		return select_by_poll(&sets, limit, NULL, NULL);
	after = (struct timespec){ timeout->tv_sec, timeout->tv_usec * 1000 };
	deadline = aw_deadline_after(&after);
	ready = select_by_poll(&sets, limit, &after, NULL);
	aw_deadline_left(&deadline, &left);
	timeout->tv_sec = left.tv_sec;
	timeout->tv_usec = left.tv_nsec / 1000;
	return ready;
}
AW_WRAPPER_ALIAS(__select, select);

AW_WRAPPER int pselect(int limit, fd_set *in, fd_set *out, fd_set *except,
		       const struct timespec *timeout, const sigset_t *mask)
{
	struct aw_select_sets sets = { in, out, except };

	aw_framed_follow();
	if (!prepare_sets(&sets, limit))
		return pselect_whole(&sets, limit, timeout, mask);
	return select_by_poll(&sets, limit, timeout, mask);
}
