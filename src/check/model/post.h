// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A post, in two steps around the device's own. Before it, under the queue's lock: tells each rule that the WRs break, and
// puts them into the queue, since another thread may poll a completion before the post returns. Behind it: takes out those
// that the device did not accept. The lock is held in between.
#ifndef CHECK_MODEL_POST_H
#define CHECK_MODEL_POST_H

#include "check/model/qp.h"

void aw_post_send_begin(struct aw_qp_shadow *qp, const struct ibv_send_wr *wr);
/* bad: the first WR that the device did not accept; NULL: it accepted all. */
void aw_post_send_end(struct aw_qp_shadow *qp, const struct ibv_send_wr *wr,
		      const struct ibv_send_wr *bad);

void aw_post_recv_begin(struct aw_qp_shadow *qp, const struct ibv_recv_wr *wr);
void aw_post_recv_end(struct aw_qp_shadow *qp, const struct ibv_recv_wr *bad);

void aw_post_srq_begin(struct aw_srq_shadow *srq, const struct ibv_recv_wr *wr);
void aw_post_srq_end(struct aw_srq_shadow *srq, const struct ibv_recv_wr *bad);

#endif
