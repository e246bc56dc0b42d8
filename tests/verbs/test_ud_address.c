// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Address handles, multicast groups, and the extended calls for UD QPs.
#include "ud_scene.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static void ah__refuses_what_leads_nowhere(void **state)
{
	struct ud_scene *s = *state;
	struct ibv_ah_attr good = ud_address(s), attr = good;

	attr.grh.sgid_index = 255;
	FAILS_WITH(EINVAL, ibv_create_ah(s->f->pd, &attr));
	attr = good;
	memset(&attr.grh.dgid, 0, sizeof(attr.grh.dgid));
	FAILS_WITH(EINVAL, ibv_create_ah(s->f->pd, &attr));
	attr = good;
	attr.grh.dgid.raw[0] = 0x20; /* an IPv6 address, from an IPv4 one */
	FAILS_WITH(EINVAL, ibv_create_ah(s->f->pd, &attr));
	attr = good;
	attr.port_num = 2;
	FAILS_WITH(EINVAL, ibv_create_ah(s->f->pd, &attr));
	attr = good;
	attr.sl = 16;
	FAILS_WITH(EINVAL, ibv_create_ah(s->f->pd, &attr));
	attr = good;
	attr.is_global = 0;
	attr.dlid = 77;
	FAILS_WITH(EINVAL, ibv_create_ah(s->f->pd, &attr));
}

/* Programs that exchange LIDs know no GID: a path without leads here. */
static void ah__by_lid(void **state)
{
	struct ud_scene *s = *state;
	struct ibv_ah_attr attr = { .port_num = 1, .sl = 3 };
	struct ibv_port_attr port;
	struct ibv_ah *ah = s->ah;
	struct ibv_wc wc;

	assert_int_equal(ibv_query_port(s->f->context, 1, &port), 0);
	attr.dlid = port.lid;
	s->ah = ibv_create_ah(s->f->pd, &attr);
	assert_non_null(s->ah);
	ud_recv(&s->b, 1, 200);
	ud_send(s, &s->a, &s->b, "lid", 3);
	wc = wc_wait(s->f->cq);
	assert_int_equal(wc.wr_id, 1);
	assert_int_equal(wc.sl, 2); /* IPv4, as NVIDIA's adapters say it */
	assert_int_equal(ibv_destroy_ah(s->ah), 0);
	s->ah = ah;
}

static void ah__many(void **state)
{
	enum {
		MANY = 5000
	};
	static struct ibv_ah *ahs[MANY];
	struct ud_scene *s = *state;
	struct ibv_ah_attr attr = ud_address(s);

	attr.is_global = 0;
	for (int i = 0; i < MANY; i++) {
		ahs[i] = ibv_create_ah(s->f->pd, &attr);
		assert_non_null(ahs[i]);
	}
	assert_int_equal(ibv_dealloc_pd(s->f->pd), EBUSY);
	for (int i = 0; i < MANY; i++)
		assert_int_equal(ibv_destroy_ah(ahs[i]), 0);
}

static union ibv_gid group_gid(uint8_t last)
{
	return (union ibv_gid){ .raw = { [10] = 0xff, 0xff, 239, 77, 1, last } };
}

static struct ibv_ah *group_ah(struct ud_scene *s, union ibv_gid gid)
{
	struct ibv_ah_attr attr = ud_address(s);
	struct ibv_ah *ah;

	attr.grh.dgid = gid;
	ah = ibv_create_ah(s->f->pd, &attr);
	assert_non_null(ah);
	return ah;
}

static void group_send(struct ud_scene *s, struct ibv_ah *ah, uint32_t qkey)
{
	struct ibv_send_wr wr = ud_wr(s, &s->b), *bad;

	wr.send_flags = 0;
	wr.wr.ud.ah = ah;
	wr.wr.ud.remote_qpn = 0xffffff;
	wr.wr.ud.remote_qkey = qkey;
	assert_int_equal(ibv_post_send(s->a.qp, &wr, &bad), 0);
}

static void mcast__to_all_that_are_attached(void **state)
{
	struct ud_scene *s = *state;
	union ibv_gid gid = group_gid(1);
	struct ibv_ah *ah = group_ah(s, gid);
	uint64_t seen = 0;

	assert_int_equal(ibv_attach_mcast(s->a.qp, &gid, 0), 0);
	assert_int_equal(ibv_attach_mcast(s->b.qp, &gid, 0), 0);
	ud_recv(&s->a, 1, 200);
	ud_recv(&s->b, 2, 200);
	group_send(s, ah, UD_QKEY);
	for (int i = 0; i < 2; i++) {
		struct ibv_wc wc = wc_wait(s->f->cq);

		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		assert_int_equal(wc.src_qp, s->a.qp->qp_num);
		assert_int_equal(wc.wc_flags & IBV_WC_GRH, IBV_WC_GRH);
		seen |= wc.wr_id;
	}
	assert_int_equal(seen, 3);
	assert_memory_equal(s->a.buf + 36, gid.raw + 12, 4); /* the IPv4 header's destination */
	assert_int_equal(ibv_detach_mcast(s->a.qp, &gid, 0), 0);
	assert_int_equal(ibv_detach_mcast(s->b.qp, &gid, 0), 0);
	assert_int_equal(ibv_destroy_ah(ah), 0);
}

static void mcast__not_to_others(void **state)
{
	struct ud_scene *s = *state;
	union ibv_gid gid = group_gid(2), other = group_gid(3);
	struct ibv_ah *ah = group_ah(s, gid), *other_ah = group_ah(s, other);

	assert_int_equal(ibv_attach_mcast(s->a.qp, &gid, 0), 0);
	assert_int_equal(ibv_attach_mcast(s->b.qp, &gid, 0), 0);
	assert_int_equal(ibv_attach_mcast(s->b.qp, &gid, 0), 0); /* once more is no more */
	assert_int_equal(ibv_detach_mcast(s->b.qp, &gid, 0), 0);
	assert_int_equal(ibv_detach_mcast(s->b.qp, &gid, 0), EINVAL);
	ud_recv(&s->a, 1, 200);
	ud_recv(&s->b, 2, 200);
	group_send(s, other_ah, UD_QKEY);
	group_send(s, ah, UD_QKEY + 1);
	group_send(s, ah, UD_QKEY);
	assert_int_equal(wc_wait(s->f->cq).wr_id, 1);
	ud_none(s);
	assert_int_equal(ibv_detach_mcast(s->a.qp, &gid, 0), 0);
	assert_int_equal(ibv_destroy_ah(ah), 0);
	assert_int_equal(ibv_destroy_ah(other_ah), 0);
}

static void mcast__as_roce_v1_writes_it(void **state)
{
	struct ud_scene *s = *state;
	union ibv_gid v2 = group_gid(4), v1 = v2;
	struct ibv_ah *ah = group_ah(s, v2);

	v1.raw[0] = 0xff;
	v1.raw[1] = 0x0e;
	assert_int_equal(ibv_attach_mcast(s->b.qp, &v1, 0), 0);
	ud_recv(&s->b, 1, 200);
	group_send(s, ah, UD_QKEY);
	assert_int_equal(wc_wait(s->f->cq).wr_id, 1);
	assert_int_equal(ibv_detach_mcast(s->b.qp, &v1, 0), 0);
	assert_int_equal(ibv_destroy_ah(ah), 0);
}

/* As the kernel has it: the QP stays, in its group. */
static void mcast__destroy_qp_is_busy_until_it_is_detached(void **state)
{
	struct ud_scene *s = *state;
	union ibv_gid gid = group_gid(6);
	struct ibv_ah *ah = group_ah(s, gid);

	assert_int_equal(ibv_attach_mcast(s->b.qp, &gid, 0), 0);
	errno = 0;
	assert_int_equal(ibv_destroy_qp(s->b.qp), EBUSY);
	assert_int_equal(errno, EBUSY);
	ud_recv(&s->b, 1, 200);
	group_send(s, ah, UD_QKEY);
	assert_int_equal(wc_wait(s->f->cq).wr_id, 1);
	assert_int_equal(ibv_detach_mcast(s->b.qp, &gid, 0), 0);
	assert_int_equal(ibv_destroy_ah(ah), 0);
}

static _Atomic bool is_done;

static void *attach_cancelled(void *arg)
{
	struct ud_scene *s = arg;
	union ibv_gid gid = group_gid(1);

	pthread_cancel(pthread_self());
	is_done = ibv_attach_mcast(s->a.qp, &gid, 0) == 0 &&
		  ibv_detach_mcast(s->a.qp, &gid, 0) == 0;
	pthread_testcancel();
	return NULL;
}

/* A thread that was cancelled half way would leave the lock of all groups taken. */
static void mcast__is_no_cancellation_point(void **state)
{
	struct ud_scene *s = *state;
	union ibv_gid gid = group_gid(1);
	pthread_t thread;

	is_done = false;
	assert_int_equal(pthread_create(&thread, NULL, attach_cancelled, s), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_true(is_done);
	assert_int_equal(ibv_attach_mcast(s->b.qp, &gid, 0), 0);
	assert_int_equal(ibv_detach_mcast(s->b.qp, &gid, 0), 0);
}

static void mcast__refuses_what_is_no_group(void **state)
{
	struct ud_scene *s = *state;
	union ibv_gid host = { .raw = { [10] = 0xff, 0xff, 127, 0, 0, 1 } }, gid = group_gid(5);
	struct ibv_qp *rc = qp_make(s->f);

	assert_int_equal(ibv_attach_mcast(s->a.qp, &host, 0), EINVAL);
	assert_int_equal(ibv_attach_mcast(rc, &gid, 0), EOPNOTSUPP);
	assert_int_equal(ibv_destroy_qp(rc), 0);
}

static void mcast__groups_at_the_bound(void **state)
{
	enum {
		GROUPS = 64
	};
	struct ud_scene *s = *state;
	union ibv_gid gid = group_gid(0);

	for (int i = 0; i < GROUPS; i++) {
		gid.raw[15] = (uint8_t)i;
		assert_int_equal(ibv_attach_mcast(s->a.qp, &gid, 0), 0);
	}
	gid.raw[15] = GROUPS;
	assert_int_equal(ibv_attach_mcast(s->a.qp, &gid, 0), ENOMEM);
	while (gid.raw[15]-- > 0)
		assert_int_equal(ibv_detach_mcast(s->a.qp, &gid, 0), 0);
}

static void extended__sends_and_reads(void **state)
{
	struct ud_scene *s = *state;
	struct ibv_cq_init_attr_ex cq_attr = { .cqe = 8, .wc_flags = IBV_WC_STANDARD_FLAGS };
	struct ibv_cq_ex *cq = ibv_create_cq_ex(s->f->context, &cq_attr);
	struct ibv_qp_init_attr_ex attr = {
		.cap = { 4, 4, 1, 1, 64 },
		.qp_type = IBV_QPT_UD,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = s->f->pd,
		.send_ops_flags = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM,
	};
	struct ibv_poll_cq_attr poll_attr = { 0 };
	struct ud_end end = { .buf = s->b.buf, .mr = s->b.mr };
	struct ibv_qp_ex *qp;
	int err;

	assert_non_null(cq);
	attr.send_cq = attr.recv_cq = ibv_cq_ex_to_cq(cq);
	end.qp = ibv_create_qp_ex(s->f->context, &attr);
	assert_non_null(end.qp);
	ud_walk(end.qp, UD_QKEY);
	qp = ibv_qp_to_qp_ex(end.qp);
	ud_recv(&end, 1, 200);
	ibv_wr_start(qp);
	qp->wr_id = 2;
	qp->wr_flags = 0;
	ibv_wr_send_imm(qp, 0x01020304);
	ibv_wr_set_ud_addr(qp, s->ah, end.qp->qp_num, UD_QKEY);
	ibv_wr_set_inline_data(qp, "self", 4);
	assert_int_equal(ibv_wr_complete(qp), 0);
	do
		err = ibv_start_poll(cq, &poll_attr);
	while (err == ENOENT);
	assert_int_equal(err, 0);
	assert_int_equal(cq->wr_id, 1);
	assert_int_equal(ibv_wc_read_src_qp(cq), end.qp->qp_num);
	assert_int_equal(ibv_wc_read_wc_flags(cq), IBV_WC_GRH | IBV_WC_WITH_IMM);
	assert_int_equal(ibv_wc_read_imm_data(cq), 0x01020304);
	assert_int_equal(ibv_wc_read_byte_len(cq), UD_GRH + 4);
	ibv_end_poll(cq);
	/* One without an address is refused as a whole. */
	ibv_wr_start(qp);
	ibv_wr_send(qp);
	ibv_wr_set_inline_data(qp, "lost", 4);
	assert_int_equal(ibv_wr_complete(qp), EINVAL);
	assert_int_equal(ibv_destroy_qp(end.qp), 0);
	assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
}

static void extended__refuses_other_operations(void **state)
{
	struct ud_scene *s = *state;
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = s->f->cq,
		.recv_cq = s->f->cq,
		.cap = { 4, 4, 1, 1, 64 },
		.qp_type = IBV_QPT_UD,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = s->f->pd,
		.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE,
	};

	FAILS_WITH(EOPNOTSUPP, ibv_create_qp_ex(s->f->context, &attr));
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, ud_setup, ud_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH(ah__refuses_what_leads_nowhere),
		WITH(ah__by_lid),
		WITH(ah__many),
		WITH(mcast__to_all_that_are_attached),
		WITH(mcast__not_to_others),
		WITH(mcast__as_roce_v1_writes_it),
		WITH(mcast__destroy_qp_is_busy_until_it_is_detached),
		WITH(mcast__is_no_cancellation_point),
		WITH(mcast__refuses_what_is_no_group),
		WITH(mcast__groups_at_the_bound),
		WITH(extended__sends_and_reads),
		WITH(extended__refuses_other_operations),
	};

	setenv("ANYWARP_PERSONA", "roce", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
