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

/* A program's connection, and its peer's ends. */
struct talk {
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;
	int listener, fd;
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

/* Connects to a peer that answers by such a Reply. Returns what the program hears, which the caller acknowledges. */
static struct rdma_cm_event *ask(struct talk *t, uint8_t ird, uint8_t ord, const uint8_t reply[3],
				 enum rdma_cm_event_type type, int status)
{
	struct rdma_conn_param param = { .responder_resources = ird, .initiator_depth = ord };
	uint8_t request[RAW_REQUEST_LEN];
	uint16_t port;

	t->channel = rdma_create_event_channel();
	t->listener = raw_listen(&port);
	t->id = cm_resolved(t->channel, "127.0.0.1", port);
	assert_int_equal(rdma_connect(t->id, &param), 0);
	t->fd = raw_accept(t->listener);
	raw_recv(t->fd, request, sizeof(request));
	assert_int_equal(request[21], ird);
	assert_int_equal(request[23], ord);
	send_reply(t->fd, reply[0], reply[1], reply[2]);
	return cm_expect(t->channel, type, status);
}

static void end_talk(struct talk *t)
{
	close(t->listener);
	cm_destroy(t->id);
	rdma_destroy_event_channel(t->channel);
}

/*
 * Section 9.1: a responder that wants more than the initiator offers rejects, and says what it
 * needs; the program hears that, and not what it asked for itself.
 */
static void rules_6581__reject_tells_the_peers_depths(void **state)
{
	static const uint8_t reply[] = { REJECT, PEER_IRD, PEER_ORD };
	struct rdma_cm_event *event;
	struct talk t;

	(void)state;
	event = ask(&t, 4, 8, reply, RDMA_CM_EVENT_REJECTED, -ECONNREFUSED);
	assert_int_equal(event->param.conn.responder_resources, PEER_ORD);
	assert_int_equal(event->param.conn.initiator_depth, PEER_IRD);
	rdma_ack_cm_event(event);
	close(t.fd);
	end_talk(&t);
}

/* The same for a Reply that accepts, and asks for less than was offered. */
static void rules_6581__accept_tells_the_peers_depths(void **state)
{
	static const uint8_t reply[] = { 0, PEER_IRD, 6 };
	struct rdma_cm_event *event;
	struct talk t;

	(void)state;
	event = ask(&t, 9, 8, reply, RDMA_CM_EVENT_ESTABLISHED, 0);
	assert_int_equal(event->param.conn.responder_resources, 6);
	assert_int_equal(event->param.conn.initiator_depth, PEER_IRD);
	rdma_ack_cm_event(event);
	close(t.fd);
	cm_expect_ack(t.channel, RDMA_CM_EVENT_DISCONNECTED, 0);
	end_talk(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rules_6581__reject_tells_the_peers_depths),
		cmocka_unit_test(rules_6581__accept_tells_the_peers_depths),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
