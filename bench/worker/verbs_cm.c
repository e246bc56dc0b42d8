// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Connections by rdma_cm. Either end says in the private data where its buffers are.
#include "worker/verbs.h"

#include "worker/fail.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>

#define BACKLOG 1024

/* On the wire: big-endian. */
struct offer {
	uint64_t in, out;
	uint32_t key;
} __attribute__((packed));

static struct offer offer_of(const struct verbs_link *link)
{
	return (struct offer){ htobe64((uintptr_t)link->in), htobe64((uintptr_t)link->out),
			       htobe32(link->lane->mr->rkey) };
}

static void take_offer(const struct rdma_cm_event *event, struct verbs_far *far)
{
	struct offer offer;

	if (event->param.conn.private_data_len < sizeof(offer))
		fail("the other end says nothing of its buffers: is it another program?");
	memcpy(&offer, event->param.conn.private_data, sizeof(offer));
	*far = (struct verbs_far){ be64toh(offer.in), be64toh(offer.out), be32toh(offer.key) };
}

struct rdma_cm_event *verbs_event(const struct session *session)
{
	struct pollfd fds[] = { { .fd = verbs.channel->fd, .events = POLLIN },
				{ .fd = session->control.fd, .events = POLLRDHUP } };
	struct rdma_cm_event *event;

	while (poll(fds, 2, -1) < 0 || !(fds[0].revents & POLLIN))
		control_check(&session->control);
	if (rdma_get_cm_event(verbs.channel, &event) != 0)
		fail_errno("rdma_get_cm_event");
	return event;
}

void verbs_event_no_wait(void)
{
	if (fcntl(verbs.channel->fd, F_SETFL, O_NONBLOCK) != 0)
		fail_errno("O_NONBLOCK");
}

struct rdma_cm_event *verbs_event_now(void)
{
	struct rdma_cm_event *event;

	if (rdma_get_cm_event(verbs.channel, &event) == 0)
		return event;
	if (errno != EAGAIN)
		fail_errno("rdma_get_cm_event");
	return NULL;
}

void verbs_expect(const struct session *session, enum rdma_cm_event_type type,
		  struct verbs_far *far)
{
	struct rdma_cm_event *event = verbs_event(session);

	/* An exit from TIMEWAIT belongs to a connection of before, and may come any time. */
	while (event->event == RDMA_CM_EVENT_TIMEWAIT_EXIT) {
		rdma_ack_cm_event(event);
		event = verbs_event(session);
	}
	if (event->event != type)
		fail("rdma_cm reports %s (status %d) instead of %s: ANYWARP_LOG=info tells why",
		     rdma_event_str(event->event), event->status, rdma_event_str(type));
	if (far)
		take_offer(event, far);
	rdma_ack_cm_event(event);
}

void verbs_open(const struct session *session)
{
	if (verbs.channel)
		return;
	verbs.channel = rdma_create_event_channel();
	if (!verbs.channel)
		fail_errno("rdma_create_event_channel: no RDMA device; use 'anywarp run' or "
			   "LD_LIBRARY_PATH");
	verbs_make_room(session);
}

void verbs_listen(struct session *session)
{
	if (session->args.by == BY_MODIFY_QP)
		return;
	verbs_open(session);
	if (rdma_create_id(verbs.channel, &verbs.listener, NULL, RDMA_PS_TCP) != 0 ||
	    rdma_bind_addr(verbs.listener, (struct sockaddr *)&session->at) != 0 ||
	    rdma_listen(verbs.listener, BACKLOG) != 0)
		fail_errno("cannot listen by rdma_cm");
	control_set_port(&session->at, ntohs(rdma_get_src_port(verbs.listener)));
}

void verbs_accept_request(struct session *session, struct verbs_link *link,
			  const struct rdma_cm_event *event)
{
	struct rdma_conn_param param = {
		.responder_resources = event->param.conn.responder_resources,
		.initiator_depth = event->param.conn.initiator_depth,
	};
	struct offer offer;

	verbs_prepare(session, event->id->verbs);
	take_offer(event, &link->far);
	verbs_link_prepare(link, event->id);
	offer = offer_of(link);
	param.private_data = &offer;
	param.private_data_len = sizeof(offer);
	if (rdma_accept(link->id, &param) != 0)
		fail_errno("rdma_accept");
}

void verbs_accept(struct session *session, uint64_t count)
{
	uint64_t established = 0, last = verbs.count + count;

	if (session->args.by == BY_MODIFY_QP) {
		verbs_modify(session, count);
		return;
	}
	while (established < count) {
		struct rdma_cm_event *event = verbs_event(session);

		if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST && verbs.count < last)
			verbs_accept_request(session, &verbs.links[verbs.count++], event);
		else if (event->event == RDMA_CM_EVENT_ESTABLISHED)
			established++;
		else
			fail("rdma_cm reports %s (status %d) while a client connects",
			     rdma_event_str(event->event), event->status);
		rdma_ack_cm_event(event);
	}
}

static struct rdma_cm_id *resolve(const struct session *session)
{
	struct rdma_cm_id *id;

	if (rdma_create_id(verbs.channel, &id, NULL, RDMA_PS_TCP) != 0)
		fail_errno("rdma_create_id");
	if (rdma_resolve_addr(id, NULL, (struct sockaddr *)&session->at, VERBS_RESOLVE_MS) != 0)
		fail_errno("rdma_resolve_addr");
	verbs_expect(session, RDMA_CM_EVENT_ADDR_RESOLVED, NULL);
	if (rdma_resolve_route(id, VERBS_RESOLVE_MS) != 0)
		fail_errno("rdma_resolve_route");
	verbs_expect(session, RDMA_CM_EVENT_ROUTE_RESOLVED, NULL);
	return id;
}

uint64_t verbs_call(struct session *session, struct verbs_link *link, struct rdma_cm_id *id)
{
	struct rdma_conn_param param = { .retry_count = 7, .rnr_retry_count = 7 };
	struct offer offer;
	uint64_t called_ns;

	verbs_prepare(session, id->verbs);
	verbs_link_prepare(link, id);
	offer = offer_of(link);
	param.private_data = &offer;
	param.private_data_len = sizeof(offer);
	param.initiator_depth = (uint8_t)verbs.shape.reads;
	param.responder_resources = (uint8_t)verbs.shape.reads;
	called_ns = clock_ns();
	if (rdma_connect(id, &param) != 0)
		fail_errno("rdma_connect");
	return called_ns;
}

uint64_t verbs_connect_link(struct session *session, struct verbs_link *link)
{
	uint64_t called_ns = verbs_call(session, link, resolve(session));

	verbs_expect(session, RDMA_CM_EVENT_ESTABLISHED, &link->far);
	return called_ns;
}

void verbs_connect(struct session *session, uint64_t count)
{
	if (session->args.by == BY_MODIFY_QP) {
		verbs_modify(session, count);
		return;
	}
	verbs_open(session);
	while (count-- > 0)
		verbs_connect_link(session, &verbs.links[verbs.count++]);
}

const struct transport transport = {
	.name = "verbs",
	.rules = { .modes = { [TEST_LATENCY] = 1u << MODE_SPIN | 1u << MODE_EVENT,
			      [TEST_BANDWIDTH] = 1u << MODE_SPIN | 1u << MODE_EVENT,
			      [TEST_HOTSPOT] = 1u << MODE_SPIN | 1u << MODE_EVENT |
					       1u << MODE_EPOLL },
		   .mode_default = { MODE_SPIN, MODE_SPIN, MODE_SPIN, MODE_SPIN, MODE_SPIN },
		   .has_window = true,
		   .has_by = true },
	.listen = verbs_listen,
	.accept = verbs_accept,
	.connect = verbs_connect,
	.ping = verbs_ping,
	.echo = verbs_echo,
	.flow = verbs_flow,
	.ask_all = verbs_ask_all,
	.answer_all = verbs_answer_all,
	.connect_many = verbs_connect_many,
	.serve_many = verbs_serve_many,
	.has_connect_only = true,
	.look = verbs_look,
};
