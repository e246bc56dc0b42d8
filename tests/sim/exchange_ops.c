// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The core's way out in the fixed exchange: its MRs, its receives and the logs of completions.
#include "exchange.h"

#include "crc/crc.h"

#include <stdlib.h>
#include <string.h>

static void blame(struct party *party, const char *wrong)
{
	if (!party->exchange->wrong)
		party->exchange->wrong = wrong;
}

static const struct aw_mr *get(void *ctx, uint32_t stag)
{
	struct party *party = ctx;
	uint32_t i = stag - EXCHANGE_STAG;

	if (i >= STAGS || party->outcome.invalid[i])
		return NULL;
	party->held++;
	return &party->mr[i];
}

static void put(void *ctx, const struct aw_mr *mr)
{
	struct party *party = ctx;

	if (!mr || !party->held)
		blame(party, "an MR was put that was not held");
	party->held--;
}

static void copy_within(void *ctx, uint8_t *dst, const uint8_t *src, size_t len,
			const uint8_t *ours)
{
	struct party *party = ctx;
	const uint8_t *mem = party->outcome.mem;

	if (!party->held || ours < mem || len > sizeof(party->outcome.mem) ||
	    ours > mem + sizeof(party->outcome.mem) - len)
		blame(party, "octets moved outside an MR");
	else
		memcpy(dst, src, len);
}

static bool place(void *ctx, const struct aw_mr *mr, uint8_t *dst, const uint8_t *src, size_t len)
{
	(void)mr;
	copy_within(ctx, dst, src, len, dst);
	return true;
}

static bool gather(void *ctx, const struct aw_mr *mr, uint8_t *dst, const uint8_t *src, size_t len,
		   uint32_t *crc)
{
	(void)mr;
	copy_within(ctx, dst, src, len, src);
	if (crc)
		*crc = aw_crc32c(*crc, dst, len);
	return true;
}

static enum aw_error invalidate(void *ctx, uint32_t stag, bool by_peer)
{
	struct party *party = ctx;
	uint32_t i = stag - EXCHANGE_STAG;

	(void)by_peer;
	if (i >= STAGS || party->outcome.invalid[i])
		return AW_E_RDMAP_STAG;
	if (i < ZONES)
		return AW_E_RDMAP_CANNOT_INVALIDATE;
	party->outcome.invalid[i] = true;
	return AW_OK;
}

static enum aw_wc_status bind_window(void *ctx, const struct aw_swqe *wqe)
{
	struct party *party = ctx;

	(void)wqe;
	party->outcome.binds++;
	return AW_WC_SUCCESS;
}

static bool atomic(void *ctx, const struct aw_mr *mr, uint8_t *at,
		   const struct rdmap_atomic_req *req, uint64_t *before)
{
	(void)mr;
	struct party *party = ctx;
	uint64_t next;

	memcpy(before, at, sizeof(*before));
	next = exchange_atomic(req, *before);
	copy_within(ctx, at, (const uint8_t *)&next, sizeof(next), at);
	party->outcome.atomics++;
	return true;
}

static enum aw_written write_back(void *ctx, const struct aw_mr *mr, uint8_t *at, size_t len,
				  bool persistent)
{
	struct party *party = ctx;
	const uint8_t *zone = party->outcome.mem + exchange_zone(ZONE_TARGET);

	(void)mr;
	if (persistent || at < zone || len > EXCHANGE_ZONE || at > zone + EXCHANGE_ZONE - len)
		blame(party, "a Flush of other octets");
	party->outcome.flushes++;
	return AW_WRITTEN;
}

static bool recv_take(void *ctx, struct aw_rwqe *recv)
{
	struct party *party = ctx;

	if (party->qp.rnr_holds && party->qp.state == AW_QP_RTS && !party->has_receive)
		return false;
	party->has_receive = false;
	if (!exchange_recv(party, party->received, recv))
		return false;
	party->received++;
	return true;
}

static void complete(void *ctx, enum aw_queue queue, const struct aw_cqe *cqe)
{
	struct party *party = ctx;
	struct log *log = &party->outcome.queue[queue];

	if (log->count == ITEMS_MAX)
		blame(party, "more completions than WRs");
	else
		log->cqe[log->count++] = *cqe;
}

/* These messages are too short for the core to have the peer told, so that it is told each time. */
static void *stash_get(void *ctx, size_t len)
{
	struct party *party = ctx;
	void *memory;

	if (party->asked++ % 2 && party->exchange->terms.scarce)
		return NULL;
	memory = malloc(len);
	party->stashed += memory ? len : 0;
	party->qp.not_ready |= memory != NULL;
	return memory;
}

static void stash_put(void *ctx, void *memory, size_t len)
{
	struct party *party = ctx;

	party->stashed -= len;
	free(memory);
}

const struct aw_ops exchange_ops = {
	.mr_get = get,
	.mr_put = put,
	.place = place,
	.gather = gather,
	.invalidate = invalidate,
	.bind = bind_window,
	.atomic = atomic,
	.write_back = write_back,
	.recv_take = recv_take,
	.complete = complete,
	.stash_get = stash_get,
	.stash_put = stash_put,
	.crc32c = aw_crc32c,
};
