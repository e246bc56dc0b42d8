// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The device's operations, and those of them that concern a QP and its stream.
#ifndef KMOD_VERBS_VERBS_H
#define KMOD_VERBS_VERBS_H

#include <rdma/ib_verbs.h>

extern const struct ib_device_ops awk_device_ops;

/* The functions of struct ib_device_ops. */
int awk_qp_create(struct ib_qp *base, struct ib_qp_init_attr *attr, struct ib_udata *udata);
int awk_qp_modify(struct ib_qp *base, struct ib_qp_attr *attr, int mask, struct ib_udata *udata);
int awk_qp_query(struct ib_qp *base, struct ib_qp_attr *attr, int mask,
		 struct ib_qp_init_attr *init);
int awk_qp_destroy(struct ib_qp *base, struct ib_udata *udata);
int awk_qp_post_send(struct ib_qp *base, const struct ib_send_wr *wr,
		     const struct ib_send_wr **bad);
int awk_qp_post_recv(struct ib_qp *base, const struct ib_recv_wr *wr,
		     const struct ib_recv_wr **bad);
void awk_qp_add_ref(struct ib_qp *base);
void awk_qp_rem_ref(struct ib_qp *base);
struct ib_qp *awk_qp_get_ib(struct ib_device *base, int qpn);

#endif
