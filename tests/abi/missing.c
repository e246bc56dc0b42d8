// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Tries what the public headers of rdma-core have and a device may lack, one name a line: NAME ok, or NAME and the errno of the
// refusal. missing.py holds docs/verbs-missing.md against it.
#define _GNU_SOURCE // strerrorname_np

#include <dlfcn.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#define ARRAY_LEN(array) (sizeof(array) / sizeof((array)[0]))

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_qp *qp; /* RC, in ERR: it takes posts and completes them */
static uint8_t memory[64];
static struct ibv_mr *mr;

static void report(const char *name, int err)
{
	printf("%s %s\n", name, err ? strerrorname_np(err) : "ok");
}

static void must(const void *made, const char *what)
{
	if (made)
		return;
	perror(what);
	exit(1);
}

static struct ibv_qp *make_qp(enum ibv_qp_type type, uint32_t flags, uint64_t ops, int *err)
{
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = type,
		.pd = pd,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.create_flags = flags,
		.send_ops_flags = ops,
	};
	struct ibv_qp *made;

	if (flags)
		attr.comp_mask |= IBV_QP_INIT_ATTR_CREATE_FLAGS;
	if (ops)
		attr.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	errno = 0;
	made = ibv_create_qp_ex(context, &attr);
	*err = made ? 0 : errno;
	return made;
}

static void try_qp(const char *name, enum ibv_qp_type type, uint32_t flags, uint64_t ops)
{
	int err;
	struct ibv_qp *made = make_qp(type, flags, ops, &err);

	report(name, err);
	if (made)
		ibv_destroy_qp(made);
}

static void try_qps(void)
{
	static const struct {
		const char *name;
		int type;
		uint32_t flags;
		uint64_t ops;
	} tries[] = {
		{ "IBV_QPT_RC", IBV_QPT_RC, 0, 0 },
		{ "IBV_QPT_UC", IBV_QPT_UC, 0, 0 },
		{ "IBV_QPT_UD", IBV_QPT_UD, 0, 0 },
		{ "IBV_QPT_RAW_PACKET", IBV_QPT_RAW_PACKET, 0, 0 },
		{ "IBV_QPT_XRC_SEND", IBV_QPT_XRC_SEND, 0, 0 },
		{ "IBV_QPT_DRIVER", IBV_QPT_DRIVER, 0, 0 },
		{ "IBV_QP_CREATE_BLOCK_SELF_MCAST_LB", IBV_QPT_RC, 1 << 1, 0 },
		{ "IBV_QP_CREATE_SCATTER_FCS", IBV_QPT_RC, 1 << 8, 0 },
		{ "IBV_QP_CREATE_CVLAN_STRIPPING", IBV_QPT_RC, 1 << 9, 0 },
		{ "IBV_QP_CREATE_SOURCE_QPN", IBV_QPT_RC, 1 << 10, 0 },
		{ "IBV_QP_CREATE_PCI_WRITE_END_PADDING", IBV_QPT_RC, 1 << 11, 0 },
		{ "IBV_QP_EX_WITH_TSO", IBV_QPT_RC, 0, 1 << 10 },
		{ "IBV_QP_EX_WITH_FLUSH", IBV_QPT_RC, 0, 1 << 11 },
		{ "IBV_QP_EX_WITH_ATOMIC_WRITE", IBV_QPT_RC, 0, 1 << 12 },
	};

	for (size_t i = 0; i < ARRAY_LEN(tries); i++)
		try_qp(tries[i].name, (enum ibv_qp_type)tries[i].type, tries[i].flags,
		       tries[i].ops);
}

static void try_cqs(void)
{
	static const struct {
		const char *name;
		uint64_t wc_flags;
	} tries[] = {
		{ "IBV_WC_EX_WITH_COMPLETION_TIMESTAMP", 1 << 7 },
		{ "IBV_WC_EX_WITH_CVLAN", 1 << 8 },
		{ "IBV_WC_EX_WITH_FLOW_TAG", 1 << 9 },
		{ "IBV_WC_EX_WITH_TM_INFO", 1 << 10 },
		{ "IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK", 1 << 11 },
	};
	struct ibv_modify_cq_attr moderate = { .attr_mask = IBV_CQ_ATTR_MODERATE };
	struct ibv_values_ex values = { .comp_mask = IBV_VALUES_MASK_RAW_CLOCK };

	for (size_t i = 0; i < ARRAY_LEN(tries); i++) {
		struct ibv_cq_init_attr_ex attr = { .cqe = 1, .wc_flags = tries[i].wc_flags };
		struct ibv_cq_ex *made = ibv_create_cq_ex(context, &attr);

		report(tries[i].name, made ? 0 : errno);
		if (made)
			ibv_destroy_cq(ibv_cq_ex_to_cq(made));
	}
	report("ibv_modify_cq", ibv_modify_cq(cq, &moderate));
	report("ibv_query_rt_values_ex", ibv_query_rt_values_ex(context, &values));
}

static void try_srq(const char *name, enum ibv_srq_type type)
{
	struct ibv_srq_init_attr_ex attr = {
		.attr = { .max_wr = 1, .max_sge = 1 },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_CQ,
		.srq_type = type,
		.pd = pd,
		.cq = cq,
	};
	struct ibv_srq *made;

	if (type == IBV_SRQT_TM) {
		attr.comp_mask |= IBV_SRQ_INIT_ATTR_TM;
		attr.tm_cap.max_num_tags = attr.tm_cap.max_ops = 1;
	}
	made = ibv_create_srq_ex(context, &attr);
	report(name, made ? 0 : errno);
	if (made)
		ibv_destroy_srq(made);
}

static struct ibv_srq *make_srq(void)
{
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = 1, .max_sge = 1 } };
	struct ibv_srq *srq = ibv_create_srq(pd, &attr);

	must(srq, "ibv_create_srq");
	return srq;
}

static void try_srqs(void)
{
	struct ibv_srq *srq = make_srq();
	struct ibv_ops_wr op = { .opcode = IBV_WR_TAG_SYNC }, *bad_op;
	uint32_t number;

	try_srq("IBV_SRQT_TM", IBV_SRQT_TM);
	report("ibv_post_srq_ops", ibv_post_srq_ops(srq, &op, &bad_op));
	report("ibv_get_srq_num", ibv_get_srq_num(srq, &number));
	ibv_destroy_srq(srq);
}

static void try_post(const char *name, int opcode, unsigned int flags)
{
	struct ibv_sge sge = { (uintptr_t)memory, 8, mr->lkey };
	struct ibv_send_wr wr = { .opcode = (enum ibv_wr_opcode)opcode,
				  .sg_list = &sge,
				  .num_sge = 1,
				  .send_flags = flags },
			   *bad_wr;
	struct ibv_wc wc;

	report(name, ibv_post_send(qp, &wr, &bad_wr));
	while (ibv_poll_cq(cq, 1, &wc) > 0)
		;
}

static void try_posts(void)
{
	try_post("IBV_WR_SEND", IBV_WR_SEND, 0);
	try_post("IBV_WR_TSO", IBV_WR_TSO, 0);
	try_post("IBV_WR_DRIVER1", IBV_WR_DRIVER1, 0);
	try_post("IBV_WR_FLUSH", 14, 0);
	try_post("IBV_WR_ATOMIC_WRITE", 15, 0);
	try_post("IBV_SEND_IP_CSUM", IBV_WR_SEND, IBV_SEND_IP_CSUM);
}

static void try_access(const char *name, unsigned int access)
{
	struct ibv_mr *made =
		ibv_reg_mr_iova2(pd, memory, sizeof(memory), 0, IBV_ACCESS_LOCAL_WRITE | access);

	report(name, made ? 0 : errno);
	if (made)
		ibv_dereg_mr(made);
}

static void try_memory(void)
{
	struct ibv_parent_domain_init_attr attr = { .pd = pd, .comp_mask = 1 << 2 };
	struct ibv_mr *null_mr = ibv_alloc_null_mr(pd);
	struct ibv_pd *domain;

	report("ibv_alloc_null_mr", null_mr ? 0 : errno);
	if (null_mr)
		ibv_dereg_mr(null_mr);
	try_access("IBV_ACCESS_RELAXED_ORDERING", IBV_ACCESS_RELAXED_ORDERING);
	try_access("IBV_ACCESS_FLUSH_GLOBAL", 1 << 8);
	try_access("IBV_ACCESS_FLUSH_PERSISTENT", 1 << 9);
	domain = ibv_alloc_parent_domain(context, &attr);
	report("IBV_PARENT_DOMAIN_INIT_ATTR_ALLOW_CC_UNPROTECTED_ALLOC", domain ? 0 : errno);
	if (domain)
		ibv_dealloc_pd(domain);
}

static void try_ethernet(void)
{
	struct ibv_wq_init_attr wq_attr = {
		.wq_type = IBV_WQT_RQ, .max_wr = 1, .max_sge = 1, .pd = pd, .cq = cq
	};
	struct ibv_rwq_ind_table_init_attr table_attr = { 0 };
	struct ibv_flow_attr flow_attr = { .type = IBV_FLOW_ATTR_NORMAL,
					   .size = sizeof(flow_attr),
					   .port = 1 };
	struct ibv_flow_action_esp_attr esp_attr = { 0 };
	struct ibv_counters_init_attr counters_attr = { 0 };
	struct ibv_qp_rate_limit_attr rate_attr = { .rate_limit = 1000 };

	report("ibv_create_wq", ibv_create_wq(context, &wq_attr) ? 0 : errno);
	report("ibv_create_rwq_ind_table",
	       ibv_create_rwq_ind_table(context, &table_attr) ? 0 : errno);
	errno = 0;
	report("ibv_create_flow", ibv_create_flow(qp, &flow_attr) ? 0 : errno);
	report("ibv_create_flow_action_esp",
	       ibv_create_flow_action_esp(context, &esp_attr) ? 0 : errno);
	report("ibv_create_counters", ibv_create_counters(context, &counters_attr) ? 0 : errno);
	report("ibv_modify_qp_rate_limit", ibv_modify_qp_rate_limit(qp, &rate_attr));
}

/* Another handle of a target QP of the domain, if there is a domain. Returns its errno. */
static int xrc_qp_open(struct ibv_xrcd *xrcd)
{
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_XRC_RECV,
		.comp_mask = IBV_QP_INIT_ATTR_XRCD,
		.xrcd = xrcd,
	};
	struct ibv_qp *target = xrcd ? ibv_create_qp_ex(context, &attr) : NULL;
	struct ibv_qp_open_attr open_attr = {
		.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE,
		.qp_num = target ? target->qp_num : 2,
		.xrcd = xrcd,
		.qp_type = IBV_QPT_XRC_RECV,
	};
	struct ibv_qp *opened = ibv_open_qp(context, &open_attr);
	int err = opened ? 0 : errno;

	if (opened)
		ibv_destroy_qp(opened);
	if (target)
		ibv_destroy_qp(target);
	return err;
}

static void try_xrc(void)
{
	struct ibv_xrcd_init_attr xrcd_attr = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = -1,
		.oflags = 0100, // O_CREAT
	};
	struct ibv_xrcd *xrcd = ibv_open_xrcd(context, &xrcd_attr);

	report("ibv_open_xrcd", xrcd ? 0 : errno);
	report("ibv_open_qp", xrc_qp_open(xrcd));
	if (xrcd)
		ibv_close_xrcd(xrcd);
}

/* A vendor's options between two of its adapters. */
static void try_ece(void)
{
	struct ibv_ece ece = { .vendor_id = 1 };

	report("ibv_set_ece", ibv_set_ece(qp, &ece));
	report("ibv_query_ece", ibv_query_ece(qp, &ece));
}

static void try_datagrams(void)
{
	struct ibv_ah_attr ah_attr = { .is_global = 1, .port_num = 1 };
	struct ibv_ah *ah;

	if (ibv_query_gid(context, 1, 0, &ah_attr.grh.dgid) != 0)
		exit(1);
	ah = ibv_create_ah(pd, &ah_attr);
	report("ibv_create_ah", ah ? 0 : errno);
	if (ah)
		ibv_destroy_ah(ah);
}

/* In a child: an older header has no such function, and one that is offered one day looks at its arguments. */
static void try_exported(const char *name)
{
	typedef intptr_t (*any_function)(intptr_t, intptr_t, intptr_t);
	any_function f = (any_function)dlsym(RTLD_DEFAULT, name);
	pid_t child;
	int status;

	fflush(stdout);
	child = fork();
	if (child == 0) {
		errno = 0;
		f(-4096, -4096, -4096);
		_exit(errno);
	}
	if (child < 0 || waitpid(child, &status, 0) != child)
		exit(1);
	report(name, WIFEXITED(status) ? WEXITSTATUS(status) : 0);
}

static void try_all_exported(void)
{
	static const char *const names[] = {
		"ibv_alloc_dmah",
		"ibv_dm_export_dmabuf_fd",
		"ibv_resolve_eth_l2_from_gid",
		"repoll_create",
		"repoll_ctl",
		"repoll_wait",
	};

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		try_exported(names[i]);
}

static void try_port_space(const char *name, enum rdma_port_space ps)
{
	struct rdma_cm_id *id;
	int rc = rdma_create_id(NULL, &id, NULL, ps);

	report(name, rc ? errno : 0);
	if (!rc)
		rdma_destroy_id(id);
}

static void try_cm(void)
{
	int (*resolve)(struct rdma_cm_id *, const char *, const char *,
		       const struct rdma_addrinfo *);
	struct rdma_addrinfo hints = { .ai_flags = 0x10 };
	struct rdma_cm_id *id;
	char path[64] = "";

	try_port_space("RDMA_PS_TCP", RDMA_PS_TCP);
	try_port_space("RDMA_PS_UDP", RDMA_PS_UDP);
	try_port_space("RDMA_PS_IPOIB", RDMA_PS_IPOIB);
	try_port_space("RDMA_PS_IB", RDMA_PS_IB);
	must(rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP) ? NULL : id, "rdma_create_id");
	*(void **)&resolve = dlsym(RTLD_DEFAULT, "rdma_resolve_addrinfo");
	report("RAI_SA", resolve(id, NULL, "a service", &hints) ? errno : 0);
	report("RDMA_OPTION_IB_PATH",
	       rdma_set_option(id, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, path, sizeof(path)) ? errno
											    : 0);
	rdma_destroy_id(id);
}

int main(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };
	int err;

	must(list, "ibv_get_device_list");
	context = ibv_open_device(list[0]);
	must(context, "ibv_open_device");
	pd = ibv_alloc_pd(context);
	cq = ibv_create_cq(context, 16, NULL, NULL, 0);
	mr = ibv_reg_mr(pd, memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE);
	qp = make_qp(IBV_QPT_RC, 0, 0, &err);
	must(qp, "ibv_create_qp_ex");
	if (ibv_modify_qp(qp, &attr, IBV_QP_STATE) != 0)
		return 1;
	try_qps();
	try_cqs();
	try_srqs();
	try_posts();
	try_memory();
	try_ethernet();
	try_xrc();
	try_ece();
	try_datagrams();
	try_all_exported();
	try_cm();
	return 0;
}
