// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Calls that are newer than Debian 12's rdma-core (44), for binaries that were built with newer
// headers. Programs wait for rsockets with rpoll or the older epoll calls. The functions read no
// argument.
#include "rdmacm/fail.h"

static __attribute__((used)) int unsupported(void)
{
	return aw_cm_fail(EOPNOTSUPP);
}

#define UNSUPPORTED __attribute__((alias("unsupported")))

int repoll_create(void) UNSUPPORTED;
int repoll_ctl(void) UNSUPPORTED;
int repoll_wait(void) UNSUPPORTED;
