// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Forks: the child finds the table and its lock whole, and a connection starts in one process only.
#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/log.h"
#include "xsock/base/libc.h"
#include "xsock/process/fdtab_impl.h"

/*
 * The number of threads that fork. While it is above 0, that of sockets in STARTING does not rise,
 * nor the other way round.
 */
static unsigned forks AW_GUARDED_BY(aw_fdtab_mutex);
_Atomic(uint16_t) aw_fdtab_forks_over;
static _Thread_local unsigned forks_here; /* this thread's share of forks */
static _Thread_local bool parent_exits; /* this thread is in daemon(3): the parent exits */
/* The threads that are in OpenSSL for a handshake, and may hold its locks. */
static unsigned steps AW_GUARDED_BY(aw_fdtab_mutex);
/* The sockets that connect stay with the parent of the fork under way. */
static bool parent_keeps AW_GUARDED_BY(aw_fdtab_mutex);

/*
 * The process whose memory this is. The number lies in a page that the kernel clears in the child
 * of every fork, but not in a child that shares its parent's memory.
 */
static pid_t no_page, *owner = &no_page;

/*
 * In the child of a fork by clone(2), which runs no handlers of pthread_atfork, makes the lock
 * anew: the thread that may have held it is not in the child. Unchecked: the child has no other thread.
 */
void aw_fdtab_notice_fork(void) AW_UNCHECKED
{
	if (__builtin_expect(*owner != 0, 1))
		return;
	aw_fdtab_watch_forks();
	if (*owner != 0)
		return;
	*owner = getpid();
	aw_fdtab_renew(false);
	forks = forks_here;
	if (aw_fdtab_hooks.at_fork)
		aw_fdtab_hooks.at_fork(true);
}

void aw_fdtab_await_forks(void)
{
	while (forks > forks_here)
		aw_fdtab_await_change();
}

static void settle_sockets(void)
{
	if (aw_fdtab_hooks.settle)
		aw_fdtab_hooks.settle();
}

void aw_fdtab_bar_starts(void)
{
	aw_fdtab_lock();
	while (aw_fdtab_any_starting())
		aw_fdtab_await_change();
	forks++;
	forks_here++;
	while (steps)
		aw_fdtab_await_change();
	aw_fdtab_unlock();
}

void aw_fdtab_begin_step(void)
{
	aw_fdtab_lock();
	aw_fdtab_await_forks();
	steps++;
	aw_fdtab_unlock();
}

void aw_fdtab_end_step(void)
{
	aw_fdtab_lock();
	if (--steps == 0)
		aw_fdtab_note_change();
	aw_fdtab_unlock();
}

bool aw_fdtab_forget_steps(void)
{
	bool any = steps;

	steps = 0;
	return any;
}

void aw_fdtab_allow_starts(void)
{
	int saved = errno;

	aw_fdtab_lock();
	forks--;
	forks_here--;
	aw_fdtab_forks_over++;
	aw_fdtab_note_change();
	aw_fdtab_unlock();
	errno = saved;
}

void aw_fdtab_fork_begin(void)
{
	if (aw_fdtab_is_vfork_child())
		return;
	settle_sockets();
	aw_fdtab_bar_starts();
}

void aw_fdtab_fork_end(void)
{
	if (!aw_fdtab_is_vfork_child())
		aw_fdtab_allow_starts();
}

/*
 * Runs in the parent before a fork. A connection that was accepted is begun by the process that makes its first I/O. The table of
 * a child of vfork is its parent's and stays as it is.
 */
static void prepare_fork(void) AW_ACQUIRE(aw_fdtab_mutex)
{
	bool is_vfork_child = aw_fdtab_is_vfork_child();

	if (!is_vfork_child && !forks_here)
		settle_sockets();
	aw_fdtab_lock();
	parent_keeps = !is_vfork_child && !parent_exits;
	if (aw_fdtab_hooks.at_fork && !is_vfork_child)
		aw_fdtab_hooks.at_fork(false);
}

bool aw_fdtab_replace(int fd, int by)
{
	int flags = aw_libc()->fcntl(fd, F_GETFD) & FD_CLOEXEC ? O_CLOEXEC : 0;

	return by >= 0 && aw_libc()->dup3(by, fd, flags) >= 0;
}

void aw_fdtab_disconnect(const struct aw_sock *sock)
{
	int fresh = aw_libc()->socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	for (int fd = aw_fdtab_next_fd(sock, -1); fd >= 0; fd = aw_fdtab_next_fd(sock, fd))
		if (!aw_fdtab_replace(fd, fresh))
			aw_libc()->close(fd);
	if (fresh >= 0)
		aw_libc()->close(fresh);
}

/*
 * Drops, in the child, what only the parent may start: the connections that it has begun to make, and those that it has accepted
 * since the fork began. epoll sets stay as they are, because the parent shares them.
 */
static void drop_parents_own(struct aw_sock *sock, int fd, void *unused) AW_REQUIRES(aw_fdtab_mutex)
{
	(void)unused;
	if (!parent_keeps ||
	    (sock->state != AW_FD_CONNECTING && (sock->state != AW_FD_PENDING || sock->shared)))
		return;
	if (sock->state == AW_FD_CONNECTING && !sock->caller)
		aw_log(AW_LOG_ERROR,
		       "fd %d was not connected yet at a fork: it is the parent's alone", fd);
	aw_fdtab_disconnect(sock);
	aw_fdtab_drop(sock);
}

static void finish_fork_in_child(void) AW_RELEASE(aw_fdtab_mutex)
{
	*owner = getpid();
	aw_fdtab_renew(true);
	forks = forks_here;
	aw_fdtab_each(drop_parents_own, NULL);
	if (aw_fdtab_hooks.at_fork)
		aw_fdtab_hooks.at_fork(true);
	aw_fdtab_unlock();
}

pid_t aw_fdtab_bare_fork(void)
{
	pid_t pid;

	prepare_fork();
	pid = aw_libc()->_Fork();
	if (pid == 0)
		finish_fork_in_child();
	else
		aw_fdtab_unlock();
	return pid;
}

void aw_fdtab_set_parent_exits(bool exits)
{
	parent_exits = exits;
}

/* Makes the page that the kernel clears in the child of a fork; no_page stays where the kernel has no MADV_WIPEONFORK. */
static void watch_forks(void)
{
	size_t bytes = (size_t)sysconf(_SC_PAGESIZE);
	void *page = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (page != MAP_FAILED && madvise(page, bytes, MADV_WIPEONFORK) == 0)
		owner = page;
	else if (page != MAP_FAILED)
		munmap(page, bytes);
	*owner = getpid();
}

static void register_handlers(void)
{
	pthread_atfork(prepare_fork, aw_fdtab_unlock, finish_fork_in_child);
}

/*
 * Handlers that are registered late run early before a fork: they take the table's lock before an allocator's handlers take
 * its locks, as a thread does that loads a library under the lock.
 */
void aw_fdtab_handle_forks(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, register_handlers);
}

void aw_fdtab_watch_forks(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, watch_forks);
}

/* In a child of vfork the page still has the parent's process id. */
bool aw_fdtab_is_vfork_child(void)
{
	aw_fdtab_notice_fork();
	return getpid() != *owner;
}
