// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The executor's thread knows rsockets by their descriptors alone, and holds them only while it works on them:
// it does not find an rsocket that was closed meanwhile, and checks another one that has got its
// descriptor.
#include "xsock/rsockets/rs_service.h"

#include <pthread.h>
#include <stdlib.h>

#include "xsock/endpoint/executor.h"
#include "xsock/rsockets/rs_listen.h"
#include "xsock/rsockets/rs_socket.h"
#include "xsock/rsockets/rs_table.h"

#define FDS_EACH AW_XS_EP_FDS
#define NO_MEMORY_MS 10 /* pause before the next try */

struct watch {
	int fd;
	unsigned int
		times; // how often it was requested: the descriptor may become another rsocket's
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; // guards the variables below
static struct watch *watched; // `count` watches, with room for `room`
static size_t count, room;

/* The watches of one turn; used by the thread alone. */
static struct round {
	struct watch *watches;
	size_t count, room;
} turn;

static void serve_all(struct aw_xs_wait *wait);
static struct aw_xs_job job = { .serve = serve_all };

static bool grow_watched(void)
{
	size_t more = room ? 2 * room : 16;
	struct watch *bigger = realloc(watched, more * sizeof(*watched));

	if (!bigger)
		return false;
	watched = bigger;
	room = more;
	return true;
}

static bool watch_add(int fd)
{
	for (size_t i = 0; i < count; i++)
		if (watched[i].fd == fd) {
			watched[i].times++;
			return true;
		}
	if (count == room && !grow_watched())
		return false;
	watched[count++] = (struct watch){ .fd = fd };
	return true;
}

/* Removes the watch unless it was requested again since it was copied. */
static void watch_remove(struct watch watch)
{
	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < count; i++)
		if (watched[i].fd == watch.fd && watched[i].times == watch.times) {
			watched[i] = watched[--count];
			break;
		}
	pthread_mutex_unlock(&lock);
}

static bool serve_listener(struct aw_rs *rs, struct pollfd fds[FDS_EACH])
{
	aw_rs_listen_serve(rs);
	fds[0] = (struct pollfd){ .fd = aw_rs_listen_fd(rs), .events = POLLIN };
	return !atomic_load(&rs->closed);
}

/* A thread in rpoll may sleep on fds of before: it does not learn of the events that are taken here. */
static bool serve_ep(struct aw_rs *rs, struct pollfd fds[FDS_EACH])
{
	struct aw_xs_ep *ep = aw_rs_ep(rs);

	do {
		aw_xs_ep_ready(ep);
		if (aw_xs_ep_state(ep) != AW_XS_CONNECTING) {
			aw_rs_wake_leader(rs);
			return false;
		}
	} while (!aw_xs_ep_arm(ep));
	aw_xs_ep_fds(ep, fds);
	return true;
}

/* Makes progress with an rsocket and fills in what to poll. False: it needs no service any more. */
static bool serve_rs(struct aw_rs *rs, struct pollfd fds[FDS_EACH])
{
	for (int i = 0; i < FDS_EACH; i++)
		fds[i] = (struct pollfd){ .fd = -1 };
	return aw_rs_ep(rs) ? serve_ep(rs, fds) : serve_listener(rs, fds);
}

static void serve_watch(struct aw_xs_wait *wait, struct watch watch)
{
	struct aw_rs *rs = aw_rs_table_hold(watch.fd);
	struct pollfd fds[FDS_EACH];
	bool stays = rs && serve_rs(rs, fds);

	for (int i = 0; stays && i < FDS_EACH; i++)
		if (fds[i].fd >= 0)
			aw_xs_wait_fd(wait, fds[i]);
	if (!stays)
		watch_remove(watch);
	if (rs)
		aw_rs_table_put(watch.fd);
}

/* Copies the watches; without memory as many as fit. Returns whether that is all of them. */
static bool copy_watches(void)
{
	struct watch *watches;
	bool is_all;

	pthread_mutex_lock(&lock);
	if (count > turn.room) {
		watches = realloc(turn.watches, room * sizeof(*watches));
		turn.watches = watches ? watches : turn.watches;
		turn.room = watches ? room : turn.room;
	}
	is_all = count <= turn.room;
	turn.count = is_all ? count : turn.room;
	for (size_t i = 0; i < turn.count; i++)
		turn.watches[i] = watched[i];
	pthread_mutex_unlock(&lock);
	return is_all;
}

static void serve_all(struct aw_xs_wait *wait)
{
	if (!copy_watches())
		aw_xs_wait_ms(wait, NO_MEMORY_MS);
	for (size_t i = 0; i < turn.count; i++)
		serve_watch(wait, turn.watches[i]);
}

int aw_rs_service_watch(int fd)
{
	int err;

	pthread_mutex_lock(&lock);
	err = watch_add(fd) ? -aw_xs_job_start(&job) : -ENOMEM;
	pthread_mutex_unlock(&lock);
	if (!err)
		aw_rs_service_wake();
	return err;
}

void aw_rs_service_wake(void)
{
	aw_xs_job_wake(&job);
}

void aw_rs_service_forked(void)
{
	lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	watched = NULL; // not freed: another thread may have been changing it at the fork
	count = room = 0;
	turn = (struct round){ 0 }; // likewise
}
