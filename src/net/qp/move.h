// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A stream's move from TCP into memory that it shares with its peer on the same host
// (docs/host-path.md). Every stream begins over TCP. The responder makes the memory once the stream
// has carried so much that this pays, and names it in a hello; the initiator opens it and answers
// with its verdict. Each end marks its last FPDU over TCP, behind which its bytes are in the memory.
// The caller of every function here holds the QP lock.
//
// state    end        meaning                            next
// COUNTS   responder  the stream has carried too little  OFFERED, with a hello; NEVER without
//                                                        memory or if the stream ends
// OFFERED  responder  the verdict is due                 NEVER. On the secret `in` becomes memory
//                                                        and a last is sent, behind which `out` is
//                                                        memory; on zeros the stream stays on TCP
// AWAITS   initiator  a hello may come                   LEAVES, with a verdict for memory, behind
//                                                        which `out` is memory; NEVER, with a
//                                                        verdict of zeros
// LEAVES   initiator  the responder's last is due        NEVER: `in` is memory
// NEVER    both       settled, or not agreed on
//
// A message of the move in any other state is answered with a Terminate. An end that closes in
// OFFERED, or with a message due, sends its FIN once the move is settled (aw_move_holds_end).
#ifndef NET_MOVE_H
#define NET_MOVE_H

#include "core/tx.h"
#include "wire/move.h"

#include <stdbool.h>
#include <stdint.h>

struct aw_uqp;

enum aw_move_state {
	AW_MOVE_NEVER, /* the stream stays where it is: not agreed on, or settled */
	AW_MOVE_COUNTS, /* responder: it may offer memory later */
	AW_MOVE_OFFERED, /* responder: the verdict is due */
	AW_MOVE_AWAITS, /* initiator: a hello may come */
	AW_MOVE_LEAVES, /* initiator: its verdict was for memory, and the peer's last FPDU over TCP is due */
};

struct aw_move {
	enum aw_move_state state;
	uint32_t calls; /* responder: those left before it offers memory (net/base/policy_env.h) */
	struct move_msg due; /* goes out before all else */
	bool is_last; /* this end's last FPDU over TCP is in the batch */
};

/* The stream begins. */
void aw_move_begin(struct aw_uqp *qp);

/* Called when bytes have gone over TCP, in a call of their own. */
void aw_move_count(struct aw_uqp *qp);

/* True when the core has received a message of the move; acts on it. */
bool aw_move_take(struct aw_uqp *qp);

/* True when aw_move_fill has something to add. */
bool aw_move_is_due(const struct aw_uqp *qp);

/* Adds the message that is due to an empty batch. True when nothing may follow it there. */
bool aw_move_fill(struct aw_uqp *qp, struct aw_tx_out *out);

/* Called when all of a batch went out. */
void aw_move_sent(struct aw_uqp *qp);

/* True while a graceful end waits for the move, without which the peer would miss the end's place. */
bool aw_move_holds_end(const struct aw_uqp *qp);

#endif
