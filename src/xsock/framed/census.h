// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The records of another process, for `anywarp sockets --status`. That a socket is a record is what the process says in the
// memory that it shares with its relatives; the socket, its addresses and its counters are the kernel's word.
#ifndef XSOCK_FRAMED_CENSUS_H
#define XSOCK_FRAMED_CENSUS_H

#include <sys/types.h>

#include "xsock/base/request.h"
#include "xsock/base/rules.h"
#include "xsock/base/sockdiag.h"

#define AW_CENSUS_PROXY AW_PROXY_NAME /* the name of the proxy process in /proc/PID/comm */

struct aw_census_record {
	enum aw_xs_mode mode; /* AW_XS_OFF: the process does not say */
	bool is_known; /* the kernel's dump has the socket; otherwise conn has its inode alone */
	struct aw_sockdiag_conn conn;
};

enum aw_census_result {
	AW_CENSUS_WHOLE,
	AW_CENSUS_GONE, /* there is no such process */
	AW_CENSUS_REFUSED, /* we may not look at its fds */
	AW_CENSUS_STRANGE, /* it has a memory of that name which is no arena of this build */
	AW_CENSUS_ELSEWHERE, /* the records are without addresses: we may not enter its network namespace */
	AW_CENSUS_FAILED, /* errno: no memory, or no sock_diag */
};

typedef void aw_census_fn(int fd, const struct aw_census_record *record, void *arg);

/* Calls use for each fd of the process that is a record, in the order of the fds. */
enum aw_census_result aw_census_take(pid_t pid, aw_census_fn *use, void *arg);

#endif
