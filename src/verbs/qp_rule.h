// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Which attributes ibv_modify_qp must and may be given from one state to another: ibv_modify_qp(3) and
// the InfiniBand specification's QP transitions. Pure.
#ifndef VERBS_QP_RULE_H
#define VERBS_QP_RULE_H

#include <infiniband/verbs.h>

/*
 * 0, or EINVAL: no such transition for this type of QP (RC or UD), an attribute is missing, or one is given
 * that this transition does not have. mask: as ibv_modify_qp takes it.
 */
int vb_qp_rule_check(enum ibv_qp_type type, enum ibv_qp_state from, enum ibv_qp_state to, int mask);

#endif
