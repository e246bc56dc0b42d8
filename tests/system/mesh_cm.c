// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A mesh by rdma_cm: each process calls those of lower rank, all at once, and takes the calls of the others.
#include "mesh.h"

#include <arpa/inet.h>
#include <string.h>

#define RESOLVE_MS 20000

static void listen_on_loopback(struct mesh *mesh)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	struct ibv_context **devices = rdma_get_devices(NULL); /* a listener on loopback has none */

	mesh->channel = rdma_create_event_channel();
	CHECK(mesh->channel);
	CHECK(rdma_create_id(mesh->channel, &mesh->listener, NULL, RDMA_PS_TCP) == 0);
	CHECK(rdma_bind_addr(mesh->listener, (struct sockaddr *)&at) == 0);
	CHECK(rdma_listen(mesh->listener, MESH_LINKS_MAX) == 0);
	CHECK(devices && devices[0]);
	mesh->verbs = devices[0];
	rdma_free_devices(devices);
	mesh->hello.port = rdma_get_src_port(mesh->listener);
}

static void call(struct mesh *mesh, unsigned int link)
{
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_port = mesh->hellos[mesh_peer(mesh, link)].port,
				  .sin_addr = { htonl(INADDR_LOOPBACK) } };
	struct rdma_cm_id **id = &mesh->ids[link];

	CHECK(rdma_create_id(mesh->channel, id, id, RDMA_PS_TCP) == 0);
	CHECK(rdma_resolve_addr(*id, NULL, (struct sockaddr *)&to, RESOLVE_MS) == 0);
}

static void equip_id(struct mesh *mesh, struct rdma_cm_id *id, unsigned int link)
{
	struct ibv_qp_init_attr attr = mesh_qp_attr(mesh);

	CHECK(rdma_create_qp(id, mesh->pd, &attr) == 0);
	mesh->qps[link] = id->qp;
	mesh_post_recvs(mesh, link);
}

static void on_route(struct mesh *mesh, struct rdma_cm_id *id)
{
	unsigned int link = (unsigned int)((struct rdma_cm_id **)id->context - mesh->ids);
	uint32_t theirs = mesh_mirror(mesh, link);
	struct rdma_conn_param param = { .private_data = &theirs,
					 .private_data_len = sizeof(theirs),
					 .responder_resources = 1,
					 .initiator_depth = 1 };

	equip_id(mesh, id, link);
	CHECK(rdma_connect(id, &param) == 0);
}

static void on_request(struct mesh *mesh, const struct rdma_cm_event *event)
{
	struct rdma_conn_param param = { .responder_resources = 1, .initiator_depth = 1 };
	uint32_t link;

	CHECK(event->param.conn.private_data_len >= sizeof(link));
	memcpy(&link, event->param.conn.private_data, sizeof(link));
	CHECK(link < mesh_links(mesh) && mesh_peer(mesh, link) > mesh->rank && !mesh->ids[link]);
	mesh->ids[link] = event->id;
	equip_id(mesh, event->id, link);
	CHECK(rdma_accept(event->id, &param) == 0);
}

/* How many connections stand now that did not before. */
static unsigned int take_event(struct mesh *mesh)
{
	struct rdma_cm_event *event;
	unsigned int count = 0;

	CHECK(rdma_get_cm_event(mesh->channel, &event) == 0);
	if (event->event == RDMA_CM_EVENT_ADDR_RESOLVED) {
		CHECK(rdma_resolve_route(event->id, RESOLVE_MS) == 0);
	} else if (event->event == RDMA_CM_EVENT_ROUTE_RESOLVED) {
		on_route(mesh, event->id);
	} else if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST) {
		on_request(mesh, event);
	} else if (event->event == RDMA_CM_EVENT_ESTABLISHED) {
		count = 1;
	} else {
		fprintf(stderr, "rank %u: %s, status %d\n", mesh->rank,
			rdma_event_str(event->event), event->status);
		exit(1);
	}
	CHECK(rdma_ack_cm_event(event) == 0);
	return count;
}

void mesh_connect_cm(struct mesh *mesh)
{
	listen_on_loopback(mesh);
	mesh_equip(mesh);
	mesh_exchange(mesh);
	for (unsigned int link = 0; mesh_peer(mesh, link) < mesh->rank; link++)
		call(mesh, link);
	for (unsigned int stand = 0; stand < mesh_links(mesh) - mesh->lanes;)
		stand += take_event(mesh);
}

void mesh_close_cm(struct mesh *mesh)
{
	for (unsigned int link = 0; link < mesh_links(mesh); link++) {
		if (mesh_peer(mesh, link) == mesh->rank)
			continue;
		rdma_destroy_qp(mesh->ids[link]);
		CHECK(rdma_destroy_id(mesh->ids[link]) == 0);
	}
	CHECK(rdma_destroy_id(mesh->listener) == 0);
}
