// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Two programs that wait for their completion channels by poll(2) and never block: a readable fd has an event, though
// Writes, which raise none, come between the Sends.
#include "cm.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>

#define ROUNDS 2000
#define WRITES 2

struct side {
	struct rdma_cm_id *id;
	char octets[64], of_peer[64]; /* what it sends; what its peer writes and sends */
	struct ibv_mr *from, *to;
	const struct side *peer;
	int vain; /* times that the fd was readable for no event */
	const char *failed; /* what did, or NULL */
};

static bool post(struct side *s)
{
	uint64_t at = (uintptr_t)s->peer->of_peer;
	int err = rdma_post_recv(s->id, NULL, s->of_peer, sizeof(s->of_peer), s->to);

	for (int i = 0; i < WRITES; i++)
		err |= rdma_post_write(s->id, NULL, s->octets, sizeof(s->octets), s->from, 0, at,
				       s->peer->to->rkey);
	return (err | rdma_post_send(s->id, NULL, s->octets, sizeof(s->octets), s->from, 0)) == 0;
}

/* Waits for all that was posted: the QP has room for few. */
static bool await_sent(struct side *s)
{
	struct ibv_wc wc;
	int n;

	for (int sent = 0; sent < WRITES + 1; sent += n) {
		n = ibv_poll_cq(s->id->send_cq, 1, &wc);
		if (n < 0 || (n && wc.status != IBV_WC_SUCCESS))
			return false;
	}
	return true;
}

static bool await_event(struct side *s)
{
	struct pollfd fd = { .fd = s->id->recv_cq_channel->fd, .events = POLLIN };
	struct ibv_cq *cq;
	void *context;

	while (poll(&fd, 1, EVENT_MS) == 1) {
		if (ibv_get_cq_event(s->id->recv_cq_channel, &cq, &context) == 0) {
			ibv_ack_cq_events(cq, 1);
			return ibv_req_notify_cq(cq, 0) == 0;
		}
		s->vain++;
	}
	return false;
}

/* An event may be of a message that an earlier look has found. */
static bool receive(struct side *s)
{
	struct ibv_wc wc;
	int n;

	while ((n = ibv_poll_cq(s->id->recv_cq, 1, &wc)) == 0)
		if (!await_event(s))
			return false;
	return n == 1 && wc.status == IBV_WC_SUCCESS;
}

static void *talk(void *arg)
{
	struct side *s = arg;

	for (int i = 0; i < ROUNDS && !s->failed; i++) {
		if (!receive(s))
			s->failed = "receive";
		else if (!post(s) || !await_sent(s))
			s->failed = "send";
	}
	return NULL;
}

static void begin(struct side *s, struct rdma_cm_id *id, const struct side *peer)
{
	*s = (struct side){ .id = id, .peer = peer };
	s->from = rdma_reg_msgs(id, s->octets, sizeof(s->octets));
	s->to = rdma_reg_write(id, s->of_peer, sizeof(s->of_peer));
	assert_int_equal(fcntl(id->recv_cq_channel->fd, F_SETFL, O_NONBLOCK), 0);
	assert_int_equal(ibv_req_notify_cq(id->recv_cq, 0), 0);
	/* The receive for the peer's next one is posted before its Send can come. */
	assert_int_equal(rdma_post_recv(id, NULL, s->of_peer, sizeof(s->of_peer), s->to), 0);
}

static void end(struct side *s)
{
	rdma_dereg_mr(s->from);
	rdma_dereg_mr(s->to);
}

static void channel__readable_for_events_alone(void **state)
{
	struct side server, client;
	struct cm_ends ends;
	pthread_t thread;

	(void)state;
	cm_ends_open(&ends, "127.0.0.1");
	cm_ends_connect(&ends);
	begin(&server, ends.server, &client);
	begin(&client, ends.client, &server);
	assert_true(post(&client) && await_sent(&client));
	assert_int_equal(pthread_create(&thread, NULL, talk, &server), 0);
	talk(&client);
	pthread_join(thread, NULL);
	assert_null(server.failed);
	assert_null(client.failed);
	assert_int_equal(server.vain, 0);
	assert_int_equal(client.vain, 0);
	cm_ends_disconnect(&ends);
	end(&server);
	end(&client);
	cm_ends_close(&ends);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(channel__readable_for_events_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
