// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// From the core's CQE to the verbs' work completion.
#ifndef VERBS_WC_H
#define VERBS_WC_H

#include "net/cq/cq.h"

#include <infiniband/verbs.h>

enum ibv_wc_opcode vb_wc_opcode(const struct aw_cq_entry *entry);
/* The immediate data or the invalidated rkey of struct ibv_wc, depending on the CQE. */
__be32 vb_wc_imm_or_rkey(const struct aw_cq_entry *entry);
unsigned int vb_wc_flags(const struct aw_cq_entry *entry);
void vb_wc_fill(struct ibv_wc *wc, const struct aw_cq_entry *entry);

#endif
