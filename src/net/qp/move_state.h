// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// How far a stream's move into memory (net/qp/move.h) has come.
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
#ifndef NET_MOVE_STATE_H
#define NET_MOVE_STATE_H

#include "wire/move.h"

#include <stdbool.h>
#include <stdint.h>

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

#endif
