// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A program that works by events: each connection has a CQ and a completion channel of its own, and one thread waits for all of
// them in one epoll set, as key-value servers with an RDMA mode do.
#include "worker/verbs.h"

#include "worker/fail.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/epoll.h>

/* One message and one signalled post may be there for each. */
#define WCS_EACH 4
#define EVENTS_MAX (VERBS_WCS_MAX / WCS_EACH)

static int set = -1;

static void arm(struct verbs_lane *lane)
{
	if (ibv_req_notify_cq(lane->cq, 0) != 0)
		fail_errno("ibv_req_notify_cq");
}

static int take_event(struct verbs_lane *lane, struct ibv_wc *wcs)
{
	struct ibv_cq *cq;
	void *context;

	if (ibv_get_cq_event(lane->channel, &cq, &context) == 0) {
		ibv_ack_cq_events(cq, 1);
		arm(lane);
	} else if (errno != EAGAIN) {
		fail_errno("ibv_get_cq_event");
	}
	return verbs_poll(lane->cq, WCS_EACH, wcs);
}

/* The connection's channel joins the set; a completion that came before its CQ was armed raises no event. */
static int join(uint64_t number, struct ibv_wc *wcs)
{
	struct verbs_lane *lane = verbs.links[number].lane;
	struct epoll_event event = { .events = EPOLLIN, .data.u64 = number };

	if (fcntl(lane->channel->fd, F_SETFL, fcntl(lane->channel->fd, F_GETFL) | O_NONBLOCK) !=
		    0 ||
	    epoll_ctl(set, EPOLL_CTL_ADD, lane->channel->fd, &event) != 0)
		fail_errno("no completion channel in an epoll set");
	arm(lane);
	return verbs_poll(lane->cq, WCS_EACH, wcs);
}

static int join_some(struct ibv_wc *wcs)
{
	static uint64_t joined;
	int found = 0;

	if (set < 0)
		set = epoll_create1(EPOLL_CLOEXEC);
	if (set < 0)
		fail_errno("epoll_create1");
	while (joined < verbs.count && found <= VERBS_WCS_MAX - WCS_EACH)
		found += join(joined++, wcs + found);
	return found;
}

int verbs_epoll_wait(struct ibv_wc *wcs)
{
	struct epoll_event events[EVENTS_MAX];
	int found = join_some(wcs), ready;

	while (found == 0) {
		ready = epoll_wait(set, events, EVENTS_MAX, -1);
		if (ready < 0 && errno != EINTR)
			fail_errno("epoll_wait");
		for (int i = 0; i < ready; i++)
			found += take_event(verbs.links[events[i].data.u64].lane, wcs + found);
	}
	return found;
}
