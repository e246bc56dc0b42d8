// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// UD QPs of the roce persona: their states, what a datagram brings and what it must not.
#define _GNU_SOURCE // memfd_create
#include "../lib/gone.h"
#include "ud_scene.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static void modify__walks_as_the_manual_page_says(void **state)
{
	struct ud_scene *s = *state;
	struct ibv_qp *qp = ud_qp_make(s, NULL);
	struct ibv_qp_attr no_qkey = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	assert_int_equal(qp_state(qp), IBV_QPS_RESET);
	assert_int_equal(ibv_modify_qp(qp, &no_qkey,
				       IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT),
			 EINVAL);
	assert_int_equal(qp_move(qp, IBV_QPS_RTR), EINVAL);
	assert_int_equal(ud_to_init(qp, 7), 0);
	assert_int_equal(qp_move(qp, IBV_QPS_RTS), EINVAL);
	assert_int_equal(qp_move(qp, IBV_QPS_RTR), 0);
	assert_int_equal(qp_move(qp, IBV_QPS_RTS), EINVAL); /* no PSN */
	assert_int_equal(ud_to_rts(qp), 0);
	assert_int_equal(ibv_query_qp(qp, &attr, IBV_QP_QKEY, &init), 0);
	assert_int_equal(attr.qkey, 7);
	assert_int_equal(attr.sq_psn, 1);
	assert_int_equal(init.qp_type, IBV_QPT_UD);
	assert_int_equal(qp_move(qp, IBV_QPS_SQD), 0);
	assert_int_equal(qp_move(qp, IBV_QPS_RTS), 0);
	assert_int_equal(qp_move(qp, IBV_QPS_ERR), 0);
	assert_int_equal(qp_move(qp, IBV_QPS_RTS), EINVAL);
	assert_int_equal(qp_move(qp, IBV_QPS_RESET), 0);
	ud_walk(qp, 8);
	assert_int_equal(qp_state(qp), IBV_QPS_RTS);
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

static void post__only_where_there_is_a_queue(void **state)
{
	struct ud_scene *s = *state;
	struct ud_end end = { .qp = ud_qp_make(s, NULL), .mr = s->a.mr, .buf = s->a.buf };
	struct ibv_send_wr wr = ud_wr(s, &s->b), *bad;
	struct ibv_recv_wr recv = { 0 }, *bad_recv;

	assert_int_equal(ibv_post_recv(end.qp, &recv, &bad_recv), EINVAL);
	assert_int_equal(ibv_post_send(end.qp, &wr, &bad), EINVAL);
	assert_int_equal(ud_to_init(end.qp, UD_QKEY), 0);
	ud_recv(&end, 1, 64);
	assert_int_equal(ibv_post_send(end.qp, &wr, &bad), EINVAL);
	assert_int_equal(qp_move(end.qp, IBV_QPS_RTR), 0);
	assert_int_equal(ibv_post_send(end.qp, &wr, &bad), EINVAL);
	assert_int_equal(ibv_destroy_qp(end.qp), 0);
}

static void post__what_a_datagram_cannot_be(void **state)
{
	struct ud_scene *s = *state;
	struct ibv_send_wr wr = ud_wr(s, &s->b), *bad;

	wr.opcode = IBV_WR_RDMA_WRITE;
	assert_int_equal(ibv_post_send(s->a.qp, &wr, &bad), EINVAL);
	wr = ud_wr(s, &s->b);
	wr.wr.ud.ah = NULL;
	assert_int_equal(ibv_post_send(s->a.qp, &wr, &bad), EINVAL);
	ud_none(s);
}

static void receive__payload_and_completion(void **state)
{
	struct ud_scene *s = *state;
	struct ibv_send_wr wr = ud_wr(s, &s->b), *bad;
	struct ibv_sge sge[2] = { { (uintptr_t)s->a.buf + UD_ROOM, 3, s->a.mr->lkey },
				  { (uintptr_t)s->a.buf + UD_ROOM + 8, 4, s->a.mr->lkey } };
	struct ibv_wc wc;

	memcpy(s->a.buf + UD_ROOM, "abc_____defg", 12);
	wr.opcode = IBV_WR_SEND_WITH_IMM;
	wr.imm_data = 0x04030201;
	wr.send_flags = 0;
	wr.sg_list = sge;
	wr.num_sge = 2;
	ud_recv(&s->b, 5, 200);
	assert_int_equal(ibv_post_send(s->a.qp, &wr, &bad), 0);
	wc = wc_wait(s->f->cq);
	assert_int_equal(wc.wr_id, 5);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.opcode, IBV_WC_RECV);
	assert_int_equal(wc.byte_len, UD_GRH + 7);
	assert_int_equal(wc.src_qp, s->a.qp->qp_num);
	assert_int_equal(wc.qp_num, s->b.qp->qp_num);
	assert_int_equal(wc.wc_flags, IBV_WC_GRH | IBV_WC_WITH_IMM);
	assert_int_equal(wc.imm_data, 0x04030201);
	assert_memory_equal(s->b.buf + UD_GRH, "abcdefg", 7);
	assert_int_equal(s->b.buf[UD_GRH + 7], 0);
	ud_none(s);
}

static void receive__tells_the_way_back(void **state)
{
	struct ud_scene *s = *state;
	struct ibv_ah *ah = s->ah;
	struct ibv_wc wc;

	ud_recv(&s->b, 1, 200);
	ud_send(s, &s->a, &s->b, "ping", 4);
	wc = wc_wait(s->f->cq);
	s->ah = ibv_create_ah_from_wc(s->f->pd, &wc, (struct ibv_grh *)s->b.buf, 1);
	assert_non_null(s->ah);
	ud_recv(&s->a, 2, 200);
	ud_send(s, &s->b, &s->a, "pong", 4);
	wc = wc_wait(s->f->cq);
	assert_int_equal(wc.wr_id, 2);
	assert_memory_equal(s->a.buf + UD_GRH, "pong", 4);
	assert_int_equal(ibv_destroy_ah(s->ah), 0);
	s->ah = ah;
}

/* What is sent after that which must not arrive is the first to arrive. */
static void expect_next(struct ud_scene *s, uint64_t wr_id)
{
	struct ibv_wc wc;

	ud_send(s, &s->a, &s->b, "next", 4);
	wc = wc_wait(s->f->cq);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.wr_id, wr_id);
	assert_int_equal(wc.byte_len, UD_GRH + 4);
	assert_memory_equal(s->b.buf + UD_GRH, "next", 4);
	ud_none(s);
}

static uint16_t violations(const struct ud_scene *s)
{
	struct ibv_port_attr port;

	assert_int_equal(ibv_query_port(s->f->context, 1, &port), 0);
	return port.qkey_viol_cntr;
}

static void qkey__another_is_dropped_and_counted(void **state)
{
	struct ud_scene *s = *state;
	struct ibv_send_wr wr = ud_wr(s, &s->b), *bad;
	uint16_t before = violations(s);

	ud_recv(&s->b, 1, 200);
	wr.send_flags = 0;
	wr.wr.ud.remote_qkey = UD_QKEY + 1;
	assert_int_equal(ibv_post_send(s->a.qp, &wr, &bad), 0);
	expect_next(s, 1);
	assert_int_equal(violations(s), before + 1);
}

/* InfiniBand: a Q_Key with the highest bit set stands for the sender's own. */
static void qkey__the_sender_s_own(void **state)
{
	struct ud_scene *s = *state;
	struct ibv_send_wr wr = ud_wr(s, &s->b), *bad;

	ud_recv(&s->b, 1, 200);
	wr.send_flags = 0;
	wr.wr.ud.remote_qkey = 0x80000000;
	assert_int_equal(ibv_post_send(s->a.qp, &wr, &bad), 0);
	assert_int_equal(wc_wait(s->f->cq).wr_id, 1);
}

/* Both ends' datagrams come by one socket: what was sent before this has been read. */
static void fence(struct ud_scene *s)
{
	ud_recv(&s->a, 77, 200);
	ud_send(s, &s->a, &s->a, "fence", 5);
	assert_int_equal(wc_wait(s->f->cq).wr_id, 77);
	ud_none(s);
}

static void receive__too_short_one_stays(void **state)
{
	struct ud_scene *s = *state;

	ud_recv(&s->b, 1, UD_GRH + 4);
	ud_send(s, &s->a, &s->b, "five!", 5);
	expect_next(s, 1);
}

static void receive__none_posted(void **state)
{
	struct ud_scene *s = *state;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	ud_send(s, &s->a, &s->b, "lost", 4);
	fence(s);
	ud_recv(&s->b, 1, 200);
	expect_next(s, 1);
	assert_int_equal(ibv_query_qp(s->b.qp, &attr, IBV_QP_STATE, &init), 0);
	assert_int_equal(attr.qp_state, IBV_QPS_RTS);
}

static void receive__not_before_rtr(void **state)
{
	struct ud_scene *s = *state;
	struct ud_end *b = &s->b;

	assert_int_equal(qp_move(b->qp, IBV_QPS_RESET), 0);
	assert_int_equal(ud_to_init(b->qp, UD_QKEY), 0);
	ud_recv(b, 1, 200);
	ud_send(s, &s->a, b, "early", 5);
	fence(s);
	assert_int_equal(qp_move(b->qp, IBV_QPS_RTR), 0);
	expect_next(s, 1);
}

static void send__length_at_the_bounds(void **state)
{
	struct ud_scene *s = *state;
	struct ibv_wc wc;

	ud_recv(&s->b, 1, UD_ROOM);
	ud_send(s, &s->a, &s->b, NULL, s->mtu + 1); /* no error, and not sent: C10-93.1.1 */
	memset(s->a.buf + UD_ROOM, 0x5a, s->mtu);
	ud_send(s, &s->a, &s->b, NULL, s->mtu);
	wc = wc_wait(s->f->cq);
	assert_int_equal(wc.byte_len, UD_GRH + s->mtu);
	assert_memory_equal(s->b.buf + UD_GRH, s->a.buf + UD_ROOM, s->mtu);
	ud_recv(&s->b, 2, UD_GRH);
	ud_send(s, &s->a, &s->b, NULL, 0);
	wc = wc_wait(s->f->cq);
	assert_int_equal(wc.wr_id, 2);
	assert_int_equal(wc.byte_len, UD_GRH);
}

static void send__inline_needs_no_mr_nor_the_handle(void **state)
{
	struct ud_scene *s = *state;
	struct ibv_ah_attr address = ud_address(s);
	struct ibv_ah *ah = ibv_create_ah(s->f->pd, &address);
	char text[] = "inline";
	struct ibv_sge sge = { (uintptr_t)text, 6, 0 };
	struct ibv_send_wr wr = ud_wr(s, &s->b), *bad;
	struct ibv_wc wc;

	assert_non_null(ah);
	ud_recv(&s->b, 1, 200);
	wr.wr.ud.ah = ah;
	wr.send_flags = IBV_SEND_INLINE;
	wr.sg_list = &sge;
	wr.num_sge = 1;
	assert_int_equal(ibv_post_send(s->a.qp, &wr, &bad), 0);
	assert_int_equal(ibv_destroy_ah(ah), 0);
	wc = wc_wait(s->f->cq);
	assert_int_equal(wc.byte_len, UD_GRH + 6);
	assert_memory_equal(s->b.buf + UD_GRH, "inline", 6);
}

static void send__bad_memory_stops_the_send_queue_alone(void **state)
{
	struct ud_scene *s = *state;
	struct ibv_sge sge = { (uintptr_t)s->a.buf, 4, s->a.mr->lkey + 1 };
	struct ibv_send_wr wr = ud_wr(s, &s->b), *bad;

	wr.sg_list = &sge;
	wr.num_sge = 1;
	assert_int_equal(ibv_post_send(s->a.qp, &wr, &bad), 0);
	assert_int_equal(wc_wait(s->sends).status, IBV_WC_LOC_PROT_ERR);
	assert_int_equal(qp_state(s->a.qp), IBV_QPS_SQE);
	sge.lkey = s->a.mr->lkey;
	assert_int_equal(ibv_post_send(s->a.qp, &wr, &bad), 0);
	assert_int_equal(wc_wait(s->sends).status, IBV_WC_WR_FLUSH_ERR);
	ud_recv(&s->a, 3, 200);
	ud_send(s, &s->b, &s->a, "still", 5);
	assert_int_equal(wc_wait(s->f->cq).wr_id, 3);
	assert_int_equal(qp_move(s->a.qp, IBV_QPS_RTS), 0);
	ud_recv(&s->b, 1, 200);
	expect_next(s, 1);
}

/* Registration pins nothing: the kernel finds it out as it takes the datagram. */
/* A page that no other thread's mapping replaces once it is unmapped. */
static void *page_map(size_t len)
{
	int file = memfd_create("page", MFD_CLOEXEC);
	void *page;

	assert_int_equal(ftruncate(file, (off_t)len), 0);
	page = gone_map(file, len);
	assert_ptr_not_equal(page, MAP_FAILED);
	close(file);
	return page;
}

static void send__memory_that_was_unmapped_fails(void **state)
{
	struct ud_scene *s = *state;
	size_t len = (size_t)sysconf(_SC_PAGESIZE);
	void *page = page_map(len);
	struct ibv_mr *mr = ibv_reg_mr(s->f->pd, page, len, 0);
	struct ibv_sge sge = { (uintptr_t)page, 4, 0 };
	struct ibv_send_wr wr = ud_wr(s, &s->b), *bad;

	assert_non_null(mr);
	sge.lkey = mr->lkey;
	wr.sg_list = &sge;
	wr.num_sge = 1;
	assert_int_equal(munmap(page, len), 0);
	assert_int_equal(ibv_post_send(s->a.qp, &wr, &bad), 0);
	assert_int_equal(wc_wait(s->sends).status, IBV_WC_LOC_PROT_ERR);
	assert_int_equal(qp_state(s->a.qp), IBV_QPS_SQE);
	assert_int_equal(ibv_dereg_mr(mr), 0);
}

static void receive__bad_memory_ends_the_qp(void **state)
{
	struct ud_scene *s = *state;
	struct ibv_sge sge = { (uintptr_t)s->b.buf, 200, s->b.mr->lkey + 1 };
	struct ibv_recv_wr wr = { .wr_id = 1, .sg_list = &sge, .num_sge = 1 }, *bad;
	struct ibv_wc wc;

	assert_int_equal(ibv_post_recv(s->b.qp, &wr, &bad), 0);
	ud_recv(&s->b, 2, 200);
	ud_send(s, &s->a, &s->b, "x", 1);
	wc = wc_wait(s->f->cq);
	assert_int_equal(wc.wr_id, 1);
	assert_int_equal(wc.status, IBV_WC_LOC_PROT_ERR);
	wc = wc_wait(s->f->cq);
	assert_int_equal(wc.wr_id, 2);
	assert_int_equal(wc.status, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(qp_state(s->b.qp), IBV_QPS_ERR);
}

static void receive__memory_that_was_unmapped_fails(void **state)
{
	struct ud_scene *s = *state;
	size_t len = (size_t)sysconf(_SC_PAGESIZE);
	void *page = page_map(len);
	struct ibv_mr *mr = ibv_reg_mr(s->f->pd, page, len, IBV_ACCESS_LOCAL_WRITE);
	struct ibv_sge sge = { (uintptr_t)page, 200, 0 };
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;

	assert_non_null(mr);
	sge.lkey = mr->lkey;
	assert_int_equal(ibv_post_recv(s->b.qp, &wr, &bad), 0);
	assert_int_equal(munmap(page, len), 0);
	ud_send(s, &s->a, &s->b, "x", 1);
	assert_int_equal(wc_wait(s->f->cq).status, IBV_WC_LOC_PROT_ERR);
	assert_int_equal(qp_state(s->b.qp), IBV_QPS_ERR);
	assert_int_equal(ibv_dereg_mr(mr), 0);
}

static void err__flushes_what_is_posted_and_will_be(void **state)
{
	struct ud_scene *s = *state;
	struct ibv_send_wr wr = ud_wr(s, &s->a), *bad;
	struct ibv_wc wc;

	ud_recv(&s->b, 1, 200);
	assert_int_equal(qp_move(s->b.qp, IBV_QPS_ERR), 0);
	ud_recv(&s->b, 2, 200);
	wr.wr_id = 3;
	wr.send_flags = 0;
	assert_int_equal(ibv_post_send(s->b.qp, &wr, &bad), 0);
	for (uint64_t id = 1; id <= 3; id++) {
		wc = wc_wait(id == 3 ? s->sends : s->f->cq);
		assert_int_equal(wc.wr_id, id);
		assert_int_equal(wc.status, IBV_WC_WR_FLUSH_ERR);
	}
}

static void sqd__holds_posts_until_rts(void **state)
{
	struct ud_scene *s = *state;
	struct ibv_send_wr wr = ud_wr(s, &s->b), *bad;
	struct ibv_wc wc;

	ud_recv(&s->b, 1, 200);
	assert_int_equal(qp_move(s->a.qp, IBV_QPS_SQD), 0);
	wr.wr_id = 4;
	assert_int_equal(ibv_post_send(s->a.qp, &wr, &bad), 0);
	assert_int_equal(ibv_poll_cq(s->sends, 1, &wc), 0);
	assert_int_equal(qp_move(s->a.qp, IBV_QPS_RTS), 0);
	assert_int_equal(wc_wait(s->sends).wr_id, 4);
	assert_int_equal(wc_wait(s->f->cq).wr_id, 1);
}

/* The handles that waiting WRs hold go with them; a sanitizer sees one that does not. */
static void reset__forgets_what_waits(void **state)
{
	struct ud_scene *s = *state;
	struct ibv_send_wr wr = ud_wr(s, &s->b), *bad;
	struct ibv_wc wc;

	assert_int_equal(qp_move(s->a.qp, IBV_QPS_SQD), 0);
	assert_int_equal(ibv_post_send(s->a.qp, &wr, &bad), 0);
	assert_int_equal(qp_move(s->a.qp, IBV_QPS_RESET), 0);
	assert_int_equal(ibv_poll_cq(s->sends, 1, &wc), 0);
	ud_walk(s->a.qp, UD_QKEY);
	ud_recv(&s->b, 1, 200);
	expect_next(s, 1);
	assert_int_equal(qp_move(s->a.qp, IBV_QPS_SQD), 0);
	assert_int_equal(ibv_post_send(s->a.qp, &wr, &bad), 0);
}

static void srq__serves_ud(void **state)
{
	struct ud_scene *s = *state;
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct ibv_srq *srq = ibv_create_srq(s->f->pd, &attr);
	struct ud_end end = { .buf = s->b.buf, .mr = s->b.mr };
	struct ibv_sge sge = { (uintptr_t)end.buf, UD_GRH + 4, end.mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = 6, .sg_list = &sge, .num_sge = 1 }, *bad;

	assert_non_null(srq);
	end.qp = ud_qp_make(s, srq);
	ud_walk(end.qp, UD_QKEY);
	assert_int_equal(ibv_post_srq_recv(srq, &wr, &bad), 0);
	ud_send(s, &s->a, &end, "five!", 5);
	ud_send(s, &s->a, &end, "four", 4);
	assert_int_equal(wc_wait(s->f->cq).wr_id, 6);
	assert_memory_equal(end.buf + UD_GRH, "four", 4);
	assert_int_equal(qp_move(end.qp, IBV_QPS_ERR), 0);
	struct ibv_async_event event = async_wait(s->f->context);

	assert_int_equal(event.event_type, IBV_EVENT_QP_LAST_WQE_REACHED);
	ibv_ack_async_event(&event);
	assert_int_equal(ibv_destroy_qp(end.qp), 0);
	assert_int_equal(ibv_destroy_srq(srq), 0);
}

static void srq__memory_is_of_its_own_pd(void **state)
{
	struct ud_scene *s = *state;
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct ibv_pd *pd = ibv_alloc_pd(s->f->context);
	struct ibv_srq *srq = ibv_create_srq(pd, &attr);
	struct ibv_mr *mr = ibv_reg_mr(pd, s->b.buf, UD_ROOM, IBV_ACCESS_LOCAL_WRITE);
	struct ibv_sge sge = { (uintptr_t)s->b.buf, UD_GRH + 4, mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = 6, .sg_list = &sge, .num_sge = 1 }, *bad;
	struct ud_end end = { .buf = s->b.buf, .mr = mr, .qp = ud_qp_make(s, srq) };

	ud_walk(end.qp, UD_QKEY);
	assert_int_equal(ibv_post_srq_recv(srq, &wr, &bad), 0);
	ud_send(s, &s->a, &end, "four", 4);
	assert_int_equal(wc_wait(s->f->cq).status, IBV_WC_SUCCESS);
	assert_memory_equal(end.buf + UD_GRH, "four", 4);
	assert_int_equal(ibv_destroy_qp(end.qp), 0);
	assert_int_equal(ibv_destroy_srq(srq), 0);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
}

/* A number that is no UD QP of its port: nobody, an RC QP. */
static void receive__nobody(void **state)
{
	struct ud_scene *s = *state;
	struct ibv_qp *rc = qp_make(s->f);
	struct ibv_send_wr wr = ud_wr(s, &s->b), *bad;

	ud_recv(&s->b, 1, 200);
	wr.send_flags = 0;
	wr.wr.ud.remote_qpn = rc->qp_num;
	assert_int_equal(ibv_post_send(s->a.qp, &wr, &bad), 0);
	wr.wr.ud.remote_qpn = s->b.qp->qp_num ^ 0x80;
	assert_int_equal(ibv_post_send(s->a.qp, &wr, &bad), 0);
	wr.wr.ud.remote_qpn = 0;
	assert_int_equal(ibv_post_send(s->a.qp, &wr, &bad), 0);
	expect_next(s, 1);
	assert_int_equal(ibv_destroy_qp(rc), 0);
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, ud_setup, ud_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH(modify__walks_as_the_manual_page_says),
		WITH(post__only_where_there_is_a_queue),
		WITH(post__what_a_datagram_cannot_be),
		WITH(receive__payload_and_completion),
		WITH(receive__tells_the_way_back),
		WITH(qkey__another_is_dropped_and_counted),
		WITH(qkey__the_sender_s_own),
		WITH(receive__too_short_one_stays),
		WITH(receive__none_posted),
		WITH(receive__not_before_rtr),
		WITH(send__length_at_the_bounds),
		WITH(send__inline_needs_no_mr_nor_the_handle),
		WITH(send__bad_memory_stops_the_send_queue_alone),
		WITH(send__memory_that_was_unmapped_fails),
		WITH(receive__bad_memory_ends_the_qp),
		WITH(receive__memory_that_was_unmapped_fails),
		WITH(err__flushes_what_is_posted_and_will_be),
		WITH(sqd__holds_posts_until_rts),
		WITH(reset__forgets_what_waits),
		WITH(srq__serves_ud),
		WITH(srq__memory_is_of_its_own_pd),
		WITH(receive__nobody),
	};

	setenv("ANYWARP_PERSONA", "roce", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
