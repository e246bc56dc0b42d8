// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The kinds of inbound messages, one function for each. Every one checks all of the segment
// before it places an octet or moves a counter; what it returns is reported by a Terminate.
#ifndef CORE_RX_PARTS_H
#define CORE_RX_PARTS_H

#include "core/qp.h"

struct aw_rx_seg {
	struct ddp_hdr hdr;
	enum rdmap_opcode op;
	const uint8_t *data; /* payload behind the DDP header */
	uint32_t len;
};

enum aw_error aw_rx_write(struct aw_qp *qp, const struct aw_rx_seg *seg) AW_MUST_USE;
enum aw_error aw_rx_send(struct aw_qp *qp, const struct aw_rx_seg *seg) AW_MUST_USE;
enum aw_error aw_rx_read_request(struct aw_qp *qp, const struct aw_rx_seg *seg) AW_MUST_USE;
enum aw_error aw_rx_read_response(struct aw_qp *qp, const struct aw_rx_seg *seg) AW_MUST_USE;
/* AW_OK leaves the QP in ERROR. */
enum aw_error aw_rx_terminate(struct aw_qp *qp, const struct aw_rx_seg *seg) AW_MUST_USE;

#endif
