// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The rules for a receive WR, on a receive queue and on an SRQ.
#ifndef VERBS_RECV_H
#define VERBS_RECV_H

#include "core/types.h"

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

_Static_assert(sizeof(struct aw_sge) == sizeof(struct ibv_sge), "one layout");
_Static_assert(offsetof(struct aw_sge, addr) == offsetof(struct ibv_sge, addr), "one layout");
_Static_assert(offsetof(struct aw_sge, len) == offsetof(struct ibv_sge, length), "one layout");
_Static_assert(offsetof(struct aw_sge, lkey) == offsetof(struct ibv_sge, lkey), "one layout");

/* The bytes of a list, which may be more than a message can have. */
static inline uint64_t vb_sge_bytes(const struct ibv_sge *sge, uint32_t count)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < count; i++)
		bytes += sge[i].length;
	return bytes;
}

static inline bool vb_recv_wr_valid(const struct ibv_recv_wr *wr, uint32_t sge_max)
{
	return wr->num_sge >= 0 && (uint32_t)wr->num_sge <= sge_max &&
	       vb_sge_bytes(wr->sg_list, (uint32_t)wr->num_sge) <= UINT32_MAX;
}

#endif
