// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The socket of UD QPs: which thread reads it when, and its life. udsock_io.c reads and writes the
// datagrams.
#include "net/ud/udsock.h"

#include "net/base/fork.h"
#include "net/base/io_now.h"
#include "net/progress/watch.h"
#include "net/roce/qpn.h"
#include "net/ud/ud.h"
#include "net/ud/udsock_io.h"
#include "ring/lock.h"
#include "ring/table.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

/*
 * So many turns of pollers between two events mean that a thread polls: pollers then read the
 * socket.
 */
#define TURNS_MIN 16
/* The interval at which the progress thread checks that pollers still read it. */
#define LOOK_MS 1
/*
 * Reads of the progress thread per turn, each of a batch, so that a flood leaves other watches
 * their turn.
 */
#define READS_MAX 4

static aw_mutex lock = PTHREAD_MUTEX_INITIALIZER; /* guards refs, too */
static TAILQ_HEAD(, aw_udsock) socks
	AW_GUARDED_BY(lock) = TAILQ_HEAD_INITIALIZER(socks); /* the sockets of ports */

static void on_event(struct aw_watch *w, uint32_t events);
static void deliver_to_port(void *arg, const struct aw_ud_arrival *arrival);

static struct aw_udsock *find(uint16_t port) AW_REQUIRES(lock)
{
	struct aw_udsock *sock;

	TAILQ_FOREACH(sock, &socks, entry)
	{
		if (sock->port == port && sock->generation == aw_fork_generation())
			return sock;
	}
	return NULL;
}

static void release(struct aw_udsock *sock)
{
	free(sock->stage);
	free(sock);
}

static int make(int fd, struct aw_udsock **made)
{
	struct aw_udsock *sock = calloc(1, sizeof(*sock));
	int err;

	if (!sock)
		return ENOMEM;
	sock->fd = fd;
	sock->refs = 1;
	sock->generation = aw_fork_generation();
	for (uint32_t i = 0; i < AW_QPN_OF_PORT; i++)
		sock->handles[i] = AW_TABLE_NONE;
	sock->stage = malloc(sizeof(*sock->stage));
	err = sock->stage ? aw_udsock_prepare(sock) : ENOMEM;
	if (err) {
		release(sock);
		return err;
	}
	pthread_mutex_init(&sock->lock, NULL);
	pthread_mutex_init(&sock->listen_lock, NULL);
	*made = sock;
	return 0;
}

/* From here on the progress thread reads the socket. On failure sock is freed. */
static int start(struct aw_udsock *sock)
{
	int err = aw_watch_add(&sock->watch, sock->fd, EPOLLIN, on_event, NULL);

	if (err)
		release(sock);
	return err;
}

static int create_of_port(uint32_t qpn, struct aw_udsock **created) AW_REQUIRES(lock)
{
	struct aw_udsock *sock;
	int err = make(aw_qpn_udp(qpn), &sock);

	if (err)
		return err;
	sock->deliver = deliver_to_port;
	sock->arg = sock;
	sock->port = aw_qpn_port(qpn);
	err = start(sock);
	if (err)
		return err;
	TAILQ_INSERT_TAIL(&socks, sock, entry);
	*created = sock;
	return 0;
}

int aw_udsock_get(uint32_t qpn, struct aw_udsock **out)
{
	struct aw_udsock *sock;
	int err = 0;

	aw_lock(&lock);
	sock = find(aw_qpn_port(qpn));
	if (sock)
		sock->refs++;
	else
		err = create_of_port(qpn, &sock);
	aw_unlock(&lock);
	if (!err)
		*out = sock;
	return err;
}

int aw_udsock_create(int fd, aw_udsock_fn *deliver, void *arg, struct aw_udsock **created)
{
	struct aw_udsock *sock;
	int err = make(fd, &sock);

	if (err)
		return err;
	sock->deliver = deliver;
	sock->arg = arg;
	sock->owns_fd = true;
	err = start(sock);
	if (!err)
		*created = sock;
	return err;
}

void aw_udsock_put(struct aw_udsock *sock)
{
	aw_lock(&lock);
	bool last = --sock->refs == 0;

	if (last && sock->port)
		TAILQ_REMOVE(&socks, sock, entry);
	aw_unlock(&lock);
	if (!last)
		return;

	/* In the child of a fork a thread of the parent may hold the locks, so they are left alone. */
	if (sock->generation == aw_fork_generation()) {
		aw_watch_remove_wait(&sock->watch);
		pthread_mutex_destroy(&sock->lock);
		pthread_mutex_destroy(&sock->listen_lock);
	} else {
		aw_watch_remove(&sock->watch);
	}
	if (sock->owns_fd)
		aw_close_now(sock->fd);
	release(sock);
}

void aw_udsock_fork_prepare(void) AW_ACQUIRE(lock)
{
	aw_lock(&lock);
}

void aw_udsock_fork_done(void) AW_RELEASE(lock)
{
	aw_unlock(&lock);
}

/* In the child of a fork the lock may be held by a thread that only the parent has. */
void aw_udsock_lock(struct aw_udsock *sock) AW_ACQUIRE(sock->lock) AW_UNCHECKED
{
	if (sock->generation == aw_fork_generation())
		aw_lock(&sock->lock);
}

void aw_udsock_unlock(struct aw_udsock *sock) AW_RELEASE(sock->lock) AW_UNCHECKED
{
	if (sock->generation == aw_fork_generation())
		aw_unlock(&sock->lock);
}

/* A thread that finds another one reading leaves the work to it. */
static void serve(struct aw_udsock *sock)
{
	if (sock->generation != aw_fork_generation())
		return;
	atomic_fetch_add_explicit(&sock->turns, 1, memory_order_relaxed);
	if (aw_trylock(&sock->lock) != 0)
		return;
	aw_udsock_read(sock);
	aw_unlock(&sock->lock);
}

/* Where the kernel has no memory to listen, the socket stays lent, and the next look tries again. */
static void listen_for(struct aw_udsock *sock) AW_REQUIRES(sock->listen_lock)
{
	uint32_t events = (sock->lent ? 0 : EPOLLIN) | (sock->wants_room ? EPOLLOUT : 0);

	if (aw_watch_events(&sock->watch, events) == 0)
		return;
	sock->lent = true;
	aw_watch_deadline(&sock->watch, LOOK_MS);
}

static void await(struct aw_udsock *sock)
{
	if (sock->generation != aw_fork_generation())
		return;
	aw_lock(&sock->listen_lock);
	sock->awaited = true;
	if (sock->lent) {
		sock->lent = false;
		listen_for(sock);
	}
	aw_unlock(&sock->listen_lock);
}

const struct aw_cq_sock_ops aw_udsock_cq_ops = { .serve = serve, .await = await };

void aw_udsock_assign(struct aw_udsock *sock, uint32_t qpn, uint32_t handle)
{
	aw_udsock_lock(sock);
	sock->handles[qpn % AW_QPN_OF_PORT] = handle;
	aw_udsock_unlock(sock);
}

static struct aw_uqp *qp_at(const struct aw_udsock *sock, uint32_t index) AW_REQUIRES(sock->lock)
{
	return aw_uqp_at(sock->handles[index % AW_QPN_OF_PORT]);
}

/*
 * Delivers only to a QP of this port. A datagram for a number of another port is dropped: that QP
 * is reached at its own port.
 */
static void deliver_to_port(void *arg, const struct aw_ud_arrival *arrival)
{
	struct aw_udsock *sock = arg;
	struct aw_uqp *qp = NULL;

	aw_held(&sock->lock);
	if (aw_qpn_port(arrival->hdr.dest_qpn) == sock->port &&
	    !ud_addr_is_multicast(arrival->route->dst))
		qp = qp_at(sock, arrival->hdr.dest_qpn);
	if (!qp)
		return;
	aw_ud_receive(qp, arrival);
	aw_uqp_put(qp);
}

/* The functions from here to on_event run on the progress thread. */

static void read_some(struct aw_udsock *sock)
{
	bool more = true;

	for (int i = 0; i < READS_MAX && more; i++) {
		aw_lock(&sock->lock);
		more = aw_udsock_read(sock);
		aw_unlock(&sock->lock);
	}
}

static uint32_t turns_since(struct aw_udsock *sock)
{
	uint32_t turns = atomic_load_explicit(&sock->turns, memory_order_relaxed);
	uint32_t since = turns - sock->turns_seen;

	sock->turns_seen = turns;
	return since;
}

/* False: no thread polls, or one has armed a CQ since it did. */
static bool lend(struct aw_udsock *sock)
{
	bool polled = turns_since(sock) >= TURNS_MIN;

	aw_lock(&sock->listen_lock);
	polled &= !sock->awaited;
	sock->awaited = false;
	if (polled) {
		sock->lent = true;
		listen_for(sock);
	}
	aw_unlock(&sock->listen_lock);
	if (polled)
		aw_watch_deadline(&sock->watch, LOOK_MS);
	return polled;
}

static bool is_lent(struct aw_udsock *sock)
{
	aw_lock(&sock->listen_lock);
	bool lent = sock->lent;

	aw_unlock(&sock->listen_lock);
	return lent;
}

static void give_room(struct aw_udsock *sock)
{
	aw_lock(&sock->listen_lock);
	sock->wants_room = false;
	listen_for(sock);
	aw_unlock(&sock->listen_lock);
	for (uint32_t i = 0; i < AW_QPN_OF_PORT; i++) {
		aw_lock(&sock->lock);
		struct aw_uqp *qp = qp_at(sock, i);

		aw_unlock(&sock->lock);
		if (!qp)
			continue;
		aw_ud_on_room(qp);
		aw_uqp_put(qp);
	}
}

static void on_event(struct aw_watch *w, uint32_t events)
{
	struct aw_udsock *sock = aw_udsock_of(w);

	if (events & EPOLLOUT)
		give_room(sock);
	if (events & AW_WATCH_TIMEOUT && is_lent(sock)) {
		if (turns_since(sock) > 0) {
			aw_watch_deadline(&sock->watch, LOOK_MS);
		} else {
			/*
			 * No thread polls any more, or the poller has lost the CPU: in either case the progress thread
			 * reads what has come.
			 */
			read_some(sock);
			aw_lock(&sock->listen_lock);
			sock->lent = false;
			listen_for(sock);
			aw_unlock(&sock->listen_lock);
		}
	} else if (events & (EPOLLIN | EPOLLERR)) {
		if (!lend(sock))
			read_some(sock);
	}
}

void aw_udsock_want_room(struct aw_udsock *sock)
{
	aw_lock(&sock->listen_lock);
	bool first = !sock->wants_room;

	sock->wants_room = true;
	if (first)
		listen_for(sock);
	aw_unlock(&sock->listen_lock);
}
