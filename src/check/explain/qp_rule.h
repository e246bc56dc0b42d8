// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The transitions of a QP by its type, with the attributes that each needs and allows: ibv_modify_qp(3) and the InfiniBand
// Architecture Specification, 11.2.5.2.
#ifndef CHECK_EXPLAIN_QP_RULE_H
#define CHECK_EXPLAIN_QP_RULE_H

#include <infiniband/verbs.h>

struct aw_qp_rule {
	enum ibv_qp_state from, to;
	int required, optional; /* without IBV_QP_STATE */
};

/* NULL: no transition of such a QP leads from one to the other. */
const struct aw_qp_rule *aw_qp_rule_find(enum ibv_qp_type type, enum ibv_qp_state from,
					 enum ibv_qp_state to);

#endif
