// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Connections by rdma_cm one after the other (those begun together: verbs_at_once.c), and the server of
// either. Device, PD, CQs and memory are there before; id, route and QP belong to each connection.
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

void verbs_end(struct rdma_cm_id *id)
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
	verbs_end(link->id);
}

void verbs_connect_many(struct session *session, uint64_t count, const struct connect_times *times)
{
	verbs_open(session);
	if (session->args.at_once > 1) {
		verbs_connect_at_once(session, count, times);
		return;
	}
	/* Other numbers in turn: what an old connection leaves in the CQ is told from the new one's. */
	for (uint64_t i = 0; i < count; i++)
		connect_once(session, &verbs.links[i % verbs.max], times);
}

/* A connection's number is free again once its id is gone. The oldest is the likeliest. */
static struct verbs_link *free_link(void)
{
	for (uint64_t i = 0; i < verbs.max; i++) {
		struct verbs_link *link = &verbs.links[verbs.count++ % verbs.max];

		if (!link->id)
			return link;
	}
	fail("more than %u connections at the same time: is there another client?",
	     (unsigned int)verbs.max);
}

/* Returns whether a connection ended. */
static bool take_event(struct session *session, struct rdma_cm_event *event)
{
	struct verbs_link *link = NULL;

	switch ((int)event->event) {
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		event->id->context = free_link();
		verbs_accept_request(session, event->id->context, event);
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
		link = event->id->context;
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
	verbs_end(link->id);
	link->id = NULL;
	return true;
}

/* How many connections ended. Where some come at once, so do their events. */
static uint64_t take_events(struct session *session)
{
	struct rdma_cm_event *event;
	uint64_t ended = 0;

	if (session->args.at_once == 1)
		return take_event(session, verbs_event(session));
	while ((event = verbs_event_now()))
		ended += take_event(session, event);
	return ended;
}

static bool take_completion(const struct ibv_wc *wc, bool answers)
{
	if (wc->status == IBV_WC_WR_FLUSH_ERR)
		return false;
	verbs_check(wc);
	if (wc->opcode != IBV_WC_RECV)
		return false;
	if (answers)
		verbs_post(&verbs.links[wc->wr_id], IBV_WR_SEND, MESSAGE_OCTETS, false);
	return true;
}

static uint64_t take_completions(struct verbs_lane *lane, bool answers)
{
	struct ibv_wc wcs[WCS_MAX];
	uint64_t received = 0;
	int found;

	while ((found = ibv_poll_cq(lane->cq, WCS_MAX, wcs)) > 0) {
		for (int i = 0; i < found; i++)
			received += take_completion(&wcs[i], answers);
	}
	if (found < 0)
		fail("ibv_poll_cq gave %d", found);
	return received;
}

/* Polls what came before, too. */
uint64_t verbs_arm(struct verbs_lane *lane, bool answers)
{
	if (ibv_req_notify_cq(lane->cq, 0) != 0)
		fail_errno("ibv_req_notify_cq");
	return take_completions(lane, answers);
}

uint64_t verbs_take_raised(struct verbs_lane *lane, bool answers)
{
	struct ibv_cq *cq;
	void *context;

	if (ibv_get_cq_event(lane->channel, &cq, &context) != 0)
		fail_errno("ibv_get_cq_event");
	ibv_ack_cq_events(cq, 1);
	return verbs_arm(lane, answers);
}

/* One thread for the events of rdma_cm and those of the CQ, which there is from the first one on. */
void verbs_serve_many(struct session *session, uint64_t count)
{
	struct verbs_lane *lane = &verbs.lanes[0];
	uint64_t ended = 0;

	if (session->args.at_once > 1)
		verbs_event_no_wait();
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
			ended += take_events(session);
		if (!had_cq && lane->cq)
			verbs_arm(lane, true);
		if (fds[1].revents & POLLIN)
			verbs_take_raised(lane, true);
	}
}
