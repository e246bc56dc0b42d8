// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The groups, their QPs and the socket of each group. All groups use one port, because a sender
// knows only a group's address.
#include "net/ud/ud_group.h"

#include "base/log.h"
#include "net/base/fork.h"
#include "net/base/io_now.h"
#include "net/ud/ud.h"
#include "net/ud/udsock.h"
#include "ring/lock.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef IPV6_MULTICAST_ALL
#define IPV6_MULTICAST_ALL 29 /* Linux 4.20; younger than some libc's headers */
#endif

#define INTERFACES_MAX 64

struct aw_ud_group {
	TAILQ_ENTRY(aw_ud_group) entry; /* guarded by lock, below */
	/* fixed after open */
	uint8_t addr[GID_LEN];
	uint32_t ifindex;
	uint32_t generation;
	struct aw_udsock *sock;
	/* guarded by the socket's lock */
	struct aw_uqp **qps;
	uint32_t count, room;
};

/*
 * Guards the groups and the list of groups of each QP. Taken before CQ.qps_lock and a socket's
 * lock.
 */
static aw_mutex lock = PTHREAD_MUTEX_INITIALIZER;
static TAILQ_HEAD(, aw_ud_group) groups AW_GUARDED_BY(lock) = TAILQ_HEAD_INITIALIZER(groups);
static uint32_t group_count AW_GUARDED_BY(lock);

static int open_group(const uint8_t *addr, uint32_t ifindex, struct aw_ud_group **opened)
	AW_REQUIRES(lock);

void aw_ud_group_fork_prepare(void) AW_ACQUIRE(lock)
{
	aw_lock(&lock);
}

void aw_ud_group_fork_done(void) AW_RELEASE(lock)
{
	aw_unlock(&lock);
}

static bool is_same(const struct aw_ud_group *group, const uint8_t *addr, uint32_t ifindex)
{
	return group->ifindex == ifindex && memcmp(group->addr, addr, GID_LEN) == 0;
}

static struct aw_ud_group *find(const uint8_t *addr, uint32_t ifindex) AW_REQUIRES(lock)
{
	struct aw_ud_group *group;

	TAILQ_FOREACH(group, &groups, entry)
	{
		if (is_same(group, addr, ifindex) && group->generation == aw_fork_generation())
			return group;
	}
	return NULL;
}

/* A socket on a shared port may receive datagrams of other groups. */
static void deliver(void *arg, const struct aw_ud_arrival *arrival)
{
	struct aw_ud_group *group = arg;

	/* Linux gives a socket of IPv6 what comes for its group by any interface on which some socket has joined the group. */
	if (arrival->hdr.dest_qpn != UD_QPN_MULTICAST ||
	    memcmp(arrival->route->dst, group->addr, GID_LEN) != 0 ||
	    (group->ifindex && arrival->route->ifindex &&
	     group->ifindex != arrival->route->ifindex))
		return;
	for (uint32_t i = 0; i < group->count; i++)
		aw_ud_receive(group->qps[i], arrival);
}

static void close_group(struct aw_ud_group *group) AW_REQUIRES(lock)
{
	TAILQ_REMOVE(&groups, group, entry);
	group_count--;
	aw_udsock_put(group->sock);
	free(group->qps);
	free(group);
}

static int attach(struct aw_uqp *qp, struct aw_ud_group *group) AW_REQUIRES(lock)
{
	struct aw_ud *ud = qp->ud;
	int err = aw_cq_join_sock(qp->attr.recv_cq, group->sock, &aw_udsock_cq_ops);

	if (err)
		return err;
	aw_udsock_lock(group->sock);
	if (group->count == group->room) {
		uint32_t room = group->room ? group->room * 2 : 4;
		struct aw_uqp **qps = realloc(group->qps, room * sizeof(struct aw_uqp *));

		if (qps) {
			group->qps = qps;
			group->room = room;
		} else {
			err = ENOMEM;
		}
	}
	if (!err)
		group->qps[group->count++] = qp;
	aw_udsock_unlock(group->sock);
	if (err)
		aw_cq_leave_sock(qp->attr.recv_cq, group->sock);
	else
		ud->groups[ud->group_count++] = group;
	return err;
}

static void detach(struct aw_uqp *qp, uint32_t index) AW_REQUIRES(lock)
{
	struct aw_ud *ud = qp->ud;
	struct aw_ud_group *group = ud->groups[index];

	ud->groups[index] = ud->groups[--ud->group_count];
	aw_udsock_lock(group->sock);
	for (uint32_t i = 0; i < group->count; i++)
		if (group->qps[i] == qp) {
			group->qps[i] = group->qps[--group->count];
			break;
		}
	aw_udsock_unlock(group->sock);
	aw_cq_leave_sock(qp->attr.recv_cq, group->sock);
	if (group->count == 0)
		close_group(group);
}

static bool is_attached(const struct aw_ud *ud, const uint8_t *addr, uint32_t ifindex,
			uint32_t *index) AW_REQUIRES(lock)
{
	for (uint32_t i = 0; i < ud->group_count; i++)
		if (is_same(ud->groups[i], addr, ifindex)) {
			*index = i;
			return true;
		}
	return false;
}

static int join(struct aw_uqp *qp, const uint8_t *addr, uint32_t ifindex) AW_REQUIRES(lock)
{
	struct aw_ud_group *group = find(addr, ifindex);
	uint32_t index;
	int err = 0;

	if (is_attached(qp->ud, addr, ifindex, &index))
		return 0;
	if (qp->ud->group_count == AW_UD_GROUPS_OF_QP)
		return ENOMEM;
	if (!group)
		err = open_group(addr, ifindex, &group);
	if (err)
		return err;
	err = attach(qp, group);
	if (err && group->count == 0)
		close_group(group);
	return err;
}

int aw_ud_group_join(struct aw_uqp *qp, const uint8_t *addr, uint32_t ifindex)
{
	if (!ud_addr_is_multicast(addr))
		return EINVAL;
	aw_lock(&lock);
	int err = join(qp, addr, ifindex);

	aw_unlock(&lock);
	return err;
}

int aw_ud_group_leave(struct aw_uqp *qp, const uint8_t *addr, uint32_t ifindex)
{
	uint32_t index;

	aw_lock(&lock);
	bool attached = is_attached(qp->ud, addr, ifindex, &index);

	if (attached)
		detach(qp, index);
	aw_unlock(&lock);
	return attached ? 0 : EINVAL;
}

void aw_ud_group_leave_all(struct aw_uqp *qp)
{
	aw_lock(&lock);
	while (qp->ud->group_count > 0)
		detach(qp, qp->ud->group_count - 1);
	aw_unlock(&lock);
}

bool aw_ud_group_has(struct aw_uqp *qp)
{
	bool has = false;

	aw_lock(&lock);
	for (uint32_t i = 0; i < qp->ud->group_count; i++)
		has |= qp->ud->groups[i]->generation == aw_fork_generation();
	aw_unlock(&lock);
	return has;
}

static int set(int fd, int level, int option, int value)
{
	return setsockopt(fd, level, option, &value, sizeof(value)) == 0 ? 0 : errno;
}

/* Other processes and users of this host are in the same group. */
static int bind_shared(int fd, const struct sockaddr *addr, socklen_t len)
{
	int err = set(fd, SOL_SOCKET, SO_REUSEADDR, 1);

	if (!err && bind(fd, addr, len) != 0)
		err = errno;
	return err;
}

static int join_interface(int fd, const uint8_t *addr, uint32_t ifindex)
{
	struct ipv6_mreq in6 = { .ipv6mr_interface = ifindex };
	struct ip_mreqn in = { .imr_ifindex = (int)ifindex };

	memcpy(&in6.ipv6mr_multiaddr, addr, GID_LEN);
	memcpy(&in.imr_multiaddr, addr + GID_IPV4_AT, sizeof(in.imr_multiaddr));
	int failed = gid_is_ipv4(addr)
			     ? setsockopt(fd, IPPROTO_IP, IP_ADD_MEMBERSHIP, &in, sizeof(in))
			     : setsockopt(fd, IPPROTO_IPV6, IPV6_JOIN_GROUP, &in6, sizeof(in6));

	return failed ? errno : 0;
}

/* Writes the interfaces that have an address of the family, each once. */
static size_t interfaces(int family, uint32_t *found)
{
	struct ifaddrs *list;
	size_t count = 0;

	if (getifaddrs(&list) != 0)
		return 0;
	for (const struct ifaddrs *ifa = list; ifa && count < INTERFACES_MAX; ifa = ifa->ifa_next) {
		uint32_t index = if_nametoindex(ifa->ifa_name);
		bool known = !index || !ifa->ifa_addr || !(ifa->ifa_flags & IFF_UP) ||
			     ifa->ifa_addr->sa_family != family;

		for (size_t i = 0; i < count; i++)
			known |= found[i] == index;
		if (!known)
			found[count++] = index;
	}
	freeifaddrs(list);
	return count;
}

/* Joins on every interface; one on which that succeeds is enough. */
static int join_all(int fd, const uint8_t *addr)
{
	uint32_t found[INTERFACES_MAX];
	size_t count = interfaces(gid_is_ipv4(addr) ? AF_INET : AF_INET6, found);
	int err = ENODEV;
	bool joined = false;

	for (size_t i = 0; i < count; i++) {
		int refused = join_interface(fd, addr, found[i]);

		joined |= refused == 0;
		if (refused)
			err = refused;
	}
	return joined ? 0 : err;
}

static int open_socket(const uint8_t *addr, uint32_t ifindex, int *opened)
{
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6, .sin6_port = htons(AW_UD_GROUP_PORT) };
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(AW_UD_GROUP_PORT) };
	bool ipv4 = gid_is_ipv4(addr);
	int fd = socket(ipv4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int err;

	if (fd < 0)
		return errno;
	if (ipv4) {
		memcpy(&in.sin_addr, addr + GID_IPV4_AT, sizeof(in.sin_addr));
		set(fd, IPPROTO_IP, IP_MULTICAST_ALL, 0);
		err = bind_shared(fd, (struct sockaddr *)&in, sizeof(in));
	} else {
		/*
		 * A group of link-local scope cannot be bound to without an interface, and there
		 * may be several.
		 */
		set(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1);
		set(fd, IPPROTO_IPV6, IPV6_MULTICAST_ALL, 0);
		err = bind_shared(fd, (struct sockaddr *)&in6, sizeof(in6));
	}
	if (!err)
		err = ifindex ? join_interface(fd, addr, ifindex) : join_all(fd, addr);
	if (err)
		aw_close_now(fd);
	else
		*opened = fd;
	return err;
}

static int open_group(const uint8_t *addr, uint32_t ifindex, struct aw_ud_group **opened)
{
	struct aw_ud_group *group = group_count < AW_UD_GROUPS ? calloc(1, sizeof(*group)) : NULL;
	int fd = -1, err;

	if (!group)
		return ENOMEM;
	memcpy(group->addr, addr, GID_LEN);
	group->ifindex = ifindex;
	group->generation = aw_fork_generation();
	err = open_socket(addr, ifindex, &fd);
	if (err) {
		char text[INET6_ADDRSTRLEN] = "";

		inet_ntop(AF_INET6, addr, text, sizeof(text));
		aw_log(AW_LOG_ERROR, "multicast group %s (udp port %u) cannot be joined: %s", text,
		       AW_UD_GROUP_PORT, strerror(err));
		free(group);
		return err;
	}
	err = aw_udsock_create(fd, deliver, group, &group->sock);
	if (err) {
		aw_close_now(fd);
		free(group);
		return err;
	}
	TAILQ_INSERT_TAIL(&groups, group, entry);
	group_count++;
	*opened = group;
	return 0;
}
