// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Receive: octets of the stream in, placement and completions out.
#ifndef CORE_RX_H
#define CORE_RX_H

#include "core/qp.h"

/*
 * Takes every whole FPDU at the start of buf: verifies its CRC, then its DDP and RDMAP rules,
 * then places it. Markers are taken out in place, so buf is written to. Returns the octets used;
 * the rest is the beginning of an FPDU and must come again, with more behind it. Where rx_held is set
 * it is whole, waits for a receive, and must come again unchanged. After an error
 * the state is TERMINATE (or ERROR) and all octets count as used. Needs at most FPDU_MAX octets
 * to get on.
 */
size_t aw_rx_octets(struct aw_qp *qp, uint8_t *buf, size_t len);

/* As many octets as the FPDU at buf has, or, where that is not known yet, as many as tell it. */
size_t aw_rx_wanted(const struct aw_qp *qp, const uint8_t *buf, size_t len);

/*
 * As aw_rx_octets, of octets that are not written to, and of which somebody else may write to any meanwhile: each that
 * decides something is read once. Uses none where markers are to be taken out, and stops at an FPDU that would
 * have to wait for a receive: both need aw_rx_octets.
 */
size_t aw_rx_lent(struct aw_qp *qp, const uint8_t *buf, size_t len);

/* One ULPDU whose CRC was verified. AW_OK, or the error that the Terminate now due reports. */
enum aw_error aw_rx_ulpdu(struct aw_qp *qp, const uint8_t *ulpdu, size_t len);
/* The same; head is a copy of all of it but payload, and ulpdu is read by ops->place alone. */
enum aw_error aw_rx_ulpdu_lent(struct aw_qp *qp, const uint8_t *head, const uint8_t *ulpdu,
			       size_t len);

#endif
