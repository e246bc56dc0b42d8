// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Rules of RFC 6581 that only a program can see: what it is told of the peer's IRD and ORD.
#include "cm.h"
#include "raw.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

enum {
	REJECT = 0x20,
	PEER_IRD = 3,
	PEER_ORD = 77,
};

/* An answer of revision 2: peer-to-peer, RTR by a Write, these depths. */
static void send_reply(int fd, uint8_t flags, uint8_t ird, uint8_t ord)
{
	uint8_t reply[24] = "MPA ID Rep Frame\x50\x02\0\x04\x80\0\x80\0";

	reply[16] |= flags;
	reply[21] = ird;
	reply[23] = ord;
	raw_send(fd, reply, sizeof(reply));
}

/*
 * Section 9.1: a responder that wants more than the initiator offers rejects, and says what it
 * needs; the program hears that, and not what it asked for itself.
 */
static void rules_6581__reject_tells_the_peers_depths(void **state)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_conn_param param = { .responder_resources = 4, .initiator_depth = 8 };
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;
	uint8_t request[RAW_REQUEST_LEN];
	uint16_t port;
	int listener = raw_listen(&port), fd;

	(void)state;
	id = cm_resolved(channel, "127.0.0.1", port);
	assert_int_equal(rdma_connect(id, &param), 0);
	fd = raw_accept(listener);
	raw_recv(fd, request, sizeof(request));
	assert_int_equal(request[21], 4);
	assert_int_equal(request[23], 8);
	send_reply(fd, REJECT, PEER_IRD, PEER_ORD);
	event = cm_expect(channel, RDMA_CM_EVENT_REJECTED, -ECONNREFUSED);
	assert_int_equal(event->param.conn.responder_resources, PEER_ORD);
	assert_int_equal(event->param.conn.initiator_depth, PEER_IRD);
	rdma_ack_cm_event(event);
	close(fd);
	close(listener);
	cm_destroy(id);
	rdma_destroy_event_channel(channel);
}

/* The same for a Reply that accepts, and asks for less than was offered. */
static void rules_6581__accept_tells_the_peers_depths(void **state)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_conn_param param = { .responder_resources = 9, .initiator_depth = 8 };
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;
	uint8_t request[RAW_REQUEST_LEN];
	uint16_t port;
	int listener = raw_listen(&port), fd;

	(void)state;
	id = cm_resolved(channel, "127.0.0.1", port);
	assert_int_equal(rdma_connect(id, &param), 0);
	fd = raw_accept(listener);
	raw_recv(fd, request, sizeof(request));
	send_reply(fd, 0, PEER_IRD, 6);
	event = cm_expect(channel, RDMA_CM_EVENT_ESTABLISHED, 0);
	assert_int_equal(event->param.conn.responder_resources, 6);
	assert_int_equal(event->param.conn.initiator_depth, PEER_IRD);
	rdma_ack_cm_event(event);
	close(fd);
	cm_expect_ack(channel, RDMA_CM_EVENT_DISCONNECTED, 0);
	close(listener);
	cm_destroy(id);
	rdma_destroy_event_channel(channel);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rules_6581__reject_tells_the_peers_depths),
		cmocka_unit_test(rules_6581__accept_tells_the_peers_depths),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
