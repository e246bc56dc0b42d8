// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The QPs around a fork. The child inherits them without their streams, and without the threads that used them.
#include "net/base/fork.h"
#include "net/base/io_now.h"
#include "net/mem/pool.h"
#include "net/qp/capture.h"
#include "net/qp/deferral.h"
#include "net/qp/host_ring.h"
#include "net/qp/serving.h"
#include "net/qp/uqp_sock.h"
#include "ring/table.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct aw_table *qps;

static void fork_prepare(void) AW_ACQUIRE(qps->lock, aw_serving_list_lock)
{
	aw_table_fork_prepare(qps);
	aw_deferral_fork_prepare();
	aw_serving_fork_prepare();
	aw_pool_fork_prepare();
	aw_capture_fork_prepare();
	aw_host_ring_fork_prepare();
}

static void fork_parent(void) AW_RELEASE(qps->lock, aw_serving_list_lock)
{
	aw_host_ring_fork_parent();
	aw_capture_fork_parent();
	aw_pool_fork_done();
	aw_serving_fork_parent();
	aw_deferral_fork_parent();
	aw_table_fork_parent(qps);
}

static void leave_stream(const struct aw_uqp *qp, int none)
{
	(void)syscall(SYS_dup3, none, qp->fd, O_CLOEXEC);
	if (qp->ring && qp->ring->bells.own >= 0) {
		(void)syscall(SYS_dup3, none, qp->ring->bells.own, O_CLOEXEC);
		(void)syscall(SYS_dup3, none, qp->ring->bells.peers, O_CLOEXEC);
	}
}

/*
 * Gives up the child's copies of the parent's streams' sockets and pipes, which would keep the connections up when the parent's process
 * ends. The inherited QPs still name the fds: another file takes their numbers. The parent has done so with those that it had
 * inherited, whose numbers may be the program's by now. This function makes the system call itself, because a wrapper of dup3
 * may take locks that the fork still holds.
 */
static void leave_streams(void)
{
	int none = open("/dev/null", O_RDWR | O_CLOEXEC);
	uint32_t end = aw_table_end_of_child(qps);
	struct aw_uqp *qp;

	if (none < 0)
		return;
	for (uint32_t at = 0; (qp = aw_table_walk(qps, &at, end)); aw_table_put(qps, at++))
		if (qp->fd >= 0 && atomic_load_explicit(&qp->generation, memory_order_relaxed) ==
					   aw_fork_generation() - 1)
			leave_stream(qp, none);
	aw_close_now(none);
}

static void fork_child(void) AW_RELEASE(qps->lock, aw_serving_list_lock)
{
	aw_host_ring_fork_child();
	aw_capture_fork_child();
	aw_pool_fork_done();
	aw_serving_fork_child();
	aw_deferral_fork_child();
	aw_table_fork_child(qps);
	uint32_t end = aw_table_end(qps);
	struct aw_uqp *qp;

	/* Threads that only the parent has may hold these locks for ever; the child may still destroy what they guard. */
	for (uint32_t at = 0; (qp = aw_table_walk(qps, &at, end)); aw_table_put(qps, at++)) {
		aw_latch_init(&qp->lock);
		qp->delivered = (struct aw_latch_cond){ 0 };
		qp->delivering = false;
		aw_cq_renew_locks(qp->attr.send_cq);
		aw_cq_renew_locks(qp->attr.recv_cq);
	}
	leave_streams();
}

static const struct aw_fork_handlers fork_handlers = {
	.prepare = fork_prepare,
	.parent = fork_parent,
	.child = fork_child,
	.torn = leave_streams,
};

void aw_uqp_fork_register(struct aw_table *all)
{
	qps = all;
	aw_fork_register(AW_FORK_QPS, &fork_handlers);
}
