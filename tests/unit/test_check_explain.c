// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The reasons of failed calls whose arguments are compared: what went in, and the exact text.
#include "check/explain/explain.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#define ARRAY_LEN(array) (sizeof(array) / sizeof((array)[0]))

static const struct ibv_device_attr device = {
	.max_mr_size = 1 << 20,
	.max_qp = 8,
	.max_qp_wr = 16384,
	.max_sge = 30,
	.max_cqe = 1000,
	.max_srq = 4,
	.max_srq_wr = 256,
	.max_srq_sge = 2,
	.max_qp_rd_atom = 16,
	.max_qp_init_rd_atom = 8,
	.atomic_cap = IBV_ATOMIC_HCA,
	.phys_port_cnt = 1,
};
static const struct ibv_device_attr plain = { .atomic_cap = IBV_ATOMIC_NONE };
static const struct ibv_port_attr ethernet = {
	.state = IBV_PORT_ACTIVE,
	.active_mtu = IBV_MTU_1024,
	.gid_tbl_len = 4,
	.pkey_tbl_len = 1,
	.link_layer = IBV_LINK_LAYER_ETHERNET,
};
static const struct ibv_port_attr infiniband = {
	.state = IBV_PORT_ACTIVE,
	.active_mtu = IBV_MTU_4096,
	.gid_tbl_len = 4,
	.pkey_tbl_len = 128,
	.lid = 7,
	.link_layer = IBV_LINK_LAYER_INFINIBAND,
};
static struct ibv_context context = { .num_comp_vectors = 4 }, other;
static struct ibv_cq cq = { .context = &context }, other_cq = { .context = &other };
static struct ibv_srq srq = { .context = &context }, other_srq = { .context = &other };

static void expect(const char *why, const char *text)
{
	assert_true(strlen(why) + 1 < AW_EXPLAIN_MAX);
	if (strcmp(why, text) != 0)
		fail_msg("\n  %s\ninstead of\n  %s", why, text);
}

#define CQS .send_cq = &cq, .recv_cq = &cq

static const struct {
	struct ibv_qp_init_attr attr;
	const struct ibv_device_attr *device;
	int err;
	const char *text;
} create_qp_rows[] = {
	{ { .qp_type = IBV_QPT_RC }, &device, EINVAL, "send_cq is NULL" },
	{ { .send_cq = &cq, .qp_type = IBV_QPT_RC },
	  &device,
	  EINVAL,
	  "recv_cq is NULL; a QP that receives nothing needs one as well, which may be send_cq" },
	{ { .send_cq = &cq, .recv_cq = &other_cq, .qp_type = IBV_QPT_RC },
	  &device,
	  EINVAL,
	  "send_cq and recv_cq belong to different contexts (ibv_open_device)" },
	{ { CQS, .srq = &other_srq, .qp_type = IBV_QPT_RC },
	  &device,
	  EINVAL,
	  "srq and send_cq belong to different contexts (ibv_open_device)" },
	{ { CQS, .srq = &srq, .qp_type = IBV_QPT_UC },
	  &device,
	  EINVAL,
	  "a UC QP cannot have an SRQ: RC and UD QPs can" },
	{ { CQS, .cap = { .max_send_wr = 20000 }, .qp_type = IBV_QPT_RC },
	  &device,
	  EINVAL,
	  "max_send_wr 20000, but the device's max_qp_wr is 16384" },
	{ { CQS, .cap = { .max_send_wr = 16384, .max_send_sge = 31 }, .qp_type = IBV_QPT_RC },
	  &device,
	  ENOMEM,
	  "max_send_sge 31, but the device's max_sge is 30" },
	{ { CQS, .cap = { .max_recv_wr = 16385 }, .qp_type = IBV_QPT_RC },
	  &device,
	  ENOMEM,
	  "max_recv_wr 16385, but the device's max_qp_wr is 16384" },
	{ { CQS, .cap = { .max_recv_sge = 31 }, .qp_type = IBV_QPT_RC },
	  &device,
	  EINVAL,
	  "max_recv_sge 31, but the device's max_sge is 30" },
	/* With an SRQ the receive queue's sizes are ignored, though not by every release of libmlx5. */
	{ { CQS, .srq = &srq, .cap = { .max_recv_wr = 16385 }, .qp_type = IBV_QPT_RC },
	  &device,
	  EINVAL,
	  "EINVAL: most likely max_recv_wr 16385 with an SRQ: it has no meaning there, but some providers check it, so give 0; or the PD or SRQ is of another context than the CQs" },
	{ { CQS, .srq = &srq, .cap = { .max_recv_wr = 16385 }, .qp_type = IBV_QPT_RC },
	  &device,
	  EPERM,
	  "EPERM: a raw packet QP needs CAP_NET_RAW; other types are forbidden by the device's owner (rdma system, a cgroup)" },
	{ { CQS, .cap = { .max_send_wr = 1, .max_inline_data = 4096 }, .qp_type = IBV_QPT_RC },
	  &device,
	  EINVAL,
	  "EINVAL: most likely max_inline_data 4096 is more than the device takes, which no attribute tells: try less; or the PD is of another context than the CQs" },
	{ { CQS, .qp_type = IBV_QPT_RC },
	  NULL,
	  EINVAL,
	  "EINVAL: most likely max_send_wr 0: some devices (siw) want 1 at least; or the PD is of another context than the CQs" },
	{ { CQS, .cap = { 9000, 8000, 4, 2, 1024 }, .qp_type = IBV_QPT_RC },
	  &device,
	  ENOMEM,
	  "ENOMEM: most likely the queues are too large as a whole for the device: max_send_wr 9000 of 4 SGEs and 1024 inline bytes, max_recv_wr 8000 of 2 SGEs; or the device has no more QPs (the kernel log may say which of its limits), or memory is used up" },
	{ { CQS, .qp_type = IBV_QPT_UD },
	  &device,
	  EOPNOTSUPP,
	  "EOPNOTSUPP: the device or its provider has no UD QPs (iWARP has RC alone), or not with the attributes asked for" },
	{ { CQS, .qp_type = IBV_QPT_RC },
	  &device,
	  EIO,
	  "EIO: the device failed or was reset: an asynchronous event and the kernel log have more" },
};

static void create_qp__each_reason(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(create_qp_rows); i++) {
		char why[AW_EXPLAIN_MAX];

		aw_explain_create_qp(&create_qp_rows[i].attr, create_qp_rows[i].device,
				     create_qp_rows[i].err, why);
		expect(why, create_qp_rows[i].text);
	}
}

static struct ibv_pd pd = { .context = &context }, other_pd = { .context = &other };
static struct ibv_qp qp = { .qp_num = 0x12 };

static const struct {
	struct rdma_cm_id id;
	struct ibv_pd *pd;
	struct ibv_qp_init_attr attr;
	int err;
	const char *text;
} rdma_create_qp_rows[] = {
	{ { .qp_type = IBV_QPT_RC },
	  &pd,
	  { CQS, .qp_type = IBV_QPT_RC },
	  EINVAL,
	  "the id has no device yet (id->verbs is NULL): bind it to an address, or resolve one and wait for RDMA_CM_EVENT_ADDR_RESOLVED" },
	{ { .verbs = &context, .qp = &qp, .qp_type = IBV_QPT_RC },
	  &pd,
	  { CQS, .qp_type = IBV_QPT_RC },
	  EINVAL,
	  "the id has a QP already: QP 0x12" },
	{ { .verbs = &context, .qp_type = IBV_QPT_UD },
	  &pd,
	  { CQS, .qp_type = IBV_QPT_RC },
	  EINVAL,
	  "qp_type is RC, but the id's port space has UD QPs" },
	{ { .verbs = &context, .qp_type = IBV_QPT_RC },
	  &other_pd,
	  { CQS, .qp_type = IBV_QPT_RC },
	  EINVAL,
	  "the PD is of another context than the id: make it of id->verbs, not of one that ibv_open_device gave" },
	{ { .verbs = &other, .qp_type = IBV_QPT_RC },
	  NULL,
	  { CQS, .qp_type = IBV_QPT_RC },
	  EINVAL,
	  "the CQ is of another context than the id: make it of id->verbs, not of one that ibv_open_device gave" },
	{ { .verbs = &context, .qp_type = IBV_QPT_RC },
	  NULL,
	  { .srq = &other_srq, .qp_type = IBV_QPT_RC },
	  EINVAL,
	  "the SRQ is of another context than the id: make it of id->verbs, not of one that ibv_open_device gave" },
	{ { .verbs = &context, .qp_type = IBV_QPT_RC },
	  NULL,
	  { .cap = { .max_send_wr = 16385 }, .qp_type = IBV_QPT_RC },
	  EINVAL,
	  "max_send_wr 16385, but the device's max_qp_wr is 16384" },
	/* Without CQs the id makes its own. */
	{ { .verbs = &context, .qp_type = IBV_QPT_RC },
	  NULL,
	  { .cap = { .max_send_wr = 1 }, .qp_type = IBV_QPT_RC },
	  EINVAL,
	  "EINVAL: most likely the id has no device (id->verbs is NULL: bind or resolve it first) or has a QP already; or qp_type is not the id's, the PD is of another device, or an attribute is beyond the device's limits" },
};

static void rdma_create_qp__each_reason(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rdma_create_qp_rows); i++) {
		char why[AW_EXPLAIN_MAX];

		aw_explain_rdma_create_qp(&rdma_create_qp_rows[i].id, rdma_create_qp_rows[i].pd,
					  &rdma_create_qp_rows[i].attr, &device,
					  rdma_create_qp_rows[i].err, why);
		expect(why, rdma_create_qp_rows[i].text);
	}
}

static const struct {
	int cqe, vector, err;
	const char *text;
} create_cq_rows[] = {
	{ 0, 0, EINVAL, "cqe 0: a CQ has one CQE at least" },
	{ 1001, 0, EINVAL, "cqe 1001, but the device's max_cqe is 1000" },
	{ 1000, 4, EINVAL, "comp_vector 4, but the device has num_comp_vectors 4, from 0" },
	{ 1000, -1, EINVAL, "comp_vector -1, but the device has num_comp_vectors 4, from 0" },
	{ 1000, 3, ENOMEM,
	  "ENOMEM: most likely 1000 CQEs are more than the process may lock; or the device has max_cq CQs already, or memory is used up" },
	{ 1000, 3, EINVAL,
	  "EINVAL: most likely cqe is more than the device takes, comp_vector is not below num_comp_vectors, or the channel is of another context" },
};

static void create_cq__each_reason(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(create_cq_rows); i++) {
		char why[AW_EXPLAIN_MAX];

		aw_explain_create_cq(create_cq_rows[i].cqe, create_cq_rows[i].vector, &context,
				     &device, create_cq_rows[i].err, why);
		expect(why, create_cq_rows[i].text);
	}
}

static const struct {
	struct ibv_srq_attr attr;
	const struct ibv_device_attr *device;
	int err;
	const char *text;
} create_srq_rows[] = {
	{ { .max_sge = 1 }, &device, EINVAL, "max_wr 0: an SRQ holds one receive at least" },
	{ { 1, 1, 0 }, &plain, EOPNOTSUPP, "the device has no SRQs (max_srq 0)" },
	{ { 257, 1, 0 }, &device, EINVAL, "max_wr 257, but the device's max_srq_wr is 256" },
	{ { 256, 3, 0 }, &device, EINVAL, "max_sge 3, but the device's max_srq_sge is 2" },
	{ { 256, 2, 257 }, &device, EINVAL, "srq_limit 257 is above max_wr 256" },
	{ { 256, 2, 0 },
	  NULL,
	  ENOMEM,
	  "ENOMEM: most likely max_wr 256 of 2 SGEs is too large for the device or for what the process may lock; or the device has max_srq SRQs already" },
};

static void create_srq__each_reason(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(create_srq_rows); i++) {
		char why[AW_EXPLAIN_MAX];

		aw_explain_create_srq(&create_srq_rows[i].attr, create_srq_rows[i].device,
				      create_srq_rows[i].err, why);
		expect(why, create_srq_rows[i].text);
	}
}

static const struct {
	uintptr_t addr;
	size_t length;
	unsigned access;
	const struct ibv_device_attr *device;
	int err;
	const char *text;
} reg_mr_rows[] = {
	{ 4096, 8, IBV_ACCESS_REMOTE_WRITE, &device, EINVAL,
	  "IBV_ACCESS_REMOTE_WRITE needs IBV_ACCESS_LOCAL_WRITE" },
	{ 4096, 8, IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC, &device, EINVAL,
	  "IBV_ACCESS_REMOTE_WRITE and IBV_ACCESS_REMOTE_ATOMIC need IBV_ACCESS_LOCAL_WRITE" },
	{ 4096, 8, 0x1000, &device, EINVAL,
	  "access 0x1000 has bits that no IBV_ACCESS_ flag has: 0x1000" },
	{ 4096, 8, 0x100 | IBV_ACCESS_HUGETLB, &device, EINVAL,
	  "IBV_ACCESS_HUGETLB needs IBV_ACCESS_ON_DEMAND" },
	{ 4096, 8, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_ATOMIC, &plain, EINVAL,
	  "IBV_ACCESS_REMOTE_ATOMIC, but the device's atomic_cap is IBV_ATOMIC_NONE" },
	{ 4096, 0, 0, &device, EINVAL, "length 0" },
	/* Not every device minds flags for what it lacks. */
	{ 4096, 0, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_ATOMIC, &plain, EINVAL, "length 0" },
	{ 4096, (1 << 20) + 1, 0, &device, EINVAL,
	  "length 1048577, but the device's max_mr_size is 1048576" },
	{ 4096, 8, IBV_ACCESS_ON_DEMAND, &device, EOPNOTSUPP,
	  "EOPNOTSUPP: most likely the device or its kernel driver has no on-demand paging (IBV_ACCESS_ON_DEMAND; ibv_devinfo -v: general_odp_caps)" },
	{ 0, SIZE_MAX, IBV_ACCESS_ON_DEMAND, &device, EINVAL,
	  "EINVAL: most likely the device or its kernel driver has no on-demand paging (IBV_ACCESS_ON_DEMAND; ibv_devinfo -v: general_odp_caps)" },
	{ 4096, 64, 0, &device, EFAULT,
	  "EFAULT: most likely not all of the 64 bytes from 0x1000 are mapped here; or it is memory of a GPU, which needs nvidia-peermem, ibv_reg_dmabuf_mr or the like, or a device's memory (mmap of /dev)" },
	{ 4096, 64, IBV_ACCESS_LOCAL_WRITE, &device, EFAULT,
	  "EFAULT: most likely not all of the 64 bytes from 0x1000 are mapped here, or they are mapped read-only, and the access asks for writes; or it is memory of a GPU, which needs nvidia-peermem, ibv_reg_dmabuf_mr or the like, or a device's memory (mmap of /dev)" },
	{ 4096, 64, 0, &device, ENOMEM,
	  "ENOMEM: most likely 64 bytes are more than the process may lock (ulimit -l); or the device has max_mr MRs already, or memory is used up" },
	{ 4096, 64, 1, &device, EINVAL,
	  "EINVAL: most likely the address is no memory that the kernel can pin (a GPU's, a device's), or the device does not take access 0x1" },
	{ 4096, 64, 1, &device, EPERM,
	  "EPERM: the process may not lock memory: raise RLIMIT_MEMLOCK (ulimit -l), or CAP_IPC_LOCK" },
};

static void reg_mr__each_reason(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(reg_mr_rows); i++) {
		char why[AW_EXPLAIN_MAX];

		aw_explain_reg_mr((const void *)reg_mr_rows[i].addr, reg_mr_rows[i].length,
				  reg_mr_rows[i].access, reg_mr_rows[i].device, reg_mr_rows[i].err,
				  why);
		expect(why, reg_mr_rows[i].text);
	}
}

static void reg_mr__a_range_that_wraps(void **state)
{
	const void *addr = (const void *)(UINTPTR_MAX - 4);
	char why[AW_EXPLAIN_MAX], text[AW_EXPLAIN_MAX];

	(void)state;
	snprintf(text, sizeof(text), "8 bytes from %p run over the end of the address space", addr);
	aw_explain_reg_mr(addr, 8, 0, NULL, EINVAL, why);
	expect(why, text);
}

static void memlock__is_added_to_enomem(void **state)
{
	char why[AW_EXPLAIN_MAX];

	(void)state;
	strcpy(why, "ENOMEM: because");
	aw_explain_memlock(65536, EINVAL, why);
	aw_explain_memlock(UINT64_MAX, ENOMEM, why);
	expect(why, "ENOMEM: because");
	aw_explain_memlock(65536, ENOMEM, why);
	expect(why, "ENOMEM: because; RLIMIT_MEMLOCK is 65536 bytes");
}

static const struct {
	struct ibv_ah_attr attr;
	const struct ibv_port_attr *port;
	int err;
	const char *text;
} create_ah_rows[] = {
	{ { .dlid = 7 }, &infiniband, EINVAL, "port_num 0, but the first port is 1" },
	{ { .port_num = 1 },
	  &ethernet,
	  EOPNOTSUPP,
	  "EOPNOTSUPP: the device has no address handles, which are for UD QPs: iWARP has neither" },
	{ { .port_num = 2 }, &infiniband, EINVAL, "port_num 2, but the device has 1" },
	{ { .port_num = 1, .dlid = 7, .sl = 16 },
	  &infiniband,
	  EINVAL,
	  "sl 16, but the highest service level is 15" },
	{ { .port_num = 1 },
	  &infiniband,
	  EINVAL,
	  "dlid is 0: it has to be the peer's LID, which the two programs exchange" },
	{ { .port_num = 1 },
	  &ethernet,
	  EINVAL,
	  "is_global is 0, but port 1 is Ethernet, where a LID leads nowhere: RoCE needs is_global 1, grh.dgid, grh.sgid_index and grh.hop_limit" },
	{ { .port_num = 1, .dlid = 7 },
	  &ethernet,
	  EINVAL,
	  "is_global is 0, but port 1 is Ethernet, where a LID leads nowhere: RoCE needs is_global 1, grh.dgid, grh.sgid_index and grh.hop_limit" },
	{ { .port_num = 1, .is_global = 1, .grh.sgid_index = 4 },
	  &ethernet,
	  EINVAL,
	  "grh.sgid_index 4, but the port's GID table has 4 entries" },
	{ { .port_num = 1, .is_global = 1, .grh.sgid_index = 3 },
	  &ethernet,
	  EINVAL,
	  "grh.dgid is zero: it has to be the peer's GID, which the two programs exchange" },
	{ { .port_num = 1, .is_global = 1, .grh = { .dgid.raw = { [15] = 1 }, .sgid_index = 3 } },
	  &ethernet,
	  EINVAL,
	  "EINVAL: most likely entry 3 of the GID table is empty or of the other IP version than grh.dgid (ibv_devinfo -v); or no route leads from it to grh.dgid" },
	{ { .port_num = 1, .dlid = 0xc000 },
	  &infiniband,
	  EINVAL,
	  "EINVAL: dlid 0xc000 is multicast, which needs is_global 1" },
	{ { .port_num = 1, .dlid = 7 },
	  &infiniband,
	  EHOSTUNREACH,
	  "EHOSTUNREACH: no route leads to the destination's GID" },
};

static void create_ah__each_reason(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(create_ah_rows); i++) {
		char why[AW_EXPLAIN_MAX];

		aw_explain_create_ah(&create_ah_rows[i].attr, create_ah_rows[i].port, 1,
				     create_ah_rows[i].err, why);
		expect(why, create_ah_rows[i].text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(create_qp__each_reason),
		cmocka_unit_test(rdma_create_qp__each_reason),
		cmocka_unit_test(create_cq__each_reason),
		cmocka_unit_test(create_srq__each_reason),
		cmocka_unit_test(reg_mr__each_reason),
		cmocka_unit_test(reg_mr__a_range_that_wraps),
		cmocka_unit_test(memlock__is_added_to_enomem),
		cmocka_unit_test(create_ah__each_reason),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
