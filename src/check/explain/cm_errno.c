// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Failures of rdma_cm's calls by their errno; and of a synchronous id also what an event would tell.
#include "check/explain/words.h"

#include <errno.h>

#define NO_DEVICE                                                                                       \
	"there is no RDMA device, or rdma_ucm is not loaded: see rdma link (or ibv_devices); modprobe " \
	"rdma_ucm"
#define NO_UCM \
	"/dev/infiniband/rdma_cm does not exist: modprobe rdma_ucm, or give the device to the container"
#define MAY_NOT_OPEN "the user may not open /dev/infiniband/rdma_cm: see its mode and group"
#define NO_FILES "the process has as many open files as it may: raise RLIMIT_NOFILE (ulimit -n)"
#define REFUSED "nobody listens on the port there, or the program there rejected the request"
#define TIMED_OUT \
	"the peer did not answer: the host is down, a firewall drops the request, or its program does not take it"
#define NO_ROUTE "no route leads to the destination, or no host answers at it"
#define NOT_OURS \
	"no RDMA device has this address: its network interface has no device (rdma link), or the address is loopback"

const struct aw_errno_text aw_cm_errnos[] = {
	{ "rdma_create_event_channel", ENODEV, NO_DEVICE },
	{ "rdma_create_event_channel", ENOENT, NO_UCM },
	{ "rdma_create_event_channel", EACCES, MAY_NOT_OPEN },
	{ "rdma_create_id", ENODEV, NO_DEVICE },
	{ "rdma_create_id", ENOENT, NO_UCM },
	{ "rdma_create_id", EACCES, MAY_NOT_OPEN },
	{ "rdma_create_id", EINVAL,
	  "the port space is none of RDMA_PS_TCP, RDMA_PS_UDP, RDMA_PS_IB and RDMA_PS_IPOIB" },
	{ "rdma_create_id", EPROTONOSUPPORT,
	  "the device does not have this port space: an iWARP device has RDMA_PS_TCP alone" },
	{ "rdma_get_devices", ENODEV, NO_DEVICE },
	{ "rdma_destroy_id", EBUSY, "the id has a QP or unacknowledged events" },

	{ "rdma_bind_addr", EADDRINUSE,
	  "another id, or over iWARP a TCP socket, has the port; RDMA_OPTION_ID_REUSEADDR shares it where none of the two listens" },
	{ "rdma_bind_addr", EADDRNOTAVAIL,
	  "no interface of this host has the address, or no port is free" },
	{ "rdma_bind_addr", ENODEV, NOT_OURS },
	{ "rdma_bind_addr", EINVAL,
	  "the id is bound already, or has gone further, or the address is not valid" },
	{ "rdma_bind_addr", EACCES, "a port below 1024 needs CAP_NET_BIND_SERVICE" },
	{ "rdma_bind_addr", EAFNOSUPPORT,
	  "the family of the address is none of AF_INET, AF_INET6 and AF_IB" },

	{ "rdma_resolve_addr", EADDRINUSE,
	  "the source address's port is taken: give it port 0, or use an id that was not bound to it before" },
	{ "rdma_resolve_addr", EADDRNOTAVAIL,
	  "no interface of this host has the source address, or no port is free" },
	{ "rdma_resolve_addr", ENODEV,
	  "the route to the destination leaves by an interface without an RDMA device (ip route get; rdma link); a container needs that interface in its network namespace" },
	{ "rdma_resolve_addr", EINVAL,
	  "the id was resolved already or is not fresh or bound, or source and destination are of different families" },
	{ "rdma_resolve_addr", EAFNOSUPPORT,
	  "the family of the destination is none of AF_INET, AF_INET6 and AF_IB" },
	{ "rdma_resolve_addr", ENETUNREACH, NO_ROUTE },
	{ "rdma_resolve_addr", EHOSTUNREACH, NO_ROUTE },
	{ "rdma_resolve_addr", ETIMEDOUT,
	  "nobody answered for the destination's address (ARP, neighbor discovery): is it the right network?" },
	{ "rdma_resolve_route", EINVAL,
	  "the id's address is not resolved: wait for RDMA_CM_EVENT_ADDR_RESOLVED first" },
	{ "rdma_resolve_route", ETIMEDOUT,
	  "the subnet manager gave no path record in time: does one run (sminfo)?" },
	{ "rdma_resolve_route", ENODEV, "the device that the address was resolved to is gone" },

	{ "rdma_create_qp*", EINVAL,
	  "most likely the id has no device (id->verbs is NULL: bind or resolve it first) or has a QP already; or qp_type is not the id's, the PD is of another device, or an attribute is beyond the device's limits" },
	{ "rdma_create_qp*", ENOMEM,
	  "most likely the queues are too large for the device or for what the process may lock (ulimit -l)" },
	{ "rdma_create_srq*", EINVAL,
	  "the id has no device, or the SRQ's attributes are beyond the device's limits" },

	{ "rdma_listen", EINVAL,
	  "the id is not bound, listens already, or has gone further: a fresh or bound id can listen" },
	{ "rdma_listen", EADDRINUSE,
	  "another id, or over iWARP a TCP socket, listens on the port or holds it" },
	{ "rdma_listen", ENODEV, NO_DEVICE },
	{ "rdma_get_request", EINVAL,
	  "the id does not listen, or has an event channel of the program's: then use rdma_get_cm_event" },
	{ "rdma_get_request", ECONNREFUSED,
	  "an event of a rejected connection came in the request's place" },

	{ "rdma_connect", EINVAL,
	  "most likely the id's route is not resolved (wait for RDMA_CM_EVENT_ROUTE_RESOLVED), conn_param is NULL without a QP, the private data is too long, or the QP could not be moved" },
	{ "rdma_connect", ECONNREFUSED, REFUSED },
	{ "rdma_connect", ECONNRESET, "the peer broke the connection off while it was set up" },
	{ "rdma_connect", ETIMEDOUT, TIMED_OUT },
	{ "rdma_connect", EHOSTUNREACH, NO_ROUTE },
	{ "rdma_connect", ENETUNREACH, NO_ROUTE },
	{ "rdma_connect", EADDRINUSE,
	  "the source port is taken by another connection to this peer" },
	{ "rdma_connect", ENOMEM,
	  "initiator_depth or responder_resources is more than the device has left, or memory is used up" },
	{ "rdma_accept", EINVAL,
	  "most likely the id is not that of a CONNECT_REQUEST event, was answered already, has no QP and conn_param names none; or the peer has gone away meanwhile" },
	{ "rdma_accept", ECONNRESET,
	  "the peer has given up: it closed the connection before it was accepted" },
	{ "rdma_accept", ECONNABORTED,
	  "the peer has given up: it closed the connection before it was accepted" },
	{ "rdma_accept", ENOTCONN,
	  "the peer has given up: it closed the connection before it was accepted" },
	{ "rdma_accept", ENOMEM,
	  "initiator_depth or responder_resources is more than the device has left, or memory is used up" },
	{ "rdma_establish", EINVAL,
	  "the id waits for no CONNECT_RESPONSE, or has a QP, which makes the call unnecessary" },
	{ "rdma_reject*", EINVAL,
	  "the id is not that of a CONNECT_REQUEST event, or was answered already" },
	{ "rdma_disconnect", EINVAL, "the id is not connected (any more), or is of RDMA_PS_UDP" },
	{ "rdma_notify", EINVAL,
	  "the id is not being connected, or the event is not IBV_EVENT_COMM_EST" },
	{ "rdma_init_qp_attr", EINVAL,
	  "the id is not far enough for this state: INIT needs a resolved address, RTR and RTS a peer's answer" },

	{ "rdma_get_cm_event", EAGAIN,
	  "the channel's fd is non-blocking and there is no event now: wait by poll(2)" },
	{ "rdma_get_cm_event", EINTR, "a signal came while the call waited: call it again" },
	{ "rdma_get_cm_event", EBADF, "the channel was destroyed, or the program closed its fd" },
	{ "rdma_join_multicast*", EINVAL,
	  "the id is no bound RDMA_PS_UDP one, or the address is not multicast" },
	{ "rdma_join_multicast*", EOPNOTSUPP, "the device has no multicast: iWARP has none" },
	{ "rdma_leave_multicast", EADDRNOTAVAIL, "the id is not in this group" },
	{ "rdma_set_option", EINVAL,
	  "the value or its length is not valid for this option, or the id is bound already" },
	{ "rdma_set_option", ENOSYS, "the level or the option is not known" },
	{ "rdma_getaddrinfo", ENODEV, NO_DEVICE },
	{ "rdma_getaddrinfo", EINVAL, "neither node nor service, nor hints with an address" },

	{ "rdma_*", EMFILE, NO_FILES },
	{ "rdma_*", ENFILE, "the host has as many open files as it may (fs.file-max)" },
	{ "rdma_*", ENODEV, "the id has no device, or the device is gone" },
	{ "rdma_*", ENOMEM, "memory, or what the process may lock (ulimit -l), is used up" },
	{ "rdma_*", EOPNOTSUPP, "the device or librdmacm does not have this call" },
	{ "rdma_*", ENOSYS, "the kernel or librdmacm does not have this call" },
	{ "rdma_*", ECONNREFUSED, REFUSED },
	{ "rdma_*", ETIMEDOUT, TIMED_OUT },
	{ "rdma_*", EHOSTUNREACH, NO_ROUTE },
	{ "rdma_*", EINVAL,
	  "an argument is NULL or not valid, or the id is not in the state that this call needs" },
	{ NULL, 0, NULL },
};
