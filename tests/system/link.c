// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Connections of a process with itself; see link.h.
#include "link.h"

#include <arpa/inet.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "../lib/limit.h"

#define RESOLVE_MS 5000

/* The next event, which must be of this type; its id. An exit from TIME_WAIT may come any time. */
static struct rdma_cm_id *expect(struct meeting *meeting, enum rdma_cm_event_type type)
{
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;

	for (;;) {
		enum rdma_cm_event_type found;

		CHECK(rdma_get_cm_event(meeting->channel, &event) == 0);
		found = event->event;
		id = event->id;
		if (found != type && found != RDMA_CM_EVENT_TIMEWAIT_EXIT) {
			fprintf(stderr, "wanted %s, got %s, status %d\n", rdma_event_str(type),
				rdma_event_str(found), event->status);
			exit(1);
		}
		CHECK(rdma_ack_cm_event(event) == 0);
		if (found == type)
			return id;
	}
}

void meeting_open(struct meeting *meeting)
{
	meeting_open_at(meeting, (struct in_addr){ htonl(INADDR_LOOPBACK) });
}

void meeting_open_at(struct meeting *meeting, struct in_addr address)
{
	meeting->address.sin_family = AF_INET;
	meeting->address.sin_port = 0;
	meeting->address.sin_addr = address;
	meeting->channel = rdma_create_event_channel();
	CHECK(meeting->channel);
	CHECK(rdma_create_id(meeting->channel, &meeting->listener, NULL, RDMA_PS_TCP) == 0);
	CHECK(rdma_bind_addr(meeting->listener, (struct sockaddr *)&meeting->address) == 0);
	CHECK(rdma_listen(meeting->listener, 16) == 0);
	meeting->address.sin_port = rdma_get_src_port(meeting->listener);
	CHECK(meeting->address.sin_port != 0);
}

void meeting_close(struct meeting *meeting)
{
	CHECK(rdma_destroy_id(meeting->listener) == 0);
	rdma_destroy_event_channel(meeting->channel);
}

struct rdma_cm_id *meeting_resolve(struct meeting *meeting)
{
	struct rdma_cm_id *id;

	CHECK(rdma_create_id(meeting->channel, &id, NULL, RDMA_PS_TCP) == 0);
	CHECK(rdma_resolve_addr(id, NULL, (struct sockaddr *)&meeting->address, RESOLVE_MS) == 0);
	CHECK(expect(meeting, RDMA_CM_EVENT_ADDR_RESOLVED) == id);
	CHECK(id->verbs);
	return id;
}

static void create_qp(struct rdma_cm_id *id, struct ibv_pd *pd, const struct ibv_qp_init_attr *attr)
{
	struct ibv_qp_init_attr copy = *attr;

	CHECK(rdma_create_qp(id, pd, &copy) == 0);
}

void link_open(struct meeting *meeting, struct ibv_pd *pd, const struct ibv_qp_init_attr *attr,
	       struct link *link)
{
	struct rdma_conn_param param = { .responder_resources = 4, .initiator_depth = 4 };
	struct rdma_cm_id *first, *second;

	link->active = meeting_resolve(meeting);
	CHECK(rdma_resolve_route(link->active, RESOLVE_MS) == 0);
	CHECK(expect(meeting, RDMA_CM_EVENT_ROUTE_RESOLVED) == link->active);
	create_qp(link->active, pd, attr);
	CHECK(rdma_connect(link->active, &param) == 0);
	link->passive = expect(meeting, RDMA_CM_EVENT_CONNECT_REQUEST);
	create_qp(link->passive, pd, attr);
	CHECK(rdma_accept(link->passive, &param) == 0);
	first = expect(meeting, RDMA_CM_EVENT_ESTABLISHED);
	second = expect(meeting, RDMA_CM_EVENT_ESTABLISHED);
	CHECK((first == link->active && second == link->passive) ||
	      (first == link->passive && second == link->active));
}

void link_close(struct meeting *meeting, struct link *link)
{
	CHECK(rdma_disconnect(link->active) == 0);
	expect(meeting, RDMA_CM_EVENT_DISCONNECTED);
	expect(meeting, RDMA_CM_EVENT_DISCONNECTED);
	rdma_destroy_qp(link->active);
	rdma_destroy_qp(link->passive);
	CHECK(rdma_destroy_id(link->active) == 0);
	CHECK(rdma_destroy_id(link->passive) == 0);
}

static void on_alarm(int signum)
{
	static const char text[] = "still running after the time given: hung\n";

	(void)signum;
	if (write(STDERR_FILENO, text, sizeof(text) - 1) < 0)
		_exit(2);
	abort();
}

void give_up_after(unsigned int seconds)
{
	struct sigaction action = { .sa_handler = on_alarm };

	CHECK(sigaction(SIGALRM, &action, NULL) == 0);
	alarm(limit_s(seconds));
}
