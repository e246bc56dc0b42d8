// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A stream's stage: received bytes on their way to the core that do not lie where it could take them. With the QP's lock held.
#ifndef KMOD_STREAM_STAGE_H
#define KMOD_STREAM_STAGE_H

#include "kmod/stream/io.h"
#include "kmod/stream/pool.h"

/* True while the core takes what the socket has. */
bool awk_stage_may_fill(const struct awk_qp *qp);
/* The stream's; NULL: memory is out, and the stream is starved. */
struct awk_stage *awk_stage_of(struct awk_stream *s);
/* Bytes that fit behind those in it, which wait for no receive: more than an FPDU. */
size_t awk_stage_room(struct awk_stage *stage);
u8 *awk_stage_end(struct awk_stage *stage);
/* Gives the core what is in it, of which so many bytes are new. */
void awk_stage_use(struct awk_qp *qp, size_t added);
/* Makes a stage again of one that was packed, if there is memory. */
void awk_stage_wake(struct awk_stream *s);
/* Called when the worker comes: a message that waits for a receive is tried again. */
void awk_stage_retry(struct awk_qp *qp);
/* Called when all was taken that can be now: gives back a stage that is empty, or has half an FPDU for too long. */
void awk_stage_rest(struct awk_qp *qp);
/* Bytes of an FPDU whose rest is missing. */
size_t awk_stage_held(const struct awk_stream *s);

#endif
