// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The table of adapters, and what each refuses.
#include "check/vary/like.h"

#include "base/array.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static const char *const names[] = { "mlx5", "irdma", "bnxt", "efa", "siw", "rxe" };

static void aw_like_find__all_that_the_help_names(void **state)
{
	char listed[128] = "";

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		const struct aw_like *like = aw_like_find(names[i]);

		assert_non_null(like);
		assert_string_equal(like->name, names[i]);
		strcat(listed, i ? ", " : "");
		strcat(listed, names[i]);
	}
	assert_string_equal(aw_like_names(), listed);
	assert_null(aw_like_find("mlx"));
	assert_null(aw_like_find(""));
}

/* A device that has more than any adapter; and one that has less. */
static struct ibv_device_attr device_of(int size)
{
	struct ibv_device_attr attr = {
		.max_mr_size = size > 1 ? UINT64_MAX : 4096,
		.page_size_cap = 0xfffffffffffff000u,
		.device_cap_flags = IBV_DEVICE_MEM_WINDOW | IBV_DEVICE_SRQ_RESIZE,
		.atomic_cap = IBV_ATOMIC_GLOB,
	};
	int *const limits[] = {
		&attr.max_qp,	       &attr.max_qp_wr,	     &attr.max_sge,
		&attr.max_sge_rd,      &attr.max_cq,	     &attr.max_cqe,
		&attr.max_mr,	       &attr.max_pd,	     &attr.max_mw,
		&attr.max_ah,	       &attr.max_qp_rd_atom, &attr.max_qp_init_rd_atom,
		&attr.max_res_rd_atom, &attr.max_srq,	     &attr.max_srq_wr,
		&attr.max_srq_sge,
	};

	for (size_t i = 0; i < ARRAY_LEN(limits); i++)
		*limits[i] = size;
	return attr;
}

static void aw_like_limit_device__has_the_adapters_numbers(void **state)
{
	const struct aw_like *siw = aw_like_find("siw");
	struct ibv_device_attr attr = device_of(INT32_MAX);

	(void)state;
	aw_like_limit_device(siw, &attr);
	assert_int_equal(attr.vendor_id, 0x626d74);
	assert_int_equal(attr.max_qp_wr, 32768);
	assert_int_equal(attr.max_sge, 6);
	assert_int_equal(attr.max_sge_rd, 1);
	assert_int_equal(attr.max_mw, 0);
	assert_int_equal(attr.page_size_cap, 4096);
	assert_int_equal(attr.atomic_cap, IBV_ATOMIC_NONE);
	assert_int_equal(attr.device_cap_flags, IBV_DEVICE_SRQ_RESIZE);
	assert_int_equal(attr.max_ah, INT32_MAX); /* siw's is not in the table */
}

static void aw_like_limit_device__raises_nothing(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		struct ibv_device_attr attr = device_of(1);

		aw_like_limit_device(aw_like_find(names[i]), &attr);
		assert_true(attr.max_mr_size <= 4096);
		assert_true(attr.page_size_cap != 0);
		assert_true(attr.max_qp <= 1 && attr.max_qp_wr <= 1 && attr.max_sge <= 1);
		assert_true(attr.max_sge_rd <= 1 && attr.max_cq <= 1 && attr.max_cqe <= 1);
		assert_true(attr.max_mr <= 1 && attr.max_pd <= 1 && attr.max_mw <= 1);
		assert_true(attr.max_ah <= 1 && attr.max_qp_rd_atom <= 1);
		assert_true(attr.max_qp_init_rd_atom <= 1 && attr.max_res_rd_atom <= 1);
		assert_true(attr.max_srq <= 1 && attr.max_srq_wr <= 1 && attr.max_srq_sge <= 1);
	}
}

static void aw_like_check_create_qp__limits(void **state)
{
	static const struct {
		const char *like;
		enum ibv_qp_type type;
		struct ibv_qp_cap cap;
		bool srq;
		int err;
	} rows[] = {
		{ "mlx5", IBV_QPT_RC, { 32768, 32768, 30, 30, 512 }, false, 0 },
		{ "mlx5", IBV_QPT_RC, { 32769, 1, 1, 1, 0 }, false, EINVAL },
		{ "mlx5", IBV_QPT_RC, { 1, 32769, 1, 1, 0 }, false, EINVAL },
		{ "mlx5", IBV_QPT_RC, { 1, 32769, 1, 31, 0 }, true, 0 },
		{ "mlx5", IBV_QPT_UC, { 1, 1, 31, 1, 0 }, false, EINVAL },
		{ "irdma", IBV_QPT_RC, { 4063, 4063, 13, 13, 101 }, false, 0 },
		{ "irdma", IBV_QPT_RC, { 4064, 1, 1, 1, 0 }, false, EINVAL },
		{ "irdma", IBV_QPT_RC, { 1, 1, 1, 1, 102 }, false, EINVAL },
		{ "irdma", IBV_QPT_RC, { 1, 1, 1, 1, 0 }, true, EINVAL },
		{ "irdma", IBV_QPT_UC, { 1, 1, 1, 1, 0 }, false, EOPNOTSUPP },
		{ "bnxt", IBV_QPT_RC, { 1, 1, 6, 6, 96 }, false, 0 },
		{ "bnxt", IBV_QPT_RC, { 1, 1, 7, 1, 0 }, false, EINVAL },
		{ "bnxt", IBV_QPT_RC, { 1, 1, 1, 1, 97 }, false, EINVAL },
		{ "efa", IBV_QPT_RC, { 1, 1, 1, 1, 0 }, false, EOPNOTSUPP },
		{ "efa", IBV_QPT_UD, { 1, 1, 2, 2, 32 }, false, 0 },
		{ "efa", IBV_QPT_DRIVER, { 1, 1, 2, 2, 32 }, false, 0 },
		{ "mlx5", IBV_QPT_DRIVER, { 1, 1, 1, 1, 0 }, false, EOPNOTSUPP },
		{ "efa", IBV_QPT_UD, { 1, 1, 2, 2, 33 }, false, EINVAL },
		{ "siw", IBV_QPT_RC, { 32768, 32768, 6, 6, 80 }, false, 0 },
		{ "siw", IBV_QPT_UD, { 1, 1, 1, 1, 0 }, false, EOPNOTSUPP },
		{ "siw", IBV_QPT_RC, { 1, 1, 1, 7, 0 }, false, EINVAL },
		{ "siw", IBV_QPT_RC, { 1, 1, 1, 1, 81 }, false, EINVAL },
		{ "rxe", IBV_QPT_UC, { 16384, 16384, 32, 32, 400 }, false, 0 },
		{ "rxe", IBV_QPT_RC, { 16385, 1, 1, 1, 0 }, false, EINVAL },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct ibv_srq srq;
		struct ibv_qp_init_attr attr = {
			.qp_type = rows[i].type,
			.cap = rows[i].cap,
			.srq = rows[i].srq ? &srq : NULL,
		};

		if (aw_like_check_create_qp(aw_like_find(rows[i].like), &attr) != rows[i].err)
			fail_msg("row %zu: %s", i, rows[i].like);
	}
}

static void aw_like_check_modify_qp__depths(void **state)
{
	struct ibv_qp_attr attr = { .max_rd_atomic = 16, .max_dest_rd_atomic = 17 };
	const struct aw_like *mlx5 = aw_like_find("mlx5");

	(void)state;
	assert_int_equal(aw_like_check_modify_qp(mlx5, &attr, IBV_QP_MAX_QP_RD_ATOMIC), 0);
	assert_int_equal(aw_like_check_modify_qp(mlx5, &attr, IBV_QP_MAX_DEST_RD_ATOMIC), EINVAL);
	assert_int_equal(aw_like_check_modify_qp(mlx5, &attr, IBV_QP_STATE), 0);
	attr.max_rd_atomic = 17;
	assert_int_equal(aw_like_check_modify_qp(mlx5, &attr, IBV_QP_MAX_QP_RD_ATOMIC), EINVAL);
	attr.qp_access_flags = IBV_ACCESS_REMOTE_ATOMIC;
	assert_int_equal(aw_like_check_modify_qp(mlx5, &attr, IBV_QP_ACCESS_FLAGS), 0);
	assert_int_equal(aw_like_check_modify_qp(aw_like_find("siw"), &attr, IBV_QP_ACCESS_FLAGS),
			 EINVAL);
}

static void aw_like_check__other_objects(void **state)
{
	const struct aw_like *irdma = aw_like_find("irdma"), *efa = aw_like_find("efa");
	const struct aw_like *siw = aw_like_find("siw"), *bnxt = aw_like_find("bnxt");
	struct ibv_srq_init_attr srq = { .attr = { .max_wr = 327680, .max_sge = 6 } };

	(void)state;
	assert_int_equal(aw_like_check_create_cq(irdma, 1048574), 0);
	assert_int_equal(aw_like_check_create_cq(irdma, 1048575), EINVAL);
	assert_int_equal(aw_like_check_create_cq(efa, INT32_MAX), 0);
	assert_int_equal(aw_like_check_create_srq(siw, &srq), 0);
	srq.attr.max_wr++;
	assert_int_equal(aw_like_check_create_srq(siw, &srq), EINVAL);
	assert_int_equal(aw_like_check_create_srq(irdma, &srq), EOPNOTSUPP);
	assert_int_equal(aw_like_check_reg_mr(bnxt, UINT64_C(1) << 39, IBV_ACCESS_LOCAL_WRITE), 0);
	assert_int_equal(aw_like_check_reg_mr(bnxt, (UINT64_C(1) << 39) + 1, 0), EINVAL);
	assert_int_equal(aw_like_check_reg_mr(efa, 1, IBV_ACCESS_REMOTE_READ), 0);
	assert_int_equal(aw_like_check_reg_mr(efa, 1, IBV_ACCESS_REMOTE_WRITE), EOPNOTSUPP);
	assert_int_equal(aw_like_check_alloc_mw(siw), EOPNOTSUPP);
	assert_int_equal(aw_like_check_alloc_mw(irdma), 0);
}

static int post(const char *like, enum ibv_wr_opcode opcode, int num_sge, uint32_t inline_len)
{
	struct ibv_sge sge[8] = { { .length = inline_len } };
	struct ibv_send_wr wr = {
		.opcode = opcode,
		.sg_list = sge,
		.num_sge = num_sge,
		.send_flags = inline_len ? IBV_SEND_INLINE : 0,
	};

	return aw_like_check_post_send(aw_like_find(like), IBV_QPT_RC, &wr);
}

static void aw_like_check_post_send__opcodes(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		assert_int_equal(post(names[i], IBV_WR_SEND, 1, 0), 0);
	assert_int_equal(post("mlx5", IBV_WR_ATOMIC_FETCH_AND_ADD, 1, 0), 0);
	assert_int_equal(post("siw", IBV_WR_ATOMIC_FETCH_AND_ADD, 1, 0), EINVAL);
	assert_int_equal(post("bnxt", IBV_WR_ATOMIC_CMP_AND_SWP, 1, 0), EINVAL);
	assert_int_equal(post("irdma", IBV_WR_RDMA_WRITE_WITH_IMM, 1, 0), EINVAL);
	assert_int_equal(post("rxe", IBV_WR_RDMA_WRITE_WITH_IMM, 1, 0), 0);
	assert_int_equal(post("efa", IBV_WR_RDMA_WRITE, 1, 0), EINVAL);
	assert_int_equal(post("efa", IBV_WR_RDMA_READ, 1, 0), 0);
}

static void aw_like_check_post_send__sizes(void **state)
{
	(void)state;
	assert_int_equal(post("siw", IBV_WR_RDMA_WRITE, 6, 0), 0);
	assert_int_equal(post("siw", IBV_WR_RDMA_WRITE, 7, 0), EINVAL);
	assert_int_equal(post("siw", IBV_WR_RDMA_READ, 1, 0), 0);
	assert_int_equal(post("siw", IBV_WR_RDMA_READ, 2, 0), EINVAL);
	assert_int_equal(post("siw", IBV_WR_SEND, 1, 80), 0);
	assert_int_equal(post("siw", IBV_WR_SEND, 1, 81), EINVAL);
	assert_int_equal(post("siw", IBV_WR_SEND, -1, 0), EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(aw_like_find__all_that_the_help_names),
		cmocka_unit_test(aw_like_limit_device__has_the_adapters_numbers),
		cmocka_unit_test(aw_like_limit_device__raises_nothing),
		cmocka_unit_test(aw_like_check_create_qp__limits),
		cmocka_unit_test(aw_like_check_modify_qp__depths),
		cmocka_unit_test(aw_like_check__other_objects),
		cmocka_unit_test(aw_like_check_post_send__opcodes),
		cmocka_unit_test(aw_like_check_post_send__sizes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
