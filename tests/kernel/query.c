// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// query DEVICE: makes a QP, queries it, and prints each of its numbers that iWARP has no use for and that is not zero: the
// verbs core has their memory from an allocator that does not clear it.
// query DEVICE pds: makes PDs until the device refuses one, and prints how many there are more or fewer than it offers, and
// the error.
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void die(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	exit(2);
}

static struct ibv_context *open_device(const char *name)
{
	struct ibv_device **all = ibv_get_device_list(NULL), **one = all;
	struct ibv_context *verbs;

	while (one && *one && strcmp(ibv_get_device_name(*one), name) != 0)
		one++;
	verbs = one && *one ? ibv_open_device(*one) : NULL;
	if (!verbs)
		die(name);
	ibv_free_device_list(all);
	return verbs;
}

static struct ibv_qp *create_qp(struct ibv_context *verbs)
{
	struct ibv_pd *pd = ibv_alloc_pd(verbs);
	struct ibv_cq *cq = ibv_create_cq(verbs, 1, NULL, NULL, 0);
	struct ibv_qp_init_attr init = {
		.send_cq = cq,
		.recv_cq = cq,
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
	};
	struct ibv_qp *qp = pd && cq ? ibv_create_qp(pd, &init) : NULL;

	if (!qp)
		die("ibv_create_qp");
	return qp;
}

static int count_pds(struct ibv_context *verbs)
{
	struct ibv_device_attr attr;
	int more = 0;

	if (ibv_query_device(verbs, &attr))
		die("ibv_query_device");
	while (more <= attr.max_pd && ibv_alloc_pd(verbs))
		more++;
	printf("%+d %s\n", more - attr.max_pd, strerror(errno));
	return 0;
}

static void expect_zero(const char *name, unsigned long number)
{
	if (number)
		printf("%s 0x%lx\n", name, number);
}

static void expect_no_path(const struct ibv_ah_attr *ah)
{
	expect_zero("dlid", ah->dlid);
	expect_zero("sl", ah->sl);
	expect_zero("src_path_bits", ah->src_path_bits);
	expect_zero("static_rate", ah->static_rate);
	expect_zero("is_global", ah->is_global);
	expect_zero("flow_label", ah->grh.flow_label);
}

int main(int argc, char **argv)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	if (argc == 3 && strcmp(argv[2], "pds") == 0)
		return count_pds(open_device(argv[1]));
	if (argc != 2) {
		fprintf(stderr, "usage: query DEVICE [pds]\n");
		return 2;
	}
	if (ibv_query_qp(create_qp(open_device(argv[1])), &attr, IBV_QP_STATE, &init))
		die("ibv_query_qp");
	expect_zero("path_mig_state", attr.path_mig_state);
	expect_zero("qkey", attr.qkey);
	expect_zero("rq_psn", attr.rq_psn);
	expect_zero("sq_psn", attr.sq_psn);
	expect_zero("dest_qp_num", attr.dest_qp_num);
	expect_zero("pkey_index", attr.pkey_index);
	expect_zero("timeout", attr.timeout);
	expect_zero("retry_cnt", attr.retry_cnt);
	expect_no_path(&attr.ah_attr);
	expect_no_path(&attr.alt_ah_attr);
	return 0;
}
