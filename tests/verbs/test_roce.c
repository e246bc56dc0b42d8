// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The roce persona: what the device shows, and the steps of ibv_modify_qp with their attributes.
#include "walk.h"

#include "net/roce/qpn.h"

#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static void device__is_an_adapter_for_roce(void **state)
{
	struct fixture *f = *state;
	struct ibv_device *device = f->context->device;
	struct ibv_device_attr attr;
	struct ibv_port_attr port;
	struct ibv_gid_entry entry;

	assert_int_equal(device->node_type, IBV_NODE_CA);
	assert_int_equal(device->transport_type, IBV_TRANSPORT_IB);
	assert_int_equal(ibv_query_device(f->context, &attr), 0);
	assert_int_equal(attr.atomic_cap, IBV_ATOMIC_HCA);
	assert_int_equal(ibv_query_port(f->context, 1, &port), 0);
	assert_int_equal(port.state, IBV_PORT_ACTIVE);
	assert_int_equal(port.link_layer, IBV_LINK_LAYER_ETHERNET);
	assert_int_equal(port.lid, 0);
	assert_int_equal(port.sm_lid, 0);
	assert_int_equal(port.lmc, 0);
	assert_true(port.flags & IBV_QPF_GRH_REQUIRED);
	assert_true(port.active_mtu <= IBV_MTU_4096);
	for (int i = 0; i < port.gid_tbl_len; i++) {
		assert_int_equal(ibv_query_gid_ex(f->context, 1, (uint32_t)i, &entry, 0), 0);
		assert_int_equal(entry.gid_type, IBV_GID_TYPE_ROCE_V2);
	}
}

static void create_qp__in_reset_with_numbers_of_one_port(void **state)
{
	struct fixture *f = *state;
	struct ibv_qp *qps[3];

	for (int i = 0; i < 3; i++) {
		qps[i] = qp_make(f);
		assert_int_equal(qps[i]->state, IBV_QPS_RESET);
		assert_int_equal(qp_state(qps[i]), IBV_QPS_RESET);
		assert_true(qps[i]->qp_num < 1 << 24);
		assert_int_equal(qps[i]->qp_num >> 8, qps[0]->qp_num >> 8);
	}
	assert_int_not_equal(qps[0]->qp_num, qps[1]->qp_num);
	assert_int_not_equal(qps[0]->qp_num, qps[2]->qp_num);
	for (int i = 0; i < 3; i++)
		assert_int_equal(ibv_destroy_qp(qps[i]), 0);
}

/* A step needs each of its attributes, and takes none that another step has. */
static void check_mask(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask, int foreign)
{
	enum ibv_qp_state before = qp_state(qp);

	for (int bit = 1; bit < 1 << 21; bit <<= 1)
		if (mask & bit && bit != IBV_QP_STATE)
			assert_int_equal(ibv_modify_qp(qp, attr, mask & ~bit), EINVAL);
	assert_int_equal(ibv_modify_qp(qp, attr, mask | foreign), EINVAL);
	assert_int_equal(qp_state(qp), before);
	assert_int_equal(ibv_modify_qp(qp, attr, mask), 0);
	assert_int_equal(qp_state(qp), attr->qp_state);
}

static void modify_qp__masks(void **state)
{
	struct fixture *f = *state;
	struct route route = route_loopback(f);
	struct ibv_qp *qp = qp_make(f);
	struct ibv_qp_attr init = walk_attr_init(), rts = walk_attr_rts();
	struct ibv_qp_attr rtr = walk_attr_rtr(&route, qp->qp_num);

	check_mask(qp, &init, WALK_INIT, IBV_QP_DEST_QPN);
	check_mask(qp, &rtr, WALK_RTR, IBV_QP_SQ_PSN);
	check_mask(qp, &rts, WALK_RTS, IBV_QP_PATH_MTU);
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

static void modify_qp__steps_in_order(void **state)
{
	struct fixture *f = *state;
	struct route route = route_loopback(f);
	struct ibv_qp *qp = qp_make(f);
	struct ibv_qp_attr init = walk_attr_init(), rts = walk_attr_rts();
	struct ibv_qp_attr rtr = walk_attr_rtr(&route, qp->qp_num);

	assert_int_equal(ibv_modify_qp(qp, &rtr, WALK_RTR), EINVAL);
	assert_int_equal(ibv_modify_qp(qp, &rts, WALK_RTS), EINVAL);
	assert_int_equal(ibv_modify_qp(qp, &init, WALK_INIT), 0);
	assert_int_equal(ibv_modify_qp(qp, &rts, WALK_RTS), EINVAL);
	assert_int_equal(qp_move(qp, IBV_QPS_SQD), EINVAL);
	assert_int_equal(qp_move(qp, IBV_QPS_ERR), 0);
	assert_int_equal(ibv_modify_qp(qp, &init, WALK_INIT), EINVAL);
	assert_int_equal(qp_move(qp, IBV_QPS_RESET), 0);
	assert_int_equal(ibv_modify_qp(qp, &init, WALK_INIT), 0);
	assert_int_equal(ibv_modify_qp(qp, &rtr, WALK_RTR), 0);
	rts.cur_qp_state = IBV_QPS_INIT;
	assert_int_equal(ibv_modify_qp(qp, &rts, WALK_RTS | IBV_QP_CUR_STATE), EINVAL);
	rts.cur_qp_state = IBV_QPS_RTR;
	assert_int_equal(ibv_modify_qp(qp, &rts, WALK_RTS | IBV_QP_CUR_STATE), 0);
	assert_int_equal(qp_state(qp), IBV_QPS_RTS);
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

/* A UDP port of the kernel's choice that nobody has any more. */
static uint16_t port_that_is_free(void)
{
	struct sockaddr_in any = { .sin_family = AF_INET };
	socklen_t len = sizeof(any);
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	assert_int_equal(bind(fd, (struct sockaddr *)&any, sizeof(any)), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&any, &len), 0);
	close(fd);
	return ntohs(any.sin_port);
}

#define RTR_REFUSES(field, value)                                            \
	do {                                                                 \
		struct ibv_qp_attr bad = walk_attr_rtr(&route, qp->qp_num);  \
		bad.field = (value);                                         \
		assert_int_equal(ibv_modify_qp(qp, &bad, WALK_RTR), EINVAL); \
	} while (0)

static void modify_qp__values_out_of_range(void **state)
{
	struct fixture *f = *state;
	struct route route = route_loopback(f);
	struct ibv_qp *qp = qp_make(f);
	struct ibv_qp_attr init = walk_attr_init();

	assert_int_equal(ibv_modify_qp(qp, &init, WALK_INIT), 0);
	RTR_REFUSES(path_mtu, 0);
	RTR_REFUSES(path_mtu, 6);
	RTR_REFUSES(dest_qp_num, 1 << 24);
	RTR_REFUSES(min_rnr_timer, 32);
	RTR_REFUSES(ah_attr.grh.sgid_index, 255);
	RTR_REFUSES(ah_attr.grh.dgid, (union ibv_gid){ 0 });
	/* From an IPv4 address to an IPv6 one, and the other way round. */
	RTR_REFUSES(ah_attr.grh.dgid, route_by(f, "::1").gid);
	RTR_REFUSES(ah_attr.grh.sgid_index, (uint8_t)route_by(f, "::1").gid_index);
	route = route_by_lid();
	RTR_REFUSES(ah_attr.dlid, 77);
	/* A peer that is not of this host. */
	RTR_REFUSES(dest_qp_num, (uint32_t)port_that_is_free() << 8);
	assert_int_equal(qp_state(qp), IBV_QPS_INIT);
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

static void modify_qp__rights_of_a_move_that_fails(void **state)
{
	struct fixture *f = *state;
	struct route route = route_loopback(f);
	struct ibv_qp *qp = qp_make(f);
	struct ibv_qp_attr init = walk_attr_init();
	struct ibv_qp_attr bad = walk_attr_rtr(&route, qp->qp_num);
	struct aw_uqp *uqp = aw_qpn_get(qp->qp_num);

	init.qp_access_flags = IBV_ACCESS_REMOTE_READ;
	assert_int_equal(ibv_modify_qp(qp, &init, WALK_INIT), 0);
	bad.ah_attr.grh.dgid = route_by(f, "::1").gid;
	bad.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
	assert_int_equal(ibv_modify_qp(qp, &bad, WALK_RTR | IBV_QP_ACCESS_FLAGS), EINVAL);
	assert_int_equal(uqp->core.remote_access, AW_ACCESS_REMOTE_READ);
	aw_uqp_put(uqp);
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

static void query_qp__what_was_set(void **state)
{
	struct fixture *f = *state;
	struct route route = route_loopback(f);
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct walker w;

	walker_make(&w, f);
	walk(&w, &route, w.qp->qp_num);
	assert_int_equal(ibv_query_qp(w.qp, &attr, 0, &init), 0);
	assert_int_equal(attr.qp_state, IBV_QPS_RTS);
	assert_int_equal(attr.path_mtu, IBV_MTU_1024);
	assert_int_equal(attr.dest_qp_num, w.qp->qp_num);
	assert_int_equal(attr.rq_psn, 100);
	assert_int_equal(attr.sq_psn, 100);
	assert_int_equal(attr.max_rd_atomic, WALK_RD);
	assert_int_equal(attr.max_dest_rd_atomic, WALK_RD);
	assert_int_equal(attr.min_rnr_timer, 12);
	assert_int_equal(attr.timeout, 14);
	assert_int_equal(attr.retry_cnt, 1);
	assert_int_equal(attr.rnr_retry, 7);
	assert_memory_equal(&attr.ah_attr.grh.dgid, &route.gid, sizeof(route.gid));
	walk_reset(&w);
	assert_int_equal(ibv_query_qp(w.qp, &attr, 0, &init), 0);
	assert_int_equal(attr.qp_state, IBV_QPS_RESET);
	assert_int_equal(attr.dest_qp_num, 0);
	walker_destroy(&w);
}

/* Moves the QP from RTS to RTS, with another timer each time. Returns how often that failed. */
static void *modify_often(void *arg)
{
	struct ibv_qp *qp = arg;
	uintptr_t failed = 0;

	for (int i = 0; i < 500; i++) {
		struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTS,
					    .min_rnr_timer = (uint8_t)(1 + i % 31) };

		failed += ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_MIN_RNR_TIMER) != 0;
	}
	return (void *)failed;
}

static void modify_qp__by_two_threads(void **state)
{
	struct fixture *f = *state;
	struct route route = route_loopback(f);
	struct walker w;
	pthread_t thread;
	void *failed;

	walker_make(&w, f);
	walk(&w, &route, w.qp->qp_num);
	assert_int_equal(pthread_create(&thread, NULL, modify_often, w.qp), 0);
	assert_null(modify_often(w.qp));
	assert_int_equal(pthread_join(thread, &failed), 0);
	assert_null(failed);
	assert_int_equal(qp_state(w.qp), IBV_QPS_RTS);
	walker_destroy(&w);
}

static void post__in_each_state(void **state)
{
	struct fixture *f = *state;
	struct route route = route_loopback(f);
	struct ibv_recv_wr recv = { .wr_id = 1 }, *bad_recv;
	struct ibv_send_wr send = { .opcode = IBV_WR_SEND }, *bad_send;
	struct walker w;

	walker_make(&w, f);
	assert_int_equal(ibv_post_recv(w.qp, &recv, &bad_recv), EINVAL);
	assert_int_equal(ibv_post_send(w.qp, &send, &bad_send), EINVAL);
	walk_init(&w);
	assert_int_equal(ibv_post_recv(w.qp, &recv, &bad_recv), 0);
	assert_int_equal(ibv_post_send(w.qp, &send, &bad_send), EINVAL);
	walk_rtr(&w, &route, w.qp->qp_num);
	assert_int_equal(ibv_post_send(w.qp, &send, &bad_send), EINVAL);
	walk_rts(&w);
	assert_int_equal(ibv_post_send(w.qp, &send, &bad_send), 0);
	walker_received(&w, IBV_WC_SUCCESS);
	walker_destroy(&w);
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH(device__is_an_adapter_for_roce),
		WITH(create_qp__in_reset_with_numbers_of_one_port),
		WITH(modify_qp__masks),
		WITH(modify_qp__steps_in_order),
		WITH(modify_qp__values_out_of_range),
		WITH(modify_qp__rights_of_a_move_that_fails),
		WITH(query_qp__what_was_set),
		WITH(modify_qp__by_two_threads),
		WITH(post__in_each_state),
	};

	walk_persona();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
