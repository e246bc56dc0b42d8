// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Calls that came after Debian 12's rdma-core (44), for binaries that were built with newer headers.
// Names of services are InfiniBand's, events of a program's own would need a field that the ABI of
// before has not, and an rsocket is waited for by rpoll or the epoll forms of before. None reads an
// argument.
#include "rdmacm/fail.h"

static __attribute__((used)) int unsupported(void)
{
	return aw_cm_fail(EOPNOTSUPP);
}

#define UNSUPPORTED __attribute__((alias("unsupported")))

int rdma_query_addrinfo(void) UNSUPPORTED;
int rdma_resolve_addrinfo(void) UNSUPPORTED;
int rdma_write_cm_event(void) UNSUPPORTED;
int repoll_create(void) UNSUPPORTED;
int repoll_ctl(void) UNSUPPORTED;
int repoll_wait(void) UNSUPPORTED;
