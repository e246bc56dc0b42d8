// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The reasons of a failed ibv_modify_qp: the rules of transitions, and the values.
#include "check/explain/explain.h"
#include "check/explain/qp_rule.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#define ARRAY_LEN(array) (sizeof(array) / sizeof((array)[0]))

static const struct ibv_device_attr device = {
	.max_qp_rd_atom = 16,
	.max_qp_init_rd_atom = 8,
	.atomic_cap = IBV_ATOMIC_NONE,
	.phys_port_cnt = 1,
};
static const struct ibv_port_attr port = {
	.state = IBV_PORT_ACTIVE,
	.active_mtu = IBV_MTU_1024,
	.gid_tbl_len = 4,
	.pkey_tbl_len = 1,
	.link_layer = IBV_LINK_LAYER_ETHERNET,
};

static void expect(const char *why, const char *text)
{
	assert_true(strlen(why) + 1 < AW_EXPLAIN_MAX);
	if (strcmp(why, text) != 0)
		fail_msg("\n  %s\ninstead of\n  %s", why, text);
}

#define TO_INIT (IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS)
#define TO_RTR                                                                          \
	(IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | \
	 IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)
#define TO_RTS                                                                                 \
	(IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | \
	 IBV_QP_MAX_QP_RD_ATOMIC)
#define ROCE_PATH                                                                                  \
	{                                                                                          \
		.port_num = 1, .is_global = 1, .grh = {.dgid.raw = { [15] = 1 }, .sgid_index = 3 } \
	}

#define LINK_LOCAL_PATH                                       \
	{                                                     \
		.port_num = 1, .is_global = 1,                \
		.grh = {.dgid.raw = { 0xfe, 0x80, [15] = 1 }, \
			.sgid_index = 1 }                     \
	}
#define RTR_PATH (IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN)

/* ibv_modify_qp(3), as its tables have it. */
static const struct {
	enum ibv_qp_type type;
	int init, rtr, rts;
} qp_rule_rows[] = {
	{ IBV_QPT_UD, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY, 0, IBV_QP_SQ_PSN },
	{ IBV_QPT_UC, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, RTR_PATH,
	  IBV_QP_SQ_PSN },
	{ IBV_QPT_RC, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
	  RTR_PATH | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
	  IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
		  IBV_QP_TIMEOUT },
	{ IBV_QPT_RAW_PACKET, IBV_QP_PORT, 0, 0 },
};

static void qp_rule__the_man_page_s_attributes(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(qp_rule_rows); i++) {
		enum ibv_qp_type type = qp_rule_rows[i].type;

		assert_int_equal(aw_qp_rule_find(type, IBV_QPS_RESET, IBV_QPS_INIT)->required,
				 qp_rule_rows[i].init);
		assert_int_equal(aw_qp_rule_find(type, IBV_QPS_INIT, IBV_QPS_RTR)->required,
				 qp_rule_rows[i].rtr);
		assert_int_equal(aw_qp_rule_find(type, IBV_QPS_RTR, IBV_QPS_RTS)->required,
				 qp_rule_rows[i].rts);
		assert_null(aw_qp_rule_find(type, IBV_QPS_RESET, IBV_QPS_RTR));
		assert_null(aw_qp_rule_find(type, IBV_QPS_ERR, IBV_QPS_RTS));
		assert_non_null(aw_qp_rule_find(type, IBV_QPS_RTS, IBV_QPS_ERR));
		assert_non_null(aw_qp_rule_find(type, IBV_QPS_ERR, IBV_QPS_RESET));
	}
}

struct row {
	enum ibv_qp_type type;
	enum ibv_qp_state from;
	struct ibv_qp_attr attr;
	int mask, err;
	const char *text;
};

static void expect_rows(const struct row *rows, size_t count, bool is_iwarp)
{
	for (size_t i = 0; i < count; i++) {
		char why[AW_EXPLAIN_MAX];
		struct aw_explain_qp qp = {
			.object = "QP 0x12",
			.type = rows[i].type,
			.state = rows[i].from,
			.is_iwarp = is_iwarp,
			.port_num = 1,
			.device = &device,
			.port = &port,
		};

		aw_explain_modify_qp(&qp, &rows[i].attr, rows[i].mask, rows[i].err, why);
		expect(why, rows[i].text);
	}
}

static const struct row modify_qp_rows[] = {
	{ IBV_QPT_RC,
	  IBV_QPS_RESET,
	  { .qp_state = IBV_QPS_RTR },
	  TO_RTR,
	  EINVAL,
	  "no transition leads from RESET to RTR; INIT comes next" },
	{ IBV_QPT_RC,
	  IBV_QPS_INIT,
	  { .qp_state = IBV_QPS_RTS },
	  TO_RTS,
	  EINVAL,
	  "no transition leads from INIT to RTS; RTR comes next" },
	{ IBV_QPT_RC,
	  IBV_QPS_ERR,
	  { .qp_state = IBV_QPS_INIT },
	  TO_INIT,
	  EINVAL,
	  "no transition leads from ERR to INIT; RESET comes next" },
	{ IBV_QPT_RC,
	  IBV_QPS_INIT,
	  { .qp_state = IBV_QPS_RTS, .cur_qp_state = IBV_QPS_RTR },
	  TO_RTS | IBV_QP_CUR_STATE,
	  EINVAL,
	  "cur_qp_state RTR, but QP 0x12 is in INIT" },
	{ IBV_QPT_RC,
	  IBV_QPS_INIT,
	  { .qp_state = IBV_QPS_RTR },
	  TO_RTR & ~IBV_QP_DEST_QPN,
	  EINVAL,
	  "the attribute IBV_QP_DEST_QPN is missing for INIT to RTR of an RC QP" },
	{ IBV_QPT_RC,
	  IBV_QPS_RTR,
	  { .qp_state = IBV_QPS_RTS },
	  IBV_QP_STATE | IBV_QP_SQ_PSN,
	  EINVAL,
	  "the attributes IBV_QP_TIMEOUT, IBV_QP_RETRY_CNT, IBV_QP_RNR_RETRY and IBV_QP_MAX_QP_RD_ATOMIC are missing for RTR to RTS of an RC QP" },
	{ IBV_QPT_UD,
	  IBV_QPS_RESET,
	  { .qp_state = IBV_QPS_INIT },
	  TO_INIT,
	  EINVAL,
	  "the attribute IBV_QP_QKEY is missing for RESET to INIT of a UD QP" },
	{ IBV_QPT_RC,
	  IBV_QPS_INIT,
	  { .qp_state = IBV_QPS_RTR },
	  TO_RTR | IBV_QP_PORT,
	  EINVAL,
	  "the attribute IBV_QP_PORT is not allowed for INIT to RTR of an RC QP" },
	{ IBV_QPT_UC,
	  IBV_QPS_INIT,
	  { .qp_state = IBV_QPS_RTR },
	  TO_RTR,
	  EINVAL,
	  "the attributes IBV_QP_MIN_RNR_TIMER and IBV_QP_MAX_DEST_RD_ATOMIC are not allowed for INIT to RTR of a UC QP" },
};

static void modify_qp__transitions(void **state)
{
	(void)state;
	expect_rows(modify_qp_rows, ARRAY_LEN(modify_qp_rows), false);
}

static const struct row modify_qp_values_rows[] = {
	{ IBV_QPT_RC,
	  IBV_QPS_RESET,
	  { .qp_state = IBV_QPS_INIT },
	  TO_INIT,
	  EINVAL,
	  "port_num 0, but the first port is 1" },
	{ IBV_QPT_RC,
	  IBV_QPS_RESET,
	  { .qp_state = IBV_QPS_INIT, .port_num = 2 },
	  TO_INIT,
	  EINVAL,
	  "port_num 2, but the device's phys_port_cnt is 1" },
	{ IBV_QPT_RC,
	  IBV_QPS_RESET,
	  { .qp_state = IBV_QPS_INIT, .port_num = 1, .pkey_index = 1 },
	  TO_INIT,
	  EINVAL,
	  "pkey_index 1, but the last index of the port's P_Key table is 0" },
	{ IBV_QPT_RC,
	  IBV_QPS_RESET,
	  { .qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = IBV_ACCESS_REMOTE_ATOMIC },
	  TO_INIT,
	  EINVAL,
	  "qp_access_flags has IBV_ACCESS_REMOTE_ATOMIC, but the device's atomic_cap is IBV_ATOMIC_NONE" },
	{ IBV_QPT_RC,
	  IBV_QPS_INIT,
	  { .qp_state = IBV_QPS_RTR, .dest_qp_num = 0x1000000 },
	  TO_RTR,
	  EINVAL,
	  "dest_qp_num 16777216, but the highest QP number is 16777215" },
	{ IBV_QPT_RC,
	  IBV_QPS_INIT,
	  { .qp_state = IBV_QPS_RTR, .max_dest_rd_atomic = 17 },
	  TO_RTR,
	  EINVAL,
	  "max_dest_rd_atomic 17, but the device's max_qp_rd_atom is 16" },
	{ IBV_QPT_RC,
	  IBV_QPS_INIT,
	  { .qp_state = IBV_QPS_RTR, .path_mtu = 1024 },
	  TO_RTR,
	  EINVAL,
	  "path_mtu 1024 is no value of enum ibv_mtu, which counts from IBV_MTU_256, 1, to IBV_MTU_4096, 5" },
	{ IBV_QPT_RC,
	  IBV_QPS_INIT,
	  { .qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_4096 },
	  TO_RTR,
	  EINVAL,
	  "path_mtu is IBV_MTU_4096, but port 1 has active_mtu 1024" },
	{ IBV_QPT_RC,
	  IBV_QPS_INIT,
	  { .qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024 },
	  TO_RTR,
	  EINVAL,
	  "ah_attr.port_num 0, but the first port is 1" },
	{ IBV_QPT_RC,
	  IBV_QPS_INIT,
	  { .qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .ah_attr.port_num = 2 },
	  TO_RTR,
	  EINVAL,
	  "ah_attr.port_num 2, but QP 0x12 was moved to INIT with port_num 1" },
	{ IBV_QPT_RC,
	  IBV_QPS_INIT,
	  { .qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .ah_attr.port_num = 1 },
	  TO_RTR,
	  EINVAL,
	  "ah_attr.is_global is 0, but port 1 is Ethernet, where a LID leads nowhere: RoCE needs is_global 1, grh.dgid, grh.sgid_index and grh.hop_limit" },
	{ IBV_QPT_RC,
	  IBV_QPS_INIT,
	  { .qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .ah_attr = ROCE_PATH },
	  TO_RTR,
	  EINVAL,
	  "EINVAL: most likely entry 3 of the GID table (grh.sgid_index) is empty, or of another RoCE version or IP version than the peer's GID (ibv_devinfo -v, show_gids); or grh.dgid came from another program or in another byte order" },
	{ IBV_QPT_RC,
	  IBV_QPS_INIT,
	  { .qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .ah_attr = ROCE_PATH },
	  TO_RTR,
	  ETIMEDOUT,
	  "ETIMEDOUT: the kernel found no way from GID 3 to grh.dgid: no route, or no answer to ARP or neighbor discovery (ping the peer from that interface); with several ports, each has to reach the peer's network" },
	{ IBV_QPT_RC,
	  IBV_QPS_INIT,
	  { .qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .ah_attr = ROCE_PATH },
	  TO_RTR,
	  ENODEV,
	  "ENODEV: entry 3 of the GID table has no network interface (any more)" },
	{ IBV_QPT_RC,
	  IBV_QPS_INIT,
	  { .qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .ah_attr = LINK_LOCAL_PATH },
	  TO_RTR,
	  ETIMEDOUT,
	  "ETIMEDOUT: most likely grh.dgid is the peer's link-local GID (fe80::), which reaches one network alone: both ends need a grh.sgid_index whose GID is of a routed address and of RoCE v2 (ibv_devinfo -v, show_gids; NCCL_IB_GID_INDEX)" },
	{ IBV_QPT_RC,
	  IBV_QPS_RTR,
	  { .qp_state = IBV_QPS_RTS, .retry_cnt = 8 },
	  TO_RTS,
	  EINVAL,
	  "retry_cnt 8, but the counter goes to 7" },
	{ IBV_QPT_RC,
	  IBV_QPS_RTR,
	  { .qp_state = IBV_QPS_RTS, .rnr_retry = 8 },
	  TO_RTS,
	  EINVAL,
	  "rnr_retry 8, but the counter goes to the value that means without end, 7" },
	{ IBV_QPT_RC,
	  IBV_QPS_RTR,
	  { .qp_state = IBV_QPS_RTS, .timeout = 32 },
	  TO_RTS,
	  EINVAL,
	  "timeout 32, but the highest code is 31" },
	{ IBV_QPT_RC,
	  IBV_QPS_RTR,
	  { .qp_state = IBV_QPS_RTS, .max_rd_atomic = 9 },
	  TO_RTS,
	  EINVAL,
	  "max_rd_atomic 9, but the device's max_qp_init_rd_atom is 8" },
	{ IBV_QPT_RC,
	  IBV_QPS_RTR,
	  { .qp_state = IBV_QPS_RTS },
	  TO_RTS,
	  EINVAL,
	  "EINVAL: most likely the QP's state is another than the program thinks (ibv_query_qp), or the device does not take a value: compare with ibv_devinfo -v" },
	{ IBV_QPT_RC,
	  IBV_QPS_RTR,
	  { .qp_state = IBV_QPS_RTS },
	  TO_RTS,
	  ENOMEM,
	  "ENOMEM: memory, what the process may lock (ulimit -l), or the device's number of such objects (ibv_devinfo -v) is used up" },
};

static void modify_qp__values(void **state)
{
	(void)state;
	expect_rows(modify_qp_values_rows, ARRAY_LEN(modify_qp_values_rows), false);
}

static const struct row modify_qp_an_iwarp_qp_is_connected_by_rdma_cm_rows[] = {
	{ IBV_QPT_RC,
	  IBV_QPS_INIT,
	  { .qp_state = IBV_QPS_RTR },
	  IBV_QP_STATE,
	  EINVAL,
	  "an iWARP QP is connected by rdma_cm alone, not by a move to RTR (perftest: -R at both ends; anywarp run --persona roce at both ends has the move)" },
	{ IBV_QPT_RC,
	  IBV_QPS_INIT,
	  { .qp_state = IBV_QPS_RTS },
	  IBV_QP_STATE,
	  EINVAL,
	  "an iWARP QP is connected by rdma_cm alone, not by a move to RTS (perftest: -R at both ends; anywarp run --persona roce at both ends has the move)" },
	/* The values come first: there is a device that takes a move to RTR. */
	{ IBV_QPT_RC,
	  IBV_QPS_INIT,
	  { .qp_state = IBV_QPS_RTR, .max_dest_rd_atomic = 17 },
	  TO_RTR,
	  EINVAL,
	  "max_dest_rd_atomic 17, but the device's max_qp_rd_atom is 16" },
	/* Other moves are as everywhere; a device of iWARP needs no attributes. */
	{ IBV_QPT_RC,
	  IBV_QPS_RESET,
	  { .qp_state = IBV_QPS_INIT },
	  IBV_QP_STATE,
	  EBUSY,
	  "EBUSY: another object uses it, or another call on it is not done" },
};

static void modify_qp__an_iwarp_qp_is_connected_by_rdma_cm(void **state)
{
	(void)state;
	expect_rows(modify_qp_an_iwarp_qp_is_connected_by_rdma_cm_rows,
		    ARRAY_LEN(modify_qp_an_iwarp_qp_is_connected_by_rdma_cm_rows), true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(qp_rule__the_man_page_s_attributes),
		cmocka_unit_test(modify_qp__transitions),
		cmocka_unit_test(modify_qp__values),
		cmocka_unit_test(modify_qp__an_iwarp_qp_is_connected_by_rdma_cm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
