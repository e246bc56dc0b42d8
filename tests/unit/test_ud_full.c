// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A datagram socket that has no room: what was posted waits, in order, and leaves once there is room;
// other failures lose the datagram alone. The socket is the real one, but for its sendmsg(2).
#include "../lib/full_set.h"
#include "../lib/until.h"
#include "net/mr/mrtab.h"
#include "net/progress/engine.h"
#include "net/qp/cq_poll.h"
#include "net/ud/ud.h"
#include "net/ud/udsock_io.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static _Atomic int fail_with; /* errno of the next sends */
static _Atomic int fail_count; /* how many */
static _Atomic int sends; /* that were asked for */

/* In the place of libc's. */
ssize_t sendmsg(int fd, const struct msghdr *msg, int flags)
{
	sends++;
	if (fail_count > 0) {
		fail_count--;
		errno = fail_with;
		return -1;
	}
	return syscall(SYS_sendmsg, fd, msg, flags);
}

static struct {
	struct aw_cq sends, receives;
	struct aw_uqp *qp;
	struct aw_ah *ah;
	struct aw_mr mr;
	uint8_t memory[4][64];
} f;

static int set_up(void **state)
{
	struct aw_uqp_attr attr = {
		.send_cq = &f.sends,
		.recv_cq = &f.receives,
		.pd = &f,
		.send_wr_max = 8,
		.recv_wr_max = 8,
		.recv_sge_max = 1,
		.inline_max = 16,
		.kind = &aw_ud_kind,
		.ud_mtu = 1024,
	};
	const struct aw_ah loopback = { .dst = { [10] = 0xff, 0xff, 127, 0, 0, 1 } };

	(void)state;
	assert_int_equal(aw_engine_get(), 0);
	assert_int_equal(aw_cq_init(&f.sends, 16, NULL, NULL), 0);
	assert_int_equal(aw_cq_init(&f.receives, 16, NULL, NULL), 0);
	assert_int_equal(aw_uqp_create(&attr, &f.qp), 0);
	f.ah = aw_ah_create(&loopback);
	assert_non_null(f.ah);
	f.mr = (struct aw_mr){ .access = AW_ACCESS_LOCAL_WRITE,
			       .iova = (uintptr_t)f.memory,
			       .len = sizeof(f.memory),
			       .host = &f.memory[0][0],
			       .pd = &f };
	assert_int_equal(aw_mr_add(&f.mr), 0);
	aw_ud_move(f.qp, AW_UD_RTS);
	sends = 0;
	fail_count = 0;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	fail_count = 0;
	full_epfd = -1;
	aw_uqp_destroy(f.qp);
	aw_mr_remove(&f.mr);
	aw_ah_put(f.ah);
	aw_cq_fini(&f.sends);
	aw_cq_fini(&f.receives);
	aw_engine_put();
	return 0;
}

static void post(uint8_t id)
{
	struct aw_sge sge = { (uintptr_t)f.memory[id], sizeof(f.memory[id]), f.mr.stag };
	struct aw_swqe *wqe;

	assert_int_equal(aw_uqp_recv(f.qp, id, &sge, 1), 0);
	aw_uqp_send_begin(f.qp);
	wqe = aw_uqp_send_slot(f.qp);
	assert_non_null(wqe);
	memset(wqe, 0, offsetof(struct aw_swqe, sge));
	wqe->wr_id = id;
	wqe->op = AW_OP_SEND;
	wqe->flags = AW_WR_SIGNALED | AW_WR_INLINE;
	wqe->len = 1;
	wqe->data[0] = id;
	aw_ud_fill(f.qp, wqe, f.ah, f.qp->qpn, 0);
	aw_ud_commit(f.qp);
	aw_ud_send_end(f.qp);
}

static struct aw_cqe await(struct aw_cq *cq)
{
	struct aw_cq_entry entry;
	int got;

	while ((got = aw_cq_poll(cq, &entry, 1)) == 0)
		;
	assert_int_equal(got, 1);
	return entry.cqe;
}

static void assert_none(struct aw_cq *cq)
{
	struct aw_cq_entry entry;

	assert_int_equal(aw_cq_poll(cq, &entry, 1), 0);
}

static void full__what_is_posted_leaves_in_order(void **state)
{
	(void)state;
	fail_with = EAGAIN;
	fail_count = 3; /* then the progress thread, which finds the socket writable, gets on */
	for (uint8_t id = 0; id < 4; id++)
		post(id);
	for (uint8_t id = 0; id < 4; id++) {
		assert_int_equal(await(&f.sends).wr_id, id);
		assert_int_equal(await(&f.receives).wr_id, id);
		assert_int_equal(f.memory[id][UD_GRH_LEN], id);
	}
	assert_int_equal(sends, 3 + 4);
}

static void full__reset_and_destroy_give_the_handles_back(void **state)
{
	(void)state;
	fail_with = EAGAIN;
	fail_count = 1 << 30;
	post(0);
	post(1);
	assert_true(f.ah->refs == 3);
	aw_ud_move(f.qp, AW_UD_RESET);
	assert_true(f.ah->refs == 1);
	aw_ud_move(f.qp, AW_UD_RTS);
	post(2);
	assert_none(&f.sends);
}

static void full__err_flushes(void **state)
{
	(void)state;
	fail_with = EAGAIN;
	fail_count = 1 << 30;
	post(0);
	aw_ud_move(f.qp, AW_UD_ERR);
	assert_int_equal(await(&f.sends).status, AW_WC_WR_FLUSH_ERR);
	assert_int_equal(await(&f.receives).status, AW_WC_WR_FLUSH_ERR);
	assert_true(f.ah->refs == 1);
}

static void lost__is_no_error_and_stops_nothing(void **state)
{
	static const int causes[] = { ENETUNREACH, EPERM, ENOBUFS };

	(void)state;
	for (uint8_t i = 0; i < 3; i++) {
		fail_with = causes[i];
		fail_count = 1;
		post(i);
		assert_int_equal(await(&f.sends).status, AW_WC_SUCCESS);
	}
	post(3);
	assert_int_equal(await(&f.sends).wr_id, 3);
	assert_int_equal(await(&f.receives).wr_id, 0); /* the first receive, the last datagram */
	assert_int_equal(f.memory[0][UD_GRH_LEN], 3);
}

static bool is_lent(void)
{
	struct aw_udsock *sock = f.qp->ud->sock;

	pthread_mutex_lock(&sock->listen_lock);
	bool lent = sock->lent;

	pthread_mutex_unlock(&sock->listen_lock);
	return lent;
}

/* A thread polls the socket, and sleeps from then on, where the kernel has no memory to listen to it again. */
static void no_memory__what_comes_is_read(void **state)
{
	(void)state;
	for (uint8_t id = 0; !is_lent(); id = (id + 1) % 4) {
		for (int i = 0; i < 50; i++)
			assert_none(&f.receives);
		post(id);
		await(&f.sends);
		await(&f.receives);
	}
	full_epfd = aw_engine_epfd();
	aw_cq_arm(&f.receives, AW_ARM_NEXT);
	for (uint32_t i = 1; i <= 3; i++) {
		post((uint8_t)i);
		until(f.receives.ready >= i);
	}
	full_epfd = -1;
	until(!is_lent());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(full__what_is_posted_leaves_in_order, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(full__reset_and_destroy_give_the_handles_back,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(full__err_flushes, set_up, tear_down),
		cmocka_unit_test_setup_teardown(lost__is_no_error_and_stops_nothing, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(no_memory__what_comes_is_read, set_up, tear_down),
	};

	setenv("ANYWARP_PERSONA", "roce", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
