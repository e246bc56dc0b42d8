// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The objects of XRC: domains, SRQs, both types of QPs, and the handles of a target QP.
#include "xrc_scene.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static void open_xrcd__what_it_needs(void **state)
{
	struct fixture *f = *state;
	struct ibv_xrcd_init_attr attr = { .fd = -1, .oflags = O_CREAT };
	struct ibv_xrcd *xrcd;

	FAILS_WITH(EINVAL, ibv_open_xrcd(f->context, &attr));
	attr.comp_mask = IBV_XRCD_INIT_ATTR_FD;
	FAILS_WITH(EINVAL, ibv_open_xrcd(f->context, &attr));
	attr.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
	xrcd = ibv_open_xrcd(f->context, &attr);
	assert_non_null(xrcd);
	assert_ptr_equal(xrcd->context, f->context);
	assert_int_equal(ibv_close_xrcd(xrcd), 0);
	attr.comp_mask |= IBV_XRCD_INIT_ATTR_RESERVED;
	FAILS_WITH(EOPNOTSUPP, ibv_open_xrcd(f->context, &attr));
	FAILS_WITH(EBADF, xrcd_open(f->context, 1 << 20, O_CREAT));
}

static void open_xrcd__by_the_inode(void **state)
{
	struct fixture *f = *state;
	struct ibv_context *second = device_open();
	int fd = xrc_file(), other = xrc_file(), again = dup(fd);
	struct ibv_xrcd *a, *b;

	FAILS_WITH(EAGAIN, xrcd_open(f->context, fd, 0));
	a = xrcd_open(f->context, fd, O_CREAT | O_EXCL);
	assert_non_null(a);
	FAILS_WITH(EINVAL, xrcd_open(second, again, O_CREAT | O_EXCL));
	FAILS_WITH(EAGAIN, xrcd_open(second, other, 0));
	b = xrcd_open(second, again, 0);
	assert_non_null(b);
	assert_ptr_not_equal(a, b);
	assert_int_equal(ibv_close_xrcd(a), 0);
	a = xrcd_open(f->context, fd, O_CREAT);
	assert_non_null(a);
	assert_int_equal(ibv_close_xrcd(a), 0);
	assert_int_equal(ibv_close_xrcd(b), 0);
	/* With its last XRCD the domain is gone. */
	FAILS_WITH(EAGAIN, xrcd_open(f->context, fd, 0));
	assert_int_equal(ibv_close_device(second), 0);
	close(fd);
	close(other);
	close(again);
}

static void close_xrcd__busy_while_it_is_used(void **state)
{
	struct fixture *f = *state;
	struct ibv_xrcd *xrcd = xrcd_open(f->context, -1, O_CREAT);
	struct ibv_srq *srq = xrc_srq_make(f, xrcd, f->cq);
	struct ibv_qp *qp = xrc_target_make(f->context, xrcd);

	assert_int_equal(ibv_close_xrcd(xrcd), EBUSY);
	assert_int_equal(ibv_destroy_srq(srq), 0);
	assert_int_equal(ibv_close_xrcd(xrcd), EBUSY);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_close_xrcd(xrcd), 0);
}

static void create_srq_ex__what_it_needs(void **state)
{
	struct fixture *f = *state;
	struct ibv_context *second = device_open();
	struct ibv_xrcd *xrcd = xrcd_open(f->context, -1, O_CREAT);
	struct ibv_xrcd *elsewhere = xrcd_open(second, -1, O_CREAT);
	struct ibv_srq_init_attr_ex attr = {
		.attr = { 4, 1, 0 },
		.srq_type = IBV_SRQT_XRC,
		.pd = f->pd,
		.xrcd = xrcd,
		.cq = f->cq,
	};
	const uint32_t all = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
			     IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
	struct ibv_srq *srq;

	for (uint32_t bit = IBV_SRQ_INIT_ATTR_PD; bit <= IBV_SRQ_INIT_ATTR_CQ; bit <<= 1) {
		attr.comp_mask = all & ~bit;
		FAILS_WITH(EINVAL, ibv_create_srq_ex(f->context, &attr));
	}
	attr.comp_mask = all | IBV_SRQ_INIT_ATTR_TM;
	FAILS_WITH(EOPNOTSUPP, ibv_create_srq_ex(f->context, &attr));
	attr.comp_mask = all;
	attr.xrcd = elsewhere;
	FAILS_WITH(EINVAL, ibv_create_srq_ex(f->context, &attr));
	attr.xrcd = xrcd;
	srq = ibv_create_srq_ex(f->context, &attr);
	assert_non_null(srq);
	assert_int_equal(ibv_destroy_srq(srq), 0);
	assert_int_equal(ibv_close_xrcd(elsewhere), 0);
	assert_int_equal(ibv_close_xrcd(xrcd), 0);
	assert_int_equal(ibv_close_device(second), 0);
}

static void create_qp__with_an_srq_of_xrc(void **state)
{
	struct fixture *f = *state;
	struct ibv_xrcd *xrcd = xrcd_open(f->context, -1, O_CREAT);
	struct ibv_srq *srq = xrc_srq_make(f, xrcd, f->cq);
	struct ibv_qp_init_attr attr = qp_attr(f);

	attr.srq = srq;
	FAILS_WITH(EINVAL, ibv_create_qp(f->pd, &attr));
	attr.qp_type = IBV_QPT_UD;
	FAILS_WITH(EINVAL, ibv_create_qp(f->pd, &attr));
	assert_int_equal(ibv_destroy_srq(srq), 0);
	assert_int_equal(ibv_close_xrcd(xrcd), 0);
}

static void get_srq_num__one_for_each(void **state)
{
	struct fixture *f = *state;
	struct ibv_srq_init_attr basic_attr = { .attr = { 4, 1, 0 } };
	struct ibv_srq *basic = ibv_create_srq(f->pd, &basic_attr);
	uint32_t number;
	struct xrc x;

	xrc_make(&x, f);
	assert_int_not_equal(x.srqn[0], x.srqn[1]);
	assert_int_not_equal(x.srqn[0], x.target->qp_num);
	assert_true(x.srqn[0] < 1 << 24);
	assert_int_equal(ibv_get_srq_num(basic, &number), EOPNOTSUPP);
	assert_int_equal(ibv_destroy_srq(basic), 0);
	xrc_destroy(&x);
}

static void create_qp__what_it_needs(void **state)
{
	struct fixture *f = *state;
	struct ibv_xrcd *xrcd = xrcd_open(f->context, -1, O_CREAT);
	struct ibv_qp_init_attr_ex attr = { .qp_type = IBV_QPT_XRC_RECV, .pd = f->pd };
	struct ibv_qp_init_attr plain = { .qp_type = IBV_QPT_XRC_RECV,
					  .send_cq = f->cq,
					  .recv_cq = f->cq };
	struct ibv_qp *qp;

	FAILS_WITH(EINVAL, ibv_create_qp(f->pd, &plain));
	attr.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS;
	FAILS_WITH(EINVAL, ibv_create_qp_ex(f->context, &attr));
	attr.comp_mask = IBV_QP_INIT_ATTR_XRCD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	attr.xrcd = xrcd;
	attr.send_ops_flags = IBV_QP_EX_WITH_SEND;
	FAILS_WITH(EOPNOTSUPP, ibv_create_qp_ex(f->context, &attr));

	/* The initiator needs no CQ for receives, and ignores one. */
	plain.qp_type = IBV_QPT_XRC_SEND;
	plain.recv_cq = NULL;
	plain.cap = (struct ibv_qp_cap){ 4, 4, 1, 1, 0 };
	qp = ibv_create_qp(f->pd, &plain);
	assert_non_null(qp);
	assert_int_equal(plain.cap.max_recv_wr, 0);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	plain.send_cq = NULL;
	FAILS_WITH(EINVAL, ibv_create_qp(f->pd, &plain));

	attr = (struct ibv_qp_init_attr_ex){
		.qp_type = IBV_QPT_XRC_SEND,
		.send_cq = f->cq,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = f->pd,
		.send_ops_flags = IBV_QP_EX_WITH_SEND_WITH_INV,
	};
	FAILS_WITH(EOPNOTSUPP, ibv_create_qp_ex(f->context, &attr));
	assert_int_equal(ibv_close_xrcd(xrcd), 0);
}

static void post__only_sends_of_the_initiator(void **state)
{
	struct ibv_recv_wr recv = { .wr_id = 1 }, *bad_recv;
	struct ibv_send_wr send = { .opcode = IBV_WR_SEND }, *bad;
	struct xrc x;

	xrc_make(&x, *state);
	xrc_connect(&x);
	assert_int_equal(ibv_post_recv(x.target, &recv, &bad_recv), EINVAL);
	assert_int_equal(ibv_post_recv(x.initiator, &recv, &bad_recv), EINVAL);
	assert_int_equal(ibv_post_send(x.target, &send, &bad), EINVAL);
	send.opcode = IBV_WR_SEND_WITH_INV;
	assert_int_equal(ibv_post_send(x.initiator, &send, &bad), EOPNOTSUPP);
	xrc_talk(&x, 0);
	xrc_destroy(&x);
}

/* A step needs each of its attributes, and takes none that another step has. */
static void check_mask(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask, int foreign)
{
	for (int bit = 1; bit < 1 << 21; bit <<= 1)
		if (mask & bit && bit != IBV_QP_STATE)
			assert_int_equal(ibv_modify_qp(qp, attr, mask & ~bit), EINVAL);
	assert_int_equal(ibv_modify_qp(qp, attr, mask | foreign), EINVAL);
	assert_int_equal(ibv_modify_qp(qp, attr, mask), 0);
	assert_int_equal(qp_state(qp), attr->qp_state);
	assert_int_equal(qp->state, attr->qp_state);
}

static void modify_qp__masks(void **state)
{
	struct fixture *f = *state;
	struct route route = route_loopback(f);
	struct ibv_qp_attr init = walk_attr_init(), rts = walk_attr_rts(), rtr;
	struct xrc x;

	xrc_make(&x, f);
	check_mask(x.initiator, &init, XRC_INIT, IBV_QP_QKEY);
	check_mask(x.target, &init, XRC_INIT, IBV_QP_QKEY);
	rtr = walk_attr_rtr(&route, x.target->qp_num);
	check_mask(x.initiator, &rtr, XRC_RTR_INITIATOR, IBV_QP_QKEY);
	rtr = walk_attr_rtr(&route, x.initiator->qp_num);
	check_mask(x.target, &rtr, XRC_RTR_TARGET, IBV_QP_SQ_PSN);
	check_mask(x.initiator, &rts, XRC_RTS_INITIATOR, IBV_QP_PATH_MTU);
	check_mask(x.target, &rts, XRC_RTS_TARGET, IBV_QP_PATH_MTU);
	/* Each takes its half's attributes in SQD. */
	assert_int_equal(qp_move(x.initiator, IBV_QPS_SQD), 0);
	assert_int_equal(ibv_modify_qp(x.initiator, &rts, IBV_QP_RETRY_CNT), 0);
	assert_int_equal(qp_move(x.target, IBV_QPS_SQD), 0);
	assert_int_equal(ibv_modify_qp(x.target, &rtr, IBV_QP_MIN_RNR_TIMER), 0);
	assert_int_equal(qp_move(x.initiator, IBV_QPS_RTS), 0);
	assert_int_equal(qp_move(x.target, IBV_QPS_RTS), 0);
	xrc_talk(&x, 1);
	xrc_destroy(&x);
}

/* As the kernel does, which perftest relies on. */
static void modify_qp__ignores_the_other_half_of_rc(void **state)
{
	struct fixture *f = *state;
	struct route route = route_loopback(f);
	struct ibv_qp_attr init = walk_attr_init(), rts = walk_attr_rts(), rtr, now;
	struct ibv_qp_init_attr created;
	struct xrc x;

	xrc_make(&x, f);
	rts.max_rd_atomic = 200; /* more than there can be: of the target it is not read */
	assert_int_equal(ibv_modify_qp(x.target, &init, XRC_INIT), 0);
	rtr = walk_attr_rtr(&route, x.initiator->qp_num);
	assert_int_equal(ibv_modify_qp(x.target, &rtr, WALK_RTR), 0);
	assert_int_equal(ibv_modify_qp(x.target, &rts, WALK_RTS), 0);
	assert_int_equal(ibv_query_qp(x.target, &now, IBV_QP_MAX_QP_RD_ATOMIC, &created), 0);
	assert_int_equal(now.max_rd_atomic, 0);
	assert_int_equal(ibv_modify_qp(x.initiator, &init, XRC_INIT), 0);
	rtr = walk_attr_rtr(&route, x.target->qp_num);
	rtr.max_dest_rd_atomic = 200;
	assert_int_equal(ibv_modify_qp(x.initiator, &rtr, WALK_RTR), 0);
	rts = walk_attr_rts();
	assert_int_equal(ibv_modify_qp(x.initiator, &rts, WALK_RTS), 0);
	xrc_talk(&x, 0);
	xrc_destroy(&x);
}

static struct ibv_qp_open_attr open_attr(struct ibv_xrcd *xrcd, uint32_t qp_num)
{
	return (struct ibv_qp_open_attr){
		.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE |
			     IBV_QP_OPEN_ATTR_CONTEXT,
		.qp_num = qp_num,
		.xrcd = xrcd,
		.qp_context = xrcd,
		.qp_type = IBV_QPT_XRC_RECV,
	};
}

static void open_qp__what_it_needs(void **state)
{
	struct fixture *f = *state;
	struct ibv_xrcd *other = xrcd_open(f->context, -1, O_CREAT);
	struct ibv_qp_open_attr attr;
	struct xrc x;

	xrc_make(&x, f);
	attr = open_attr(x.xrcd, x.target->qp_num);
	attr.comp_mask &= ~(uint32_t)IBV_QP_OPEN_ATTR_NUM;
	FAILS_WITH(EINVAL, ibv_open_qp(f->context, &attr));
	attr = open_attr(x.xrcd, x.initiator->qp_num);
	FAILS_WITH(EINVAL, ibv_open_qp(f->context, &attr));
	attr = open_attr(other, x.target->qp_num);
	FAILS_WITH(EINVAL, ibv_open_qp(f->context, &attr));
	attr = open_attr(x.xrcd, x.target->qp_num);
	attr.qp_type = IBV_QPT_XRC_SEND;
	FAILS_WITH(EINVAL, ibv_open_qp(f->context, &attr));
	attr.comp_mask |= IBV_QP_OPEN_ATTR_RESERVED;
	FAILS_WITH(EOPNOTSUPP, ibv_open_qp(f->context, &attr));
	assert_int_equal(ibv_close_xrcd(other), 0);
	xrc_destroy(&x);
}

/* From a second context, whose XRCD has the same file. */
struct opened {
	struct ibv_context *context;
	struct ibv_xrcd *xrcd;
	struct ibv_qp *qp;
};

static struct opened open_second(const struct xrc *x)
{
	struct opened o = { .context = device_open() };
	struct ibv_qp_open_attr attr;

	o.xrcd = xrcd_open(o.context, x->fd, 0);
	assert_non_null(o.xrcd);
	attr = open_attr(o.xrcd, x->target->qp_num);
	o.qp = ibv_open_qp(o.context, &attr);
	assert_non_null(o.qp);
	assert_int_equal(o.qp->qp_num, x->target->qp_num);
	assert_ptr_equal(o.qp->qp_context, o.xrcd);
	return o;
}

static void close_second(struct opened *o)
{
	assert_int_equal(ibv_close_xrcd(o->xrcd), EBUSY);
	assert_int_equal(ibv_destroy_qp(o->qp), 0);
	assert_int_equal(ibv_close_xrcd(o->xrcd), 0);
	assert_int_equal(ibv_close_device(o->context), 0);
}

static void open_qp__is_the_same_qp(void **state)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct opened o;
	struct xrc x;

	xrc_make(&x, *state);
	o = open_second(&x);
	xrc_connect(&x);
	assert_int_equal(qp_state(o.qp), IBV_QPS_RTS);
	assert_int_equal(ibv_query_qp(o.qp, &attr, IBV_QP_DEST_QPN, &init), 0);
	assert_int_equal(attr.dest_qp_num, x.initiator->qp_num);
	assert_int_equal(init.qp_type, IBV_QPT_XRC_RECV);
	xrc_talk(&x, 0);
	assert_int_equal(qp_move(o.qp, IBV_QPS_SQD), 0);
	assert_int_equal(qp_state(x.target), IBV_QPS_SQD);
	close_second(&o);
	xrc_talk(&x, 1);
	xrc_destroy(&x);
}

static void open_qp__outlives_the_handle_of_its_creator(void **state)
{
	struct opened o;
	struct xrc x;

	xrc_make(&x, *state);
	xrc_connect(&x);
	o = open_second(&x);
	assert_int_equal(ibv_destroy_qp(x.target), 0);
	x.target = NULL;
	xrc_talk(&x, 0);
	assert_int_equal(qp_state(o.qp), IBV_QPS_RTS);
	close_second(&o);
	xrc_destroy(&x);
}

static void open_qp__every_handle_gets_the_events(void **state)
{
	struct fixture *f = *state;
	struct ibv_async_event event;
	struct opened o;
	struct xrc x;

	xrc_make(&x, f);
	xrc_connect(&x);
	xrc_talk(&x, 0);
	o = open_second(&x);
	assert_int_equal(qp_move(o.qp, IBV_QPS_ERR), 0);
	event = async_wait(f->context);
	assert_int_equal(event.event_type, IBV_EVENT_QP_LAST_WQE_REACHED);
	assert_ptr_equal(event.element.qp, x.target);
	ibv_ack_async_event(&event);
	event = async_wait(o.context);
	assert_int_equal(event.event_type, IBV_EVENT_QP_LAST_WQE_REACHED);
	assert_ptr_equal(event.element.qp, o.qp);
	ibv_ack_async_event(&event);
	close_second(&o);
	xrc_destroy(&x);
}

/* In a child: opens the file's domain with its standard error in a pipe; true when it told of another process. */
static bool child_is_told(int fd)
{
	int ends[2], status;
	char text[1024] = "";
	ssize_t got, len = 0;

	assert_int_equal(pipe(ends), 0);
	pid_t child = fork();

	if (child == 0) {
		struct ibv_context *context = device_open();

		dup2(ends[1], STDERR_FILENO);
		_exit(xrcd_open(context, fd, O_CREAT) ? 0 : 1);
	}
	close(ends[1]);
	while ((got = read(ends[0], text + len, sizeof(text) - 1 - (size_t)len)) > 0)
		len += got;
	close(ends[0]);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	return strstr(text, "another process has the same file's domain open");
}

static void open_xrcd__tells_of_another_process(void **state)
{
	struct fixture *f = *state;
	int fd = xrc_file();
	struct ibv_xrcd *xrcd;

	assert_false(child_is_told(fd));
	xrcd = xrcd_open(f->context, fd, O_CREAT);
	assert_true(child_is_told(fd));
	/* The child of a fork before the close does not hold it. */
	int ends[2];
	char c = 0;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	pid_t sleeper = fork();

	if (sleeper == 0) {
		close(ends[0]);
		_exit(write(ends[1], &c, 1) == 1 && read(ends[1], &c, 1) == 0 ? 0 : 1);
	}
	close(ends[1]);
	/* Until the child runs it has all that the parent has. */
	assert_int_equal(read(ends[0], &c, 1), 1);
	assert_int_equal(ibv_close_xrcd(xrcd), 0);
	assert_false(child_is_told(fd));
	close(ends[0]);
	assert_int_equal(waitpid(sleeper, NULL, 0), sleeper);
	close(fd);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(open_xrcd__what_it_needs),
		TEST(open_xrcd__by_the_inode),
		TEST(close_xrcd__busy_while_it_is_used),
		TEST(create_srq_ex__what_it_needs),
		TEST(create_qp__with_an_srq_of_xrc),
		TEST(get_srq_num__one_for_each),
		TEST(create_qp__what_it_needs),
		TEST(post__only_sends_of_the_initiator),
		TEST(modify_qp__masks),
		TEST(modify_qp__ignores_the_other_half_of_rc),
		TEST(open_qp__what_it_needs),
		TEST(open_qp__is_the_same_qp),
		TEST(open_qp__outlives_the_handle_of_its_creator),
		TEST(open_qp__every_handle_gets_the_events),
		TEST(open_xrcd__tells_of_another_process),
	};

	walk_persona();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
