// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The executor's thread holds an rsocket only while it serves it: an rsocket that is closed meanwhile is destroyed, and
// the program waits for no other one.
#include "xsock/rsockets/rs_service.h"

#include "xsock/endpoint/executor.h"
#include "xsock/rsockets/rs_listen.h"
#include "xsock/rsockets/rs_table.h"

static struct {
	/* Guards the list. Of other locks only the executor's is taken under it. */
	aw_mutex lock;
	TAILQ_HEAD(rs_list, aw_rs) watched; // those that were served in this turn are at the end
	uint32_t turn; // used by the thread alone
} service = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.watched = TAILQ_HEAD_INITIALIZER(service.watched),
};

static void serve_watched(struct aw_xs_wait *wait);
static struct aw_xs_job job = { .serve = serve_watched };

/* A thread in rpoll may sleep on fds of before: it does not learn of the events that are taken here. */
static bool serve_ep(struct aw_xs_wait *wait, struct aw_rs *rs)
{
	struct aw_xs_ep *ep = aw_rs_ep(rs);
	struct pollfd fds[AW_XS_EP_FDS];

	do {
		aw_xs_ep_ready(ep);
		if (aw_xs_ep_state(ep) != AW_XS_CONNECTING) {
			aw_rs_wake_leader(rs);
			return false;
		}
	} while (!aw_xs_ep_arm(ep));
	aw_xs_ep_fds(ep, fds);
	for (int i = 0; i < AW_XS_EP_FDS; i++)
		if (fds[i].fd >= 0)
			aw_xs_wait_fd(wait, fds[i]);
	return true;
}

void aw_rs_service_leave(struct aw_rs *rs)
{
	pthread_mutex_lock(&service.lock);
	if (rs->watched)
		TAILQ_REMOVE(&service.watched, rs, watch_entry);
	rs->watched = false;
	pthread_mutex_unlock(&service.lock);
}

/*
 * Returns an rsocket that was not served in this turn, and holds it; NULL: there is none. An rsocket that cannot be held
 * is closed, and leaves as soon as no call uses it.
 */
static struct aw_rs *next_watched(void)
{
	struct aw_rs *rs, *held = NULL;

	pthread_mutex_lock(&service.lock);
	while (!held && (rs = TAILQ_FIRST(&service.watched)) && rs->turn != service.turn) {
		TAILQ_REMOVE(&service.watched, rs, watch_entry);
		TAILQ_INSERT_TAIL(&service.watched, rs, watch_entry);
		rs->turn = service.turn;
		held = aw_rs_table_hold(rs->fd);
	}
	pthread_mutex_unlock(&service.lock);
	return held;
}

static void serve_watched(struct aw_xs_wait *wait)
{
	struct aw_rs *rs;
	bool stays;
	int fd;

	service.turn++;
	while ((rs = next_watched())) {
		if (aw_rs_ep(rs)) {
			stays = serve_ep(wait, rs);
		} else {
			fd = aw_rs_listen_serve(rs);
			if (fd >= 0)
				aw_xs_wait_fd(wait, (struct pollfd){ .fd = fd, .events = POLLIN });
			stays = !atomic_load(&rs->closed);
		}
		if (!stays)
			aw_rs_service_leave(rs);
		aw_rs_put(rs);
	}
}

int aw_rs_service_watch(struct aw_rs *rs)
{
	int err;

	pthread_mutex_lock(&service.lock);
	err = -aw_xs_job_start(&job);
	if (!err && !rs->watched) {
		TAILQ_INSERT_TAIL(&service.watched, rs, watch_entry);
		rs->watched = true;
	}
	pthread_mutex_unlock(&service.lock);
	if (!err)
		aw_xs_executor_wake();
	return err;
}

void aw_rs_service_forked(void)
{
	pthread_mutex_init(&service.lock, NULL);
	TAILQ_INIT(&service.watched);
}
