// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Each lingering socket is a watch of its own. The lists serve only the engine's stop, forks, and
// the bound on connections that were never accepted.
#include "net/progress/linger.h"

#include "net/base/bounds.h"
#include "net/base/io_now.h"
#include "net/progress/watch.h"
#include "ring/lock.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define DROP_BYTES (64u << 10) /* bytes per read */
#define DROPS_MAX 64 /* reads per turn, so that other watches have theirs */

struct lingerer {
	struct aw_watch watch; /* first: the watch is the lingerer */
	struct aw_linger_socket socket;
	uint32_t number;
	/* guarded by lock; NULL: none. The thread that takes the lingerer off its list ends it */
	struct list *list;
	TAILQ_ENTRY(lingerer) entry;
};

static aw_mutex lock = PTHREAD_MUTEX_INITIALIZER;
TAILQ_HEAD(lingerer_list, lingerer);

static struct list {
	struct lingerer_list first;
	uint32_t count;
} own = { TAILQ_HEAD_INITIALIZER(own.first), 0 },
  strangers = { TAILQ_HEAD_INITIALIZER(strangers.first), 0 };

/* Reads and drops the input. True when nothing can come any more: FIN or a dead socket. */
static bool drain(int fd)
{
	/*
	 * With MSG_TRUNC TCP drops the bytes without a copy; the kernel's TLS writes them there, where nobody reads. It has a type
	 * for each record, and without room for it an alert would never be read.
	 */
	static uint8_t nowhere[DROP_BYTES];

	for (int i = 0; i < DROPS_MAX; i++) {
		char type[CMSG_SPACE(1)];
		struct iovec iov = { .iov_base = nowhere, .iov_len = sizeof(nowhere) };
		struct msghdr msg = { .msg_iov = &iov,
				      .msg_iovlen = 1,
				      .msg_control = type,
				      .msg_controllen = sizeof(type) };
		/*
		 * The system call is made directly, because the thread sanitizer reports two threads'
		 * recv into the same memory as a race.
		 */
		ssize_t n = syscall(SYS_recvmsg, fd, &msg, MSG_TRUNC | MSG_DONTWAIT);

		if (n == 0)
			return true;
		if (n < 0)
			return errno != EAGAIN && errno != EINTR;
	}
	return false;
}

static void release(struct aw_watch *w)
{
	struct lingerer *l = (struct lingerer *)w;

	aw_close_now(l->socket.fd);
	free(l);
}

static void take_off(struct lingerer *l) AW_REQUIRES(lock)
{
	TAILQ_REMOVE(&l->list->first, l, entry);
	l->list->count--;
	l->list = NULL;
}

static void on_watch(struct aw_watch *w, uint32_t events)
{
	struct lingerer *l = (struct lingerer *)w;

	if (!(events & AW_WATCH_TIMEOUT) && !drain(l->socket.fd))
		return;
	aw_lock(&lock);
	bool listed = l->list;

	if (listed)
		take_off(l);
	aw_unlock(&lock);
	if (!listed)
		return;
	void (*told)(uint32_t handle, uint32_t number) = l->socket.told;
	uint32_t handle = l->socket.handle, number = l->number;

	aw_watch_remove(w);
	if (told)
		told(handle, number);
}

/* Takes the first lingerer off the list when there are more than beyond; else NULL. */
static struct lingerer *take_first(struct list *list, uint32_t beyond)
{
	struct lingerer *l = NULL;

	aw_lock(&lock);
	if (list->count > beyond) {
		l = TAILQ_FIRST(&list->first);
		take_off(l);
	}
	aw_unlock(&lock);
	return l;
}

/* False: the socket is closed. */
static bool begin(struct list *list, const struct aw_linger_socket *socket, uint32_t number)
{
	struct lingerer *l;

	if ((!socket->fin_sent && shutdown(socket->fd, SHUT_WR) != 0) || drain(socket->fd))
		goto close_fd;
	l = malloc(sizeof(*l));
	if (!l)
		goto close_fd;
	l->socket = *socket;
	l->number = number;
	if (aw_watch_add(&l->watch, socket->fd, 0, on_watch, release) != 0)
		goto free_lingerer;
	/* The watch is armed under the lock, so that no other thread ends the lingerer before. */
	aw_lock(&lock);
	l->list = list;
	TAILQ_INSERT_TAIL(&list->first, l, entry);
	list->count++;
	aw_watch_deadline(&l->watch, aw_bounds.linger_ms);
	if (socket->watched)
		aw_watch_take_passed(&l->watch, EPOLLIN);
	else
		aw_watch_events(&l->watch, EPOLLIN);
	aw_unlock(&lock);
	return true;

free_lingerer:
	free(l);
close_fd:
	if (socket->watched)
		aw_watch_drop_passed(socket->fd);
	aw_close_now(socket->fd);
	return false;
}

void aw_linger(int fd)
{
	begin(&own, &(struct aw_linger_socket){ .fd = fd }, 0);
}

uint32_t aw_linger_stream(const struct aw_linger_socket *socket)
{
	static _Atomic uint32_t last;
	uint32_t number = atomic_fetch_add_explicit(&last, 1, memory_order_relaxed) | 1u << 31;

	return begin(&own, socket, number) ? number : 0;
}

void aw_linger_stranger(int fd)
{
	struct lingerer *oldest;

	begin(&strangers, &(struct aw_linger_socket){ .fd = fd }, 0);
	oldest = take_first(&strangers, aw_bounds_files(AW_FILES_LINGERING, 1));
	if (oldest)
		aw_watch_remove(&oldest->watch);
}

static void flush(struct list *list)
{
	struct lingerer *l;

	while ((l = take_first(list, 0)))
		aw_watch_remove(&l->watch);
}

void aw_linger_flush(void)
{
	flush(&own);
	flush(&strangers);
}

void aw_linger_fork_prepare(void) AW_ACQUIRE(lock)
{
	aw_lock(&lock);
}

void aw_linger_fork_parent(void) AW_RELEASE(lock)
{
	aw_unlock(&lock);
}

static void forget(struct list *list) AW_REQUIRES(lock)
{
	struct lingerer *l;

	TAILQ_FOREACH(l, &list->first, entry)
	aw_close_now(l->socket.fd);
	TAILQ_INIT(&list->first);
	list->count = 0;
}

/* The watches stay in the child's table, dead and unreachable: their memory is not freed. */
void aw_linger_fork_child(void) AW_RELEASE(lock)
{
	forget(&own);
	forget(&strangers);
	aw_unlock(&lock);
}
