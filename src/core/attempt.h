// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// An initiator's way to a stream, which may take more than one connection: which Request goes out on the next one, and what a
// Reply, a close or a refusal means. RFC 5044 7.1, RFC 6581 8 and 10.
#ifndef CORE_ATTEMPT_H
#define CORE_ATTEMPT_H

#include "core/startup.h"
#include "wire/error.h"

/*
 * A server that closes its listener and opens another on the same port (perftest does, between its two connections) is away for
 * a moment, and TCP brings a client there sooner than an adapter would. So a refused connection is tried again, after pauses
 * of 1, 2, 4 ... ms: 127 ms in all.
 */
#define AW_ATTEMPT_REFUSALS_MAX 7
/*
 * An initiator waits no longer for another one to the same peer (core/turn.h). A refused one is tried for longer than its pauses
 * last, because each begins when the driver's thread has handled the refusal before it.
 */
#define AW_ATTEMPT_WAIT_MS (2u << AW_ATTEMPT_REFUSALS_MAX)

/* The next step. */
enum aw_attempt_next {
	AW_ATTEMPT_STREAM, /* the ends agree */
	AW_ATTEMPT_REJECTED,
	AW_ATTEMPT_REPEAT, /* the same Request over another connection */
	AW_ATTEMPT_PLAIN, /* a Request of revision 1 over another connection */
	AW_ATTEMPT_FAILED,
};

/* The pause before the next try of a connection that was refused so many times before; 0: there is no further try. */
uint32_t aw_attempt_pause_ms(uint32_t refusals);

/* The peer ended the connection, received octets into its Reply. asked: the Request's revision; again: it is not the first. */
enum aw_attempt_next aw_attempt_closed(uint8_t asked, bool again, size_t received);

/* A Reply came that aw_mpa_on_reply takes. */
enum aw_attempt_next aw_attempt_replied(uint8_t asked, const struct aw_mpa_result *result);

/*
 * The Terminate that tells the peer why its Reply is not acceptable (core/setup_term.h), or AW_OK: RFC 6581 8 has one for two
 * errors, and for all others the socket is closed.
 */
enum aw_error aw_attempt_terminate(enum aw_setup setup);

#endif
