// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// All connections. iw_cm knows a Request by a number, because it may drop an event with all that it
// names; and the module waits for the last connection.
#include "kmod/cm_table.h"

#include "kmod/cm_conn.h"

#include <linux/wait.h>
#include <linux/xarray.h>

static DEFINE_XARRAY_FLAGS(conns, XA_FLAGS_ALLOC1);
static u32 next;
static DECLARE_WAIT_QUEUE_HEAD(empty);

/* A number is not used again for long, because a program may come late with it. */
int awk_conn_enlist(struct awk_conn *c)
{
	int err = xa_alloc_cyclic(&conns, &c->handle, c, xa_limit_32b, &next, GFP_KERNEL);

	return err < 0 ? err : 0;
}

void awk_conn_delist(struct awk_conn *c)
{
	xa_erase(&conns, c->handle);
	wake_up(&empty);
}

struct awk_conn *awk_conn_find(u32 handle)
{
	struct awk_conn *c;

	xa_lock(&conns);
	c = xa_load(&conns, handle);
	if (c)
		awk_conn_get(c);
	xa_unlock(&conns);
	return c;
}

/* An insert that ran out of memory may leave nodes without an entry: xa_empty is never true again. */
static bool no_conn_is_left(void)
{
	unsigned long handle = 0;

	return !xa_find(&conns, &handle, ULONG_MAX, XA_PRESENT);
}

void awk_conns_flush(void)
{
	struct awk_conn *c;
	unsigned long handle;

	xa_lock(&conns);
	xa_for_each(&conns, handle, c) awk_conn_abandon(c);
	xa_unlock(&conns);
	wait_event(empty, no_conn_is_left());
	xa_destroy(&conns);
}
