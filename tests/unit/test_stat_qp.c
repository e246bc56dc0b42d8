// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What the rows of QPs and CQs hold, as QPs do their work.
#include "net/stat/stat.h"

#include "../lib/until.h"
#include "../lib/uqp_pair.h"
#include "net/stat/stat_read.h"

#include <errno.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

/* The row of the QP or CQ with that number, as another process sees it, and the head. */
static union aw_stat_row look(enum aw_stat_kind kind, uint32_t number, struct aw_stat_head *head)
{
	union aw_stat_row row = { .any.kind = AW_STAT_NONE };
	struct aw_stat_copy copy;

	assert_int_equal(aw_stat_read(getpid(), &copy), AW_STAT_READ);
	for (uint32_t i = 0; i < copy.count; i++)
		if (copy.rows[i].any.kind == (uint32_t)kind && copy.rows[i].any.number == number)
			row = copy.rows[i];
	*head = copy.head;
	free(copy.rows);
	assert_int_equal(row.any.kind, kind);
	return row;
}

/* A CQE or an event may be here while the progress thread has yet to count, with the QP's lock, what it came from. */
static struct aw_stat_qp look_qp(const struct end *end)
{
	struct aw_stat_head head;

	aw_lock(&end->qp->lock);
	aw_unlock(&end->qp->lock);
	return look(AW_STAT_QP, end->qp->qpn, &head).qp;
}

static struct aw_stat_cq look_cq(const struct end *end)
{
	struct aw_stat_head head;

	return look(AW_STAT_CQ, end->cq.number, &head).cq;
}

static void post_send(struct pair *p, uint32_t len)
{
	struct aw_sge sge = end_sge(&p->b, 0, BUF_OCTETS);

	assert_int_equal(aw_uqp_recv(p->b.qp, 9, &sge, 1), 0);
	end_post(&p->a, AW_OP_SEND, &p->b, len);
}

static void row__counts_a_send_at_both_ends(void **state)
{
	struct pair *p = *state;
	const uint32_t len = 200000;
	struct aw_stat_qp a, b;

	post_send(p, len);
	end_wait_cqe(&p->b);
	end_wait_cqe(&p->a);
	a = look_qp(&p->a);
	b = look_qp(&p->b);
	assert_true(a.count.out.bytes == len && b.count.in.bytes == len);
	assert_true(a.count.out.messages == 1 && b.count.in.messages == 1);
	assert_true(a.count.out.fpdus == b.count.in.fpdus && a.count.out.fpdus >= len / 65536);
	assert_true(a.count.in.messages == 0 && b.count.out.messages == 0);
	assert_int_equal(AW_STAT_QP_SENDS(a.wrs), 0);
	assert_int_equal(AW_STAT_QP_RECVS(b.wrs), 0);
}

/* A Read is a request, whose 28 bytes are no payload, and a response. */
static void row__counts_a_read_at_both_ends(void **state)
{
	struct pair *p = *state;
	struct aw_stat_qp a, b;

	end_post(&p->a, AW_OP_READ, &p->b, 5000);
	end_wait_cqe(&p->a);
	a = look_qp(&p->a);
	b = look_qp(&p->b);
	assert_true(a.count.out.messages == 1 && a.count.out.bytes == 0);
	assert_true(a.count.in.messages == 1 && a.count.in.bytes == 5000);
	assert_true(b.count.in.messages == 1 && b.count.in.bytes == 0);
	assert_true(b.count.out.messages == 1 && b.count.out.bytes == 5000);
}

/* One of UC, which rdma_cm gives no stream. */
static void row__has_the_type(void **state)
{
	struct pair *p = *state;
	struct aw_uqp_attr attr = p->a.qp->attr;
	struct aw_stream stream = p->a.qp->core.stream;
	struct end uc = p->a;

	attr.uc = true;
	assert_int_equal(aw_uqp_create(&attr, &uc.qp), 0);
	assert_int_equal(look_qp(&uc).type, AW_STAT_UC);
	assert_int_equal(aw_uqp_attach(uc.qp, -1, &stream), EINVAL);
	aw_uqp_destroy(uc.qp);
}

static void row__names_the_stream(void **state)
{
	struct pair *p = *state;
	struct aw_stat_qp a = look_qp(&p->a);

	assert_int_equal(AW_STAT_QP_STATE(a.now), AW_QP_RTS);
	assert_int_equal(a.type, AW_STAT_RC);
	assert_int_equal(a.fd, p->a.qp->fd);
	assert_int_equal(a.peer_family, AF_INET);
	assert_int_equal(a.streams, 1);
	assert_int_equal(a.send_cq, p->a.cq.number);
	aw_uqp_reset(p->a.qp);
	a = look_qp(&p->a);
	assert_int_equal(AW_STAT_QP_STATE(a.now), AW_QP_IDLE);
	assert_int_equal(a.path, AW_STAT_PATH_NONE);
	assert_int_equal(a.fd, -1);
}

static void row__counts_go_on_behind_a_reset(void **state)
{
	struct pair *p = *state;

	post_send(p, 10);
	end_wait_cqe(&p->b);
	end_wait_cqe(&p->a);
	aw_uqp_reset(p->a.qp);
	aw_uqp_reset(p->b.qp);
	pair_attach(p);
	post_send(p, 10);
	end_wait_cqe(&p->b);
	end_wait_cqe(&p->a);
	assert_true(look_qp(&p->a).count.out.messages == 2);
	assert_int_equal(look_qp(&p->a).streams, 2);
}

static void row__shows_a_message_without_a_receive(void **state)
{
	struct pair *p = *state;

	end_hold(&p->b);
	end_post(&p->a, AW_OP_SEND, &p->b, 10);
	end_wait_held(&p->b);
	assert_true(AW_STAT_QP_WAITS(look_qp(&p->b).now) & AW_STAT_WAITS_RECEIVE);
}

static void row__names_the_error_of_a_stream(void **state)
{
	struct pair *p = *state;
	struct aw_stat_head head;
	struct aw_stat_qp a, b;

	aw_lock(&p->b.qp->lock);
	p->b.mr.access = 0;
	aw_unlock(&p->b.qp->lock);
	end_post(&p->a, AW_OP_WRITE, &p->b, 10);
	end_wait_event(&p->a, AW_UQP_CLOSED);
	end_wait_event(&p->b, AW_UQP_CLOSED);
	a = look_qp(&p->a);
	b = look_qp(&p->b);
	assert_int_equal(AW_STAT_QP_STATE(a.now), AW_QP_ERROR);
	assert_int_equal(a.peer_error, b.error);
	assert_int_not_equal(b.error, AW_OK);
	assert_int_equal(a.terminates_received, 1);
	assert_int_equal(b.terminates_sent, 1);
	assert_int_equal(b.fd, -1);
	look(AW_STAT_QP, p->a.qp->qpn, &head);
	assert_true(head.terminates_sent == 1 && head.terminates_received == 1);
	assert_true(head.crc_errors == 0);
}

/* A responder that has received no valid FPDU sends no Terminate. */
static void row__counts_no_terminate_that_was_not_sent(void **state)
{
	struct pair *p = *state;
	const uint8_t zeros[64] = { 0 };

	if (look_qp(&p->a).path != AW_STAT_PATH_TCP)
		skip();
	assert_int_equal(send(p->a.qp->fd, zeros, sizeof(zeros), 0), sizeof(zeros));
	end_wait_event(&p->b, AW_UQP_CLOSED);
	assert_int_equal(look_qp(&p->b).crc_errors, 1);
	assert_int_equal(look_qp(&p->b).terminates_sent, 0);
}

/* Bytes that are no FPDU go to b behind the QP's back. */
static void row__counts_a_wrong_crc(void **state)
{
	struct pair *p = *state;
	const uint8_t zeros[64] = { 0 };
	struct aw_stat_head head;
	struct aw_stat_qp b;

	if (look_qp(&p->a).path != AW_STAT_PATH_TCP)
		skip();
	post_send(p, 10);
	end_wait_cqe(&p->b);
	end_wait_cqe(&p->a);
	assert_int_equal(send(p->a.qp->fd, zeros, sizeof(zeros), 0), sizeof(zeros));
	end_wait_event(&p->b, AW_UQP_CLOSED);
	end_wait_event(&p->a, AW_UQP_CLOSED);
	b = look_qp(&p->b);
	look(AW_STAT_QP, p->b.qp->qpn, &head);
	assert_int_equal(b.crc_errors, 1);
	assert_int_equal(b.terminates_sent, 1);
	assert_int_equal(b.error, AW_E_MPA_CRC);
	assert_true(head.crc_errors == 1);
	assert_int_equal(look_qp(&p->a).peer_error, AW_E_MPA_CRC);
}

static void row__of_a_cq_counts_what_was_polled(void **state)
{
	struct pair *p = *state;
	struct aw_stat_cq before = look_cq(&p->a), between, after;

	post_send(p, 10);
	end_wait_cqe(&p->b);
	until(atomic_load(&p->a.cq.ready) > 0);
	between = look_cq(&p->a);
	end_wait_cqe(&p->a);
	after = look_cq(&p->a);
	assert_int_equal(before.capacity, p->a.cq.capacity);
	assert_int_equal(before.channel, 0);
	assert_true(between.ready == 1 && between.cqes == before.cqes + 1);
	assert_true(after.ready == 0 && after.cqes == between.cqes);
	assert_int_equal(aw_cq_resize(&p->a.cq, 77), 0);
	assert_int_equal(look_cq(&p->a).capacity, 77);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, pair_setup, pair_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(row__counts_a_send_at_both_ends),
		CASE(row__counts_a_read_at_both_ends),
		CASE(row__has_the_type),
		CASE(row__names_the_stream),
		CASE(row__counts_go_on_behind_a_reset),
		CASE(row__shows_a_message_without_a_receive),
		CASE(row__names_the_error_of_a_stream),
		CASE(row__counts_no_terminate_that_was_not_sent),
		CASE(row__counts_a_wrong_crc),
		CASE(row__of_a_cq_counts_what_was_polled),
	};

	return cmocka_run_group_tests_name("stat_qp", tests, NULL, NULL);
}
