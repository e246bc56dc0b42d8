// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// rselect, by rpoll.
#include <rdma/rsocket.h>

#include "xsock/base/sets.h"
#include "xsock/rsockets/rs_poll.h"

#define NS_PER_S 1000000000
#define NS_PER_US 1000

int rselect(int nfds, fd_set *readfds, fd_set *writefds, fd_set *exceptfds, struct timeval *timeout)
{
	struct aw_select_sets sets = { readfds, writefds, exceptfds };
	struct pollfd fds[FD_SETSIZE];
	int64_t timeout_ns = -1;
	nfds_t used;
	int got;

	if (nfds < 0 || nfds > FD_SETSIZE)
		return (int)aw_rs_result(-EINVAL);
	if (timeout && (timeout->tv_sec < 0 || timeout->tv_usec < 0))
		return (int)aw_rs_result(-EINVAL);
	if (timeout)
		timeout_ns =
			(int64_t)timeout->tv_sec * NS_PER_S + (int64_t)timeout->tv_usec * NS_PER_US;
	used = aw_sets_to_poll(&sets, nfds, fds);
	got = aw_rs_poll(fds, used, timeout_ns);
	return (int)aw_rs_result(got < 0 ? got : aw_sets_from_poll(&sets, fds, used));
}
