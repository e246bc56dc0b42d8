// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// How many files a process with many QPs has: one for each that is connected, two for each channel, of which one is the
// program's, two for each port of 256 QPs, and no more for all than a constant.
#include "walk.h"

#include "net/cq/sets.h"

#include <dirent.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/resource.h>

enum {
	TRIES = 20000, /* of a millisecond at least */
	FIXED = 32, /* stdio, the engine's, the fixture's, and the directory that is read */
	SETS = AW_SETS_CQ_MAX + AW_SETS_CHANNEL_MAX,
	PORT_QPS = 256,
	PORT_FILES = 2,
	CHANNEL_FILES = 2,
};

/* QPs, each of which has the next or the last one for its peer; so many share a CQ. */
struct many {
	struct fixture *f;
	int qps_count, of_cq;
	struct ibv_comp_channel **channels; /* one a CQ */
	struct ibv_cq **cqs;
	struct ibv_qp **qps;
};

static int count_files(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int count = 0;

	assert_non_null(dir);
	while (readdir(dir))
		count++;
	closedir(dir);
	return count - 2; /* "." and ".." */
}

/*
 * Waits until there are no more than most: a connection that lost to its peer's, or that is closed,
 * keeps its file until the peer knows. Returns their number.
 */
static int await_files(int most)
{
	int count = count_files();

	for (int tries = 0; count > most; tries++) {
		if (tries == TRIES)
			fail_msg("%d files, more than %d", count, most);
		poll(NULL, 0, 1);
		count = count_files();
	}
	return count;
}

static int cqs_count(const struct many *m)
{
	return (m->qps_count + m->of_cq - 1) / m->of_cq;
}

static int ports_files(const struct many *m)
{
	return PORT_FILES * ((m->qps_count + PORT_QPS - 1) / PORT_QPS);
}

static void make_qp(struct many *m, int i)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = m->cqs[i / m->of_cq],
		.recv_cq = m->cqs[i / m->of_cq],
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
		.cap = { 1, 1, 1, 1, 0 },
	};

	m->qps[i] = ibv_create_qp(m->f->pd, &attr);
	assert_non_null(m->qps[i]);
}

static void many_make(struct many *m)
{
	size_t cqs = (size_t)cqs_count(m);

	m->channels = calloc(cqs, sizeof(*m->channels));
	m->cqs = calloc(cqs, sizeof(*m->cqs));
	m->qps = calloc((size_t)m->qps_count, sizeof(*m->qps));
	for (size_t i = 0; i < cqs; i++) {
		m->channels[i] = ibv_create_comp_channel(m->f->context);
		m->cqs[i] = ibv_create_cq(m->f->context, 2 * m->of_cq, NULL, m->channels[i], 0);
		assert_non_null(m->cqs[i]);
	}
	for (int i = 0; i < m->qps_count; i++)
		make_qp(m, i);
}

static void many_destroy(struct many *m)
{
	for (int i = 0; i < m->qps_count; i++)
		assert_int_equal(ibv_destroy_qp(m->qps[i]), 0);
	for (int i = 0; i < cqs_count(m); i++) {
		assert_int_equal(ibv_destroy_cq(m->cqs[i]), 0);
		assert_int_equal(ibv_destroy_comp_channel(m->channels[i]), 0);
	}
	free(m->qps);
	free(m->cqs);
	free(m->channels);
}

static void connect_one(struct many *m, int i, const struct route *route)
{
	struct ibv_qp_attr init = walk_attr_init(), rts = walk_attr_rts(),
			   rtr = walk_attr_rtr(route, m->qps[i ^ 1]->qp_num);

	rts.timeout = 0; /* for ever: the other end's turn comes late */
	assert_int_equal(ibv_modify_qp(m->qps[i], &init, WALK_INIT), 0);
	assert_int_equal(ibv_modify_qp(m->qps[i], &rtr, WALK_RTR), 0);
	assert_int_equal(ibv_modify_qp(m->qps[i], &rts, WALK_RTS), 0);
}

static void post(struct ibv_qp *qp)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_RDMA_WRITE }, *bad;

	assert_int_equal(ibv_post_send(qp, &wr, &bad), 0);
}

/* Takes what there is; false: nothing. */
static bool take_one(struct ibv_cq *cq)
{
	struct ibv_wc wc;
	int n = ibv_poll_cq(cq, 1, &wc);

	assert_true(n >= 0);
	if (n > 0)
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
	return n > 0;
}

/* A thread sleeps on each channel until all of its QPs have written once. */
static void use_all(struct many *m)
{
	for (int c = 0; c < cqs_count(m); c++) {
		int end = (c + 1) * m->of_cq < m->qps_count ? (c + 1) * m->of_cq : m->qps_count;
		struct ibv_cq *cq;
		void *context;

		int left = end - c * m->of_cq;

		assert_int_equal(ibv_req_notify_cq(m->cqs[c], 0), 0);
		for (int i = c * m->of_cq; i < end; i++)
			post(m->qps[i]);
		while (left > 0) {
			assert_int_equal(ibv_get_cq_event(m->channels[c], &cq, &context), 0);
			ibv_ack_cq_events(cq, 1);
			assert_int_equal(ibv_req_notify_cq(cq, 0), 0);
			/* What completes between the last poll and the arming raises no event: the poll is behind it. */
			while (take_one(cq))
				left--;
		}
	}
}

/* Those that are not connected have none but the port's. */
static void qps__have_a_file_each(struct fixture *f, int count, int of_cq)
{
	struct many m = { .f = f, .qps_count = count, .of_cq = of_cq };
	struct route route = route_loopback(f);
	int idle, busy;

	many_make(&m);
	idle = count_files();
	for (int i = 0; i < count; i++)
		connect_one(&m, i, &route);
	use_all(&m);
	busy = await_files(count + CHANNEL_FILES * cqs_count(&m) + ports_files(&m) + SETS + FIXED);
	print_message("%d qps, %d a cq: %d files, %d connected\n", count, of_cq, idle, busy);
	assert_true(idle <=
		    CHANNEL_FILES * cqs_count(&m) + ports_files(&m) + AW_SETS_CQ_MAX + FIXED);
	many_destroy(&m);
	await_files(FIXED);
}

static void files__200_qps(void **state)
{
	qps__have_a_file_each(*state, 200, 1);
	qps__have_a_file_each(*state, 200, 5);
	qps__have_a_file_each(*state, 200, 200);
}

static void files__4096_qps_with_a_channel_each(void **state)
{
	qps__have_a_file_each(*state, 4096, 1);
}

static void files__4096_qps_of_many_cqs(void **state)
{
	qps__have_a_file_each(*state, 4096, 6);
}

static void files__4096_qps_of_one_cq(void **state)
{
	qps__have_a_file_each(*state, 4096, 4096);
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH(files__200_qps),
		WITH(files__4096_qps_with_a_channel_each),
		WITH(files__4096_qps_of_many_cqs),
		WITH(files__4096_qps_of_one_cq),
	};
	struct rlimit files;

	getrlimit(RLIMIT_NOFILE, &files);
	files.rlim_cur = files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &files);
	walk_persona();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
