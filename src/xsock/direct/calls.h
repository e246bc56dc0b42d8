// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What libanywarp-sockets.so calls in the engine of direct connections, libanywarp-direct.so, which it
// loads when the first one begins. Both are of one build.
#ifndef XSOCK_DIRECT_CALLS_H
#define XSOCK_DIRECT_CALLS_H

#include <netinet/in.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "xsock/kept.h"
#include "xsock/will.h"

#define AW_DIRECT_ENGINE "libanywarp-direct.so"
#define AW_DIRECT_CALLS "aw_direct_calls"

#define AW_DIRECT_LITTLE 4096 /* AW_XS_EP_LITTLE */

struct aw_xs_ep;

/* A connection that goes to a carrier, a process of its own. All that it names is the carrier's then. */
struct aw_direct_load {
	struct aw_xs_ep *ep;
	int far, tcp; /* as a bridge has them */
	int stream; /* the TCP socket that start was given */
	uint64_t ino; /* of the near end */
	pid_t pid; /* whose fd it is, for the status */
	int fd;
	uint8_t mode;
	struct linger linger;
	struct aw_kept kept;
	struct sockaddr_storage remote;
};

/* As in xsock/ep.h, where nothing else is said. */
struct aw_direct_calls {
	const char *version;
	/*
	 * MPA over tcp, which is the endpoint's own on success; will (or NULL) and lifeline (xsock/ep.h) are in any case. role: as
	 * an order's. 0 or an errno
	 */
	int (*start)(int role, bool nodelay, int tcp, struct aw_xs_will *will, int lifeline,
		     struct aw_xs_ep **ep);
	ssize_t (*send)(struct aw_xs_ep *ep, const struct iovec *iov, int n, int flags);
	ssize_t (*recv)(struct aw_xs_ep *ep, const struct iovec *iov, int n, int flags);
	/* signals: the mask while it sleeps; NULL: the thread's own */
	int (*wait)(struct aw_xs_ep *ep, short events, int64_t timeout_ns, const sigset_t *signals);
	void (*kick)(struct aw_xs_ep *ep, bool kicked);
	int (*shutdown)(struct aw_xs_ep *ep, int how);
	void (*close)(struct aw_xs_ep *ep, bool abort);
	int (*drain)(struct aw_xs_ep *ep, int64_t timeout_ns);
	int (*settle)(struct aw_xs_ep *ep, int64_t timeout_ns, const sigset_t *signals);
	int (*drain_all)(int64_t timeout_ns);
	size_t (*pending)(struct aw_xs_ep *ep);
	size_t (*unsent)(struct aw_xs_ep *ep);
	/* There is something to be said to the peer that cannot be said yet. */
	bool (*busy)(struct aw_xs_ep *ep);
	/* The peer has not answered the start-up yet. */
	bool (*is_early)(struct aw_xs_ep *ep);
	/* The peer has closed, in order; we have not. */
	bool (*has_left)(struct aw_xs_ep *ep);
	int (*error)(struct aw_xs_ep *ep);
	void (*set_nodelay)(struct aw_xs_ep *ep, bool nodelay);
	/*
	 * Hands count connections, which nobody uses any more, to a new carrier. fork: libc's own. control: who
	 * has it gives the carrier orders (xsock/order.h). 0, the endpoints are gone; or an errno, and all is
	 * as it was. Signals are blocked.
	 */
	int (*carry)(const struct aw_direct_load *loads, int count, pid_t (*fork)(void),
		     int *control);
	/*
	 * Before the process ends: waits until what was closed has been said, for so long, and leaves the rest
	 * to a carrier.
	 */
	void (*leave)(int64_t timeout_ns, pid_t (*fork)(void));
};

extern const struct aw_direct_calls aw_direct_calls;

#endif
