// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The stash of a QP: a message that waits for its receive, and what the peer has sent behind it but for its answers.
#ifndef CORE_STASH_H
#define CORE_STASH_H

#include "core/types.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * On InfiniBand a message that finds no receive stops nothing but the requests behind it: the receiver refuses it, its
 * sender sends it again and those behind it, and meanwhile answers and acknowledgements go both ways. A stream has all of
 * that in one line. So where both ends agreed on it (qp->keeps) the receiver reads on. Answers (core/rx.c,
 * aw_stash_passes) are taken at once; all else is kept here, verified, in the order in which it came, and is taken
 * in that order once the program has posted the receive. A Write behind the message is not seen before it, a Read sees it.
 *
 * The sender is not to send again, as on InfiniBand: that would need a transmit path which rewinds to any WR, with
 * positions, MSNs and acknowledgements that go back; the receiver would drop what TCP has delivered, and the WRs'
 * memory would be read twice. Here the sender learns of it only once that much is kept that the memory matters
 * (AW_STASH_TELL): it then stops between two FPDUs (RNR_NOT_READY) until the stash is empty (RNR_READY). A message
 * whose receive is a little late costs no message of ours. The stash then grows by the octets that were under way, which
 * TCP's buffers bound. At AW_STASH_MAX, and without memory, the receiver stops reading, as it does where nothing was agreed: the
 * FPDU waits in the driver's buffer (qp->rx_held), and the answers behind it wait as well.
 *
 * The memory comes in chunks from ops->stash_get, the first of them small, since most stashes hold one message for
 * microseconds. An empty stash has none.
 */
#define AW_STASH_MAX (16u << 20) /* octets of its chunks: more than TCP has under way by default */
#define AW_STASH_TELL (64u << 10) /* of its chunks: from there on the peer is told */
#define AW_STASH_CHUNK_MIN (4u << 10)
#define AW_STASH_CHUNK_MAX (256u << 10)

struct aw_stash_chunk;
struct aw_qp;

struct aw_stash {
	struct aw_stash_chunk *first, *last; /* NULL: it is empty */
	size_t octets; /* of its chunks */
	bool replays; /* its first ULPDU is being taken */
};

static inline bool aw_stash_is_empty(const struct aw_stash *stash)
{
	return !stash->first;
}

/*
 * True for a ULPDU that overtakes what waits: an answer to a request of ours, or a Terminate. So does one whose header tells
 * nothing, and what is on a queue that does not exist: those errors are found at once, those of requests in their turn.
 */
bool aw_stash_passes(const uint8_t *ulpdu, size_t len);

/* Keeps a copy of a ULPDU behind the others; false when there is no memory, or no room within the bound. */
bool aw_stash_push(struct aw_qp *qp, const uint8_t *ulpdu, size_t len) AW_MUST_USE;

/* The ULPDU that is the first, until it is popped; NULL when the stash is empty. */
const uint8_t *aw_stash_front(const struct aw_qp *qp, size_t *len);
void aw_stash_pop(struct aw_qp *qp);

/* Empties it. */
void aw_stash_drop(struct aw_qp *qp);

#endif
