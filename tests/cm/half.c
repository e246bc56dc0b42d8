// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// One id and a bare TCP socket.
#include "half.h"

#include "raw.h"

#include <string.h>
#include <unistd.h>

void half_connect_client(struct half *half, struct rdma_conn_param *param)
{
	uint16_t port;

	memset(half, 0, sizeof(*half));
	half->listener = raw_listen(&port);
	half->channel = rdma_create_event_channel();
	half->id = cm_resolved(half->channel, "127.0.0.1", port);
	assert_int_equal(rdma_connect(half->id, param), 0);
	half->fd = raw_accept(half->listener);
}

void half_open_client(struct half *half)
{
	uint8_t request[RAW_REQUEST_LEN];

	half_connect_client(half, NULL);
	raw_recv(half->fd, request, sizeof(request));
	assert_memory_equal(request, "MPA ID Req Frame", 16);
}

void half_open_server(struct half *half)
{
	memset(half, 0, sizeof(*half));
	half->listener = -1;
	half->channel = rdma_create_event_channel();
	half->id = cm_listener(half->channel, "127.0.0.1", 0);
	half->fd = raw_connect(cm_port(half->id));
}

void half_take_request(struct half *half)
{
	struct rdma_cm_event *event = cm_expect(half->channel, RDMA_CM_EVENT_CONNECT_REQUEST, 0);

	half->server = event->id;
	rdma_ack_cm_event(event);
	cm_make_qp(half->server);
}

void half_accepted(struct half *half, uint8_t *reply)
{
	half_open_server(half);
	raw_send(half->fd, raw_request, RAW_REQUEST_LEN);
	half_take_request(half);
	assert_int_equal(rdma_accept(half->server, NULL), 0);
	raw_recv(half->fd, reply, RAW_REQUEST_LEN);
}

void half_established(struct half *half)
{
	uint8_t reply[RAW_REQUEST_LEN];

	half_accepted(half, reply);
	raw_send_fpdu(half->fd, raw_rtr_write, RAW_RTR_WRITE_LEN);
	cm_expect_ack(half->channel, RDMA_CM_EVENT_ESTABLISHED, 0);
}

void half_close(struct half *half)
{
	if (half->fd >= 0)
		close(half->fd);
	if (half->listener >= 0)
		close(half->listener);
	if (half->server)
		cm_destroy(half->server);
	if (half->id)
		cm_destroy(half->id);
	cm_expect_none(half->channel);
	rdma_destroy_event_channel(half->channel);
}
