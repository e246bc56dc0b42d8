// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Listens for one connection. Any process can connect to the port: only the ticket counts.
#define _GNU_SOURCE /* POLLRDHUP */
#include "xsock/ext/ext_place.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/random.h>

#include "xsock/ext/ext_tcp.h"

#define BACKLOG 8 /* connections of other processes that may wait for a moment */

void aw_ext_place_set_port(struct sockaddr_storage *address, uint16_t port)
{
	if (address->ss_family == AF_INET6)
		((struct sockaddr_in6 *)address)->sin6_port = htons(port);
	else
		((struct sockaddr_in *)address)->sin_port = htons(port);
}

int aw_ext_place_open(struct aw_ext_place *place, const struct sockaddr_storage *local)
{
	struct sockaddr_storage address = *local;
	int err = 0;

	memset(place, 0, sizeof(*place));
	aw_ext_place_set_port(&address, 0);
	place->events = rdma_create_event_channel();
	if (!place->events || fcntl(place->events->fd, F_SETFL, O_NONBLOCK) != 0 ||
	    rdma_create_id(place->events, &place->id, NULL, RDMA_PS_TCP) != 0 ||
	    rdma_bind_addr(place->id, (struct sockaddr *)&address) != 0 ||
	    rdma_listen(place->id, BACKLOG) != 0)
		err = errno;
	if (!err) {
		place->place.port = ntohs(rdma_get_src_port(place->id));
		if (getentropy(place->place.ticket, AW_RENDEZVOUS_TICKET_LEN) != 0)
			err = errno;
	}
	if (!err)
		place->place.status = AW_PLACE_READY;
	else if (err == ENODEV || err == EADDRNOTAVAIL || err == ENOENT)
		place->place.status = AW_PLACE_NO_DEVICE;
	else
		place->place.status = AW_PLACE_NONE;
	return err;
}

/*
 * Serves an event. True: a peer with the ticket has connected, and *err is the result of accepting
 * it.
 */
static bool take_event(struct aw_ext_place *place, struct aw_xs_ep *ep, struct rdma_cm_event *event,
		       int *err)
{
	const struct rdma_conn_param *request = &event->param.conn;
	struct rdma_cm_id *id = event->id;
	bool is_request = event->event == RDMA_CM_EVENT_CONNECT_REQUEST;
	bool has_ticket = is_request && request->private_data &&
			  request->private_data_len >= AW_XS_TICKET_AT + AW_XS_TICKET_LEN &&
			  memcmp((const uint8_t *)request->private_data + AW_XS_TICKET_AT,
				 place->place.ticket, AW_XS_TICKET_LEN) == 0;

	if (has_ticket)
		*err = -aw_xs_ep_accept(ep, event);
	else if (is_request)
		rdma_reject(id, NULL, 0);
	rdma_ack_cm_event(event);
	if (is_request && !has_ticket)
		rdma_destroy_id(id);
	return has_ticket;
}

int aw_ext_place_await(struct aw_ext_place *place, struct aw_xs_ep *ep, int tcp, int64_t until_ns)
{
	struct pollfd fds[] = {
		{ .fd = place->events->fd, .events = POLLIN },
		{ .fd = tcp, .events = POLLRDHUP },
	};
	struct rdma_cm_event *event;

	for (;;) {
		int err, left = aw_ext_left_ms(until_ns), ready = left ? poll(fds, 2, left) : 0;

		if (ready < 0 && errno != EINTR)
			return errno;
		if (ready == 0)
			return ETIMEDOUT;
		if (ready > 0 && fds[1].revents)
			return ECONNRESET;
		while (rdma_get_cm_event(place->events, &event) == 0) {
			if (take_event(place, ep, event, &err))
				return err;
		}
	}
}

void aw_ext_place_close(struct aw_ext_place *place)
{
	if (place->id)
		rdma_destroy_id(place->id);
	if (place->events)
		rdma_destroy_event_channel(place->events);
}
