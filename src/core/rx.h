// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Receive: octets of the stream in, placement and completions out.
#ifndef CORE_RX_H
#define CORE_RX_H

#include "core/qp.h"

/*
 * Takes every whole FPDU at the start of buf: verifies its CRC, then its DDP and RDMAP rules, then
 * places it. Markers are taken out in place, so buf is written to. Returns the octets used; the
 * rest is the beginning of an FPDU and must come again, with more behind it. When rx_held is set
 * the rest is whole, waits for a receive or for room in the stash, and must come again unchanged. After an error the state
 * is TERMINATE (or ERROR) and all octets count as used. Stops behind a message of wire/move.h, which
 * is the driver's (qp->move). Needs at most FPDU_MAX octets to make
 * progress.
 */
size_t aw_rx_octets(struct aw_qp *qp, uint8_t *buf, size_t len);

/*
 * Called when a receive may have been posted: takes what waits in the stash (core/stash.h), up to the next message that finds
 * none.
 */
void aw_rx_stashed(struct aw_qp *qp);

/* The number of octets of the FPDU at buf or, when that is not known yet, as many as tell it. */
size_t aw_rx_wanted(const struct aw_qp *qp, const uint8_t *buf, size_t len);

/*
 * As aw_rx_octets, for octets that are not written to, and that another process may write to at any
 * time: each that decides something is read once. Uses none when markers are to be taken out, and
 * stops at an FPDU that has to wait or comes behind one that does: both need aw_rx_octets.
 */
size_t aw_rx_lent(struct aw_qp *qp, const uint8_t *buf, size_t len);

/*
 * Octets that begin an FPDU and may tell what it is: one of this size or less is given to aw_rx_lent in one piece.
 */
#define AW_RX_HEAD_MAX 128

/* A whole FPDU of more than AW_RX_HEAD_MAX octets, without markers, that its driver has in several pieces. */
struct aw_rx_scattered {
	const uint8_t *head; /* a copy of its first AW_RX_HEAD_MAX octets */
	const uint8_t *src; /* its first octet for ops->place, which alone reads from there on */
	size_t size; /* as aw_rx_wanted told */
	/* Unused without CRCs. crc: the register of CRC32c behind all octets but the CRC field. */
	uint32_t crc;
	uint32_t crc_field;
};

/*
 * As aw_rx_lent, for one such FPDU. Its size, or 0: not taken, because it has to wait or comes behind one that does, or
 * because there are markers.
 */
size_t aw_rx_scattered(struct aw_qp *qp, const struct aw_rx_scattered *fpdu);

/*
 * Takes one ULPDU whose CRC was verified. AW_OK, or the error that the Terminate now due reports; or
 * AW_E_DDP_NO_BUFFER while messages are exchanged as before: it has to wait, and has changed nothing.
 */
enum aw_error aw_rx_ulpdu(struct aw_qp *qp, const uint8_t *ulpdu, size_t len);
/* As aw_rx_ulpdu; head is a copy of all of it but payload, and only ops->place reads ulpdu. */
enum aw_error aw_rx_ulpdu_lent(struct aw_qp *qp, const uint8_t *head, const uint8_t *ulpdu,
			       size_t len);

#endif
