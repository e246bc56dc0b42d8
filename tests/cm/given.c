// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Both ends of a connection over a TCP connection of the test's.
#include "given.h"

#include "anywarp/cm.h"
#include "raw.h"

#include <string.h>
#include <unistd.h>

void given_pair(int fds[2])
{
	uint16_t port;
	int listener = raw_listen(&port);

	fds[0] = raw_connect(port);
	fds[1] = raw_accept(listener);
	close(listener);
}

struct rdma_cm_id *given_id(struct rdma_event_channel *channel)
{
	struct rdma_cm_id *id;

	assert_int_equal(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP), 0);
	return id;
}

void given_open(struct cm_ends *ends, int fds[2])
{
	memset(ends, 0, sizeof(*ends));
	ends->passive = rdma_create_event_channel();
	ends->active = rdma_create_event_channel();
	ends->listener = given_id(ends->passive);
	ends->client = given_id(ends->active);
	assert_int_equal(anywarp_cm_respond(ends->listener, fds[1]), 0);
	assert_int_equal(anywarp_cm_initiate(ends->client, fds[0]), 0);
	cm_make_qp(ends->client);
}

static void open_half(struct half *half, int (*give)(struct rdma_cm_id *id, int fd))
{
	int fds[2];

	memset(half, 0, sizeof(*half));
	half->listener = -1;
	half->channel = rdma_create_event_channel();
	half->id = given_id(half->channel);
	given_pair(fds);
	half->fd = fds[1];
	assert_int_equal(give(half->id, fds[0]), 0);
}

void given_open_initiator(struct half *half)
{
	uint8_t request[RAW_REQUEST_LEN];

	open_half(half, anywarp_cm_initiate);
	cm_make_qp(half->id);
	assert_int_equal(rdma_connect(half->id, NULL), 0);
	raw_recv(half->fd, request, sizeof(request));
	assert_memory_equal(request, raw_request, 16);
}

void given_open_responder(struct half *half)
{
	open_half(half, anywarp_cm_respond);
}

static void send_one(struct rdma_cm_id *from, struct rdma_cm_id *to)
{
	char octets[6];
	struct ibv_mr *mr = rdma_reg_msgs(to, octets, sizeof(octets));
	struct ibv_wc wc;

	assert_non_null(mr);
	assert_int_equal(rdma_post_recv(to, NULL, octets, sizeof(octets), mr), 0);
	assert_int_equal(rdma_post_send(from, NULL, "given", 6, NULL, IBV_SEND_INLINE), 0);
	assert_int_equal(rdma_get_recv_comp(to, &wc), 1);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(rdma_get_send_comp(from, &wc), 1);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_string_equal(octets, "given");
	rdma_dereg_mr(mr);
}

void given_talk(struct cm_ends *ends)
{
	send_one(ends->client, ends->server);
	send_one(ends->server, ends->client);
}
