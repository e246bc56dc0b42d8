// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// UD QPs that share: a port with many others, its socket with other threads.
#include "ud_scene.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

enum {
	OF_PORT = 256,
	MANY = OF_PORT + 4,
	THREADS = 4,
	LAPS = 50,
};

/* Two ports at least. Each QP gets what is its own, also when others of its port are gone. */
static void port__more_than_one_has_room_for(void **state)
{
	static struct ud_end ends[MANY];
	struct ud_scene *s = *state;

	for (int i = 0; i < MANY; i++) {
		ends[i] = (struct ud_end){ ud_qp_make(s, NULL), s->b.mr, s->b.buf };
		ud_walk(ends[i].qp, UD_QKEY);
	}
	assert_int_not_equal(ends[0].qp->qp_num >> 8, ends[MANY - 1].qp->qp_num >> 8);
	for (int i = 0; i < MANY; i += 37)
		ud_check_way(s, &s->a, &ends[i]);
	for (int i = 1; i < MANY - 1; i++)
		assert_int_equal(ibv_destroy_qp(ends[i].qp), 0);
	ends[0].mr = s->a.mr;
	ends[0].buf = s->a.buf;
	ud_check_way(s, &ends[0], &ends[MANY - 1]);
	assert_int_equal(ibv_destroy_qp(ends[0].qp), 0);
	assert_int_equal(ibv_destroy_qp(ends[MANY - 1].qp), 0);
}

/* A token goes round: whoever polls reads for all, and nobody's datagram is lost. */
struct runner {
	struct ud_scene *s;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	uint32_t next; /* QP number */
	uint8_t buf[UD_GRH + 8];
	struct ibv_mr *mr;
	bool starts;
	int laps;
};

static int runner_recv(struct runner *r)
{
	struct ibv_sge sge = { (uintptr_t)r->buf, sizeof(r->buf), r->mr->lkey };
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;

	return ibv_post_recv(r->qp, &wr, &bad);
}

static int runner_send(struct runner *r)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND, .wr.ud = { r->s->ah, r->next, UD_QKEY } },
			   *bad;

	return ibv_post_send(r->qp, &wr, &bad);
}

static void *run(void *arg)
{
	struct runner *r = arg;
	struct ibv_wc wc;
	int got;

	if (r->starts && runner_send(r))
		return NULL;
	while (r->laps < LAPS) {
		while ((got = ibv_poll_cq(r->cq, 1, &wc)) == 0)
			sched_yield();
		if (got != 1 || wc.status != IBV_WC_SUCCESS || wc.qp_num != r->qp->qp_num)
			return NULL;
		r->laps++;
		if (runner_recv(r) || ((!r->starts || r->laps < LAPS) && runner_send(r)))
			return NULL;
	}
	return NULL;
}

static void runner_open(struct runner *r, struct ud_scene *s)
{
	struct ibv_qp_init_attr attr = qp_attr(s->f);

	*r = (struct runner){ .s = s };
	r->cq = ibv_create_cq(s->f->context, 16, NULL, NULL, 0);
	assert_non_null(r->cq);
	attr.send_cq = attr.recv_cq = r->cq;
	attr.qp_type = IBV_QPT_UD;
	r->qp = ibv_create_qp(s->f->pd, &attr);
	assert_non_null(r->qp);
	r->mr = ibv_reg_mr(s->f->pd, r->buf, sizeof(r->buf), IBV_ACCESS_LOCAL_WRITE);
	assert_non_null(r->mr);
	ud_walk(r->qp, UD_QKEY);
	assert_int_equal(runner_recv(r), 0);
}

static void threads__poll_a_cq_each(void **state)
{
	struct runner runners[THREADS];
	pthread_t threads[THREADS];

	for (int i = 0; i < THREADS; i++)
		runner_open(&runners[i], *state);
	for (int i = 0; i < THREADS; i++)
		runners[i].next = runners[(i + 1) % THREADS].qp->qp_num;
	runners[0].starts = true;
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, run, &runners[i]), 0);
	for (int i = 0; i < THREADS; i++) {
		assert_int_equal(pthread_join(threads[i], NULL), 0);
		assert_int_equal(runners[i].laps, LAPS);
		assert_int_equal(ibv_destroy_qp(runners[i].qp), 0);
		assert_int_equal(ibv_dereg_mr(runners[i].mr), 0);
		assert_int_equal(ibv_destroy_cq(runners[i].cq), 0);
	}
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, ud_setup, ud_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH(port__more_than_one_has_room_for),
		WITH(threads__poll_a_cq_each),
	};

	setenv("ANYWARP_PERSONA", "roce", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
