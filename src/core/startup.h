// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// MPA start-up: the offer, the answer, and the agreement of the two ends (RFC 5044 7.1, RFC 6581).
// Pure functions over parsed frames; sockets, timers and the decision to accept belong to the
// driver.
#ifndef CORE_STARTUP_H
#define CORE_STARTUP_H

#include "core/types.h"
#include "wire/mpa.h"

/* The peers to which this end sends FPDUs longer than a TCP segment. It takes them from every peer. */
enum aw_large_fpdus {
	AW_LARGE_OFF,
	AW_LARGE_AGREED, /* offer, or agree to, them: docs/extensions.md */
	AW_LARGE_ANY, /* send them to every peer, and offer them */
};

/* The wishes and abilities of this end. */
struct aw_mpa_local {
	uint8_t revision; /* initiator: highest to use, 1 or 2. responder: highest it answers */
	bool markers; /* we want markers in what the peer sends */
	bool crc; /* we want CRCs; they are on when either end wants them */
	bool crc_asked; /* by the user, so that they are wanted also where TLS finds every change by itself */
	bool p2p; /* initiator: ask for the peer-to-peer model (revision 2) */
	uint8_t rtr; /* mask of enum mpa_rtr we can send (initiator) or take (responder) */
	uint16_t ird; /* Reads we can take at once; MPA_IRD_ORD_NONE: not negotiated */
	uint16_t ord; /* Reads we want to have outstanding; likewise */
	bool extensions; /* offer, or agree to, RFC 7306 as docs/extensions.md has it */
	enum aw_large_fpdus large_fpdus;
	bool placement; /* with extensions: likewise Atomic Write and Flush */
	bool host; /* with extensions: offer, or agree to, a move into shared memory (docs/host-path.md) */
	bool waits; /* with placement: initiator: takes waits; responder: may send them (docs/extensions.md) */
	bool tls; /* with placement: offer TLS behind the Request, or take that offer (docs/extensions.md) */
	bool ird_ord_ulp; /* ird and ord hold, but the ULPs agree on them: 0x3fff on the wire */
};

/* The result of a start-up; all of it final except as said. */
struct aw_mpa_result {
	uint8_t revision;
	bool enhanced;
	bool rejected; /* initiator only: the peer set R */
	bool crc;
	bool markers_tx; /* the peer wants markers from us */
	bool markers_rx;
	bool p2p;
	uint8_t rtr; /* p2p: initiator: the one to send; responder: mask it may receive */
	uint16_t ird; /* ours, after negotiation */
	uint16_t ord;
	uint16_t peer_ird; /* as the peer sent them; 0 when not enhanced */
	uint16_t peer_ord;
	uint8_t peer_rtr; /* likewise; mask of enum mpa_rtr */
	bool extensions; /* enhanced: offered, and agreed to */
	bool placement; /* likewise, and with extensions */
	bool host; /* likewise */
	bool large_fpdus; /* both ends agree on FPDUs longer than a TCP segment */
	bool large_any; /* this end sends them all the same: AW_LARGE_ANY */
	bool waits; /* with placement, responder: this end may send waits, and the initiator takes them */
	bool tls; /* responder: the initiator offers TLS, and this end takes it by aw_mpa_start_tls */
	const uint8_t *pd; /* the ULP's private data; borrowed from the frame */
	uint16_t pd_len;
};

enum aw_setup {
	AW_SETUP_OK,
	AW_SETUP_WRONG_KIND, /* a Request where a Reply is due, or the reverse */
	AW_SETUP_REVISION, /* a revision that cannot be handled */
	AW_SETUP_SHORT_PD, /* S set, but no room for RFC 6581's octets */
	AW_SETUP_NO_RTR, /* Terminate 2/0/07 is due */
	AW_SETUP_IRD, /* Terminate 2/0/06 is due */
};

const char *aw_setup_text(enum aw_setup s);

/* Longest private data the ULP may give: 512, less RFC 6581's octets when enhanced. */
size_t aw_mpa_pd_max(bool enhanced);

/*
 * Writes the Request to buf (MPA_FRAME_MAX octets); returns its length. It is enhanced only when
 * revision 2 is allowed and something of it is wanted: p2p, or an ird or ord to negotiate.
 */
size_t aw_mpa_request(const struct aw_mpa_local *local, const void *pd, size_t pd_len,
		      uint8_t *buf);

/*
 * Initiator: reads the Reply. result->rejected is not an error. result is written on OK, and on
 * NO_RTR and IRD too, so that the stream can be started for its Terminate.
 */
enum aw_setup aw_mpa_on_reply(const struct aw_mpa_local *local, const struct mpa_frame *reply,
			      struct aw_mpa_result *result);

/*
 * Responder: reads the Request, and negotiates it against local (ird, ord: the most we allow). The
 * ULP may lower result->ird and result->ord before it accepts.
 */
enum aw_setup aw_mpa_on_request(const struct aw_mpa_local *local, const struct mpa_frame *request,
				struct aw_mpa_result *result);

/*
 * The wait: by it a responder tells an initiator that takes waits that its program has not answered yet. A frame of
 * MPA_HDR_LEN octets. False for every frame where local takes none.
 */
size_t aw_mpa_wait(uint8_t *buf);
bool aw_mpa_is_wait(const struct aw_mpa_local *local, const struct mpa_frame *frame);

/*
 * Start TLS: by it a responder takes the initiator's offer, in the Reply's place. TLS's handshake comes next, and a Request
 * within, so that what has been said in the clear counts for nothing. A frame of MPA_HDR_LEN octets. False for every frame
 * where local offers no TLS.
 */
size_t aw_mpa_start_tls(uint8_t *buf);
bool aw_mpa_is_start_tls(const struct aw_mpa_local *local, const struct mpa_frame *frame);

/* Writes the Reply (accept, or reject) that answers a request which came to result. */
size_t aw_mpa_reply(const struct aw_mpa_local *local, const struct aw_mpa_result *result,
		    bool reject, const void *pd, size_t pd_len, uint8_t *buf);

#endif
