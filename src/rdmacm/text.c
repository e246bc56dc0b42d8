// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The text of an event's type: its name in rdma_cma.h.
#include <stddef.h>

#include "base/array.h"
#include "rdmacm/newer.h"

#include <rdma/rdma_cma.h>

#define NAME(event) [event] = #event
#define NEWER(event) [AW_CM_EVENT_##event] = "RDMA_CM_EVENT_" #event

static const char *const events[] = {
	NAME(RDMA_CM_EVENT_ADDR_RESOLVED),
	NAME(RDMA_CM_EVENT_ADDR_ERROR),
	NAME(RDMA_CM_EVENT_ROUTE_RESOLVED),
	NAME(RDMA_CM_EVENT_ROUTE_ERROR),
	NAME(RDMA_CM_EVENT_CONNECT_REQUEST),
	NAME(RDMA_CM_EVENT_CONNECT_RESPONSE),
	NAME(RDMA_CM_EVENT_CONNECT_ERROR),
	NAME(RDMA_CM_EVENT_UNREACHABLE),
	NAME(RDMA_CM_EVENT_REJECTED),
	NAME(RDMA_CM_EVENT_ESTABLISHED),
	NAME(RDMA_CM_EVENT_DISCONNECTED),
	NAME(RDMA_CM_EVENT_DEVICE_REMOVAL),
	NAME(RDMA_CM_EVENT_MULTICAST_JOIN),
	NAME(RDMA_CM_EVENT_MULTICAST_ERROR),
	NAME(RDMA_CM_EVENT_ADDR_CHANGE),
	NAME(RDMA_CM_EVENT_TIMEWAIT_EXIT),
	NEWER(ADDRINFO_RESOLVED),
	NEWER(ADDRINFO_ERROR),
	NEWER(USER),
	NEWER(INTERNAL),
};

const char *rdma_event_str(enum rdma_cm_event_type event)
{
	if ((unsigned int)event >= ARRAY_LEN(events))
		return "UNKNOWN EVENT";
	return events[event];
}
