// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The reasons of a failed post or bind: what went in, and the exact text.
#include "check/explain/explain.h"

#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#define ARRAY_LEN(array) (sizeof(array) / sizeof((array)[0]))

static void expect(const char *why, const char *text)
{
	assert_true(strlen(why) + 1 < AW_EXPLAIN_MAX);
	if (strcmp(why, text) != 0)
		fail_msg("\n  %s\ninstead of\n  %s", why, text);
}

#define CAP                                                                                  \
	{                                                                                    \
		.max_send_wr = 128, .max_recv_wr = 64, .max_send_sge = 1, .max_recv_sge = 2, \
		.max_inline_data = 64                                                        \
	}
static struct ibv_sge sges[3] = { { 0x1000, 8, 1 }, { 0x2000, 100, 1 }, { 0x3000, 0x80000000, 1 } };

#define RTS .object = "QP 0x12", .type = IBV_QPT_RC, .state = IBV_QPS_RTS, .cap = CAP

static const struct {
	struct aw_explain_queue queue;
	struct ibv_send_wr wr;
	int err;
	const char *text;
} post_send_rows[] = {
	{ { .type = IBV_QPT_RC, .state = IBV_QPS_RTR, .cap = CAP },
	  { .opcode = IBV_WR_SEND },
	  EINVAL,
	  "the state is RTR; posting a send needs RTS" },
	{ { .type = IBV_QPT_UD, .state = IBV_QPS_RTS, .cap = CAP },
	  { .opcode = IBV_WR_RDMA_WRITE },
	  EINVAL,
	  "IBV_WR_RDMA_WRITE is no operation of a UD QP" },
	{ { .type = IBV_QPT_UC, .state = IBV_QPS_RTS, .cap = CAP },
	  { .opcode = IBV_WR_RDMA_READ },
	  EINVAL,
	  "IBV_WR_RDMA_READ is no operation of a UC QP" },
	{ { RTS },
	  { .opcode = IBV_WR_SEND, .sg_list = sges, .num_sge = 3 },
	  EINVAL,
	  "num_sge 3, but QP 0x12 was created with max_send_sge 1" },
	/* mlx4 and mlx5 say ENOMEM for it. */
	{ { RTS },
	  { .opcode = IBV_WR_SEND, .sg_list = sges, .num_sge = 3 },
	  ENOMEM,
	  "num_sge 3, but QP 0x12 was created with max_send_sge 1" },
	{ { RTS },
	  { .opcode = IBV_WR_SEND, .num_sge = -1 },
	  EINVAL,
	  "num_sge -1, but QP 0x12 was created with max_send_sge 1" },
	{ { RTS },
	  { .opcode = IBV_WR_SEND, .num_sge = 1 },
	  EFAULT,
	  "num_sge 1, but sg_list is NULL" },
	{ { RTS },
	  { .opcode = IBV_WR_SEND,
	    .sg_list = &sges[1],
	    .num_sge = 1,
	    .send_flags = IBV_SEND_INLINE },
	  EINVAL,
	  "100 inline bytes, but QP 0x12 was created with max_inline_data 64" },
	{ { RTS },
	  { .opcode = IBV_WR_RDMA_READ,
	    .sg_list = sges,
	    .num_sge = 1,
	    .send_flags = IBV_SEND_INLINE },
	  EINVAL,
	  "IBV_SEND_INLINE with IBV_WR_RDMA_READ: Sends and Writes alone carry bytes from the work request" },
	{ { RTS },
	  { .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD, .sg_list = &sges[1], .num_sge = 1 },
	  EINVAL,
	  "an atomic operation returns 8 bytes, but its SGEs have 100" },
	{ { .object = "QP 0x12",
	    .type = IBV_QPT_RC,
	    .state = IBV_QPS_RTS,
	    .cap = { .max_send_sge = 3 } },
	  { .opcode = IBV_WR_SEND, .sg_list = &sges[1], .num_sge = 2 },
	  EINVAL,
	  "2147483748 bytes, but a message has 2147483648 (2 GiB) at most" },
	{ { .type = IBV_QPT_UD, .state = IBV_QPS_RTS, .cap = CAP },
	  { .opcode = IBV_WR_SEND },
	  EINVAL,
	  "wr.ud.ah is NULL: each send of a UD QP names its destination" },
	{ { RTS, .under_way = 128 },
	  { .opcode = IBV_WR_SEND },
	  ENOMEM,
	  "the SQ is full: 128 of 128 work requests have no completion that was polled, 0 of them are signaled" },
	{ { RTS, .under_way = 100, .signaled = 4 },
	  { .opcode = IBV_WR_SEND },
	  ENOMEM,
	  "ENOMEM: most likely the SQ is full: completions free its room when they are polled (100 of 128 work requests are known to be under way); some devices count a work request with many SGEs or inline bytes as several" },
	{ { RTS, .is_uncounted = true },
	  { .opcode = IBV_WR_SEND },
	  ENOMEM,
	  "ENOMEM: most likely the SQ is full, of max_send_wr 128: completions free its room when they are polled, and one that is signaled frees those before it; some devices count a work request with many SGEs or inline bytes as several" },
	{ { RTS },
	  { .opcode = IBV_WR_SEND_WITH_IMM },
	  EOPNOTSUPP,
	  "EOPNOTSUPP: the device has no IBV_WR_SEND_WITH_IMM; over iWARP immediate data and atomics need both ends' agreement" },
	{ { .object = "QP 0x12", .type = IBV_QPT_RC, .state = IBV_QPS_ERR, .cap = CAP },
	  { .opcode = IBV_WR_SEND },
	  EINVAL,
	  "EINVAL: QP 0x12 is in ERR: its first failed completion says why; after it only destroy or RESET help" },
	{ { RTS },
	  { .opcode = IBV_WR_SEND, .send_flags = 0x40 },
	  EINVAL,
	  "EINVAL: most likely the device does not have IBV_WR_SEND or one of send_flags 0x40; or the QP is not connected (any more), or a key or address handle is of another PD" },
	{ { RTS },
	  { .opcode = IBV_WR_SEND },
	  ENOTCONN,
	  "ENOTCONN: the QP is not connected: it is not in RTS (over iWARP: not ESTABLISHED yet, or not any more)" },
};

static void post_send__each_reason(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(post_send_rows); i++) {
		char why[AW_EXPLAIN_MAX];

		aw_explain_post_send(&post_send_rows[i].queue, &post_send_rows[i].wr,
				     post_send_rows[i].err, why);
		expect(why, post_send_rows[i].text);
	}
}

static const struct {
	struct aw_explain_queue queue;
	struct ibv_recv_wr wr;
	int err;
	const char *text;
} post_recv_rows[] = {
	{ { .state = IBV_QPS_RESET, .cap = CAP },
	  { 0 },
	  EINVAL,
	  "the state is RESET; posting a receive needs INIT or later" },
	{ { RTS, .has_srq = true },
	  { 0 },
	  EINVAL,
	  "QP 0x12 takes its receives from an SRQ: post them by ibv_post_srq_recv" },
	{ { .object = "QP 0x12", .state = IBV_QPS_INIT },
	  { 0 },
	  ENOMEM,
	  "QP 0x12 has no RQ: it was created with max_recv_wr 0" },
	{ { RTS },
	  { .sg_list = sges, .num_sge = 3 },
	  EINVAL,
	  "num_sge 3, but QP 0x12 was created with max_recv_sge 2" },
	{ { RTS }, { .num_sge = 1 }, EINVAL, "num_sge 1, but sg_list is NULL" },
	{ { RTS, .under_way = 64 },
	  { .sg_list = sges, .num_sge = 1 },
	  ENOMEM,
	  "the RQ is full: 64 of 64 receives have no completion that was polled" },
	{ { .object = "SRQ 0x3", .is_srq = true, .cap = CAP },
	  { .sg_list = sges, .num_sge = 3 },
	  EINVAL,
	  "num_sge 3, but SRQ 0x3 was created with max_sge 2" },
	{ { .object = "SRQ 0x3", .is_srq = true, .cap = CAP, .under_way = 64 },
	  { 0 },
	  ENOMEM,
	  "the SRQ is full: 64 of 64 receives have no completion that was polled" },
	{ { RTS, .under_way = 2 },
	  { 0 },
	  ENOMEM,
	  "ENOMEM: most likely the RQ is full: a completion that is polled frees the room of its receive (2 of 64 are known to be posted)" },
	{ { RTS, .is_uncounted = true },
	  { 0 },
	  ENOMEM,
	  "ENOMEM: most likely the RQ is full, of 64 receives: a completion that is polled frees the room of its receive" },
	{ { .object = "QP 0x12", .state = IBV_QPS_ERR, .cap = CAP },
	  { 0 },
	  EINVAL,
	  "EINVAL: QP 0x12 is in ERR, where its receives were flushed" },
};

static void post_recv__each_reason(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(post_recv_rows); i++) {
		char why[AW_EXPLAIN_MAX];

		aw_explain_post_recv(&post_recv_rows[i].queue, &post_recv_rows[i].wr,
				     post_recv_rows[i].err, why);
		expect(why, post_recv_rows[i].text);
	}
}

#define ALL (IBV_ACCESS_MW_BIND | IBV_ACCESS_LOCAL_WRITE)

static struct ibv_pd pds[2];
static struct ibv_mr mr = { .pd = &pds[0], .addr = (void *)0x1000, .length = 4096, .lkey = 0x100 };

static const struct {
	struct aw_explain_queue queue;
	struct ibv_mw mw;
	struct ibv_mw_bind_info info;
	unsigned access;
	int err;
	const char *text;
} bind_mw_rows[] = {
	{ { .state = IBV_QPS_INIT },
	  { .type = IBV_MW_TYPE_1 },
	  { 0 },
	  ALL,
	  EINVAL,
	  "the state is INIT; a bind is a send and needs RTS" },
	{ { RTS },
	  { .type = IBV_MW_TYPE_2 },
	  { 0 },
	  ALL,
	  EINVAL,
	  "the window is of type 2, which IBV_WR_BIND_MW binds, posted by ibv_post_send" },
	{ { RTS },
	  { .type = IBV_MW_TYPE_1 },
	  { .length = 8 },
	  ALL,
	  EINVAL,
	  "8 bytes without an MR; to unbind, addr and length are 0" },
	{ { RTS },
	  { .type = IBV_MW_TYPE_1, .pd = &pds[1] },
	  { .mr = &mr },
	  ALL,
	  EPERM,
	  "the window and the MR of lkey 0x100 are of different PDs" },
	{ { RTS },
	  { .type = IBV_MW_TYPE_1, .pd = &pds[0] },
	  { .mr = &mr },
	  IBV_ACCESS_LOCAL_WRITE,
	  EINVAL,
	  "the MR of lkey 0x100 was registered with access 0x1, without IBV_ACCESS_MW_BIND" },
	{ { RTS },
	  { .type = IBV_MW_TYPE_1, .pd = &pds[0] },
	  { .mr = &mr, .mw_access_flags = IBV_ACCESS_REMOTE_WRITE },
	  IBV_ACCESS_MW_BIND,
	  EINVAL,
	  "a window for remote writes needs an MR with IBV_ACCESS_LOCAL_WRITE; that of lkey 0x100 has access 0x10" },
	{ { RTS },
	  { .type = IBV_MW_TYPE_1, .pd = &pds[0] },
	  { .mr = &mr, .mw_access_flags = IBV_ACCESS_LOCAL_WRITE },
	  UINT_MAX,
	  EINVAL,
	  "mw_access_flags 0x1: a window has no flags 0x1" },
	{ { RTS, .under_way = 128, .signaled = 3 },
	  { .type = IBV_MW_TYPE_1, .pd = &pds[0] },
	  { .mr = &mr, .addr = 0x1000, .length = 8 },
	  ALL,
	  ENOMEM,
	  "the SQ is full: 128 of 128 work requests have no completion that was polled, 3 of them are signaled" },
	{ { RTS },
	  { .type = IBV_MW_TYPE_1, .pd = &pds[0] },
	  { .mr = &mr, .addr = 0x1ff9, .length = 8 },
	  ALL,
	  EINVAL,
	  "EINVAL: most likely 8 bytes from 0x1ff9 are not all in the MR of lkey 0x100, 4096 bytes from 0x1000" },
	{ { RTS },
	  { .type = IBV_MW_TYPE_1, .pd = &pds[0] },
	  { .mr = &mr, .addr = 0x1ff8, .length = 8 },
	  ALL,
	  EINVAL,
	  "EINVAL: most likely the window is of type 2, the MR lacks IBV_ACCESS_MW_BIND, or the range is not in the MR" },
};

static void bind_mw__each_reason(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bind_mw_rows); i++) {
		const struct ibv_mw_bind bind = { .bind_info = bind_mw_rows[i].info };
		char why[AW_EXPLAIN_MAX];

		aw_explain_bind_mw(&bind_mw_rows[i].queue, &bind_mw_rows[i].mw, &bind,
				   bind_mw_rows[i].access, bind_mw_rows[i].err, why);
		expect(why, bind_mw_rows[i].text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(post_send__each_reason),
		cmocka_unit_test(post_recv__each_reason),
		cmocka_unit_test(bind_mw__each_reason),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
