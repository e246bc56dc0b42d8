// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// An address handle as verbs see it.
#ifndef VERBS_AH_H
#define VERBS_AH_H

#include "net/ud/ud_ah.h"

#include <infiniband/verbs.h>

struct vb_ah {
	struct ibv_ah ibv;
	struct aw_ah *aw;
};

static inline struct vb_ah *vb_ah_of(struct ibv_ah *ah)
{
	return (struct vb_ah *)ah;
}

#endif
