// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Buffers that the peer may write to directly, and writes to the peer's (riomap, riowrite).
#include "xsock/endpoint/ep_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#define SILENT UINT32_MAX /* the index of a map that is not announced to the peer */

/* Returns an index that the peer has an entry for and no map has; SILENT: there is none. */
static uint32_t free_index(const struct aw_xs_ep *ep) AW_REQUIRES(ep->lock)
{
	for (uint32_t index = 0; index < ep->stream.peer_iomap.len; index++) {
		const struct aw_xs_map *map;
		bool used = false;

		TAILQ_FOREACH(map, &ep->maps, entry)
		used |= map->index == index;
		if (!used)
			return index;
	}
	return SILENT;
}

static int add_map(struct aw_xs_ep *ep, void *buf, size_t len, bool writable, uint64_t offset)
	AW_REQUIRES(ep->lock)
{
	int access = IBV_ACCESS_LOCAL_WRITE | (writable ? IBV_ACCESS_REMOTE_WRITE : 0);
	uint32_t index = writable ? free_index(ep) : SILENT;
	struct aw_xs_map *map;

	if (!ep->pd || !ep->stream.met)
		return -EINVAL;
	if ((writable && index == SILENT) || len > UINT32_MAX)
		return -ENOMEM;
	map = calloc(1, sizeof(*map));
	if (!map)
		return -ENOMEM;
	map->mr = ibv_reg_mr(ep->pd, buf, len, access);
	if (!map->mr) {
		free(map);
		return -errno;
	}
	map->offset = offset;
	map->index = index;
	map->announced = !writable;
	ep->maps_due += writable;
	TAILQ_INSERT_TAIL(&ep->maps, map, entry);
	return 0;
}

off_t aw_xs_ep_iomap(struct aw_xs_ep *ep, void *buf, size_t len, int prot, off_t offset)
{
	int err;

	if (prot & ~(PROT_WRITE | PROT_NONE))
		return -EINVAL;
	if (offset == -1)
		offset = (off_t)(uintptr_t)buf;
	pthread_mutex_lock(&ep->lock);
	err = add_map(ep, buf, len, prot & PROT_WRITE, (uint64_t)offset);
	if (!err)
		aw_xs_ep_progress(ep);
	aw_xs_ep_unlock(ep);
	return err ? err : offset;
}

static void drop_map(struct aw_xs_ep *ep, struct aw_xs_map *map) AW_REQUIRES(ep->lock)
{
	TAILQ_REMOVE(&ep->maps, map, entry);
	ep->maps_due -= !map->announced;
	ibv_dereg_mr(map->mr);
	free(map);
}

int aw_xs_ep_iounmap(struct aw_xs_ep *ep, void *buf, size_t len)
{
	struct aw_xs_map *map;
	int err = -EINVAL;

	pthread_mutex_lock(&ep->lock);
	TAILQ_FOREACH(map, &ep->maps, entry)
	if (map->mr->addr == buf && map->mr->length == len)
		break;
	if (map) {
		drop_map(ep, map);
		err = 0;
	}
	aw_xs_ep_unlock(ep);
	return err;
}

void aw_xs_ep_free_maps(struct aw_xs_ep *ep)
{
	struct aw_xs_map *map;

	while ((map = TAILQ_FIRST(&ep->maps)))
		drop_map(ep, map);
}

void aw_xs_ep_announce_maps(struct aw_xs_ep *ep)
{
	struct aw_xs_work work;
	struct aw_xs_map *map;

	TAILQ_FOREACH(map, &ep->maps, entry)
	{
		const struct aw_xs_iomap entry = {
			.offset = map->offset,
			.sge = { (uintptr_t)map->mr->addr, map->mr->rkey,
				 (uint32_t)map->mr->length },
		};

		if (map->announced)
			continue;
		if (!aw_xs_stream_iomap(&ep->stream, map->index, &entry, &work))
			return;
		map->announced = true;
		ep->maps_due--;
		if (aw_xs_ep_post_work(ep, &work) != 0)
			return;
	}
}

/* Bytes that the stream has taken go out first. */
static ssize_t write_some(struct aw_xs_ep *ep, const void *buf, size_t count, uint64_t offset)
	AW_REQUIRES(ep->lock)
{
	const struct aw_xs_stream *s = &ep->stream;
	struct aw_xs_work work;
	int64_t n;

	aw_xs_ep_progress(ep);
	aw_xs_ep_reap_sends(ep);
	if (ep->phase != AW_XS_PHASE_UP)
		return s->error || ep->phase == AW_XS_PHASE_OVER ? -EPIPE : -ENOTCONN;
	if (s->tx_wanted != AW_XS_OPEN || s->rx_end == AW_XS_GONE)
		return -EPIPE;
	n = aw_xs_stream_iowrite(&ep->stream, buf, count, offset, &work);
	if (n > 0 && aw_xs_ep_post_work(ep, &work) != 0)
		return -ECONNRESET;
	return (ssize_t)n;
}

ssize_t aw_xs_ep_iowrite(struct aw_xs_ep *ep, const void *buf, size_t count, off_t offset)
{
	pthread_mutex_lock(&ep->lock);
	ssize_t taken = write_some(ep, buf, count, (uint64_t)offset);

	aw_xs_ep_unlock(ep);
	return taken;
}
