// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A note about a QP's stream, in memory that another process shares: whether TCP has all that was
// posted, and what the header of a next Send would be. With it another process can send one Send
// after this process was killed.
#ifndef NET_NOTE_H
#define NET_NOTE_H

#include <stddef.h>
#include <stdint.h>

struct aw_uqp;

/* Written by the QP's process with the QP lock. */
struct aw_note {
	/* TCP has all bytes, up to the end of an FPDU; only then the other fields hold */
	_Atomic uint32_t rests;
	_Atomic uint32_t msn; /* of the next Send */
	_Atomic uint32_t crc; /* FPDUs have one */
};

/* Keeps the note from here on; NULL: no more. */
void aw_uqp_note(struct aw_uqp *qp, struct aw_note *note);

/*
 * For a QP that has a note. stir: bytes are about to go out. settle: bytes have gone out, or a WR
 * was posted.
 */
void aw_note_stir(struct aw_uqp *qp);
void aw_note_settle(struct aw_uqp *qp);

/*
 * Writes the FPDU of a Send of len bytes. Returns the FPDU's length in bytes; 0: the stream does
 * not rest, or there is no room.
 */
size_t aw_note_send(const struct aw_note *note, const void *octets, size_t len, uint8_t *fpdu,
		    size_t room);

#endif
