// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Notes for the process that ends a killed process's connections: include/anywarp/cm.h.
#include "net/note.h"

#include "anywarp/cm.h"
#include "net/uqp.h"
#include "rdmacm/fail.h"
#include "rdmacm/stream.h"

_Static_assert(sizeof(struct aw_note) <= sizeof(struct anywarp_cm_note) &&
		       _Alignof(struct aw_note) <= _Alignof(struct anywarp_cm_note),
	       "the note has room for what it says");

int anywarp_cm_keep_note(struct rdma_cm_id *id, struct anywarp_cm_note *note)
{
	struct aw_uqp *uqp = id ? aw_cm_stream_hold(aw_cm_id_of(id)) : NULL;

	if (!uqp)
		return aw_cm_fail(EINVAL);
	aw_uqp_note(uqp, (struct aw_note *)note);
	aw_uqp_put(uqp);
	return 0;
}

size_t anywarp_cm_last_send(const struct anywarp_cm_note *note, const void *octets, size_t len,
			    void *fpdu, size_t room)
{
	return aw_note_send((const struct aw_note *)note, octets, len, fpdu, room);
}
