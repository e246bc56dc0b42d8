// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The GID table. An IPv4 address is shown as ::ffff:a.b.c.d, an IPv6 address as itself. IPv4 comes
// before IPv6 and link-local addresses, and loopback last, since programs like to use GID 0. From the
// first look on an address keeps its index, as in the kernel's table: one that goes leaves a GID of
// zero, and one that comes takes the first such place.
#include "verbs/gid.h"

#include "net/base/fork.h"
#include "net/base/ifnews.h"
#include "net/base/io_now.h"
#include "net/base/persona.h"
#include "ring/lock.h"
#include "verbs/context.h"
#include "verbs/fail.h"
#include "verbs/sized.h"
#include "verbs/unlisted.h"

#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <pthread.h>
#include <string.h>

enum rank {
	RANK_IPV4,
	RANK_IPV6,
	RANK_IPV6_LINK,
	RANK_LOOPBACK_IPV4,
	RANK_LOOPBACK_IPV6,
	RANK_COUNT,
	RANK_NONE = RANK_COUNT,
};

static aw_mutex lock = PTHREAD_MUTEX_INITIALIZER;
static struct vb_gids kept AW_GUARDED_BY(lock);
static uint64_t kept_state
	AW_GUARDED_BY(lock); /* aw_ifnews_state before kept was read; 0: read it again */
static bool kept_whole AW_GUARDED_BY(lock); /* nothing in kept is a guess */
static bool kept_any AW_GUARDED_BY(lock); /* kept was read once */
static bool had_link AW_GUARDED_BY(lock); /* an interface other than loopback had its link once */

static int gid_entry(struct ibv_context *context, uint32_t port_num, uint32_t index,
		     struct ibv_gid_entry *entry);
static enum rank rank_of(const struct ifaddrs *ifa);
static void gid_add(struct vb_gids *gids, const struct ifaddrs *ifa) AW_REQUIRES(lock);
static bool gids_merge(struct vb_gids *now) AW_REQUIRES(lock);
static bool links_judge(const struct ifaddrs *list) AW_REQUIRES(lock);

/*
 * The child closes its copy of the news socket: a message that it read would be lost for the
 * parent.
 */
static const struct aw_fork_handlers fork_handlers = {
	.lock = &lock,
	.child = aw_ifnews_end,
};

static __attribute__((constructor)) void prepare_for_fork(void)
{
	aw_fork_register(AW_FORK_GIDS, &fork_handlers);
}

static bool is_unused(const struct ibv_gid_entry *entry)
{
	static const union ibv_gid none;

	return !memcmp(&entry->gid, &none, sizeof(none));
}

static int gids_read(void) AW_REQUIRES(lock)
{
	static struct vb_gids now;
	struct ifaddrs *list;
	size_t first = 0;

	if (getifaddrs(&list))
		return errno;
	now.count = 0;
	kept_whole = true;
	for (enum rank rank = 0; rank < RANK_COUNT; rank++)
		for (const struct ifaddrs *ifa = list; ifa; ifa = ifa->ifa_next)
			if (rank_of(ifa) == rank)
				gid_add(&now, ifa);
	kept.active = links_judge(list);
	freeifaddrs(list);
	if (gids_merge(&now) && kept_any)
		kept.changes++;
	kept_any = true;

	while (first < kept.count && is_unused(&kept.entries[first]))
		first++;
	kept.mtu = first < kept.count ? vb_port_mtu_of(kept.entries[first].ndev_ifindex)
				      : IBV_MTU_1024;
	if (!kept.mtu) {
		kept.mtu = IBV_MTU_1024;
		kept_whole = false;
	}
	return 0;
}

/* Unchecked: it returns with the lock or without. */
int vb_gids_get(const struct vb_gids **gids) AW_TRY_ACQUIRE(0, lock) AW_UNCHECKED
{
	AW_UNCANCELLED int cancel = aw_cancel_disable();
	uint64_t state;
	int err = 0;

	aw_lock(&lock);
	state = aw_ifnews_state();
	if (!state || state != kept_state)
		err = gids_read();
	if (err && state) {
		/* getifaddrs may have wanted the fd that the news socket has. */
		aw_ifnews_end();
		state = 0;
		err = gids_read();
	}
	kept_state = !err && kept_whole ? state : 0;
	if (err)
		aw_unlock(&lock);
	else
		*gids = &kept;
	return err;
}

void vb_gids_put(void) AW_RELEASE(lock)
{
	aw_unlock(&lock);
}

void vb_gids_forget(void)
{
	aw_lock(&lock);
	aw_ifnews_end();
	aw_unlock(&lock);
}

bool vb_gids_last(struct vb_port_seen *seen)
{
	bool any;

	aw_lock(&lock);
	any = kept_any;
	*seen = (struct vb_port_seen){ kept.active, kept.changes };
	aw_unlock(&lock);
	return any;
}

int vb_gids_look(struct vb_port_seen *seen)
{
	const struct vb_gids *gids;
	int err;

	aw_lock(&lock);
	kept_state = 0;
	aw_unlock(&lock);
	err = vb_gids_get(&gids);
	if (err)
		return err;
	*seen = (struct vb_port_seen){ gids->active, gids->changes };
	vb_gids_put();
	return 0;
}

/* 0, ENODATA: that entry is not used, EINVAL: there is none, or an errno of getifaddrs. */
static int entry_find(uint32_t index, struct ibv_gid_entry *entry)
{
	const struct vb_gids *gids;
	int err = vb_gids_get(&gids);

	if (err)
		return err;
	if (index >= gids->count)
		err = EINVAL;
	else if (is_unused(&gids->entries[index]))
		err = ENODATA;
	else
		*entry = gids->entries[index];
	vb_gids_put();
	return err;
}

int vb_gid_at(uint32_t index, struct ibv_gid_entry *entry)
{
	int err = entry_find(index, entry);

	return err == ENODATA ? EINVAL : err;
}

/* Returns -1 with errno EINVAL for a port or index that is not there. */
int ibv_query_gid(struct ibv_context *context, uint8_t port_num, int index, union ibv_gid *gid)
{
	struct ibv_gid_entry entry;
	int err = index < 0 ? EINVAL : gid_entry(context, port_num, (uint32_t)index, &entry);

	if (err == ENODATA) {
		memset(gid, 0, sizeof(*gid));
		return 0;
	}
	if (err) {
		errno = err;
		return -1;
	}
	*gid = entry.gid;
	return 0;
}

int _ibv_query_gid_ex(struct ibv_context *context, uint32_t port_num, uint32_t gid_index,
		      struct ibv_gid_entry *entry, uint32_t flags, size_t entry_size)
{
	struct ibv_gid_entry found;
	int err;

	if (flags)
		return vb_fail(EOPNOTSUPP);
	err = gid_entry(context, port_num, gid_index, &found);
	if (err)
		return vb_fail(err);
	vb_sized_write(entry, entry_size, &found, sizeof(found));
	return 0;
}

ssize_t _ibv_query_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries,
			     size_t max_entries, uint32_t flags, size_t entry_size)
{
	const struct vb_gids *gids;
	size_t used = 0;
	int err;

	(void)context;
	if (flags)
		return -vb_fail(EOPNOTSUPP);
	err = vb_gids_get(&gids);
	if (err)
		return -vb_fail(err);
	for (size_t i = 0; i < gids->count; i++) {
		if (is_unused(&gids->entries[i]))
			continue;
		if (used < max_entries)
			vb_sized_write((char *)entries + used * entry_size, entry_size,
				       &gids->entries[i], sizeof(gids->entries[i]));
		used++;
	}
	vb_gids_put();
	return !max_entries || used > max_entries ? -vb_fail(EINVAL) : (ssize_t)used;
}

int ibv_query_gid_type(struct ibv_context *context, uint8_t port_num, unsigned int index,
		       enum ibv_gid_type_sysfs *type)
{
	struct ibv_gid_entry entry;
	int err = gid_entry(context, port_num, index, &entry);

	if (err && err != ENODATA) {
		errno = err;
		return -1;
	}
	*type = aw_persona_is_roce() ? IBV_GID_TYPE_SYSFS_ROCE_V2 : IBV_GID_TYPE_SYSFS_IB_ROCE_V1;
	return 0;
}

/* The table has at least one entry; without any address that entry is not used: ENODATA. */
static int gid_entry(struct ibv_context *context, uint32_t port_num, uint32_t index,
		     struct ibv_gid_entry *entry)
{
	int err;

	(void)context;
	if (port_num != VB_PORT)
		return EINVAL;
	err = entry_find(index, entry);
	return err == EINVAL && index == 0 ? ENODATA : err;
}

static enum rank rank_of(const struct ifaddrs *ifa)
{
	bool loopback = ifa->ifa_flags & IFF_LOOPBACK;
	const struct sockaddr_in6 *ipv6 = (const struct sockaddr_in6 *)ifa->ifa_addr;

	if (!ifa->ifa_addr || !(ifa->ifa_flags & IFF_UP))
		return RANK_NONE;
	if (ifa->ifa_addr->sa_family == AF_INET)
		return loopback ? RANK_LOOPBACK_IPV4 : RANK_IPV4;
	if (ifa->ifa_addr->sa_family != AF_INET6)
		return RANK_NONE;
	if (loopback)
		return RANK_LOOPBACK_IPV6;
	return IN6_IS_ADDR_LINKLOCAL(&ipv6->sin6_addr) ? RANK_IPV6_LINK : RANK_IPV6;
}

/* The state of the port. An interface without addresses is in the list by its link-layer address. */
static bool links_judge(const struct ifaddrs *list)
{
	bool link = false, loopback = false;

	for (const struct ifaddrs *ifa = list; ifa; ifa = ifa->ifa_next) {
		bool up = ifa->ifa_flags & IFF_UP && ifa->ifa_flags & IFF_RUNNING;

		if (ifa->ifa_flags & IFF_LOOPBACK)
			loopback |= up;
		else
			link |= up;
	}
	had_link |= link;
	return link || (loopback && !had_link);
}

static void gid_add(struct vb_gids *gids, const struct ifaddrs *ifa)
{
	struct ibv_gid_entry *entry = &gids->entries[gids->count];

	if (gids->count == VB_GID_MAX)
		return;
	memset(entry, 0, sizeof(*entry));
	if (ifa->ifa_addr->sa_family == AF_INET) {
		memset(entry->gid.raw + 10, 0xff, 2);
		memcpy(entry->gid.raw + 12, &((struct sockaddr_in *)ifa->ifa_addr)->sin_addr, 4);
	} else {
		memcpy(entry->gid.raw, &((struct sockaddr_in6 *)ifa->ifa_addr)->sin6_addr, 16);
	}
	gids->count++;
	entry->port_num = VB_PORT;
	entry->gid_type = aw_persona_is_roce() ? IBV_GID_TYPE_ROCE_V2 : IBV_GID_TYPE_IB;
	entry->ndev_ifindex = if_nametoindex(ifa->ifa_name);
	kept_whole &= entry->ndev_ifindex != 0;
}

/* Takes the address of a kept entry out of those that are there now; false: it is gone. */
static bool gid_take(struct vb_gids *now, struct ibv_gid_entry *entry)
{
	for (size_t i = 0; i < now->count; i++) {
		struct ibv_gid_entry *found = &now->entries[i];

		/* An interface that could not be found may be any. */
		bool other_link = found->ndev_ifindex && entry->ndev_ifindex &&
				  found->ndev_ifindex != entry->ndev_ifindex;

		if (is_unused(found) || other_link ||
		    memcmp(&found->gid, &entry->gid, sizeof(found->gid)) != 0)
			continue;
		if (found->ndev_ifindex)
			entry->ndev_ifindex = found->ndev_ifindex;
		memset(found, 0, sizeof(*found));
		return true;
	}
	return false;
}

/* True: an address came or went. */
static bool gids_merge(struct vb_gids *now)
{
	bool changed = false;
	size_t at = 0;

	for (size_t i = 0; i < kept.count; i++) {
		if (is_unused(&kept.entries[i]) || gid_take(now, &kept.entries[i]))
			continue;
		memset(&kept.entries[i], 0, sizeof(kept.entries[i]));
		changed = true;
	}
	for (size_t i = 0; i < now->count; i++) {
		if (is_unused(&now->entries[i]))
			continue;
		while (at < kept.count && !is_unused(&kept.entries[at]))
			at++;
		if (at == VB_GID_MAX)
			break;
		kept.count += at == kept.count;
		kept.entries[at] = now->entries[i];
		kept.entries[at].gid_index = (uint32_t)at;
		changed = true;
	}
	while (kept.count > 0 && is_unused(&kept.entries[kept.count - 1]))
		kept.count--;
	return changed;
}
