// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A listening socket and the connections it has accepted that have not sent a whole Request. All of
// it runs on the progress thread except create and destroy. Input of an unaccepted peer ends at
// most its own connection; the number of these peers and their time are bounded.
#include "net/conn/listener.h"

#include "base/clock.h"
#include "base/log.h"
#include "net/base/addr.h"
#include "net/base/bounds.h"
#include "net/base/fork.h"
#include "net/base/io_now.h"
#include "net/progress/engine.h"
#include "net/stat/stat.h"
#include "net/tls/context.h"
#include "ring/lock.h"

#include <assert.h>
#include <errno.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define ACCEPTS_MAX 64 /* per turn, so that other watches have theirs */
/*
 * Connections further apart come one by one: a turn accepts one, since the kernel takes 1.2 us to say that there is no other. Where
 * there is, the next turn follows at once.
 */
#define APART_NS UINT64_C(50000)
#define MS_NS UINT64_C(1000000)
#define PAUSE_MS 100 /* when fds or memory are out, until some may have been freed */

struct half_open {
	struct aw_listener *listener;
	struct aw_conn *conn;
	uint64_t since_ns;
	TAILQ_ENTRY(half_open) entry;
};

struct aw_listener {
	struct aw_watch watch; /* first: the watch is the listener, and its release frees it */
	/* fixed after create */
	int fd; /* -1: connections are given */
	uint32_t generation;
	struct aw_mpa_local local;
	aw_conn_fn *fn;
	void *arg;
	struct sockaddr_storage local_addr; /* of what it accepts; AF_UNSPEC: the socket is asked */
	union aw_stat_row *stat; /* its statistics, or NULL */

	aw_mutex lock; /* guards what follows; no event runs under it */
	/* aw_listener_destroy owns the half-open connections, and accepts have ended */
	bool closing;
	bool paused; /* the deadline runs */
	bool crowded; /* paused for the newest connections; the pause ends when one of them goes */
	uint32_t half_open_count;
	TAILQ_HEAD(half_open_list, half_open) half_open;
	uint32_t telling; /* events of half-open connections that run */
	pthread_cond_t told;

	/* only for the progress thread */
	uint32_t half_open_max; /* of this turn; 0: not asked for */
	uint64_t accepted_ns; /* the last one */
	uint64_t failed_count, requests_count;
	bool starved; /* the shortage is logged once, until an accept succeeds */
};

/*
 * Listeners that have a socket, which share the files that unaccepted peers may have. Relaxed: only
 * the number matters.
 */
static _Atomic uint32_t accepting;

uint32_t aw_listener_files(uint32_t part)
{
	return aw_bounds_files(part, atomic_load_explicit(&accepting, memory_order_relaxed));
}

/* The child of a fork has no listener yet. */
static void fork_child(void)
{
	atomic_store_explicit(&accepting, 0, memory_order_relaxed);
}

static const struct aw_fork_handlers fork_handlers = {
	.child = fork_child,
};

static __attribute__((constructor)) void prepare_for_fork(void)
{
	aw_fork_register(AW_FORK_LISTENERS, &fork_handlers);
}

static void release(struct aw_watch *w)
{
	struct aw_listener *l = (struct aw_listener *)w;

	if (l->fd >= 0 && l->generation == aw_fork_generation()) {
		/* The child of a fork may hold the socket, too. */
		shutdown(l->fd, SHUT_RDWR);
		atomic_fetch_sub_explicit(&accepting, 1, memory_order_relaxed);
	}
	if (l->fd >= 0)
		aw_close_now(l->fd);
	aw_stat_give(l->stat);
	pthread_cond_destroy(&l->told);
	pthread_mutex_destroy(&l->lock);
	free(l);
}

static void pause_accepts(struct aw_listener *l, uint32_t ms) AW_REQUIRES(l->lock)
{
	l->paused = true;
	aw_watch_deadline(&l->watch, ms);
}

/*
 * Accepts go on exactly while the listener is neither closing nor paused, which it is for longer where the kernel has no
 * memory to listen.
 */
static void set_events(struct aw_listener *l) AW_REQUIRES(l->lock)
{
	if (!l->closing && aw_watch_events(&l->watch, l->paused ? 0 : EPOLLIN) != 0)
		pause_accepts(l, PAUSE_MS);
}

static bool is_wildcard(const struct sockaddr_storage *address)
{
	const struct sockaddr_in *v4 = (const void *)address;
	const struct sockaddr_in6 *v6 = (const void *)address;

	return address->ss_family == AF_INET6 ? IN6_IS_ADDR_UNSPECIFIED(&v6->sin6_addr)
					      : v4->sin_addr.s_addr == htonl(INADDR_ANY);
}

/* Learns the address: the statistics have it, and so do accepted sockets, unless it is a wildcard. */
static void begin_address(struct aw_listener *l)
{
	struct sockaddr_storage address = { .ss_family = AF_UNSPEC };
	socklen_t len = sizeof(address);
	struct aw_stat_listener *row;
	bool known = getsockname(l->fd, (struct sockaddr *)&address, &len) == 0;

	if (known && !is_wildcard(&address))
		l->local_addr = address;

	l->stat = aw_stat_take(AW_STAT_LISTENER, 0);
	if (!l->stat)
		return;
	row = &l->stat->listener;
	aw_stat_set((uint32_t *)&row->fd, (uint32_t)l->fd);
	if (known)
		aw_stat_address(&address, &row->family, &row->port, row->address);
}

/* For other processes to read (net/stat/stat.h). */
static void publish(const struct aw_listener *l) AW_REQUIRES(l->lock)
{
	if (!l->stat)
		return;
	aw_stat_set(&l->stat->listener.half_open, l->half_open_count);
	aw_stat_set64(&l->stat->listener.requests, l->requests_count);
	aw_stat_set64(&l->stat->listener.failed, l->failed_count);
}

static void take_off(struct aw_listener *l, struct half_open *h) AW_REQUIRES(l->lock)
{
	TAILQ_REMOVE(&l->half_open, h, entry);
	l->half_open_count--;
	publish(l);
	if (!l->crowded)
		return;
	l->crowded = l->paused = false;
	set_events(l);
}

static void drop(struct aw_listener *l, struct aw_conn *conn)
{
	l->failed_count++;
	aw_log(AW_LOG_DEBUG, "listener %s failed start-ups %llu",
	       aw_addr_text(&aw_conn_info(conn)->local).text, (unsigned long long)l->failed_count);
	aw_conn_destroy(conn);
}

static void on_half_open(void *arg, struct aw_conn *conn, enum aw_conn_event event)
{
	struct half_open *h = arg;
	struct aw_listener *l = h->listener;

	aw_lock(&l->lock);
	bool mine = !l->closing; /* or aw_listener_destroy's */

	if (mine) {
		take_off(l, h);
		l->telling++;
	}
	aw_unlock(&l->lock);
	if (!mine)
		return;
	free(h);
	l->requests_count += event == AW_CONN_REQUEST;
	if (event == AW_CONN_REQUEST || l->fd < 0)
		l->fn(l->arg, conn, event);
	else
		drop(l, conn);
	aw_lock(&l->lock);
	l->telling--;
	publish(l);
	pthread_cond_broadcast(&l->told);
	aw_unlock(&l->lock);
}

/*
 * A client that behaves sends its Request at once, so the connection that has been silent longest
 * is dropped, and silent peers cannot keep others out. NULL: every connection has input, and this
 * thread reads it next.
 */
static struct half_open *oldest_silent(struct aw_listener *l) AW_REQUIRES(l->lock)
{
	struct half_open *h;

	TAILQ_FOREACH(h, &l->half_open, entry)
	{
		if (aw_conn_is_silent(h->conn))
			return h;
	}
	return NULL;
}

static void drop_half_open(struct aw_listener *l, struct half_open *h) AW_REQUIRES(l->lock)
{
	take_off(l, h);
	drop(l, h->conn);
	free(h);
}

static bool is_shortage(int err)
{
	return err == EMFILE || err == ENFILE || err == ENOBUFS || err == ENOMEM;
}

/*
 * The time since when TCP has heard nothing from the peer. Time in TCP's backlog counts, so that
 * many silent peers there do not delay the clients behind them.
 */
static uint64_t silent_since(int fd)
{
	struct tcp_info info = { 0 };
	socklen_t len = sizeof(info);
	uint32_t ms;

	if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) != 0)
		return aw_now_ns();
	ms = info.tcpi_last_ack_recv < info.tcpi_last_data_recv ? info.tcpi_last_ack_recv
								: info.tcpi_last_data_recv;
	return aw_now_ns() - ms * MS_NS;
}

static int start_half_open(struct aw_listener *l, const struct aw_conn_socket *socket,
			   uint64_t since_ns) AW_REQUIRES(l->lock)
{
	struct half_open *h = calloc(1, sizeof(*h));
	int err;

	if (!h)
		return ENOMEM;
	h->listener = l;
	h->since_ns = since_ns;
	err = aw_conn_respond(socket, &l->local, on_half_open, h, &h->conn);
	if (err) {
		free(h);
		return err;
	}
	TAILQ_INSERT_TAIL(&l->half_open, h, entry);
	l->half_open_count++;
	publish(l);
	return 0;
}

/*
 * True when the connection was lost before it was accepted and the next one may be there
 * (accept(2)).
 */
static bool is_passing(int err)
{
	switch (err) {
	case EINTR:
	case ECONNABORTED:
	case EPROTO:
	case ENETDOWN:
	case ENOPROTOOPT:
	case EHOSTDOWN:
	case ENONET:
	case EHOSTUNREACH:
	case EOPNOTSUPP:
	case ENETUNREACH:
		return true;
	default:
		return false;
	}
}

static void starve(struct aw_listener *l, int err) AW_REQUIRES(l->lock)
{
	if (!l->starved)
		aw_log(AW_LOG_ERROR, "listener cannot accept: %s%s; tries every %d ms",
		       strerror(err), err == EMFILE ? ": raise the limit (ulimit -n)" : "",
		       PAUSE_MS);
	l->starved = true;
	pause_accepts(l, PAUSE_MS);
}

/*
 * Files or memory are out: drops a silent connection, or pauses where none has begun. True: the listener may
 * accept again at once.
 */
static bool make_room(struct aw_listener *l, int err) AW_REQUIRES(l->lock)
{
	struct half_open *silent = oldest_silent(l);

	if (silent)
		drop_half_open(l, silent);
	else if (l->half_open_count == 0)
		starve(l, err);
	return silent;
}

/*
 * Starts MPA on an accepted socket, which may have waited in the backlog if the list was full. True: the listener may
 * accept again at once.
 */
static bool start_accepted(struct aw_listener *l, const struct aw_conn_socket *socket, bool full)
	AW_REQUIRES(l->lock)
{
	uint64_t now_ns = aw_now_ns();
	uint64_t since_ns = full ? silent_since(socket->fd) : now_ns;
	int err = start_half_open(l, socket, since_ns);

	l->accepted_ns = now_ns;
	if (err)
		aw_close_now(socket->fd);
	else
		l->starved = false;
	return !is_shortage(err) || make_room(l, err);
}

/* The limit of the files is asked for only where it may matter. */
static bool is_full(struct aw_listener *l) AW_REQUIRES(l->lock)
{
	uint32_t most = aw_bounds.half_open_max;

	if (l->half_open_count < AW_FILES_LEAST && l->half_open_count < most)
		return false;
	if (!l->half_open_max)
		l->half_open_max = aw_listener_files(AW_FILES_HALF_OPEN);
	return l->half_open_count >= (l->half_open_max < most ? l->half_open_max : most);
}

/* Accepts the next connection; false when there is no more for now. */
static bool accept_one(struct aw_listener *l) AW_REQUIRES(l->lock)
{
	bool full = is_full(l);
	struct half_open *silent = full ? oldest_silent(l) : NULL;
	struct aw_conn_socket socket = { .local = l->local_addr };
	socklen_t len = sizeof(socket.peer);

	if (full && !silent)
		return false;
	/* Many clients at once are no attack: further ones wait in TCP's backlog for so long. */
	if (silent && aw_now_ns() - silent->since_ns < aw_bounds.young_ms * MS_NS) {
		pause_accepts(l, aw_bounds.young_ms);
		l->crowded = true;
		return false;
	}
	socket.fd =
		accept4(l->fd, (struct sockaddr *)&socket.peer, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (socket.fd >= 0) {
		if (silent)
			drop_half_open(l, silent);
		return start_accepted(l, &socket, full);
	}
	if (errno == EAGAIN)
		return false;
	if (is_passing(errno))
		return true;
	if (is_shortage(errno))
		return make_room(l, errno);
	starve(l, errno);
	return false;
}

/*
 * Events of the half-open connections, which need the lock, wait for this thread. Returns the first connection, by its watch, or
 * AW_WATCH_NONE: its Request is mostly there, and is read in this turn. Those behind it may have come after the turn's other events
 * were fetched, and what their peers sent before is received first.
 */
static uint64_t accept_some(struct aw_listener *l) AW_REQUIRES(l->lock)
{
	uint64_t before_ns = l->accepted_ns, first = AW_WATCH_NONE;

	l->half_open_max = 0;
	for (int i = 0; i < ACCEPTS_MAX && accept_one(l); i++) {
		struct half_open *newest = TAILQ_LAST(&l->half_open, half_open_list);

		if (i > 0 || !newest)
			continue;
		first = aw_conn_watch_key(newest->conn);
		if (l->accepted_ns - before_ns > APART_NS)
			break;
	}
	return first;
}

static void on_watch(struct aw_watch *w, uint32_t events)
{
	struct aw_listener *l = (struct aw_listener *)w;
	uint64_t first = AW_WATCH_NONE;

	aw_lock(&l->lock);
	if (events & AW_WATCH_TIMEOUT) {
		l->paused = l->crowded = false;
		set_events(l);
	} else if (!l->closing && !l->paused) {
		first = accept_some(l);
		if (l->paused)
			set_events(l);
	}
	aw_unlock(&l->lock);
	if (first != AW_WATCH_NONE)
		aw_watch_look(first);
}

static struct aw_listener *create(int fd, const struct aw_mpa_local *local, aw_conn_fn *fn,
				  void *arg)
{
	struct aw_listener *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	l->fd = fd;
	l->generation = aw_fork_generation();
	l->local = *local;
	l->fn = fn;
	l->arg = arg;
	TAILQ_INIT(&l->half_open);
	pthread_mutex_init(&l->lock, NULL);
	pthread_cond_init(&l->told, NULL);
	return l;
}

static void discard(struct aw_listener *l)
{
	l->fd = -1; /* the caller's */
	release(&l->watch);
}

/* An event needs the lock, and so finds *out written. */
static int begin(struct aw_listener *l, struct aw_listener **out)
{
	int err;

	aw_lock(&l->lock);
	err = aw_watch_add_last(&l->watch, l->fd, EPOLLIN, on_watch, release);
	if (!err)
		*out = l;
	aw_unlock(&l->lock);
	return err;
}

int aw_listener_create(int fd, int backlog, const struct aw_mpa_local *local, aw_conn_fn *fn,
		       void *arg, struct aw_listener **out)
{
	int err = aw_tls_check();
	struct aw_listener *l = err ? NULL : create(fd, local, fn, arg);

	if (!l)
		return err ? err : ENOMEM;
	/* Accepted sockets inherit these options. */
	aw_conn_set_options(fd);
	err = listen(fd, backlog) == 0 ? 0 : errno;
	if (!err) {
		begin_address(l);
		err = begin(l, out);
	}
	if (err)
		discard(l);
	else
		atomic_fetch_add_explicit(&accepting, 1, memory_order_relaxed);
	return err;
}

int aw_listener_create_given(const struct aw_mpa_local *local, aw_conn_fn *fn, void *arg,
			     struct aw_listener **out)
{
	int err = aw_tls_check();
	struct aw_listener *l = err ? NULL : create(-1, local, fn, arg);

	if (!l)
		return err ? err : ENOMEM;
	err = begin(l, out);
	if (err)
		discard(l);
	return err;
}

int aw_listener_give(struct aw_listener *l, int fd)
{
	struct aw_conn_socket socket = { .fd = fd, .given = true };
	socklen_t len = sizeof(socket.peer);
	int err;

	getpeername(fd, (struct sockaddr *)&socket.peer, &len);
	aw_conn_set_options(fd);
	aw_lock(&l->lock);
	err = start_half_open(l, &socket, aw_now_ns());
	aw_unlock(&l->lock);
	return err;
}

void aw_listener_destroy(struct aw_listener *l)
{
	struct half_open *h;

	/* In the child of a fork the connections and the lock are the parent's. */
	if (l->generation != aw_fork_generation()) {
		aw_watch_remove(&l->watch);
		return;
	}
	assert(!aw_engine_is_self());
	aw_lock(&l->lock);
	l->closing = true;
	aw_watch_drop_fd(&l->watch);
	/* Once the events that run have returned, the half-open connections get no event but this end. */
	while (l->telling > 0)
		pthread_cond_wait(&l->told, &l->lock);
	aw_unlock(&l->lock);
	while ((h = TAILQ_FIRST(&l->half_open))) {
		TAILQ_REMOVE(&l->half_open, h, entry);
		aw_conn_destroy(h->conn);
		free(h);
	}
	aw_watch_remove_wait(&l->watch);
}
