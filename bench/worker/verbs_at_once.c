// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Connections by rdma_cm that are begun together: one thread, asleep until an event of rdma_cm or of
// the CQ takes one of them further.
#include "worker/verbs.h"

#include "worker/fail.h"

#include <poll.h>

#define MESSAGE_OCTETS 4

struct batch {
	struct session *session;
	uint64_t count, established, answered;
	uint64_t called_ns; /* the first rdma_connect; 0: there was none */
	uint64_t connected_ns; /* all of them */
};

static struct verbs_link *link_at(uint64_t number)
{
	return &verbs.links[number % verbs.max];
}

static void begin(const struct session *session, struct verbs_link *link)
{
	if (rdma_create_id(verbs.channel, &link->id, link, RDMA_PS_TCP) != 0)
		fail_errno("rdma_create_id");
	if (rdma_resolve_addr(link->id, NULL, (struct sockaddr *)&session->at, VERBS_RESOLVE_MS) !=
	    0)
		fail_errno("rdma_resolve_addr");
}

static void call(struct batch *batch, struct rdma_cm_id *id)
{
	uint64_t called_ns = verbs_call(batch->session, id->context, id);

	if (!batch->called_ns)
		batch->called_ns = called_ns;
}

static void advance(struct batch *batch, const struct rdma_cm_event *event)
{
	switch ((int)event->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		if (rdma_resolve_route(event->id, VERBS_RESOLVE_MS) != 0)
			fail_errno("rdma_resolve_route");
		break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		call(batch, event->id);
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		if (++batch->established == batch->count)
			batch->connected_ns = clock_ns();
		verbs_post(event->id->context, IBV_WR_SEND, MESSAGE_OCTETS, false);
		break;
	case RDMA_CM_EVENT_TIMEWAIT_EXIT:
		break;
	default:
		fail("rdma_cm reports %s (status %d) while %u connections begin: ANYWARP_LOG=info "
		     "tells why",
		     rdma_event_str(event->event), event->status,
		     (unsigned int)batch->session->args.at_once);
	}
}

static void take_events(struct batch *batch)
{
	struct rdma_cm_event *event;

	while ((event = verbs_event_now())) {
		advance(batch, event);
		rdma_ack_cm_event(event);
	}
}

static void wait_and_take(struct batch *batch)
{
	struct verbs_lane *lane = &verbs.lanes[0];
	bool had_cq = lane->cq != NULL;
	struct pollfd fds[] = {
		{ .fd = verbs.channel->fd, .events = POLLIN },
		{ .fd = had_cq ? lane->channel->fd : -1, .events = POLLIN },
		{ .fd = batch->session->control.fd, .events = POLLRDHUP },
	};

	if (poll(fds, 3, -1) < 0)
		return;
	if (fds[2].revents)
		control_check(&batch->session->control);
	if (fds[0].revents & POLLIN)
		take_events(batch);
	if (!had_cq && lane->cq)
		batch->answered += verbs_arm(lane, false);
	if (fds[1].revents & POLLIN)
		batch->answered += verbs_take_raised(lane, false);
}

static void close_together(uint64_t first, uint64_t count)
{
	for (uint64_t i = first; i < first + count; i++) {
		if (rdma_disconnect(link_at(i)->id) != 0)
			fail_errno("rdma_disconnect");
	}
	for (uint64_t i = first; i < first + count; i++)
		verbs_end(link_at(i)->id);
}

static void connect_batch(struct session *session, uint64_t first, uint64_t count,
			  const struct connect_times *times)
{
	struct batch batch = { .session = session, .count = count };
	uint64_t began_ns = clock_ns();

	for (uint64_t i = first; i < first + count; i++)
		begin(session, link_at(i));
	while (batch.answered < count)
		wait_and_take(&batch);
	stats_add(times->first_octet, (clock_ns() - began_ns) / count);
	stats_add(times->connect, (batch.connected_ns - began_ns) / count);
	stats_add(times->only, (batch.connected_ns - batch.called_ns) / count);
	close_together(first, count);
}

/* Other numbers in turn, as in verbs_connect_many. */
void verbs_connect_at_once(struct session *session, uint64_t count,
			   const struct connect_times *times)
{
	verbs_event_no_wait();
	while (count > 0) {
		uint64_t some = count < session->args.at_once ? count : session->args.at_once;

		connect_batch(session, verbs.count, some, times);
		verbs.count += some;
		count -= some;
	}
}
