// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// RC connections of the roce persona.
#include "net/rc.h"

#include "net/policy_env.h"

int aw_rc_mpa_local(struct aw_mpa_local *local)
{
	*local = (struct aw_mpa_local){ .ird = AW_RD_MAX, .ord = AW_RD_MAX };
	return aw_policy_local(local);
}

void aw_rc_on_request(void *arg, struct aw_conn *conn, enum aw_conn_event event)
{
	(void)arg;
	if (event == AW_CONN_REQUEST)
		aw_conn_reject(conn, NULL, 0);
	aw_conn_destroy(conn);
}
