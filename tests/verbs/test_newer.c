// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Verbs that are newer than Debian 12's rdma-core: buffers of the library's memory, and completion counters.
#include "newer.h"

#include "../lib/until.h"
#include "flusher.h"
#include "pair.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define ALL_RIGHTS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)

static void alloc_buf__is_memory_of_whole_pages(void **state)
{
	struct fixture *f = *state;
	struct ibv_buf *buf = NULL;
	uint8_t *memory = buf_alloc(f->pd, 5000, &buf);
	struct ibv_mr *mr;

	assert_non_null(memory);
	assert_non_null(buf);
	assert_int_equal((uintptr_t)memory % (uintptr_t)sysconf(_SC_PAGESIZE), 0);
	memset(memory, 1, 5000);
	assert_int_equal(buf_export(buf), -1);
	assert_int_equal(errno, ENODATA);
	assert_int_equal(ibv_dealloc_pd(f->pd), EBUSY);
	mr = buf_reg(f->pd, buf, memory + 100, 4900, ALL_RIGHTS);
	assert_non_null(mr);
	assert_ptr_equal(mr->addr, memory + 100);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	buf_free(buf);
	buf_free(NULL);
	FAILS_WITH(EINVAL, buf_alloc(f->pd, 0, &buf));
}

static void reg_buf_mr__only_within_the_buffer_and_its_pd(void **state)
{
	struct fixture *f = *state;
	struct ibv_pd *other = ibv_alloc_pd(f->context);
	struct ibv_buf *buf;
	uint8_t *memory = buf_alloc(f->pd, 100, &buf);

	FAILS_WITH(EINVAL, buf_reg(f->pd, buf, memory, 101, ALL_RIGHTS));
	FAILS_WITH(EINVAL, buf_reg(f->pd, buf, memory + 1, 100, ALL_RIGHTS));
	FAILS_WITH(EINVAL, buf_reg(f->pd, buf, memory - 1, 10, ALL_RIGHTS));
	FAILS_WITH(EINVAL, buf_reg(f->pd, buf, memory + 101, 0, ALL_RIGHTS));
	FAILS_WITH(EINVAL, buf_reg(other, buf, memory, 100, ALL_RIGHTS));
	buf_free(buf);
	assert_int_equal(ibv_dealloc_pd(other), 0);
}

static void reg_mr_ex__of_a_buffer(void **state)
{
	struct fixture *f = *state;
	struct ibv_buf *buf;
	struct vb_mr_init_attr attr = { .length = 100,
					.access = ALL_RIGHTS,
					.comp_mask = VB_MR_BUF | VB_MR_ADDR };
	struct ibv_mr *mr;

	attr.addr = buf_alloc(f->pd, 100, &buf);
	attr.buf = buf;
	mr = mr_reg_ex(f->pd, &attr);
	assert_non_null(mr);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	attr.comp_mask = VB_MR_BUF;
	FAILS_WITH(EINVAL, mr_reg_ex(f->pd, &attr));
	attr.comp_mask = VB_MR_BUF | VB_MR_ADDR | VB_MR_FD;
	FAILS_WITH(EINVAL, mr_reg_ex(f->pd, &attr));
	attr.comp_mask = VB_MR_ADDR | VB_MR_DMAH;
	FAILS_WITH(EOPNOTSUPP, mr_reg_ex(f->pd, &attr));
	buf_free(buf);
}

static struct vb_comp_cntr *counter_make(struct fixture *f, enum vb_comp_cntr_type type)
{
	const struct vb_comp_cntr_init_attr attr = { .type = type };
	struct vb_comp_cntr *counter = counter_create(f->context, &attr);

	assert_non_null(counter);
	return counter;
}

static uint64_t good(struct vb_comp_cntr *counter)
{
	uint64_t value;

	assert_int_equal(counter_read(counter, &value), 0);
	return value;
}

static uint64_t bad(struct vb_comp_cntr *counter)
{
	uint64_t value;

	assert_int_equal(counter_read_err(counter, &value), 0);
	return value;
}

static int count_in(struct vb_comp_cntr *counter, struct ibv_qp *qp, uint32_t ops)
{
	const struct vb_comp_cntr_attach_attr attr = { .op_mask = ops };

	return counter_attach(qp, counter, &attr);
}

static void comp_cntr__caps_and_attributes(void **state)
{
	struct fixture *f = *state;
	struct {
		struct vb_comp_cntr_caps caps;
		uint64_t newer;
	} found;
	struct vb_comp_cntr_init_attr attr = { .type = VB_COMP_CNTR_BYTES + 1 };

	memset(&found, 0xff, sizeof(found));
	assert_int_equal(counter_caps(f->context, &found.caps, sizeof(found)), 0);
	assert_true(found.caps.max_value == UINT64_MAX);
	assert_int_equal(found.caps.max_counters, 65536);
	assert_int_equal(found.caps.supported_qp_attach_ops,
			 VB_COUNT_SEND | VB_COUNT_RECV | VB_COUNT_READ | VB_COUNT_WRITE);
	assert_int_equal(found.newer, 0);
	FAILS_WITH(EOPNOTSUPP, counter_create(f->context, &attr));
	attr = (struct vb_comp_cntr_init_attr){ .comp_mask = 1 };
	FAILS_WITH(EOPNOTSUPP, counter_create(f->context, &attr));
	attr = (struct vb_comp_cntr_init_attr){ .flags = 1 };
	FAILS_WITH(EOPNOTSUPP, counter_create(f->context, &attr));
}

static void comp_cntr__set_increment_and_wrap(void **state)
{
	struct vb_comp_cntr *counter = counter_make(*state, VB_COMP_CNTR_WRS);

	assert_int_equal(good(counter) | bad(counter), 0);
	assert_int_equal(counter_set(counter, UINT64_MAX), 0);
	assert_int_equal(counter_set_err(counter, 7), 0);
	assert_int_equal(counter_inc(counter, 2), 0);
	assert_int_equal(counter_inc_err(counter, 3), 0);
	assert_int_equal(good(counter), 1);
	assert_int_equal(bad(counter), 10);
	assert_int_equal(counter_destroy(counter), 0);
}

static void comp_cntr__attach(void **state)
{
	struct fixture *f = *state;
	struct vb_comp_cntr *a = counter_make(f, VB_COMP_CNTR_WRS);
	struct vb_comp_cntr *b = counter_make(f, VB_COMP_CNTR_WRS);
	const struct vb_comp_cntr_attach_attr unknown = { .comp_mask = 1, .op_mask = 1 };
	struct ibv_qp *qp = qp_make(f);

	assert_int_equal(count_in(a, qp, 0), EINVAL);
	assert_int_equal(count_in(a, qp, VB_COUNT_REMOTE_READ), EOPNOTSUPP);
	assert_int_equal(count_in(a, qp, VB_COUNT_SEND | VB_COUNT_REMOTE_WRITE), EOPNOTSUPP);
	assert_int_equal(counter_attach(qp, a, &unknown), EOPNOTSUPP);
	assert_int_equal(count_in(a, qp, VB_COUNT_SEND | VB_COUNT_RECV), 0);
	assert_int_equal(count_in(b, qp, VB_COUNT_READ | VB_COUNT_RECV), EBUSY);
	assert_int_equal(count_in(b, qp, VB_COUNT_READ), 0);
	assert_int_equal(counter_destroy(a), EBUSY);
	assert_int_equal(qp_move(qp, IBV_QPS_ERR), 0);
	assert_int_equal(count_in(b, qp, VB_COUNT_WRITE), EINVAL);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(counter_destroy(a), 0);
	assert_int_equal(counter_destroy(b), 0);
}

/* A WR that is flushed counts as an error, also in a counter of bytes. */
static void comp_cntr__counts_errors(void **state)
{
	struct fixture *f = *state;
	struct vb_comp_cntr *counter = counter_make(f, VB_COMP_CNTR_BYTES);
	struct ibv_qp *qp = qp_make(f);

	assert_int_equal(count_in(counter, qp, VB_COUNT_RECV), 0);
	assert_int_equal(qp_move(qp, IBV_QPS_ERR), 0);
	complete(qp, 1);
	complete(qp, 2);
	assert_int_equal(good(counter), 0);
	assert_int_equal(bad(counter), 2);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(counter_destroy(counter), 0);
}

/* Two connected QPs, whose counters are attached before. */
struct counted {
	struct ibv_qp *a, *b;
	struct vb_comp_cntr *sends, *writes, *reads, *received;
	uint8_t memory[4096];
	struct ibv_mr *mr;
};

static void counted_make(struct counted *c, struct fixture *f)
{
	int fds[2];

	c->a = qp_make(f);
	c->b = qp_make(f);
	c->sends = counter_make(f, VB_COMP_CNTR_WRS);
	c->writes = counter_make(f, VB_COMP_CNTR_WRS);
	c->reads = counter_make(f, VB_COMP_CNTR_BYTES);
	c->received = counter_make(f, VB_COMP_CNTR_WRS);
	assert_int_equal(count_in(c->sends, c->a, VB_COUNT_SEND), 0);
	assert_int_equal(count_in(c->writes, c->a, VB_COUNT_WRITE), 0);
	assert_int_equal(count_in(c->reads, c->a, VB_COUNT_READ), 0);
	assert_int_equal(count_in(c->received, c->b, VB_COUNT_RECV), 0);
	c->mr = ibv_reg_mr(f->pd, c->memory, sizeof(c->memory), ALL_RIGHTS);
	pair_sockets(fds);
	pair_attach(c->b, fds[1], false);
	pair_attach(c->a, fds[0], true);
}

static void counted_destroy(struct counted *c)
{
	struct vb_comp_cntr *counters[] = { c->sends, c->writes, c->reads, c->received };

	assert_int_equal(ibv_destroy_qp(c->a), 0);
	assert_int_equal(ibv_destroy_qp(c->b), 0);
	assert_int_equal(ibv_dereg_mr(c->mr), 0);
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(counter_destroy(counters[i]), 0);
}

static void post(struct counted *c, enum ibv_wr_opcode opcode, uint32_t len)
{
	struct ibv_sge sge = { (uintptr_t)c->memory, len, c->mr->lkey };
	struct ibv_send_wr wr = { .opcode = opcode, .sg_list = &sge, .num_sge = 1 }, *bad_wr;

	wr.wr.rdma.remote_addr = (uintptr_t)c->memory + 2048;
	wr.wr.rdma.rkey = c->mr->rkey;
	assert_int_equal(ibv_post_send(c->a, &wr, &bad_wr), 0);
}

static void receive(struct counted *c)
{
	struct ibv_sge sge = { (uintptr_t)c->memory + 1024, 100, c->mr->lkey };
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad_wr;

	assert_int_equal(ibv_post_recv(c->b, &wr, &bad_wr), 0);
}

/* None of the WRs is signalled: the counters alone tell that they are over. */
static void comp_cntr__counts_what_no_cqe_tells(void **state)
{
	struct fixture *f = *state;
	struct counted c;
	struct ibv_wc wc;

	counted_make(&c, f);
	receive(&c);
	receive(&c);
	post(&c, IBV_WR_SEND, 10);
	post(&c, IBV_WR_RDMA_WRITE, 20);
	post(&c, IBV_WR_RDMA_WRITE, 20);
	post(&c, IBV_WR_RDMA_WRITE, 20);
	post(&c, IBV_WR_RDMA_READ, 300);
	post(&c, IBV_WR_RDMA_READ, 41);
	post(&c, IBV_WR_SEND, 10);
	for (int i = 0; i < 2; i++) {
		wc = wc_wait(f->cq);
		assert_int_equal(wc.opcode, IBV_WC_RECV);
		assert_int_equal(wc.qp_num, c.b->qp_num);
	}
	repeat_until(good(c.sends) == 2) assert_int_equal(ibv_poll_cq(f->cq, 1, &wc), 0);
	assert_int_equal(good(c.writes), 3);
	assert_int_equal(good(c.reads), 341);
	assert_int_equal(good(c.received), 2);
	assert_int_equal(bad(c.sends) | bad(c.writes) | bad(c.reads) | bad(c.received), 0);
	counted_destroy(&c);
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH(alloc_buf__is_memory_of_whole_pages),
		WITH(reg_buf_mr__only_within_the_buffer_and_its_pd),
		WITH(reg_mr_ex__of_a_buffer),
		WITH(comp_cntr__caps_and_attributes),
		WITH(comp_cntr__set_increment_and_wrap),
		WITH(comp_cntr__attach),
		WITH(comp_cntr__counts_errors),
		WITH(comp_cntr__counts_what_no_cqe_tells),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
