// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Multicast groups of the UDP port space: joined, used and left.
#include "../lib/proc.h"
#include "../lib/until.h"
#include "cm.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#define RESOLVE_MS 2000

static void make_qp(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = { .cap = { 4, 4, 1, 1, 64 }, .qp_type = IBV_QPT_UD };

	assert_int_equal(rdma_create_qp(id, NULL, &attr), 0);
}

static struct rdma_cm_id *member_without_qp(const char *group)
{
	struct sockaddr_storage src = cm_address("127.0.0.1", 0), dst = cm_address(group, 0);
	struct rdma_cm_id *id;

	assert_int_equal(rdma_create_id(cm_channel, &id, NULL, RDMA_PS_UDP), 0);
	assert_int_equal(rdma_resolve_addr(id, (struct sockaddr *)&src, (struct sockaddr *)&dst,
					   RESOLVE_MS),
			 0);
	cm_expect_ack(cm_channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	return id;
}

static struct rdma_cm_id *member(const char *group)
{
	struct rdma_cm_id *id = member_without_qp(group);

	make_qp(id);
	return id;
}

static struct ibv_ah *join(struct rdma_cm_id *id, const char *group)
{
	struct sockaddr_storage ss = cm_address(group, 0);
	struct rdma_cm_event *event;
	struct ibv_ah *ah;

	assert_int_equal(rdma_join_multicast(id, (struct sockaddr *)&ss, id), 0);
	event = cm_expect(cm_channel, RDMA_CM_EVENT_MULTICAST_JOIN, 0);
	assert_ptr_equal(event->param.ud.private_data, id);
	assert_int_equal(event->param.ud.qp_num, 0xffffff);
	assert_int_equal(event->param.ud.qkey, RDMA_UDP_QKEY);
	ah = ibv_create_ah(id->pd, &event->param.ud.ah_attr);
	assert_non_null(ah);
	rdma_ack_cm_event(event);
	return ah;
}

static void multicast__joined_and_left(void **state)
{
	struct rdma_cm_id *a = member("239.7.7.1"), *b = member("239.7.7.1");
	struct ibv_ah *ah_a = join(a, "239.7.7.1"), *ah_b = join(b, "239.7.7.1");
	struct sockaddr_storage group = cm_address("239.7.7.1", 0);
	uint8_t buf[100];
	struct ibv_mr *mr = ibv_reg_mr(b->pd, buf, sizeof(buf), IBV_ACCESS_LOCAL_WRITE);
	struct ibv_wc wc;

	(void)state;
	assert_non_null(mr);
	assert_int_equal(rdma_post_recv(b, NULL, buf, sizeof(buf), mr), 0);
	assert_int_equal(rdma_post_ud_send(a, NULL, (void *)(uintptr_t) "all", 3, NULL,
					   IBV_SEND_INLINE, ah_a, 0xffffff),
			 0);
	assert_int_equal(rdma_get_recv_comp(b, &wc), 1);
	assert_int_equal(wc.src_qp, a->qp->qp_num);
	assert_memory_equal(buf + 40, "all", 3);
	assert_int_equal(rdma_leave_multicast(b, (struct sockaddr *)&group), 0);
	assert_int_equal(rdma_leave_multicast(b, (struct sockaddr *)&group), -1);
	assert_int_equal(errno, EADDRNOTAVAIL);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_destroy_ah(ah_a), 0);
	assert_int_equal(ibv_destroy_ah(ah_b), 0);
	cm_destroy(a);
	cm_destroy(b);
}

/* rdma_join_multicast(3): a QP that the id has when the program takes the event is attached. */
static void multicast__qp_made_before_the_event_is_taken(void **state)
{
	struct rdma_cm_id *id = member_without_qp("239.7.7.1");
	struct sockaddr_storage group = cm_address("239.7.7.1", 0);

	(void)state;
	assert_int_equal(rdma_join_multicast(id, (struct sockaddr *)&group, NULL), 0);
	make_qp(id);
	cm_expect_ack(cm_channel, RDMA_CM_EVENT_MULTICAST_JOIN, 0);
	assert_int_equal(ibv_destroy_qp(id->qp), EBUSY);
	assert_int_equal(rdma_leave_multicast(id, (struct sockaddr *)&group), 0);
	cm_destroy(id);
}

/* More groups than a QP can be in: the event says so. */
static void multicast__qp_in_too_many_groups(void **state)
{
	struct rdma_cm_id *id = member("239.7.7.1");
	struct sockaddr_storage group;
	union ibv_gid gid = { .raw = { [10] = 0xff, 0xff, 239, 7, 8 } };
	int joined = 0;

	(void)state;
	while (ibv_attach_mcast(id->qp, &gid, 0) == 0) {
		gid.raw[15]++;
		joined++;
	}
	assert_int_not_equal(joined, 0);
	group = cm_address("239.7.7.1", 0);
	assert_int_equal(rdma_join_multicast(id, (struct sockaddr *)&group, id), 0);
	struct rdma_cm_event *event = cm_expect(cm_channel, RDMA_CM_EVENT_MULTICAST_ERROR, -ENOMEM);

	assert_ptr_equal(event->param.ud.private_data, id);
	rdma_ack_cm_event(event);
	while (joined--) {
		gid.raw[15]--;
		assert_int_equal(ibv_detach_mcast(id->qp, &gid, 0), 0);
	}
	cm_destroy(id);
}

/* The context that the join's event names may be freed after the leave; another group's event stays. */
static void multicast__left_before_its_event(void **state)
{
	struct sockaddr_storage first = cm_address("239.7.7.1", 0);
	struct sockaddr_storage second = cm_address("239.7.7.2", 0);
	struct rdma_cm_id *id = member("239.7.7.1");
	struct rdma_cm_event *event;

	(void)state;
	assert_int_equal(rdma_join_multicast(id, (struct sockaddr *)&first, &first), 0);
	assert_int_equal(rdma_join_multicast(id, (struct sockaddr *)&second, &second), 0);
	assert_int_equal(rdma_leave_multicast(id, (struct sockaddr *)&first), 0);
	event = cm_expect(cm_channel, RDMA_CM_EVENT_MULTICAST_JOIN, 0);
	assert_ptr_equal(event->param.ud.private_data, &second);
	rdma_ack_cm_event(event);
	cm_expect_none(cm_channel);
	assert_int_equal(rdma_leave_multicast(id, (struct sockaddr *)&second), 0);
	cm_destroy(id);
}

struct leaver {
	struct rdma_cm_id *id;
	struct sockaddr_storage group;
	_Atomic long tid;
	atomic_bool acked, left, left_late;
};

static void *leave(void *arg)
{
	struct leaver *leaver = arg;
	int ret;

	leaver->tid = syscall(SYS_gettid);
	ret = rdma_leave_multicast(leaver->id, (struct sockaddr *)&leaver->group);
	leaver->left_late = ret == 0 && leaver->acked;
	leaver->left = true;
	return NULL;
}

/* rdma-core's waits likewise: the program may use the context until it has acknowledged the event. */
static void multicast__left_after_its_event_is_acknowledged(void **state)
{
	struct leaver leaver = { .group = cm_address("239.7.7.1", 0) };
	struct sockaddr_storage second = cm_address("239.7.7.2", 0);
	struct rdma_cm_event *event, *other;
	pthread_t thread;

	(void)state;
	leaver.id = member("239.7.7.1");
	assert_int_equal(rdma_join_multicast(leaver.id, (struct sockaddr *)&leaver.group, NULL), 0);
	assert_int_equal(rdma_join_multicast(leaver.id, (struct sockaddr *)&second, NULL), 0);
	event = cm_expect(cm_channel, RDMA_CM_EVENT_MULTICAST_JOIN, 0);
	other = cm_expect(cm_channel, RDMA_CM_EVENT_MULTICAST_JOIN, 0);
	assert_int_equal(pthread_create(&thread, NULL, leave, &leaver), 0);
	until(leaver.left || (leaver.tid && proc_sleeps(leaver.tid)));
	leaver.acked = true;
	rdma_ack_cm_event(event);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_true(leaver.left_late);
	rdma_ack_cm_event(other);
	cm_destroy(leaver.id);
}

/* The id keeps the event of its last call, which the program cannot acknowledge. */
static void multicast__left_by_a_synchronous_id(void **state)
{
	struct sockaddr_storage src = cm_address("127.0.0.1", 0), dst = cm_address("239.7.7.1", 0);
	struct rdma_cm_id *id;

	(void)state;
	assert_int_equal(rdma_create_id(NULL, &id, NULL, RDMA_PS_UDP), 0);
	assert_int_equal(rdma_resolve_addr(id, (struct sockaddr *)&src, (struct sockaddr *)&dst,
					   RESOLVE_MS),
			 0);
	assert_int_equal(rdma_join_multicast(id, (struct sockaddr *)&dst, NULL), 0);
	assert_int_equal(id->event->event, RDMA_CM_EVENT_MULTICAST_JOIN);
	assert_int_equal(rdma_leave_multicast(id, (struct sockaddr *)&dst), 0);
	assert_null(id->event);
	rdma_destroy_id(id);
}

static void multicast__what_is_no_group(void **state)
{
	struct rdma_cm_id *id = member("239.7.7.2");
	struct sockaddr_storage host = cm_address("127.0.0.1", 0);

	(void)state;
	assert_int_equal(rdma_join_multicast(id, (struct sockaddr *)&host, NULL), -1);
	assert_int_equal(errno, EINVAL);
	cm_destroy(id);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(multicast__joined_and_left),
		cmocka_unit_test(multicast__qp_made_before_the_event_is_taken),
		cmocka_unit_test(multicast__qp_in_too_many_groups),
		cmocka_unit_test(multicast__left_before_its_event),
		cmocka_unit_test(multicast__left_after_its_event_is_acknowledged),
		cmocka_unit_test(multicast__left_by_a_synchronous_id),
		cmocka_unit_test(multicast__what_is_no_group),
	};

	setenv("ANYWARP_PERSONA", "roce", 1);
	return cmocka_run_group_tests(tests, cm_open_channel, cm_close_channel);
}
