// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The worker of a connection.
#include "kmod/cm/conn.h"

void awk_conn_work(struct work_struct *work)
{
	struct awk_conn *c = container_of(work, struct awk_conn, work);

	awk_conn_step(c);
	awk_conn_deliver(c);
	awk_conn_put(c);
}
