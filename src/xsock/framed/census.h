// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Lists the records of another process, for `anywarp sockets --status` (src/cli). The process
// itself writes into the memory that it shares with its relatives which sockets are records; the
// socket, its addresses and its counters come from the kernel.
#ifndef XSOCK_FRAMED_CENSUS_H
#define XSOCK_FRAMED_CENSUS_H

#include <sys/types.h>

#include "xsock/base/request.h"
#include "xsock/base/rules.h"
#include "xsock/base/sockdiag.h"

#define AW_CENSUS_PROXY AW_PROXY_NAME /* the proxy process's name in /proc/PID/comm */

struct aw_census_record {
	enum aw_xs_mode mode; /* AW_XS_OFF: not known */
	bool is_known; /* the kernel's dump has the socket; otherwise only conn.ino is set */
	struct aw_sockdiag_conn conn;
};

enum aw_census_result {
	AW_CENSUS_WHOLE,
	AW_CENSUS_GONE, /* there is no such process */
	AW_CENSUS_REFUSED, /* the process's fds may not be read */
	AW_CENSUS_STRANGE, /* its file of that name is no arena of this build */
	/* the records have no addresses: its network namespace may not be entered */
	AW_CENSUS_ELSEWHERE,
	AW_CENSUS_FAILED, /* with errno: no memory, or no sock_diag */
};

typedef void aw_census_fn(int fd, const struct aw_census_record *record, void *arg);

/* Calls use for each fd of the process that is a record, in the order of the fds. */
enum aw_census_result aw_census_take(pid_t pid, aw_census_fn *use, void *arg);

#endif
