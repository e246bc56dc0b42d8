// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The thread knows rsockets by their descriptors alone, and holds them only while it works on them:
// it does not find an rsocket that was closed meanwhile, and checks another one that has got its
// descriptor.
#include "xsock/rsockets/rs_service.h"

#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/thread.h"
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

static _Atomic int wake_fd = -1;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; // guards the variables below
static bool running;
static struct watch *watched; // `count` watches, with room for `room`
static size_t count, room;

/* One turn of the thread. fds has room for the wake fd and FDS_EACH for each watch. */
struct round {
	struct watch *watches;
	struct pollfd *fds;
	size_t count, room, used;
};

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

static bool serve_ep(struct aw_xs_ep *ep, struct pollfd fds[FDS_EACH])
{
	do {
		aw_xs_ep_ready(ep);
		if (aw_xs_ep_state(ep) != AW_XS_CONNECTING)
			return false;
	} while (!aw_xs_ep_arm(ep));
	aw_xs_ep_fds(ep, fds);
	return true;
}

/* Makes progress with an rsocket and fills in what to poll. False: it needs no service any more. */
static bool serve_rs(struct aw_rs *rs, struct pollfd fds[FDS_EACH])
{
	struct aw_xs_ep *ep = aw_rs_ep(rs);

	for (int i = 0; i < FDS_EACH; i++)
		fds[i] = (struct pollfd){ .fd = -1 };
	return ep ? serve_ep(ep, fds) : serve_listener(rs, fds);
}

static void serve_watch(struct round *round, struct watch watch)
{
	struct aw_rs *rs = aw_rs_table_hold(watch.fd);
	bool stays = rs && serve_rs(rs, &round->fds[round->used]);

	if (stays)
		round->used += FDS_EACH;
	else
		watch_remove(watch);
	if (rs)
		aw_rs_table_put(watch.fd);
}

static bool make_room(struct round *round)
{
	struct watch *watches;
	struct pollfd *fds;

	if (count <= round->room && round->room)
		return true;
	watches = realloc(round->watches, room * sizeof(*watches));
	if (!watches)
		return false;
	round->watches = watches;
	fds = realloc(round->fds, (1 + FDS_EACH * room) * sizeof(*fds));
	if (!fds)
		return false;
	round->fds = fds;
	round->room = room;
	return true;
}

/* Copies the watches; without memory as many as fit. False: not even the first. */
static bool copy_watches(struct round *round)
{
	pthread_mutex_lock(&lock);
	make_room(round);
	round->count = count < round->room ? count : round->room;
	for (size_t i = 0; i < round->count; i++)
		round->watches[i] = watched[i];
	pthread_mutex_unlock(&lock);
	return round->fds;
}

static void *service_run(void *arg)
{
	struct round round = { 0 };
	eventfd_t wakes;
	int fd = (int)(intptr_t)arg;

	for (;;) {
		if (!copy_watches(&round)) {
			poll(NULL, 0, NO_MEMORY_MS);
			continue;
		}
		round.fds[0] = (struct pollfd){ .fd = fd, .events = POLLIN };
		round.used = 1;
		for (size_t i = 0; i < round.count; i++)
			serve_watch(&round, round.watches[i]);
		poll(round.fds, round.used, -1);
		if (round.fds[0].revents)
			eventfd_read(fd, &wakes);
	}
	return NULL;
}

static int start_service(void)
{
	int err;

	if (running)
		return 0;
	if (wake_fd < 0)
		wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (wake_fd < 0)
		return -errno;
	err = -aw_thread_start(service_run, (void *)(intptr_t)atomic_load(&wake_fd));
	running = !err;
	return err;
}

int aw_rs_service_watch(int fd)
{
	int err;

	pthread_mutex_lock(&lock);
	err = watch_add(fd) ? start_service() : -ENOMEM;
	pthread_mutex_unlock(&lock);
	if (!err)
		aw_rs_service_wake();
	return err;
}

void aw_rs_service_wake(void)
{
	eventfd_write(wake_fd, 1);
}

void aw_rs_service_forked(void)
{
	lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	if (wake_fd >= 0)
		close(wake_fd);
	wake_fd = -1;
	running = false;
	watched = NULL; // not freed: another thread may have been changing it at the fork
	count = room = 0;
}
