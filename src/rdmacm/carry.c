// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Connections that go on in the child of a fork: include/anywarp/cm.h. The memory of both processes
// is the same at the fork, and so are their TCP sockets; the child makes epoll sets, eventfds and a
// progress thread of its own. The calls here decide which process goes on with which id.
#include "anywarp/cm.h"

#include "net/carry.h"
#include "net/engine.h"
#include "net/hold.h"
#include "rdmacm/event.h"
#include "rdmacm/fail.h"
#include "rdmacm/process.h"
#include "rdmacm/stream.h"

int anywarp_fork_hold(void)
{
	aw_cm_process(); /* from here on forks are counted */
	int err = aw_engine_hold();

	if (!err)
		aw_hold_release();
	return aw_cm_fail(err);
}

int anywarp_fork_release(void)
{
	if (!aw_engine_is_held() || aw_engine_is_carried())
		return aw_cm_fail(EINVAL);
	aw_engine_resume();
	return 0;
}

int anywarp_cm_forget(struct rdma_cm_id *id)
{
	if (!id || !aw_engine_is_held())
		return aw_cm_fail(EINVAL);
	aw_cm_id_forget(aw_cm_id_of(id));
	return 0;
}

static void unmark(struct aw_cm_id *cm)
{
	cm->carried = false;
}

/* The id of a Request that waits has no channel yet: it goes, or stays, with its listening id. */
static void strand_other(struct aw_cm_id *cm)
{
	if (!cm->carried && cm->id.channel && !aw_cm_id_inherited(cm))
		aw_cm_id_strand(cm);
}

static void keep(struct rdma_cm_id *const *ids, int count)
{
	aw_cm_id_each(unmark);
	for (int i = 0; i < count; i++)
		aw_cm_id_of(ids[i])->carried = true;
	aw_cm_id_each(strand_other);
	aw_uqp_forget_others(aw_cm_stream_is_carried);
}

static bool ids_valid(struct rdma_cm_id *const *ids, int count)
{
	if (count < 0 || (count > 0 && !ids))
		return false;
	for (int i = 0; i < count; i++)
		if (!ids[i] || aw_cm_id_inherited(aw_cm_id_of(ids[i])))
			return false;
	return true;
}

int anywarp_fork_take(struct rdma_cm_id *const *ids, int count)
{
	if (!aw_engine_is_carried() || !ids_valid(ids, count))
		return aw_cm_fail(EINVAL);
	keep(ids, count);
	int err = aw_cm_channel_take_over();

	return aw_cm_fail(err ? err : aw_carry_take());
}
