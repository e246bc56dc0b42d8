// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The last answer, under a lock of its own. Errors are not kept: what was missing may be there next.
#include "rdmacm/route.h"

#include "base/clock.h"
#include "net/base/fork.h"
#include "rdmacm/address.h"
#include "ring/lock.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <unistd.h>

/* Four system calls take 4 us, of 25 that a client's end of a connection takes in the kernel. */
#define ANSWER_NS UINT64_C(1000000)

struct route {
	struct sockaddr_storage src; /* with port 0 */
	struct sockaddr_storage
		dst; /* with its port, which a rule of the routing policy may name */
	struct sockaddr_storage from, to;
	uint64_t asked_ns; /* 0: never */
};

static aw_mutex lock = PTHREAD_MUTEX_INITIALIZER;
static struct route last AW_GUARDED_BY(lock);

/* The child may have another network by the time it asks. */
static void fork_child(void) AW_REQUIRES(lock)
{
	last.asked_ns = 0;
}

static const struct aw_fork_handlers fork_handlers = {
	.lock = &lock,
	.child = fork_child,
};

static __attribute__((constructor)) void prepare_for_fork(void)
{
	aw_fork_register(AW_FORK_CM_ROUTES, &fork_handlers);
}

static int ask_kernel(struct route *route)
{
	const struct sockaddr *src = (struct sockaddr *)&route->src;
	const struct sockaddr *dst = (struct sockaddr *)&route->dst;
	int fd = socket(dst->sa_family, SOCK_DGRAM | SOCK_CLOEXEC, IPPROTO_UDP);
	socklen_t len = aw_address_len(dst->sa_family), from_len = len, to_len = len;
	int err = 0;

	if (fd < 0)
		return errno;
	if ((!aw_address_is_wildcard(src) && bind(fd, src, len) < 0) || connect(fd, dst, len) < 0 ||
	    getsockname(fd, (struct sockaddr *)&route->from, &from_len) < 0 ||
	    (aw_address_is_wildcard(dst) &&
	     getpeername(fd, (struct sockaddr *)&route->to, &to_len) < 0))
		err = errno;
	close(fd);
	return err;
}

static bool is_last(const struct route *route, uint64_t now_ns) AW_REQUIRES(lock)
{
	return last.asked_ns && now_ns - last.asked_ns < ANSWER_NS &&
	       memcmp(&last.src, &route->src, sizeof(route->src)) == 0 &&
	       memcmp(&last.dst, &route->dst, sizeof(route->dst)) == 0;
}

int aw_cm_route_ask(const struct sockaddr *src, const struct sockaddr *dst,
		    struct sockaddr_storage *from, struct sockaddr_storage *to)
{
	struct route route = { .asked_ns = aw_now_ns() };
	int err = 0;

	aw_address_copy(&route.src, src);
	aw_address_set_port((struct sockaddr *)&route.src, 0);
	aw_address_copy(&route.dst, dst);
	aw_lock(&lock);
	bool known = is_last(&route, route.asked_ns);

	if (known)
		route = last;
	aw_unlock(&lock);
	if (!known)
		err = ask_kernel(&route);
	if (err)
		return err;
	*from = route.from;
	*to = route.to;
	if (known)
		return 0;
	aw_lock(&lock);
	last = route;
	aw_unlock(&lock);
	return 0;
}
