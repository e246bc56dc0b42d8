// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Sockets on their way out. Each is a watch of its own; the list is only for the engine's stop and
// for forks.
#include "net/linger.h"

#include "net/bounds.h"
#include "net/watch.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define DROP_OCTETS (1 << 20) /* at a time */
#define DROPS_MAX 16 /* a turn: leave others theirs */

struct lingerer {
	struct aw_watch watch; /* first: the watch is the lingerer */
	int fd;
	bool listed; /* guarded by lock: who takes it off the list ends it */
	TAILQ_ENTRY(lingerer) entry;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static TAILQ_HEAD(, lingerer) lingerers = TAILQ_HEAD_INITIALIZER(lingerers);

/* Reads and drops what is there. True once nothing can come any more: FIN or a dead socket. */
static bool drain(int fd)
{
	for (int i = 0; i < DROPS_MAX; i++) {
		/* MSG_TRUNC: TCP drops the octets without a copy. */
		ssize_t n = recv(fd, NULL, DROP_OCTETS, MSG_TRUNC | MSG_DONTWAIT);

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

	close(l->fd);
	free(l);
}

/* Under the lock: nobody ends it before it is armed. */
static void list(struct lingerer *l)
{
	pthread_mutex_lock(&lock);
	l->listed = true;
	TAILQ_INSERT_TAIL(&lingerers, l, entry);
	aw_watch_deadline(&l->watch, aw_bounds.linger_ms);
	aw_watch_events(&l->watch, EPOLLIN);
	pthread_mutex_unlock(&lock);
}

static bool unlist(struct lingerer *l)
{
	bool listed;

	pthread_mutex_lock(&lock);
	listed = l->listed;
	if (listed)
		TAILQ_REMOVE(&lingerers, l, entry);
	l->listed = false;
	pthread_mutex_unlock(&lock);
	return listed;
}

static void on_watch(struct aw_watch *w, uint32_t events)
{
	struct lingerer *l = (struct lingerer *)w;

	if (!(events & AW_WATCH_TIMEOUT) && !drain(l->fd))
		return;
	if (unlist(l))
		aw_watch_remove(w);
}

void aw_linger(int fd)
{
	struct lingerer *l;

	if (shutdown(fd, SHUT_WR) != 0 || drain(fd))
		goto close_fd;
	l = calloc(1, sizeof(*l));
	if (!l)
		goto close_fd;
	l->fd = fd;
	if (aw_watch_add(&l->watch, fd, 0, on_watch, release) != 0)
		goto free_lingerer;
	list(l);
	return;

free_lingerer:
	free(l);
close_fd:
	close(fd);
}

static struct lingerer *take_first(void)
{
	struct lingerer *l;

	pthread_mutex_lock(&lock);
	l = TAILQ_FIRST(&lingerers);
	if (l) {
		TAILQ_REMOVE(&lingerers, l, entry);
		l->listed = false;
	}
	pthread_mutex_unlock(&lock);
	return l;
}

void aw_linger_flush(void)
{
	struct lingerer *l;

	while ((l = take_first()))
		aw_watch_remove(&l->watch);
}

void aw_linger_fork_prepare(void)
{
	pthread_mutex_lock(&lock);
}

void aw_linger_fork_parent(void)
{
	pthread_mutex_unlock(&lock);
}

/*
 * The watches stay in the child's table, dead and unreachable: their memory is not freed. Where the
 * child carries on, its table is in use, and they leave it.
 */
void aw_linger_fork_child(bool carries)
{
	struct lingerer *l;

	if (!carries) {
		TAILQ_FOREACH(l, &lingerers, entry)
		close(l->fd);
		TAILQ_INIT(&lingerers);
	}
	pthread_mutex_unlock(&lock);
	if (carries)
		aw_linger_flush();
}
