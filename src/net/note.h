// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A note about a QP's stream, in memory that another process shares: whether all that was posted is with
// TCP, and what a Send that followed would be like. So somebody else can send one once this process was killed.
#ifndef NET_NOTE_H
#define NET_NOTE_H

#include <stddef.h>
#include <stdint.h>

struct aw_uqp;

/* Written by the QP's process with the QP lock. */
struct aw_note {
	_Atomic uint32_t rests; /* TCP has all, up to the end of an FPDU; then the rest holds */
	_Atomic uint32_t msn; /* of the next Send */
	_Atomic uint32_t crc; /* FPDUs have one */
};

/* From here on; NULL: no more. */
void aw_uqp_note(struct aw_uqp *qp, struct aw_note *note);

/* Of a QP that has one: octets are about to go out; octets have gone out, or were posted. */
void aw_note_stir(struct aw_uqp *qp);
void aw_note_settle(struct aw_uqp *qp);

/* The FPDU of a Send of len octets: how many octets it has; 0: the stream does not rest, or there is no room. */
size_t aw_note_send(const struct aw_note *note, const void *octets, size_t len, uint8_t *fpdu,
		    size_t room);

#endif
