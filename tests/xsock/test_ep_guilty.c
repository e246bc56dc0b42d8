// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// An endpoint whose peer is a bare QP: it speaks rsockets as rdma-core does, or says what it may not.
#include "ends.h"

#include "xsock/stream/msg.h"

#include <errno.h>
#include <poll.h>
#include <string.h>

#define CREDITS 8

struct bare {
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;
	struct ibv_mr *mr;
	uint8_t memory
		[8192]; /* SGL of two entries, then a buffer from 64 on, messages from 4096 on */
	struct aw_xs_hello peer;
};

static struct bare bares[2], *bare = &bares[0];

static struct rdma_cm_event *expect(enum rdma_cm_event_type type)
{
	struct pollfd pollfd = { .fd = bare->channel->fd, .events = POLLIN };
	struct rdma_cm_event *event;

	assert_int_equal(poll(&pollfd, 1, 20000), 1);
	assert_int_equal(rdma_get_cm_event(bare->channel, &event), 0);
	assert_string_equal(rdma_event_str(event->event), rdma_event_str(type));
	return event;
}

static void expect_ack(enum rdma_cm_event_type type)
{
	assert_int_equal(rdma_ack_cm_event(expect(type)), 0);
}

static void make_qp(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.cap = { 32, 32, 1, 1, 64 },
		.sq_sig_all = 1,
	};

	assert_int_equal(rdma_create_qp(id, NULL, &attr), 0);
	bare->id = id;
	bare->mr = ibv_reg_mr(id->pd, bare->memory, sizeof(bare->memory),
			      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	for (uint64_t i = 0; i < 32; i++) {
		struct ibv_sge sge = { (uintptr_t)bare->memory + 4096 + 4 * i, 4, bare->mr->lkey };
		struct ibv_recv_wr wr = { .wr_id = i, .sg_list = &sge, .num_sge = 1 }, *bad;

		assert_int_equal(ibv_post_recv(id->qp, &wr, &bad), 0);
	}
}

/* What rdma-core would say. */
static void fill_hello(uint8_t octets[AW_XS_HELLO_LEN])
{
	const struct aw_xs_hello hello = {
		.credits = CREDITS,
		.sgl = { (uintptr_t)bare->memory, bare->mr->rkey, 2 },
		.data = { (uintptr_t)bare->memory + 64, bare->mr->rkey, 2000 },
	};

	aw_xs_hello_put(octets, &hello);
}

static void connect_bare(struct ends *ends, bool garbage)
{
	uint8_t hello[AW_XS_HELLO_LEN];
	struct rdma_conn_param param = { .private_data = hello,
					 .private_data_len = garbage ? 39 : sizeof(hello) };
	struct rdma_cm_id *id;

	ends_listen(ends);
	ends->server = ends_create(NULL);
	bare->channel = rdma_create_event_channel();
	assert_int_equal(rdma_create_id(bare->channel, &id, NULL, RDMA_PS_TCP), 0);
	assert_int_equal(rdma_resolve_addr(id, NULL, (struct sockaddr *)&ends->address, 2000), 0);
	expect_ack(RDMA_CM_EVENT_ADDR_RESOLVED);
	assert_int_equal(rdma_resolve_route(id, 2000), 0);
	expect_ack(RDMA_CM_EVENT_ROUTE_RESOLVED);
	make_qp(id);
	fill_hello(hello);
	assert_int_equal(rdma_connect(id, &param), 0);
}

static int accept_bare(struct ends *ends)
{
	struct rdma_cm_event *event;
	int err;

	assert_int_equal(rdma_get_cm_event(ends->channel, &event), 0);
	err = aw_xs_ep_accept(ends->server, event);
	rdma_ack_cm_event(event);
	return err;
}

static void open_bare(struct ends *ends)
{
	struct rdma_cm_event *event;

	connect_bare(ends, false);
	assert_int_equal(accept_bare(ends), 0);
	event = expect(RDMA_CM_EVENT_ESTABLISHED);
	assert_true(aw_xs_hello_get(event->param.conn.private_data,
				    event->param.conn.private_data_len, &bare->peer));
	rdma_ack_cm_event(event);
	ends_wait(ends->server, POLLOUT);
}

static void close_bare(struct ends *ends)
{
	rdma_destroy_qp(bare->id);
	ibv_dereg_mr(bare->mr);
	rdma_destroy_id(bare->id);
	rdma_destroy_event_channel(bare->channel);
	ends_close(ends);
	memset(bare, 0, sizeof(*bare));
}

static void await(struct ibv_cq *cq, struct ibv_wc *wc)
{
	int n;

	do
		n = ibv_poll_cq(cq, 1, wc);
	while (n == 0);
	assert_int_equal(n, 1);
}

static void post(struct ibv_send_wr *wr, void *octets, uint32_t len)
{
	struct ibv_sge sge = { (uintptr_t)octets, len, 0 };
	struct ibv_send_wr *bad;
	struct ibv_wc wc;

	wr->sg_list = &sge;
	wr->num_sge = 1;
	wr->send_flags = IBV_SEND_INLINE;
	assert_int_equal(ibv_post_send(bare->id->qp, wr, &bad), 0);
	await(bare->id->send_cq, &wc);
}

static void say(enum aw_xs_op op, uint32_t data, uint32_t len)
{
	uint8_t octets[8] = { 0 };

	aw_xs_msg_put(octets, aw_xs_host_is_net(), op, data);
	post(&(struct ibv_send_wr){ .opcode = IBV_WR_SEND }, octets, len);
}

static void write_to(uint64_t addr, uint32_t key, const char *text)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_RDMA_WRITE };

	wr.wr.rdma.remote_addr = addr;
	wr.wr.rdma.rkey = key;
	post(&wr, (void *)(uintptr_t)text, (uint32_t)strlen(text));
}

/* The next message of op; others are skipped. */
static uint32_t hear(enum aw_xs_op op)
{
	uint32_t said, data;
	struct ibv_wc wc;

	do {
		await(bare->id->recv_cq, &wc);
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		assert_int_equal(wc.byte_len, 4);
		aw_xs_msg_get(bare->memory + 4096 + 4 * wc.wr_id, aw_xs_host_is_net(), &said,
			      &data);
	} while (said != (uint32_t)op);
	return data;
}

static void ep_accept__speaks_with_rdma_core(void **state)
{
	struct iovec iov = { "!", 1 };
	struct aw_xs_stats stats;
	struct aw_xs_sge sge;
	struct ends ends;

	(void)state;
	open_bare(&ends);
	aw_xs_ep_stats(ends.server, &stats);
	assert_false(stats.anywarp_peer);
	assert_int_equal(aw_xs_ep_send(ends.server, &iov, 1, MSG_OOB), -EOPNOTSUPP);
	/* Its second half. */
	assert_int_equal(hear(AW_XS_OP_CREDIT), 384);
	aw_xs_sge_get(bare->memory + AW_XS_SGE_LEN, aw_xs_host_is_net(), &sge);
	assert_int_equal(sge.len, bare->peer.data.len);
	assert_int_equal(sge.addr, bare->peer.data.addr + bare->peer.data.len);
	write_to(bare->peer.data.addr, bare->peer.data.key, "question");
	say(AW_XS_OP_DATA, 8, 4);
	ends_recv_text(ends.server, "question", 0);
	ends_send_text(ends.server, "answer", 0);
	assert_int_equal(hear(AW_XS_OP_DATA), 6);
	assert_memory_equal(bare->memory + 64, "answer", 6);
	assert_int_equal(aw_xs_ep_shutdown(ends.server, SHUT_WR), 0);
	assert_int_equal(hear(AW_XS_OP_CTRL), AW_XS_CTRL_SHUTDOWN);
	say(AW_XS_OP_CTRL, AW_XS_CTRL_DISCONNECT, 4);
	ends_wait(ends.server, POLLHUP);
	ends_expect(ends.server, 0);
	assert_int_equal(aw_xs_ep_error(ends.server), 0);
	close_bare(&ends);
}

static void ep_accept__malformed_private_data(void **state)
{
	struct ends ends;

	(void)state;
	connect_bare(&ends, true);
	assert_int_equal(accept_bare(&ends), -EPROTO);
	expect_ack(RDMA_CM_EVENT_REJECTED);
	close_bare(&ends);
}

static void ep_connect__malformed_private_data(void **state)
{
	struct rdma_conn_param param = { .private_data = "hello", .private_data_len = 5 };
	struct rdma_cm_event *event;
	struct ends ends;

	(void)state;
	ends_listen(&ends);
	bare->channel = ends.channel;
	ends.client = ends_create(NULL);
	assert_int_equal(aw_xs_ep_connect(ends.client, NULL, (struct sockaddr *)&ends.address), 0);
	event = expect(RDMA_CM_EVENT_CONNECT_REQUEST);
	make_qp(event->id);
	assert_int_equal(rdma_accept(event->id, &param), 0);
	rdma_ack_cm_event(event);
	ends_wait(ends.client, POLLERR);
	assert_int_equal(aw_xs_ep_error(ends.client), EPROTO);
	rdma_destroy_qp(bare->id);
	ibv_dereg_mr(bare->mr);
	rdma_destroy_id(bare->id);
	ends_close(&ends);
	memset(bare, 0, sizeof(*bare));
}

static void ep_recv__violations(void **state)
{
	static const struct {
		uint32_t op, data;
	} cases[] = {
		{ AW_XS_OP_DATA, 131073 },
		{ AW_XS_OP_DATA, AW_XS_MSG_DATA_MAX },
		{ AW_XS_OP_CREDIT, CREDITS + 1 },
		{ AW_XS_OP_IOMAP, 0 },
		{ AW_XS_OP_URGENT, 1 },
		{ AW_XS_OP_CTRL, 77 },
		{ 1, 0 },
	};
	struct ends ends;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		open_bare(&ends);
		say(cases[i].op, cases[i].data, 4);
		ends_wait(ends.server, POLLERR);
		ends_expect(ends.server, -EPROTO);
		expect_ack(RDMA_CM_EVENT_DISCONNECTED);
		close_bare(&ends);
	}
}

static void ep_recv__too_short_a_message(void **state)
{
	struct ends ends;

	(void)state;
	open_bare(&ends);
	say(AW_XS_OP_DATA, 0, 3);
	ends_wait(ends.server, POLLERR);
	ends_expect(ends.server, -EPROTO);
	close_bare(&ends);
}

/* The QP itself ends these. */
static void ep_recv__too_long_a_message_and_a_write_elsewhere(void **state)
{
	struct ends ends;

	(void)state;
	open_bare(&ends);
	say(AW_XS_OP_DATA, 0, 8);
	ends_wait(ends.server, POLLERR);
	ends_expect(ends.server, -ECONNRESET);
	close_bare(&ends);
	open_bare(&ends);
	write_to(bare->peer.data.addr + 5 * 131072, bare->peer.data.key, "elsewhere");
	ends_wait(ends.server, POLLERR);
	ends_expect(ends.server, -ECONNRESET);
	close_bare(&ends);
}

/* What two peers of a process know of its memory is each one's alone. */
static void ep_recv__a_write_into_another_connection(void **state)
{
	struct ends ends, others;
	const struct bare *other = &bares[1];
	uint8_t *ring;

	(void)state;
	bare = &bares[1];
	open_bare(&others);
	ring = (uint8_t *)(uintptr_t)other->peer.data.addr;
	write_to(other->peer.data.addr, other->peer.data.key, "question");
	say(AW_XS_OP_DATA, 8, 4);
	ends_wait(others.server, POLLIN);
	bare = &bares[0];
	open_bare(&ends);
	assert_ptr_not_equal(aw_xs_ep_pd(ends.server), aw_xs_ep_pd(others.server));
	write_to(other->peer.data.addr, other->peer.data.key, "harmful!");
	ends_wait(ends.server, POLLERR);
	ends_expect(ends.server, -ECONNRESET);
	assert_memory_equal(ring, "question", 8);
	ends_recv_text(others.server, "question", 0);
	assert_int_equal(aw_xs_ep_state(others.server), AW_XS_ESTABLISHED);
	close_bare(&ends);
	bare = &bares[1];
	close_bare(&others);
	bare = &bares[0];
}

/*
 * A kernel's QP that is over refuses further WRs, with what came before its end still in the CQ. Here the peer's last
 * message comes right before the refusal.
 */
static struct refusing {
	struct ibv_context_ops ops; /* the library's own */
	const struct ibv_qp *qp;
	struct ibv_wc last;
	bool is_last_taken, refuses;
} refusing;

static void take_last(void)
{
	if (refusing.refuses)
		return;
	refusing.refuses = true;
	say(AW_XS_OP_CTRL, AW_XS_CTRL_DISCONNECT, 4);
	while (refusing.ops.poll_cq(refusing.qp->recv_cq, 1, &refusing.last) == 0)
		;
	assert_int_equal(refusing.last.status, IBV_WC_SUCCESS);
}

static int refuse_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	*bad = wr;
	refusing.qp = qp;
	take_last();
	return EINVAL;
}

static int refuse_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	if (qp == bare->id->qp)
		return refusing.ops.post_send(qp, wr, bad);
	*bad = wr;
	refusing.qp = qp;
	take_last();
	return EINVAL;
}

static int poll_with_last(struct ibv_cq *cq, int max, struct ibv_wc *wc)
{
	if (!refusing.refuses || refusing.is_last_taken || cq != refusing.qp->recv_cq || max < 1)
		return refusing.ops.poll_cq(cq, max, wc);
	refusing.is_last_taken = true;
	*wc = refusing.last;
	return 1;
}

static struct ibv_context_ops *begin_refusing(void)
{
	struct ibv_context_ops *ops = &bare->id->verbs->ops;

	refusing = (struct refusing){ .ops = *ops };
	ops->poll_cq = poll_with_last;
	return ops;
}

static void ep_recv__messages_before_a_refused_receive(void **state)
{
	struct ibv_context_ops *ops;
	struct ends ends;

	(void)state;
	open_bare(&ends);
	ops = begin_refusing();
	ops->post_recv = refuse_recv;
	write_to(bare->peer.data.addr, bare->peer.data.key, "question");
	say(AW_XS_OP_DATA, 8, 4);
	ends_recv_text(ends.server, "question", 0);
	ends_expect(ends.server, 0);
	assert_true(refusing.is_last_taken);
	*ops = refusing.ops;
	close_bare(&ends);
}

static void ep_recv__messages_before_a_refused_send(void **state)
{
	struct ibv_context_ops *ops;
	struct ends ends;

	(void)state;
	open_bare(&ends);
	ops = begin_refusing();
	ops->post_send = refuse_send;
	ends_send_text(ends.server, "answer", 0);
	ends_expect(ends.server, 0);
	assert_true(refusing.is_last_taken);
	*ops = refusing.ops;
	close_bare(&ends);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ep_accept__speaks_with_rdma_core),
		cmocka_unit_test(ep_accept__malformed_private_data),
		cmocka_unit_test(ep_connect__malformed_private_data),
		cmocka_unit_test(ep_recv__violations),
		cmocka_unit_test(ep_recv__too_short_a_message),
		cmocka_unit_test(ep_recv__too_long_a_message_and_a_write_elsewhere),
		cmocka_unit_test(ep_recv__a_write_into_another_connection),
		cmocka_unit_test(ep_recv__messages_before_a_refused_receive),
		cmocka_unit_test(ep_recv__messages_before_a_refused_send),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
