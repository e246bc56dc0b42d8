// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The victim's memory windows: parts of its regions, for one connection or for a whole PD.
#include "victim.h"

#define WINDOWS_MAX 4096

static struct ibv_mw *windows[WINDOWS_MAX];
static uint64_t window_count;

static struct ibv_mw *window_at(uint64_t number)
{
	CHECK(number < window_count && windows[number]);
	return windows[number];
}

static void bind_type_2(struct ibv_qp *qp, struct ibv_mw *mw, const struct ibv_mw_bind_info *info)
{
	struct ibv_send_wr wr = {
		.opcode = IBV_WR_BIND_MW,
		.send_flags = IBV_SEND_SIGNALED,
		.bind_mw = { .mw = mw, .rkey = ibv_inc_rkey(mw->rkey), .bind_info = *info },
	}, *bad;

	CHECK(ibv_post_send(qp, &wr, &bad) == 0);
	mw->rkey = wr.bind_mw.rkey;
}

static void bind_type_1(struct ibv_qp *qp, struct ibv_mw *mw, const struct ibv_mw_bind_info *info)
{
	struct ibv_mw_bind bind = { .send_flags = IBV_SEND_SIGNALED, .bind_info = *info };

	CHECK(ibv_bind_mw(qp, mw, &bind) == 0);
}

static void await_bind(struct ibv_cq *cq)
{
	int64_t deadline = now_ms() + WAIT_MS;
	struct ibv_wc wc;
	int n;

	while ((n = ibv_poll_cq(cq, 1, &wc)) == 0)
		CHECK(now_ms() < deadline);
	CHECK(n == 1 && wc.status == IBV_WC_SUCCESS && wc.opcode == IBV_WC_BIND_MW);
}

static void bind_window(struct ibv_mw *mw, const struct ask *ask)
{
	struct ibv_qp *qp = conns_qp(ask->n[1]);
	struct ibv_mw_bind_info info = {
		.mr = regions_mr(ask->n[2]),
		.addr = regions_sge(ask->n[2], ask->n[3], ask->n[4]).addr,
		.length = ask->n[4],
		.mw_access_flags = (unsigned int)ask->n[5],
	};

	if (mw->type == IBV_MW_TYPE_2)
		bind_type_2(qp, mw, &info);
	else
		bind_type_1(qp, mw, &info);
	await_bind(qp->send_cq);
}

void windows_open(const struct ask *ask)
{
	struct ibv_mw *mw = ibv_alloc_mw(conns_qp(ask->n[1])->pd, (enum ibv_mw_type)ask->n[0]);

	CHECK(mw && window_count < WINDOWS_MAX);
	bind_window(mw, ask);
	printf("%llu %u\n", (unsigned long long)window_count, mw->rkey);
	windows[window_count++] = mw;
}

void windows_rebind(const struct ask *ask)
{
	struct ibv_mw *mw = window_at(ask->n[0]);

	bind_window(mw, ask);
	printf("%u\n", mw->rkey);
}

void windows_close(const struct ask *ask)
{
	CHECK(ibv_dealloc_mw(window_at(ask->n[0])) == 0);
	windows[ask->n[0]] = NULL;
	printf("ok\n");
}
