// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Device memory, and MRs in it.
#include "pair.h"

#include <errno.h>
#include <string.h>

enum {
	LENGTH = 64,
	ACCESS = IBV_ACCESS_ZERO_BASED | IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE,
};

static struct ibv_dm *dm_make(struct ibv_context *context, size_t length)
{
	struct ibv_alloc_dm_attr attr = { .length = length };
	struct ibv_dm *dm = ibv_alloc_dm(context, &attr);

	assert_non_null(dm);
	return dm;
}

static size_t dm_max(struct ibv_context *context)
{
	struct ibv_device_attr_ex attr;

	assert_int_equal(ibv_query_device_ex(context, NULL, &attr), 0);
	return attr.max_dm_size;
}

static void alloc_dm__as_much_as_the_device_has(void **state)
{
	struct fixture *f = *state;
	size_t max = dm_max(f->context);
	struct ibv_alloc_dm_attr one = { .length = 1 }, more = { .length = max + 1 };
	struct ibv_dm *most;

	assert_true(max > 0);
	FAILS_WITH(ENOMEM, ibv_alloc_dm(f->context, &more));
	most = dm_make(f->context, max);
	FAILS_WITH(ENOMEM, ibv_alloc_dm(f->context, &one));
	assert_int_equal(ibv_free_dm(most), 0);
	assert_int_equal(ibv_free_dm(dm_make(f->context, max)), 0);
}

static void alloc_dm__bad_arguments(void **state)
{
	struct fixture *f = *state;
	struct ibv_alloc_dm_attr empty = { 0 };
	struct ibv_alloc_dm_attr mask = { .length = 4, .comp_mask = 1 };
	struct ibv_alloc_dm_attr align = { .length = 4, .log_align_req = 13 };

	FAILS_WITH(EINVAL, ibv_alloc_dm(f->context, &empty));
	FAILS_WITH(EINVAL, ibv_alloc_dm(f->context, &mask));
	FAILS_WITH(EINVAL, ibv_alloc_dm(f->context, &align));
}

static void memcpy_dm__in_whole_words(void **state)
{
	struct fixture *f = *state;
	struct ibv_dm *dm = dm_make(f->context, LENGTH);
	uint8_t octets[LENGTH], seen[LENGTH];

	assert_int_equal(ibv_memcpy_from_dm(seen, dm, 0, LENGTH), 0);
	memset(octets, 0, LENGTH);
	assert_memory_equal(seen, octets, LENGTH);
	memset(octets, 0xab, LENGTH);
	assert_int_equal(ibv_memcpy_to_dm(dm, 4, octets, LENGTH - 4), 0);
	assert_int_equal(ibv_memcpy_from_dm(seen, dm, 0, LENGTH), 0);
	assert_int_equal(seen[3], 0);
	assert_memory_equal(seen + 4, octets, LENGTH - 4);
	assert_int_equal(ibv_memcpy_to_dm(dm, 2, octets, 4), EINVAL);
	assert_int_equal(ibv_memcpy_from_dm(seen, dm, 4, 3), EINVAL);
	assert_int_equal(ibv_memcpy_to_dm(dm, 4, octets, LENGTH), EINVAL);
	assert_int_equal(ibv_memcpy_from_dm(seen, dm, LENGTH + 4, 0), EINVAL);
	assert_int_equal(ibv_memcpy_to_dm(dm, LENGTH, octets, 0), 0);
	assert_int_equal(ibv_free_dm(dm), 0);
}

static void reg_dm_mr__zero_based_and_within(void **state)
{
	struct fixture *f = *state;
	struct ibv_dm *dm = dm_make(f->context, LENGTH);
	struct ibv_mr *mr;

	FAILS_WITH(EINVAL, ibv_reg_dm_mr(f->pd, dm, 0, LENGTH, IBV_ACCESS_LOCAL_WRITE));
	FAILS_WITH(EINVAL, ibv_reg_dm_mr(f->pd, dm, 0, LENGTH + 1, ACCESS));
	FAILS_WITH(EINVAL, ibv_reg_dm_mr(f->pd, dm, LENGTH + 1, 0, ACCESS));
	FAILS_WITH(EINVAL, ibv_reg_dm_mr(f->pd, dm, 4, SIZE_MAX, ACCESS));
	mr = ibv_reg_dm_mr(f->pd, dm, 4, LENGTH - 4, ACCESS);
	assert_non_null(mr);
	assert_null(mr->addr);
	assert_int_equal(mr->length, LENGTH - 4);
	assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, &mr, 4, 0),
			 IBV_REREG_MR_ERR_CMD);
	assert_int_equal(ibv_free_dm(dm), EBUSY);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_free_dm(dm), 0);
}

/* The peer's addresses and those of an SGE are offsets in the MR, which begins within the memory. */
static void reg_dm_mr__both_ends_of_a_write(void **state)
{
	struct fixture *f = *state;
	struct ibv_dm *dm = dm_make(f->context, LENGTH);
	struct ibv_mr *mr = ibv_reg_dm_mr(f->pd, dm, 8, LENGTH - 8, ACCESS);
	struct ibv_sge sge = { .addr = 4, .length = 4, .lkey = mr->lkey };
	struct ibv_send_wr wr = {
		.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED,
		.sg_list = &sge,
		.num_sge = 1,
		.wr.rdma = { .remote_addr = 12, .rkey = mr->rkey },
	};
	uint8_t out[4] = { 4, 3, 2, 1 }, seen[4] = { 0 };
	struct ibv_send_wr *bad;
	struct pair p;

	pair_make(&p, f, NULL);
	assert_int_equal(ibv_memcpy_to_dm(dm, 8 + 4, out, 4), 0);
	assert_int_equal(ibv_post_send(p.a.qp, &wr, &bad), 0);
	assert_int_equal(wc_wait(p.a.send_cq).status, IBV_WC_SUCCESS);
	/* Behind the Write: a message that its receiver has seen. */
	side_recv(&p.b, 1, 0, 8);
	wr.opcode = IBV_WR_SEND;
	assert_int_equal(ibv_post_send(p.a.qp, &wr, &bad), 0);
	assert_int_equal(wc_wait(p.b.recv_cq).status, IBV_WC_SUCCESS);
	assert_memory_equal(p.b.memory, out, 4);
	assert_int_equal(ibv_memcpy_from_dm(seen, dm, 8 + 12, 4), 0);
	assert_memory_equal(seen, out, 4);
	pair_destroy(&p);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_free_dm(dm), 0);
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH(alloc_dm__as_much_as_the_device_has), WITH(alloc_dm__bad_arguments),
		WITH(memcpy_dm__in_whole_words),	   WITH(reg_dm_mr__zero_based_and_within),
		WITH(reg_dm_mr__both_ends_of_a_write),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
