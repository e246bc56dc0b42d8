// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The table: a byte for the wrappers and a pointer for the rest, both by fd.
#include "xsock/process/fdtab.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "xsock/base/libc.h"
#include "xsock/base/log.h"

#define NS 1000000000
#define WAKE_NS 200000000 /* who has something to read wakes sooner */

_Atomic(uint8_t) aw_fdtab_states[AW_FDTAB_MAX];
_Atomic(unsigned) aw_fdtab_undecided;
_Atomic(unsigned) aw_fdtab_bridged;
_Atomic(struct aw_slot *) aw_fdtab_slots[AW_FDTAB_MAX];
struct aw_fdtab_hooks aw_fdtab_hooks;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static sigset_t signals_before; /* under the lock */
static int cancel_before; /* likewise: who is cancelled would leave the lock behind */
/* Sockets in STARTING; threads that fork: one excludes the other. Under the lock. */
static unsigned starting, forks;
static _Thread_local unsigned forks_here; /* of forks */
static _Thread_local bool is_leaving; /* this thread's child goes on in its place */
static bool keeps; /* who forks keeps what connects; under the lock */
static struct aw_sock *socks[AW_FDTAB_MAX]; /* under the lock */
static struct aw_pool pool = { .octets = sizeof(struct aw_sock) };
struct aw_pool aw_fdtab_watches = { .octets = sizeof(struct aw_watch) };
static int top; /* above every fd that has a socket; under the lock */
static _Thread_local unsigned sleeps; /* this thread's own, below a signal's handler */
/*
 * Whose memory this is. It is in a page that the kernel clears in the child of every fork, by
 * whatever call, but not in a child that has our memory.
 */
static pid_t no_page, *owner = &no_page;

/* A fork by clone(2) itself ran no handler of pthread_atfork; who held the lock is not here. */
static void notice_fork(void)
{
	if (__builtin_expect(*owner != 0, 1))
		return;
	*owner = getpid();
	pthread_mutex_init(&lock, NULL);
	pthread_cond_init(&changed, NULL);
	forks = forks_here;
}

void aw_fdtab_lock(void)
{
	sigset_t all, before;
	int cancel;

	notice_fork();
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	pthread_mutex_lock(&lock);
	signals_before = before;
	cancel_before = cancel;
}

void aw_fdtab_unlock(void)
{
	sigset_t before = signals_before;
	int cancel = cancel_before;

	pthread_mutex_unlock(&lock);
	pthread_setcancelstate(cancel, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void aw_fdtab_wait(void)
{
	sigset_t before = signals_before;
	int cancel = cancel_before;

	pthread_cond_wait(&changed, &lock);
	signals_before = before;
	cancel_before = cancel;
}

void aw_fdtab_sleep(struct aw_sock *sock)
{
	aw_fdtab_hold(sock);
	sock->sleepers++;
	sleeps++;
}

void aw_fdtab_woken(struct aw_sock *sock)
{
	sleeps--;
	if (--sock->sleepers == 0)
		pthread_cond_broadcast(&changed);
	aw_fdtab_release(sock);
}

/* In vain where a sleeper has been left for good (siglongjmp). */
void aw_fdtab_let_wake(const struct aw_sock *sock)
{
	sigset_t before = signals_before;
	int cancel = cancel_before;
	struct timespec end;

	clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_nsec += WAKE_NS;
	end.tv_sec += end.tv_nsec / NS;
	end.tv_nsec %= NS;
	while (sock->sleepers > sleeps &&
	       pthread_cond_clockwait(&changed, &lock, CLOCK_MONOTONIC, &end) == 0)
		;
	signals_before = before;
	cancel_before = cancel;
}

void aw_fdtab_await_forks(void)
{
	while (forks > forks_here)
		aw_fdtab_wait();
}

static void decide_pending(void)
{
	if (aw_fdtab_hooks.decide_pending)
		aw_fdtab_hooks.decide_pending();
}

void aw_fdtab_fork_begin(void)
{
	if (aw_fdtab_is_borrowed())
		return;
	decide_pending();
	aw_fdtab_lock();
	while (starting)
		aw_fdtab_wait();
	forks++;
	forks_here++;
	aw_fdtab_unlock();
}

void aw_fdtab_fork_end(void)
{
	int saved = errno;

	if (aw_fdtab_is_borrowed())
		return;
	aw_fdtab_lock();
	forks--;
	forks_here--;
	pthread_cond_broadcast(&changed);
	aw_fdtab_unlock();
	errno = saved;
}

/*
 * Parent and child may both go on with what is pending, and one connection starts but once. The sockets in the table of a
 * child of vfork are its parent's.
 */
static void before_fork(void)
{
	bool borrowed = aw_fdtab_is_borrowed();

	if (!borrowed && !forks_here)
		decide_pending();
	aw_fdtab_lock();
	keeps = !borrowed && !is_leaving;
	if (aw_fdtab_hooks.at_fork && !borrowed)
		aw_fdtab_hooks.at_fork(false);
}

/* What another thread has accepted since the fork began is that thread's. */
static void drop_pending(void)
{
	for (int fd = 0; fd < top; fd++)
		if (socks[fd] && socks[fd]->state == AW_FD_PENDING)
			aw_fdtab_drop(socks[fd]);
}

/* What is the parent's connection alone is none here. Sets that it is in are the parent's, too. */
static void disconnect(const struct aw_sock *sock)
{
	int fresh = aw_libc()->socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	for (int fd = aw_fdtab_next(sock, -1); fd >= 0; fd = aw_fdtab_next(sock, fd)) {
		int flags = aw_libc()->fcntl(fd, F_GETFD) & FD_CLOEXEC ? O_CLOEXEC : 0;

		if (sock->state == AW_FD_CONNECTING && !sock->caller)
			aw_xs_log(AW_XS_LOG_ERROR,
				  "fd %d was not connected yet at a fork: it is the parent's alone",
				  fd);
		if (fresh < 0 || aw_libc()->dup3(fresh, fd, flags) < 0)
			aw_libc()->close(fd);
	}
	if (fresh >= 0)
		aw_libc()->close(fresh);
}

/* One process starts a connection: the one that has begun to connect, or whose thread waits for the client. */
static void drop_begun(void)
{
	for (int fd = 0; fd < top; fd++) {
		if (!socks[fd] ||
		    (socks[fd]->state != AW_FD_CONNECTING && !aw_fdtab_is_awaited(socks[fd])))
			continue;
		disconnect(socks[fd]);
		aw_fdtab_drop(socks[fd]);
	}
}

static void born(void)
{
	*owner = getpid();
	pthread_cond_init(&changed, NULL);
	forks = forks_here;
	if (keeps)
		drop_begun();
	if (forks)
		drop_pending();
	if (aw_fdtab_hooks.at_fork)
		aw_fdtab_hooks.at_fork(true);
	aw_fdtab_unlock();
}

pid_t aw_fdtab_bare_fork(void)
{
	pid_t pid;

	aw_fdtab_lock();
	keeps = true;
	if (aw_fdtab_hooks.at_fork)
		aw_fdtab_hooks.at_fork(false);
	pid = aw_libc()->_Fork();
	if (pid == 0)
		born();
	else
		aw_fdtab_unlock();
	return pid;
}

void aw_fdtab_leave(bool leaving)
{
	is_leaving = leaving;
}

static pid_t *wiped_page(void)
{
	size_t octets = (size_t)sysconf(_SC_PAGESIZE);
	void *page = mmap(NULL, octets, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (page == MAP_FAILED)
		return &no_page;
	if (madvise(page, octets, MADV_WIPEONFORK) == 0)
		return page;
	munmap(page, octets);
	return &no_page;
}

__attribute__((constructor)) static void prepare(void)
{
	owner = wiped_page();
	*owner = getpid();
	pthread_atfork(before_fork, aw_fdtab_unlock, born);
}

/* The child of vfork runs in its parent's memory; its fds are its own. */
static bool is_vfork_child(void)
{
	notice_fork();
	return getpid() != *owner;
}

static bool is_undecided(enum aw_fd_state state)
{
	return state >= AW_FD_CONNECTING;
}

static void put_state(int fd, enum aw_fd_state state)
{
	atomic_store_explicit(&aw_fdtab_states[fd], (uint8_t)state, memory_order_relaxed);
}

static void put_sock(int fd, const struct aw_sock *sock)
{
	if (sock->slot)
		atomic_store(&aw_fdtab_slots[fd], sock->slot);
	put_state(fd, sock->state);
}

/* The numbers of sockets that are undecided, bridged and being started. */
static void count(enum aw_fd_state state, unsigned one)
{
	if (is_undecided(state))
		atomic_fetch_add_explicit(&aw_fdtab_undecided, one, memory_order_relaxed);
	if (state == AW_FD_BRIDGED)
		atomic_fetch_add_explicit(&aw_fdtab_bridged, one, memory_order_relaxed);
	if (state == AW_FD_STARTING)
		starting += one;
}

void aw_fdtab_hold(struct aw_sock *sock)
{
	sock->users++;
}

static void free_unused(struct aw_sock *sock)
{
	if (sock->fds || sock->users)
		return;
	count(sock->state, -1u);
	if (sock->slot)
		aw_fdtab_hooks.leave_slot(sock->slot);
	while (sock->watches) {
		struct aw_watch *watch = sock->watches;

		sock->watches = watch->next;
		aw_pool_give(&aw_fdtab_watches, watch);
	}
	aw_pool_give(&pool, sock);
}

void aw_fdtab_release(struct aw_sock *sock)
{
	assert(sock->users);
	sock->users--;
	free_unused(sock);
}

static void detach(int fd)
{
	struct aw_sock *sock = socks[fd];

	put_state(fd, AW_FD_NONE);
	socks[fd] = NULL;
	if (!sock)
		return;
	if (sock->slot)
		atomic_store(&aw_fdtab_slots[fd], NULL);
	assert(sock->fds);
	sock->fds--;
	free_unused(sock);
}

static void attach(int fd, struct aw_sock *sock)
{
	detach(fd);
	socks[fd] = sock;
	sock->fds++;
	if (fd >= top)
		top = fd + 1;
	put_sock(fd, sock);
}

void aw_fdtab_mark(int fd)
{
	aw_fdtab_forget(fd);
	if ((unsigned)fd < AW_FDTAB_MAX && !is_vfork_child())
		put_state(fd, AW_FD_CANDIDATE);
}

static struct aw_sock *add(int fd, const struct aw_sock *like)
{
	struct aw_sock *sock;
	struct stat file;

	if ((unsigned)fd >= AW_FDTAB_MAX || is_vfork_child() || fstat(fd, &file) != 0)
		return NULL;
	sock = aw_pool_take(&pool);
	if (!sock)
		return NULL;
	*sock = *like;
	sock->fds = sock->users = sock->sleepers = 0;
	sock->watches = NULL;
	sock->dev = file.st_dev;
	sock->ino = file.st_ino;
	count(sock->state, 1);
	attach(fd, sock);
	return sock;
}

bool aw_fdtab_add(int fd, const struct aw_sock *like)
{
	bool added;

	aw_fdtab_lock();
	added = add(fd, like);
	aw_fdtab_unlock();
	return added;
}

struct aw_sock *aw_fdtab_need(int fd)
{
	static const struct aw_sock fresh = { .state = AW_FD_CANDIDATE };
	struct aw_sock *sock = aw_fdtab_get(fd);

	return sock ? sock : add(fd, &fresh);
}

/* to was duplicated from what from's socket was before another thread has swapped it: it becomes what that is now. */
static void follow(int from, int to)
{
	const struct aw_sock *sock = aw_fdtab_get(from);
	struct stat file;

	if (!sock || fstat(to, &file) != 0 || file.st_dev != sock->dev ||
	    file.st_ino != sock->swapped_ino)
		return;
	if (aw_libc()->dup3(from, to, aw_libc()->fcntl(to, F_GETFD) & FD_CLOEXEC ? O_CLOEXEC : 0) <
	    0)
		aw_xs_log(AW_XS_LOG_ERROR, "cannot replace fd %d: %s", to, strerror(errno));
}

void aw_fdtab_copy(int from, int to, bool undecided)
{
	if (from == to ||
	    (aw_fdtab_state(from) == AW_FD_NONE && aw_fdtab_state(to) == AW_FD_NONE) ||
	    (unsigned)to >= AW_FDTAB_MAX || (unsigned)from >= AW_FDTAB_MAX || is_vfork_child())
		return;
	aw_fdtab_lock();
	detach(to);
	if (undecided)
		follow(from, to);
	if (socks[from])
		attach(to, socks[from]);
	else if (aw_fdtab_state(from) == AW_FD_CANDIDATE)
		put_state(to, AW_FD_CANDIDATE);
	aw_fdtab_unlock();
}

void aw_fdtab_forget(int fd)
{
	if (aw_fdtab_state(fd) == AW_FD_NONE || is_vfork_child())
		return;
	aw_fdtab_lock();
	detach(fd);
	aw_fdtab_unlock();
}

void aw_fdtab_forget_range(unsigned first, unsigned last)
{
	if (is_vfork_child())
		return;
	aw_fdtab_lock();
	for (unsigned fd = first; fd <= last && fd < (unsigned)top; fd++) {
		if (aw_fdtab_state((int)fd) != AW_FD_INTERNAL)
			detach((int)fd);
	}
	aw_fdtab_unlock();
}

bool aw_fdtab_is_borrowed(void)
{
	return is_vfork_child();
}

void aw_fdtab_hide(int fd)
{
	if ((unsigned)fd >= AW_FDTAB_MAX || is_vfork_child())
		return;
	aw_fdtab_lock();
	detach(fd);
	put_state(fd, AW_FD_INTERNAL);
	aw_fdtab_unlock();
}

struct aw_sock *aw_fdtab_get(int fd)
{
	struct aw_sock *sock = (unsigned)fd < AW_FDTAB_MAX ? socks[fd] : NULL;
	struct stat file;

	if (!sock)
		return NULL;
	if (fstat(fd, &file) == 0 && file.st_dev == sock->dev && file.st_ino == sock->ino)
		return sock;
	if (!is_vfork_child() && sock->state != AW_FD_STARTING)
		detach(fd);
	return NULL;
}

struct aw_sock *aw_fdtab_get_started(int fd)
{
	struct aw_sock *sock = aw_fdtab_get(fd);

	while (sock && sock->state == AW_FD_STARTING) {
		aw_fdtab_wait();
		sock = aw_fdtab_get(fd);
	}
	return sock;
}

int aw_fdtab_next(const struct aw_sock *sock, int after)
{
	for (int fd = after + 1; fd < top; fd++) {
		if (socks[fd] == sock)
			return fd;
	}
	return -1;
}

void aw_fdtab_set_state(struct aw_sock *sock, enum aw_fd_state state)
{
	count(state, 1);
	count(sock->state, -1u);
	if (sock->state == AW_FD_STARTING)
		pthread_cond_broadcast(&changed);
	sock->state = state;
	for (int fd = aw_fdtab_next(sock, -1); fd >= 0; fd = aw_fdtab_next(sock, fd))
		put_sock(fd, sock);
}

void aw_fdtab_drop(struct aw_sock *sock)
{
	aw_fdtab_hold(sock);
	aw_fdtab_set_state(sock, AW_FD_NONE);
	for (int fd = aw_fdtab_next(sock, -1); fd >= 0; fd = aw_fdtab_next(sock, fd))
		detach(fd);
	aw_fdtab_release(sock);
}

void aw_fdtab_each(void (*see)(struct aw_sock *sock, int fd, void *arg), void *arg)
{
	for (int fd = 0; fd < top; fd++) {
		if (socks[fd])
			see(socks[fd], fd, arg);
	}
}
