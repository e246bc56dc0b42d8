// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The attributes that ibv_modify_qp requires and takes for each transition: ibv_modify_qp(3) and
// the InfiniBand specification's QP transitions. No state.
#ifndef VERBS_QP_RULE_H
#define VERBS_QP_RULE_H

#include <infiniband/verbs.h>

/*
 * 0, or EINVAL: this type of QP (RC, UD or XRC) has no such transition, an attribute is missing, or one
 * is given that the transition does not take. mask: as ibv_modify_qp takes it.
 */
int vb_qp_rule_check(enum ibv_qp_type type, enum ibv_qp_state from, enum ibv_qp_state to, int mask);

#endif
