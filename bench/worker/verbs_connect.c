// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Connections by rdma_cm one after the other. Device, PD, CQs and memory are there before; id, route
// and QP belong to each connection.
#include "worker/verbs.h"

#include "worker/fail.h"

#include <poll.h>

#define MESSAGE_OCTETS 4
#define WCS_MAX 16

/* Completions of connections of before, flushed, and of Sends do not count. */
static bool is_message(const struct ibv_wc *wc, uint32_t number)
{
	if (wc->status == IBV_WC_WR_FLUSH_ERR)
		return false;
	verbs_check(wc);
	return wc->opcode == IBV_WC_RECV && (uint32_t)wc->wr_id == number;
}

static void wait_message(const struct session *session, struct verbs_link *link)
{
	uint32_t spins = 0;
	struct ibv_wc wc;
	int found;

	for (;;) {
		found = ibv_poll_cq(link->lane->cq, 1, &wc);
		if (found < 0)
			fail("ibv_poll_cq gave %d", found);
		if (found > 0 && is_message(&wc, link->number))
			return;
		verbs_spin(session, &spins);
	}
}

static void end(struct rdma_cm_id *id)
{
	rdma_destroy_qp(id);
	if (rdma_destroy_id(id) != 0)
		fail_errno("rdma_destroy_id");
}

static void connect_once(struct session *session, struct verbs_link *link,
			 const struct connect_times *times)
{
	uint64_t began_ns = clock_ns(), called_ns, now;

	called_ns = verbs_connect_link(session, link);
	now = clock_ns();
	stats_add(times->connect, now - began_ns);
	stats_add(times->only, now - called_ns);
	verbs_post(link, IBV_WR_SEND, MESSAGE_OCTETS, false);
	wait_message(session, link);
	stats_add(times->first_octet, clock_ns() - began_ns);
	if (rdma_disconnect(link->id) != 0)
		fail_errno("rdma_disconnect");
	end(link->id);
}

void verbs_connect_many(struct session *session, uint64_t count, const struct connect_times *times)
{
	verbs_open(session);
	/* Other numbers in turn: what an old connection leaves in the CQ is told from the new one's. */
	for (uint64_t i = 0; i < count; i++)
		connect_once(session, &verbs.links[i % VERBS_SERVED_MAX], times);
}

/* A connection's number is free again once its id is gone. */
static struct verbs_link *free_link(void)
{
	for (uint32_t i = 0; i < VERBS_SERVED_MAX; i++) {
		if (!verbs.links[i].id)
			return &verbs.links[i];
	}
	fail("more than %u connections at the same time: is there another client?",
	     VERBS_SERVED_MAX);
}

static struct verbs_link *link_of(const struct rdma_cm_id *id)
{
	for (uint32_t i = 0; i < VERBS_SERVED_MAX; i++) {
		if (verbs.links[i].id == id)
			return &verbs.links[i];
	}
	return NULL;
}

/* Whether a connection ended. */
static bool take_event(struct session *session)
{
	struct rdma_cm_event *event = verbs_event(session);
	struct verbs_link *link = NULL;

	switch ((int)event->event) {
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		verbs_accept_request(session, free_link(), event);
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
		link = link_of(event->id);
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
	case RDMA_CM_EVENT_TIMEWAIT_EXIT:
		break;
	default:
		fail("rdma_cm reports %s (status %d) while a client connects",
		     rdma_event_str(event->event), event->status);
	}
	/* An id goes only when none of its events is held. */
	rdma_ack_cm_event(event);
	if (!link)
		return false;
	end(link->id);
	link->id = NULL;
	return true;
}

static void answer(const struct ibv_wc *wc)
{
	if (wc->status == IBV_WC_WR_FLUSH_ERR)
		return;
	verbs_check(wc);
	if (wc->opcode == IBV_WC_RECV)
		verbs_post(&verbs.links[wc->wr_id], IBV_WR_SEND, MESSAGE_OCTETS, false);
}

static void take_completions(struct verbs_lane *lane)
{
	struct ibv_wc wcs[WCS_MAX];
	int found;

	while ((found = ibv_poll_cq(lane->cq, WCS_MAX, wcs)) > 0) {
		for (int i = 0; i < found; i++)
			answer(&wcs[i]);
	}
	if (found < 0)
		fail("ibv_poll_cq gave %d", found);
}

/* Arms, and polls again what came before. */
static void arm(struct verbs_lane *lane)
{
	if (ibv_req_notify_cq(lane->cq, 0) != 0)
		fail_errno("ibv_req_notify_cq");
	take_completions(lane);
}

static void take_raised(struct verbs_lane *lane)
{
	struct ibv_cq *cq;
	void *context;

	if (ibv_get_cq_event(lane->channel, &cq, &context) != 0)
		fail_errno("ibv_get_cq_event");
	ibv_ack_cq_events(cq, 1);
	arm(lane);
}

/* One thread for the events of rdma_cm and those of the CQ, which there is from the first one on. */
void verbs_serve_many(struct session *session, uint64_t count)
{
	struct verbs_lane *lane = &verbs.lanes[0];
	uint64_t ended = 0;

	while (ended < count) {
		bool had_cq = lane->cq != NULL;
		struct pollfd fds[] = {
			{ .fd = verbs.channel->fd, .events = POLLIN },
			{ .fd = had_cq ? lane->channel->fd : -1, .events = POLLIN },
			{ .fd = session->control.fd, .events = POLLRDHUP },
		};

		if (poll(fds, 3, -1) < 0)
			continue;
		if (fds[2].revents)
			control_check(&session->control);
		if (fds[0].revents & POLLIN)
			ended += take_event(session);
		if (!had_cq && lane->cq)
			arm(lane);
		if (fds[1].revents & POLLIN)
			take_raised(lane);
	}
}
