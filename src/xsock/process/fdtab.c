// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The table: for each fd its state, which the wrappers read, and its socket.
#include "xsock/process/fdtab_impl.h"

#include <assert.h>
#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "xsock/base/libc.h"
#include "xsock/process/quiet.h"

#define WAKE_NS 200000000 /* a thread that has something to read wakes sooner */
#define BRIEF_NS 1000000

_Atomic(uint8_t) aw_fdtab_states[AW_FDTAB_MAX];
_Atomic(unsigned) aw_fdtab_undecided;
_Atomic(unsigned) aw_fdtab_bridged;
_Atomic(unsigned) aw_fdtab_listeners;
_Atomic(unsigned) aw_fdtab_unannounced;
_Atomic(struct aw_slot *) aw_fdtab_slots[AW_FDTAB_MAX];

aw_mutex aw_fdtab_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct aw_quiet before_lock; /* how the lock's holder was before it took the lock */
struct aw_entry aw_fdtab_entries[AW_FDTAB_MAX];
_Atomic(uint32_t) aw_fdtab_users[AW_FDTAB_MAX];
/* Of a candidate: aw_fdtab_forks_over when it was made. */
static _Atomic(uint16_t) born[AW_FDTAB_MAX];
static struct aw_pool pool = { .bytes = sizeof(struct aw_sock) };
struct aw_pool aw_fdtab_registrations = { .bytes = sizeof(struct aw_registration) };
static unsigned starting AW_GUARDED_BY(aw_fdtab_mutex); /* the number of sockets in STARTING */
static int fd_end AW_GUARDED_BY(aw_fdtab_mutex); /* one above the highest fd that has a socket */
/* This thread's share of all sleepers: a signal handler of its own has interrupted its sleep. */
static _Thread_local unsigned sleeps_here;

void aw_fdtab_lock(void)
{
	struct aw_quiet before;

	aw_fdtab_notice_fork();
	aw_fdtab_handle_forks();
	aw_quiet_begin(&before);
	pthread_mutex_lock(&aw_fdtab_mutex);
	before_lock = before;
	aw_fdtab_release_left();
}

void aw_fdtab_unlock(void)
{
	struct aw_quiet before = before_lock;

	pthread_mutex_unlock(&aw_fdtab_mutex);
	aw_quiet_end(&before);
}

void aw_fdtab_renew(bool locked)
{
	bool in_step = aw_fdtab_forget_steps();

	if (!locked)
		pthread_mutex_init(&aw_fdtab_mutex, NULL);
	pthread_cond_init(&changed, NULL);
	if (aw_fdtab_hooks.renew_locks)
		aw_fdtab_hooks.renew_locks(in_step);
	/* The threads that were in calls are the parent's. */
	for (int fd = 0; fd < fd_end; fd++) {
		if (atomic_load_explicit(aw_fdtab_users_of(fd), memory_order_relaxed))
			atomic_store(aw_fdtab_users_of(fd), 0);
		if (aw_fdtab_entries[fd].sock)
			aw_fdtab_entries[fd].sock->connects = 0;
	}
	aw_fdtab_end_parents_changes(fd_end);
}

void aw_fdtab_forget_tls(void)
{
	for (int fd = 0; fd < fd_end; fd++)
		if (aw_fdtab_entries[fd].sock)
			aw_fdtab_entries[fd].sock->tls = NULL;
}

void aw_fdtab_note_change(void)
{
	pthread_cond_broadcast(&changed);
}

bool aw_fdtab_any_starting(void)
{
	return starting;
}

/* Sleeps until a change, or until end if that is not NULL. Returns 0 or an errno. */
static int await_change_until(const struct timespec *end) AW_REQUIRES(aw_fdtab_mutex)
{
	struct aw_quiet before = before_lock;
	int err;

	err = end ? pthread_cond_clockwait(&changed, &aw_fdtab_mutex, CLOCK_MONOTONIC, end)
		  : pthread_cond_wait(&changed, &aw_fdtab_mutex);
	before_lock = before;
	return err;
}

void aw_fdtab_await_change(void)
{
	(void)await_change_until(NULL);
}

void aw_fdtab_await_change_briefly(void)
{
	struct timespec end = aw_clock_after(CLOCK_MONOTONIC, BRIEF_NS);

	(void)await_change_until(&end);
}

void aw_fdtab_begin_sleep(struct aw_sock *sock)
{
	aw_fdtab_hold(sock);
	sock->sleepers++;
	sleeps_here++;
}

void aw_fdtab_end_sleep(struct aw_sock *sock)
{
	sleeps_here--;
	if (--sock->sleepers == 0)
		aw_fdtab_note_change();
	aw_fdtab_release(sock);
}

/* Waits for at most WAKE_NS, because a sleeper that has left its wait by siglongjmp never wakes. */
void aw_fdtab_await_sleepers(const struct aw_sock *sock)
{
	struct timespec end = aw_clock_after(CLOCK_MONOTONIC, WAKE_NS);

	while (sock->sleepers > sleeps_here && await_change_until(&end) == 0)
		;
}

void aw_fdtab_store_state(int fd, enum aw_fd_state state)
{
	assert(aw_fd_state_is_numbers(state));
	atomic_store_explicit(&aw_fdtab_states[fd], (uint8_t)state, memory_order_relaxed);
}

/* Has the number show what its socket is. */
static void store_sock(int fd, const struct aw_sock *sock) AW_REQUIRES(aw_fdtab_mutex)
{
	if (sock->slot)
		atomic_store(&aw_fdtab_slots[fd], sock->slot);
	atomic_store_explicit(&aw_fdtab_states[fd], (uint8_t)sock->state, memory_order_relaxed);
}

/* Adds one, which may be -1, to the counters of sockets that state belongs to. */
static void count_state(enum aw_fd_state state, unsigned one) AW_REQUIRES(aw_fdtab_mutex)
{
	if (state >= AW_FD_CONNECTING)
		atomic_fetch_add_explicit(&aw_fdtab_undecided, one, memory_order_relaxed);
	if (state == AW_FD_BRIDGED)
		atomic_fetch_add_explicit(&aw_fdtab_bridged, one, memory_order_relaxed);
	if (state == AW_FD_LISTENER)
		atomic_fetch_add_explicit(&aw_fdtab_listeners, one, memory_order_relaxed);
	if (state == AW_FD_STARTING)
		starting += one;
}

void aw_fdtab_hold(struct aw_sock *sock)
{
	sock->users++;
}

int aw_fdtab_beside(const struct aw_sock *sock)
{
	struct stat file;

	return sock->beside && fstat(sock->beside, &file) == 0 && file.st_ino == sock->beside_ino
		       ? sock->beside
		       : 0;
}

void aw_fdtab_set_beside(struct aw_sock *sock, int fd)
{
	struct stat file = { 0 };

	sock->beside = fd;
	if (!fd || fstat(fd, &file) != 0)
		return;
	sock->beside_ino = file.st_ino;
	if ((unsigned)fd < AW_FDTAB_MAX)
		aw_fdtab_store_state(fd, AW_FD_INTERNAL);
}

void aw_fdtab_close_beside(struct aw_sock *sock)
{
	int fd = aw_fdtab_beside(sock);

	sock->beside = 0;
	if (!fd)
		return;
	if ((unsigned)fd < AW_FDTAB_MAX)
		aw_fdtab_store_state(fd, AW_FD_NONE);
	aw_libc()->close(fd);
}

void aw_fdtab_note_announced(struct aw_sock *sock)
{
	if (sock->unannounced)
		atomic_fetch_sub_explicit(&aw_fdtab_unannounced, 1, memory_order_relaxed);
	sock->unannounced = false;
}

/* Frees sock when it has no fd and no thread uses it. */
static void free_unused(struct aw_sock *sock) AW_REQUIRES(aw_fdtab_mutex)
{
	if (sock->fds || sock->users)
		return;
	count_state(sock->state, -1u);
	if (sock->slot)
		aw_fdtab_hooks.leave_slot(sock->slot);
	if (sock->tls)
		aw_fdtab_hooks.end_tls(sock->tls);
	aw_fdtab_note_announced(sock);
	aw_fdtab_close_beside(sock);
	while (sock->registrations) {
		struct aw_registration *reg = sock->registrations;

		sock->registrations = reg->next;
		aw_pool_free(&aw_fdtab_registrations, reg);
	}
	aw_pool_free(&pool, sock);
}

void aw_fdtab_release(struct aw_sock *sock)
{
	assert(sock->users);
	sock->users--;
	free_unused(sock);
}

void aw_fdtab_detach(int fd, enum aw_fd_state then)
{
	struct aw_sock *sock = aw_fdtab_entries[fd].sock;

	aw_fdtab_store_state(fd, then);
	aw_fdtab_cancel_change(fd);
	aw_fdtab_entries[fd].sock = NULL;
	if (!sock)
		return;
	atomic_store(&aw_fdtab_slots[fd], NULL);
	assert(sock->fds);
	sock->fds--;
	if (sock->slot && atomic_load(aw_fdtab_users_of(fd)))
		aw_fdtab_hold_users(sock, fd);
	free_unused(sock);
}

void aw_fdtab_note_number(int fd)
{
	if (fd >= fd_end)
		fd_end = fd + 1;
}

void aw_fdtab_attach(int fd, struct aw_sock *sock)
{
	aw_fdtab_detach(fd, AW_FD_LEAVING);
	aw_fdtab_entries[fd].sock = sock;
	born[fd] = sock->born;
	if (!sock->fds || fd < sock->lowest)
		sock->lowest = fd;
	if (!sock->fds || fd > sock->highest)
		sock->highest = fd;
	sock->fds++;
	aw_fdtab_note_number(fd);
	store_sock(fd, sock);
}

void aw_fdtab_mark(int fd)
{
	aw_fdtab_forget(fd);
	if ((unsigned)fd >= AW_FDTAB_MAX || aw_fdtab_is_vfork_child())
		return;
	atomic_store_explicit(&born[fd], aw_fdtab_forks_over, memory_order_relaxed);
	aw_fdtab_store_state(fd, AW_FD_CANDIDATE);
}

bool aw_fdtab_is_shared(int fd)
{
	return (unsigned)fd >= AW_FDTAB_MAX || born[fd] != aw_fdtab_forks_over;
}

static struct aw_sock *add_socket(int fd, const struct aw_sock *like) AW_REQUIRES(aw_fdtab_mutex)
{
	struct aw_sock *sock;
	struct stat file;

	if ((unsigned)fd >= AW_FDTAB_MAX || aw_fdtab_is_vfork_child() || fstat(fd, &file) != 0)
		return NULL;
	sock = aw_pool_alloc(&pool);
	if (!sock)
		return NULL;
	assert(aw_fd_state_leads_to(AW_FD_NONE, like->state));
	*sock = *like;
	sock->fds = sock->users = sock->sleepers = 0;
	sock->registrations = NULL;
	sock->dev = file.st_dev;
	sock->ino = file.st_ino;
	sock->born = born[fd];
	aw_fdtab_set_beside(sock, like->beside);
	count_state(sock->state, 1);
	if (sock->unannounced)
		atomic_fetch_add_explicit(&aw_fdtab_unannounced, 1, memory_order_relaxed);
	aw_fdtab_attach(fd, sock);
	return sock;
}

bool aw_fdtab_add(int fd, const struct aw_sock *like)
{
	bool added;

	aw_fdtab_lock();
	added = add_socket(fd, like);
	aw_fdtab_unlock();
	return added;
}

void aw_fdtab_log_left_out(int fd, bool is_refused)
{
	aw_log(AW_LOG_ERROR,
	       "fd %d %s: out of memory, its number is %d or more, or this is a child of vfork", fd,
	       is_refused ? "cannot have TLS, and is refused" : "stays plain TCP", AW_FDTAB_MAX);
}

struct aw_sock *aw_fdtab_get_or_add(int fd)
{
	static const struct aw_sock fresh = { .state = AW_FD_CANDIDATE };
	struct aw_sock *sock = aw_fdtab_get(fd);

	return sock ? sock : add_socket(fd, &fresh);
}

void aw_fdtab_forget(int fd)
{
	if (aw_fdtab_state(fd) == AW_FD_NONE || aw_fdtab_is_vfork_child())
		return;
	aw_fdtab_lock();
	aw_fdtab_detach(fd, AW_FD_NONE);
	aw_fdtab_unlock();
}

unsigned aw_fdtab_end(void)
{
	unsigned end;

	aw_fdtab_lock();
	end = (unsigned)fd_end;
	aw_fdtab_unlock();
	return end;
}

void aw_fdtab_hide(int fd)
{
	if ((unsigned)fd >= AW_FDTAB_MAX || aw_fdtab_is_vfork_child())
		return;
	aw_fdtab_lock();
	aw_fdtab_detach(fd, AW_FD_INTERNAL);
	aw_fdtab_unlock();
}

void aw_fdtab_close_hidden(int fd)
{
	atomic_store(aw_fdtab_users_of(fd), 0);
	aw_fdtab_detach(fd, AW_FD_NONE);
	aw_libc()->close(fd);
}

bool aw_fdtab_is_file_of(int fd, const struct aw_sock *sock)
{
	struct stat file;

	return fstat(fd, &file) == 0 && file.st_dev == sock->dev && file.st_ino == sock->ino;
}

struct aw_sock *aw_fdtab_get(int fd)
{
	struct aw_sock *sock = (unsigned)fd < AW_FDTAB_MAX ? aw_fdtab_entries[fd].sock : NULL;

	if (!sock)
		return NULL;
	if (aw_fdtab_is_file_of(fd, sock))
		return sock;
	if (!aw_fdtab_is_vfork_child() && sock->state != AW_FD_STARTING)
		aw_fdtab_detach(fd, AW_FD_NONE);
	return NULL;
}

bool aw_fdtab_look(int fd, struct aw_sock *copy)
{
	const struct aw_sock *sock;

	aw_fdtab_lock();
	sock = aw_fdtab_get(fd);
	if (sock && copy)
		*copy = *sock;
	aw_fdtab_unlock();
	return sock != NULL;
}

struct aw_sock *aw_fdtab_get_started(int fd)
{
	struct aw_sock *sock;

	aw_fdtab_await_left_locked(fd);
	sock = aw_fdtab_get(fd);
	while (sock && sock->state == AW_FD_STARTING) {
		aw_fdtab_await_change();
		aw_fdtab_await_left_locked(fd);
		sock = aw_fdtab_get(fd);
	}
	return sock;
}

bool aw_fdtab_is_paired(int fd)
{
	const struct aw_sock *sock;
	bool paired;

	if (aw_fdtab_state(fd) != AW_FD_STARTING)
		return aw_fdtab_state(fd) == AW_FD_BRIDGED;
	aw_fdtab_lock();
	sock = aw_fdtab_get_started(fd);
	paired = sock && sock->state == AW_FD_BRIDGED;
	aw_fdtab_unlock();
	return paired;
}

bool aw_fdtab_is_pair_of(int fd, ino_t ino)
{
	const struct aw_sock *sock;
	bool paired;

	aw_fdtab_lock();
	sock = aw_fdtab_get(fd);
	if (sock && (sock->ino == ino || sock->swapped_ino == ino))
		sock = aw_fdtab_get_started(fd);
	paired = sock && sock->state == AW_FD_BRIDGED && sock->swapped_ino == ino;
	aw_fdtab_unlock();
	return paired;
}

int aw_fdtab_next_fd(const struct aw_sock *sock, int after)
{
	for (int fd = after < sock->lowest ? sock->lowest : after + 1; fd <= sock->highest; fd++) {
		if (aw_fdtab_entries[fd].sock == sock)
			return fd;
	}
	return -1;
}

void aw_fdtab_set_state(struct aw_sock *sock, enum aw_fd_state state)
{
	assert(aw_fd_state_leads_to(sock->state, state));
	count_state(state, 1);
	count_state(sock->state, -1u);
	if (sock->state == AW_FD_STARTING)
		aw_fdtab_note_change();
	sock->state = state;
	for (int fd = aw_fdtab_next_fd(sock, -1); fd >= 0; fd = aw_fdtab_next_fd(sock, fd))
		store_sock(fd, sock);
}

void aw_fdtab_drop(struct aw_sock *sock)
{
	aw_fdtab_hold(sock);
	aw_fdtab_set_state(sock, AW_FD_NONE);
	for (int fd = aw_fdtab_next_fd(sock, -1); fd >= 0; fd = aw_fdtab_next_fd(sock, fd))
		aw_fdtab_detach(fd, AW_FD_NONE);
	aw_fdtab_release(sock);
}

void aw_fdtab_drop_slot(struct aw_sock *sock)
{
	sock->slot = NULL;
	for (int fd = aw_fdtab_next_fd(sock, -1); fd >= 0; fd = aw_fdtab_next_fd(sock, fd))
		atomic_store(&aw_fdtab_slots[fd], NULL);
}

void aw_fdtab_each(void (*see)(struct aw_sock *sock, int fd, void *arg), void *arg)
{
	for (int fd = 0; fd < fd_end; fd++) {
		if (aw_fdtab_entries[fd].sock)
			see(aw_fdtab_entries[fd].sock, fd, arg);
	}
}

static void move_beside(struct aw_sock *sock, int unused, void *arg) AW_REQUIRES(aw_fdtab_mutex)
{
	const int *fd = arg;
	int moved;

	(void)unused;
	if (sock->beside != *fd || !aw_fdtab_beside(sock))
		return;
	moved = aw_libc()->fcntl(*fd, F_DUPFD_CLOEXEC, *fd + 1);
	aw_fdtab_store_state(*fd, AW_FD_NONE);
	aw_libc()->close(*fd);
	aw_fdtab_set_beside(sock, moved > 0 ? moved : 0);
}

void aw_fdtab_free_beside(int fd)
{
	aw_fdtab_lock();
	aw_fdtab_each(move_beside, &fd);
	aw_fdtab_unlock();
}

int aw_fdtab_find(int from, aw_fdtab_wanted *wanted, const void *arg)
{
	int found = -1;

	aw_fdtab_lock();
	for (int fd = from; fd < fd_end && found < 0; fd++)
		if (aw_fdtab_entries[fd].sock && wanted(aw_fdtab_entries[fd].sock, fd, arg))
			found = fd;
	aw_fdtab_unlock();
	return found;
}
