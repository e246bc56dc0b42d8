// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// rdma_destroy_qp in one thread while another is in a call that uses the id's QP: the QP lives until that call is done with it.
// Each test stops the library where it is about to use the QP, and has the QP destroyed there.
#define _GNU_SOURCE /* RTLD_NEXT */
#include "../lib/proc.h"
#include "../lib/until.h"
#include "cm.h"
#include "verbs/private.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define RESOLVE_MS 2000

static struct {
	struct rdma_cm_id *
		id; /* whose QP the thread destroys; NULL: the test has not armed it, or it has begun */
	pthread_t thread;
	_Atomic long tid; /* of the thread, once it has begun */
	atomic_bool destroying; /* the library has begun to destroy the QP */
	bool met; /* the library was about to use the QP */
	bool early; /* it was destroyed then */
} race;

static void *destroy(void *id)
{
	atomic_store(&race.tid, syscall(SYS_gettid));
	rdma_destroy_qp(id);
	return NULL;
}

/* Called where the library is about to use the QP: until the thread has begun to destroy it, or waits. */
static void meet(void)
{
	struct rdma_cm_id *id = race.id;

	if (!id)
		return;
	race.id = NULL;
	race.met = true;
	assert_int_equal(pthread_create(&race.thread, NULL, destroy, id), 0);
	until(atomic_load(&race.destroying) ||
	      (atomic_load(&race.tid) && proc_sleeps(atomic_load(&race.tid))));
	race.early = atomic_load(&race.destroying);
}

/* librdmacm.so.1 calls these: the dynamic linker finds the program's first. */
#pragma GCC visibility push(default)
int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	static int (*real)(struct ibv_qp *, struct ibv_qp_attr *, int);

	if (attr->qp_state == IBV_QPS_ERR)
		meet();
	*(void **)&real = dlsym(RTLD_NEXT, "ibv_modify_qp");
	return real(qp, attr, mask);
}

void avb_qp_timeout_show(struct ibv_qp *qp, uint8_t timeout)
{
	static void (*real)(struct ibv_qp *, uint8_t);

	meet();
	*(void **)&real = dlsym(RTLD_NEXT, "avb_qp_timeout_show");
	real(qp, timeout);
}

int avb_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint32_t ifindex)
{
	static int (*real)(struct ibv_qp *, const union ibv_gid *, uint32_t);

	meet();
	*(void **)&real = dlsym(RTLD_NEXT, "avb_attach_mcast");
	return real(qp, gid, ifindex);
}

int avb_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint32_t ifindex)
{
	static int (*real)(struct ibv_qp *, const union ibv_gid *, uint32_t);

	meet();
	*(void **)&real = dlsym(RTLD_NEXT, "avb_detach_mcast");
	return real(qp, gid, ifindex);
}

int ibv_destroy_qp(struct ibv_qp *qp)
{
	static int (*real)(struct ibv_qp *);

	atomic_store(&race.destroying, true);
	*(void **)&real = dlsym(RTLD_NEXT, "ibv_destroy_qp");
	return real(qp);
}

#pragma GCC visibility pop

static void arm(struct rdma_cm_id *id)
{
	memset(&race, 0, sizeof(race));
	race.id = id;
}

/* The library has met the thread, which has destroyed the QP afterwards. */
static void expect_late(struct rdma_cm_id *id)
{
	assert_true(race.met);
	assert_int_equal(pthread_join(race.thread, NULL), 0);
	assert_false(race.early);
	assert_true(race.destroying);
	assert_null(id->qp);
}

static void destroy_qp__while_another_thread_takes_rejected(void **state)
{
	struct cm_ends ends;

	(void)state;
	cm_ends_open(&ends, "127.0.0.1");
	cm_ends_request(&ends);
	assert_int_equal(rdma_reject(ends.server, NULL, 0), 0);
	arm(ends.client);
	struct rdma_cm_event *event;

	assert_int_equal(rdma_get_cm_event(ends.active, &event), 0);
	assert_int_equal(event->event, RDMA_CM_EVENT_REJECTED);
	rdma_ack_cm_event(event);
	expect_late(ends.client);
	cm_ends_close(&ends);
}

static void destroy_qp__while_another_thread_connects(void **state)
{
	struct cm_ends ends;
	uint8_t timeout = 20;

	(void)state;
	cm_ends_open(&ends, "127.0.0.1");
	assert_int_equal(rdma_set_option(ends.client, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT,
					 &timeout, sizeof(timeout)),
			 0);
	arm(ends.client);
	assert_int_equal(rdma_connect(ends.client, NULL), 0);
	expect_late(ends.client);
	cm_ends_close(&ends);
}

static struct rdma_cm_id *member(struct sockaddr_storage *group)
{
	struct ibv_qp_init_attr attr = { .cap = { 4, 4, 1, 1, 64 }, .qp_type = IBV_QPT_UD };
	struct sockaddr_storage src = cm_address("127.0.0.1", 0);
	struct rdma_cm_id *id;

	assert_int_equal(rdma_create_id(cm_channel, &id, NULL, RDMA_PS_UDP), 0);
	assert_int_equal(rdma_resolve_addr(id, (struct sockaddr *)&src, (struct sockaddr *)group,
					   RESOLVE_MS),
			 0);
	cm_expect_ack(cm_channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	assert_int_equal(rdma_create_qp(id, NULL, &attr), 0);
	assert_int_equal(rdma_join_multicast(id, (struct sockaddr *)group, NULL), 0);
	return id;
}

/* rdma_destroy_qp takes the QP out of the group that the other thread has just attached it to. */
static void destroy_qp__while_another_thread_takes_multicast_join(void **state)
{
	struct sockaddr_storage group = cm_address("239.7.7.9", 0);
	struct rdma_cm_id *id = member(&group);

	(void)state;
	arm(id);
	cm_expect_ack(cm_channel, RDMA_CM_EVENT_MULTICAST_JOIN, 0);
	expect_late(id);
	assert_int_equal(rdma_leave_multicast(id, (struct sockaddr *)&group), 0);
	rdma_destroy_id(id);
}

static void destroy_qp__while_another_thread_leaves_a_group(void **state)
{
	struct sockaddr_storage group = cm_address("239.7.7.9", 0);
	struct rdma_cm_id *id = member(&group);

	(void)state;
	cm_expect_ack(cm_channel, RDMA_CM_EVENT_MULTICAST_JOIN, 0);
	arm(id);
	assert_int_equal(rdma_leave_multicast(id, (struct sockaddr *)&group), 0);
	expect_late(id);
	rdma_destroy_id(id);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(destroy_qp__while_another_thread_takes_rejected),
		cmocka_unit_test(destroy_qp__while_another_thread_connects),
		cmocka_unit_test(destroy_qp__while_another_thread_takes_multicast_join),
		cmocka_unit_test(destroy_qp__while_another_thread_leaves_a_group),
	};

	setenv("ANYWARP_PERSONA", "roce", 1);
	return cmocka_run_group_tests(tests, cm_open_channel, cm_close_channel);
}
