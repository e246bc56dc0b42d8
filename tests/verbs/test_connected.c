// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Connected QPs: data, completions, states and events as a program sees them.
#include "pair.h"

#include "net/progress/engine.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

enum {
	LONG = 200000 /* octets: several FPDUs of any size */
};

static void fill(uint8_t *octets, size_t len)
{
	for (size_t i = 0; i < len; i++)
		octets[i] = (uint8_t)(i * 7 + i / 251);
}

/* Posts one signalled WR at a. */
static void post(struct pair *p, struct ibv_send_wr *wr, struct ibv_sge *sge)
{
	struct ibv_send_wr *bad;

	wr->sg_list = sge;
	wr->num_sge = sge ? 1 : 0;
	wr->send_flags |= IBV_SEND_SIGNALED;
	assert_int_equal(ibv_post_send(p->a.qp, wr, &bad), 0);
}

static void send_octets(struct pair *p, uint32_t length, unsigned int flags)
{
	struct ibv_sge sge = side_sge(&p->a, 0, length);
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND, .send_flags = flags };

	post(p, &wr, &sge);
}

static void post_send__arrives_with_both_completions(void **state)
{
	struct pair p;
	struct ibv_wc wc;

	pair_make(&p, *state, NULL);
	fill(p.a.memory, LONG);
	side_recv(&p.b, 77, 0, PAIR_MEMORY);
	send_octets(&p, LONG, 0);
	wc = wc_wait(p.b.recv_cq);
	assert_int_equal(wc.wr_id, 77);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.opcode, IBV_WC_RECV);
	assert_int_equal(wc.byte_len, LONG);
	assert_int_equal(wc.qp_num, p.b.qp->qp_num);
	assert_int_equal(wc.wc_flags, 0);
	assert_memory_equal(p.b.memory, p.a.memory, LONG);
	wc = wc_wait(p.a.send_cq);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.opcode, IBV_WC_SEND);
	assert_int_equal(wc.qp_num, p.a.qp->qp_num);
	pair_destroy(&p);
}

static void post_send__gathers_and_scatters(void **state)
{
	struct pair p;
	struct ibv_sge from[3], to[2];
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND, .sg_list = from, .num_sge = 3 }, *bad;
	struct ibv_recv_wr recv = { .sg_list = to, .num_sge = 2 }, *bad_recv;

	pair_make(&p, *state, NULL);
	memcpy(p.a.memory, "one.....two.....three", 21);
	from[0] = side_sge(&p.a, 0, 3);
	from[1] = side_sge(&p.a, 8, 3);
	from[2] = side_sge(&p.a, 16, 5);
	to[0] = side_sge(&p.b, 0, 4);
	to[1] = side_sge(&p.b, 100, 50);
	assert_int_equal(ibv_post_recv(p.b.qp, &recv, &bad_recv), 0);
	assert_int_equal(ibv_post_send(p.a.qp, &wr, &bad), 0);
	assert_int_equal(wc_wait(p.b.recv_cq).byte_len, 11);
	assert_memory_equal(p.b.memory, "onet\0", 5);
	assert_memory_equal(p.b.memory + 100, "wothree\0", 8);
	pair_destroy(&p);
}

static void post_send__inline_data_may_change_at_once(void **state)
{
	struct pair p;
	char octets[] = "inline data, no lkey";
	struct ibv_sge sge = { (uintptr_t)octets, sizeof(octets), 0 };
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_INLINE };

	pair_make(&p, *state, NULL);
	side_recv(&p.b, 1, 0, 100);
	post(&p, &wr, &sge);
	memset(octets, 'x', sizeof(octets));
	assert_int_equal(wc_wait(p.b.recv_cq).byte_len, sizeof(octets));
	assert_string_equal((char *)p.b.memory, "inline data, no lkey");
	pair_destroy(&p);
}

static void post_send__unsignalled_completes_silently(void **state)
{
	struct pair p;
	struct ibv_sge sge;
	struct ibv_send_wr quiet = { .wr_id = 1, .opcode = IBV_WR_SEND, .num_sge = 1 }, *bad;

	pair_make(&p, *state, NULL);
	sge = side_sge(&p.a, 0, 1);
	quiet.sg_list = &sge;
	for (int i = 0; i < 4 * WR_MAX; i++) {
		side_recv(&p.b, 1, 0, 100);
		side_recv(&p.b, 2, 0, 100);
		assert_int_equal(ibv_post_send(p.a.qp, &quiet, &bad), 0);
		send_octets(&p, 1, 0);
		assert_int_equal(wc_wait(p.a.send_cq).wr_id, 0);
		wc_wait(p.b.recv_cq);
		wc_wait(p.b.recv_cq);
	}
	pair_destroy(&p);
}

static void post_send__write_then_read_back(void **state)
{
	struct pair p;
	struct ibv_send_wr wr = { .opcode = IBV_WR_RDMA_WRITE };
	struct ibv_sge sge;
	struct ibv_wc wc;

	pair_make(&p, *state, NULL);
	fill(p.a.memory, LONG);
	sge = side_sge(&p.a, 0, LONG);
	wr.wr.rdma.rkey = p.b.mr->rkey;
	wr.wr.rdma.remote_addr = (uintptr_t)p.b.memory + 5;
	post(&p, &wr, &sge);
	assert_int_equal(wc_wait(p.a.send_cq).opcode, IBV_WC_RDMA_WRITE);

	/* Reads go behind Writes, so this one sees what was written. */
	wr = (struct ibv_send_wr){ .opcode = IBV_WR_RDMA_READ };
	wr.wr.rdma.rkey = p.b.mr->rkey;
	wr.wr.rdma.remote_addr = (uintptr_t)p.b.memory + 5;
	sge = side_sge(&p.a, 0, LONG);
	memset(p.a.memory, 0, LONG);
	post(&p, &wr, &sge);
	wc = wc_wait(p.a.send_cq);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.opcode, IBV_WC_RDMA_READ);
	assert_int_equal(wc.byte_len, LONG);
	assert_int_equal(p.b.memory[4], 0);
	assert_memory_equal(p.a.memory, p.b.memory + 5, LONG);
	assert_int_equal(p.a.memory[250], (uint8_t)(250 * 7));
	pair_destroy(&p);
}

static void query_qp__follows_the_connection(void **state)
{
	struct pair p;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	pair_make(&p, *state, NULL);
	assert_int_equal(p.a.qp->state, IBV_QPS_RTS);
	assert_int_equal(ibv_query_qp(p.b.qp, &attr, 0, &init), 0);
	assert_int_equal(attr.qp_state, IBV_QPS_RTS);
	assert_int_equal(attr.max_rd_atomic, PAIR_RD);
	assert_int_equal(attr.max_dest_rd_atomic, PAIR_RD);
	assert_int_equal(qp_move(p.a.qp, IBV_QPS_RTS), 0);
	assert_int_equal(qp_move(p.a.qp, IBV_QPS_INIT), EINVAL);
	pair_destroy(&p);
}

/* What was posted arrives; the receive that is left is flushed at both ends. */
static void modify_qp__sqd_closes_gracefully(void **state)
{
	struct pair p;
	struct ibv_wc wc;

	pair_make(&p, *state, NULL);
	side_recv(&p.a, 5, 0, 100);
	side_recv(&p.b, 1, 0, PAIR_MEMORY);
	side_recv(&p.b, 2, 0, PAIR_MEMORY);
	send_octets(&p, LONG, 0);
	assert_int_equal(qp_move(p.a.qp, IBV_QPS_SQD), 0);
	assert_int_equal(wc_wait(p.b.recv_cq).status, IBV_WC_SUCCESS);
	wc = wc_wait(p.b.recv_cq);
	assert_int_equal(wc.wr_id, 2);
	assert_int_equal(wc.status, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(wc_wait(p.a.send_cq).status, IBV_WC_SUCCESS);
	wc = wc_wait(p.a.recv_cq);
	assert_int_equal(wc.wr_id, 5);
	assert_int_equal(wc.status, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(qp_state(p.a.qp), IBV_QPS_ERR);
	assert_int_equal(qp_state(p.b.qp), IBV_QPS_ERR);
	pair_destroy(&p);
}

static void modify_qp__err_flushes_both_queues(void **state)
{
	struct pair p;

	pair_make(&p, *state, NULL);
	side_recv(&p.a, 5, 0, 100);
	side_recv(&p.b, 6, 0, 100);
	assert_int_equal(qp_move(p.a.qp, IBV_QPS_ERR), 0);
	assert_int_equal(wc_wait(p.a.recv_cq).status, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(wc_wait(p.b.recv_cq).status, IBV_WC_WR_FLUSH_ERR);
	send_octets(&p, 1, 0);
	assert_int_equal(wc_wait(p.a.send_cq).status, IBV_WC_WR_FLUSH_ERR);
	pair_destroy(&p);
}

/* An adapter has received what has come before its program moves the QP. */
static void modify_qp__err_behind_what_has_come(void **state)
{
	struct ibv_wc wc;
	struct pair p;

	if (getenv("ANYWARP_VARY"))
		skip(); /* nothing has come yet: the post may wait */
	pair_make(&p, *state, NULL);
	side_recv(&p.b, 6, 0, 100);
	side_recv(&p.b, 7, 0, 100);
	aw_engine_fork_prepare(); /* The progress thread does not receive it meanwhile. */
	send_octets(&p, 1, 0);
	assert_int_equal(qp_move(p.b.qp, IBV_QPS_ERR), 0);
	assert_int_equal(ibv_poll_cq(p.b.recv_cq, 1, &wc), 1);
	assert_int_equal(wc.wr_id, 6);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(ibv_poll_cq(p.b.recv_cq, 1, &wc), 1);
	assert_int_equal(wc.status, IBV_WC_WR_FLUSH_ERR);
	aw_engine_fork_done();
	pair_destroy(&p);
}

static void modify_qp__reset_and_the_qp_is_new(void **state)
{
	struct pair p;
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND }, *bad;

	pair_make(&p, *state, NULL);
	assert_int_equal(qp_move(p.a.qp, IBV_QPS_RESET), 0);
	assert_int_equal(p.a.qp->state, IBV_QPS_RESET);
	assert_int_equal(ibv_post_send(p.a.qp, &wr, &bad), EINVAL);
	pair_destroy(&p);
}

/* From RESET too: the kernel's rdma_cm connects a QP without asking for INIT first. */
static void modify_qp__reset_and_connected_again(void **state)
{
	struct pair p;
	int fds[2];

	pair_make(&p, *state, NULL);
	side_recv(&p.b, 1, 0, 100);
	side_recv(&p.b, 2, 0, 100);
	send_octets(&p, 1, 0);
	wc_wait(p.b.recv_cq);
	assert_int_equal(qp_move(p.a.qp, IBV_QPS_RESET), 0);
	assert_int_equal(qp_move(p.b.qp, IBV_QPS_RESET), 0);
	assert_int_equal(qp_move(p.b.qp, IBV_QPS_INIT), 0);
	side_recv(&p.b, 3, 0, 100);
	pair_sockets(fds);
	pair_attach(p.b.qp, fds[1], false);
	pair_attach(p.a.qp, fds[0], true);
	assert_int_equal(p.a.qp->state, IBV_QPS_RTS);
	side_recv(&p.a, 4, 0, 100);
	send_octets(&p, 5, 0);
	assert_int_equal(wc_wait(p.b.recv_cq).wr_id, 3);
	assert_int_equal(wc_wait(p.a.send_cq).status, IBV_WC_SUCCESS);
	pair_destroy(&p);
}

static void get_async_event__comm_est_at_the_responder(void **state)
{
	struct fixture *f = *state;
	struct pair p;
	struct ibv_send_wr back = { .opcode = IBV_WR_SEND }, *bad;
	struct ibv_async_event event;

	pair_make(&p, f, NULL);
	side_recv(&p.b, 1, 0, 100);
	side_recv(&p.a, 1, 0, 100);
	send_octets(&p, 1, 0);
	event = async_wait(f->context);
	assert_int_equal(event.event_type, IBV_EVENT_COMM_EST);
	assert_ptr_equal(event.element.qp, p.b.qp);
	ibv_ack_async_event(&event);
	assert_int_equal(ibv_post_send(p.b.qp, &back, &bad), 0);
	assert_int_equal(wc_wait(p.a.recv_cq).status, IBV_WC_SUCCESS);
	assert_int_equal(ibv_get_async_event(f->context, &event), -1);
	assert_int_equal(errno, EAGAIN);
	pair_destroy(&p);
}

/* Skips COMM_EST; acknowledges. */
static struct ibv_async_event async_failure(struct fixture *f)
{
	struct ibv_async_event event;

	do {
		event = async_wait(f->context);
		ibv_ack_async_event(&event);
	} while (event.event_type == IBV_EVENT_COMM_EST);
	return event;
}

/* The next event of either end, behind a bad rkey of a's: b found it, a was told. */
static void expect_access_error(struct pair *p)
{
	struct ibv_async_event event = async_failure(p->f);
	bool is_b = event.element.qp == p->b.qp;

	assert_true(is_b || event.element.qp == p->a.qp);
	assert_int_equal(event.event_type, is_b ? IBV_EVENT_QP_ACCESS_ERR : IBV_EVENT_QP_FATAL);
}

static void post_send__invalid_rkey_ends_both_qps(void **state)
{
	struct pair p;
	struct ibv_send_wr wr = { .opcode = IBV_WR_RDMA_READ };
	struct ibv_sge sge;

	pair_make(&p, *state, NULL);
	sge = side_sge(&p.a, 0, 10);
	wr.wr.rdma.rkey = p.b.mr->rkey ^ 1;
	wr.wr.rdma.remote_addr = (uintptr_t)p.b.memory;
	post(&p, &wr, &sge);
	assert_int_equal(wc_wait(p.a.send_cq).status, IBV_WC_REM_ACCESS_ERR);
	expect_access_error(&p);
	expect_access_error(&p);
	assert_int_equal(qp_state(p.a.qp), IBV_QPS_ERR);
	assert_int_equal(qp_state(p.b.qp), IBV_QPS_ERR);
	pair_destroy(&p);
}

static void post_send__invalid_lkey_is_a_local_error(void **state)
{
	struct pair p;
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND };
	struct ibv_sge sge;
	struct ibv_wc wc;

	pair_make(&p, *state, NULL);
	sge = side_sge(&p.a, 0, 10);
	sge.lkey ^= 1;
	post(&p, &wr, &sge);
	wc = wc_wait(p.a.send_cq);
	assert_int_equal(wc.status, IBV_WC_LOC_PROT_ERR);
	assert_true(wc.vendor_err != 0);
	pair_destroy(&p);
}

static void dereg_mr__ends_remote_access(void **state)
{
	struct pair p;
	struct ibv_send_wr wr = { .opcode = IBV_WR_RDMA_WRITE };
	struct ibv_sge sge;

	pair_make(&p, *state, NULL);
	wr.wr.rdma.rkey = p.b.mr->rkey;
	wr.wr.rdma.remote_addr = (uintptr_t)p.b.memory;
	assert_int_equal(ibv_dereg_mr(p.b.mr), 0);
	p.b.mr = NULL;
	fill(p.a.memory, 10);
	sge = side_sge(&p.a, 0, 10);
	post(&p, &wr, &sge);
	expect_access_error(&p);
	assert_int_equal(p.b.memory[1], 0);
	pair_destroy(&p);
}

/* Programs have told the keys to their peers. */
static void rereg_mr__access_and_pd_leave_the_keys(void **state)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_RDMA_WRITE };
	int read = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ;
	int all = read | IBV_ACCESS_REMOTE_WRITE;
	struct fixture *f = *state;
	struct ibv_sge sge;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	struct pair p;
	uint32_t key;

	pair_make(&p, f, NULL);
	mr = p.b.mr;
	key = mr->rkey;
	pd = ibv_alloc_pd(f->context);
	assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, pd, NULL, 0, 0), 0);
	assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, read), 0);
	assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS | IBV_REREG_MR_CHANGE_PD,
				      f->pd, NULL, 0, all),
			 0);
	assert_int_equal(mr->rkey, key);
	assert_int_equal(mr->lkey, key);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
	p.a.memory[0] = 9;
	sge = side_sge(&p.a, 0, 1);
	wr.wr.rdma.remote_addr = (uintptr_t)p.b.memory;
	wr.wr.rdma.rkey = key;
	post(&p, &wr, &sge);
	assert_int_equal(wc_wait(p.a.send_cq).status, IBV_WC_SUCCESS);
	assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, read), 0);
	post(&p, &wr, &sge);
	expect_access_error(&p);
	pair_destroy(&p);
}

static void rereg_mr__new_key_works_and_old_does_not(void **state)
{
	struct pair p;
	struct ibv_send_wr wr = { .opcode = IBV_WR_RDMA_WRITE };
	struct ibv_sge sge;
	uint32_t old;

	pair_make(&p, *state, NULL);
	old = p.b.mr->rkey;
	assert_int_equal(ibv_rereg_mr(p.b.mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL,
				      p.b.memory + 64, 64, 0),
			 0);
	assert_int_not_equal(p.b.mr->rkey, old);
	p.a.memory[0] = 9;
	sge = side_sge(&p.a, 0, 1);
	wr.wr.rdma.remote_addr = (uintptr_t)p.b.memory + 127;
	wr.wr.rdma.rkey = p.b.mr->rkey;
	post(&p, &wr, &sge);
	assert_int_equal(wc_wait(p.a.send_cq).status, IBV_WC_SUCCESS);
	wr.wr.rdma.rkey = old;
	post(&p, &wr, &sge);
	expect_access_error(&p);
	assert_int_equal(p.b.memory[127], 9);
	pair_destroy(&p);
}

static void req_notify_cq__solicited_only(void **state)
{
	struct fixture *f = *state;
	struct pollfd fd = { .fd = f->channel->fd, .events = POLLIN };
	struct pair p;
	struct ibv_cq *cq;
	void *cq_context;

	pair_make(&p, f, NULL);
	side_recv(&p.b, 1, 0, 100);
	side_recv(&p.b, 2, 0, 100);
	assert_int_equal(ibv_req_notify_cq(p.b.recv_cq, 1), 0);
	send_octets(&p, 1, 0);
	wc_wait(p.b.recv_cq);
	assert_int_equal(poll(&fd, 1, 0), 0);
	send_octets(&p, 1, IBV_SEND_SOLICITED);
	assert_int_equal(poll(&fd, 1, 10000), 1);
	assert_int_equal(ibv_get_cq_event(f->channel, &cq, &cq_context), 0);
	assert_ptr_equal(cq, p.b.recv_cq);
	ibv_ack_cq_events(cq, 1);
	pair_destroy(&p);
}

static void post_srq_recv__receives_and_raises_the_limit(void **state)
{
	struct fixture *f = *state;
	struct ibv_srq_init_attr attr = { .attr = { 4, 1, 0 } };
	struct ibv_srq *srq = ibv_create_srq(f->pd, &attr);
	struct ibv_srq_attr limit = { .srq_limit = 2 };
	struct ibv_recv_wr wr = { .num_sge = 1 }, *bad;
	struct ibv_async_event event;
	struct ibv_sge sge;
	struct pair p;

	pair_make(&p, f, srq);
	sge = side_sge(&p.b, 0, 100);
	wr.sg_list = &sge;
	for (wr.wr_id = 1; wr.wr_id <= 2; wr.wr_id++)
		assert_int_equal(ibv_post_srq_recv(srq, &wr, &bad), 0);
	assert_int_equal(ibv_modify_srq(srq, &limit, IBV_SRQ_LIMIT), 0);
	send_octets(&p, 3, 0);
	assert_int_equal(wc_wait(p.b.recv_cq).byte_len, 3);
	event = async_failure(f);
	assert_int_equal(event.event_type, IBV_EVENT_SRQ_LIMIT_REACHED);
	assert_ptr_equal(event.element.srq, srq);
	assert_int_equal(ibv_query_srq(srq, &limit), 0);
	assert_int_equal(limit.srq_limit, 0);
	assert_int_equal(qp_move(p.b.qp, IBV_QPS_ERR), 0);
	event = async_failure(f);
	assert_int_equal(event.event_type, IBV_EVENT_QP_LAST_WQE_REACHED);
	assert_ptr_equal(event.element.qp, p.b.qp);
	pair_destroy(&p);
	assert_int_equal(ibv_destroy_srq(srq), 0);
}

static int qp_destroy(void *qp)
{
	return ibv_destroy_qp(qp);
}

static void event_ack(void *event)
{
	ibv_ack_async_event(event);
}

static void destroy_qp__waits_for_acknowledgements(void **state)
{
	struct fixture *f = *state;
	struct ibv_async_event event;
	struct pair p;

	pair_make(&p, f, NULL);
	side_recv(&p.b, 1, 0, 100);
	send_octets(&p, 1, 0);
	event = async_wait(f->context);
	destroy_waits(qp_destroy, p.b.qp, event_ack, &event);
	p.b.qp = qp_make(f);
	pair_destroy(&p);
}

static void destroy_qp__forgets_unread_events(void **state)
{
	struct fixture *f = *state;
	struct ibv_async_event event;
	struct pair p;

	pair_make(&p, f, NULL);
	side_recv(&p.b, 1, 0, 100);
	send_octets(&p, 1, 0);
	wc_wait(p.b.recv_cq);
	pair_destroy(&p);
	assert_int_equal(ibv_get_async_event(f->context, &event), -1);
	assert_int_equal(errno, EAGAIN);
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH(post_send__arrives_with_both_completions),
		WITH(post_send__gathers_and_scatters),
		WITH(post_send__inline_data_may_change_at_once),
		WITH(post_send__unsignalled_completes_silently),
		WITH(post_send__write_then_read_back),
		WITH(query_qp__follows_the_connection),
		WITH(modify_qp__sqd_closes_gracefully),
		WITH(modify_qp__err_flushes_both_queues),
		WITH(modify_qp__err_behind_what_has_come),
		WITH(modify_qp__reset_and_the_qp_is_new),
		WITH(modify_qp__reset_and_connected_again),
		WITH(get_async_event__comm_est_at_the_responder),
		WITH(post_send__invalid_rkey_ends_both_qps),
		WITH(post_send__invalid_lkey_is_a_local_error),
		WITH(dereg_mr__ends_remote_access),
		WITH(rereg_mr__access_and_pd_leave_the_keys),
		WITH(rereg_mr__new_key_works_and_old_does_not),
		WITH(req_notify_cq__solicited_only),
		WITH(post_srq_recv__receives_and_raises_the_limit),
		WITH(destroy_qp__waits_for_acknowledgements),
		WITH(destroy_qp__forgets_unread_events),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
