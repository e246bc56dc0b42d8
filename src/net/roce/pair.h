// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The rules of connections between two QPs of the roce persona: which end calls first, whether a
// Request is from the peer that the program named, and which of two connections stays. No state.
#ifndef NET_PAIR_H
#define NET_PAIR_H

#include "wire/pair.h"

#include <sys/socket.h>

/* One end of a pair: a GID of RoCE v2, which is an IP address, and a QPN. */
struct aw_pair_end {
	uint8_t gid[GID_LEN];
	uint32_t scope; /* interface of a link-local GID */
	uint32_t qpn;
};

/* The two ends that the program named for a QP. */
struct aw_pair {
	struct aw_pair_end local, remote;
	enum pair_type type; /* of the local QP */
};

/* How far a QP is in connecting. */
enum aw_pair_phase {
	AW_PAIR_UNTOLD, /* RESET or INIT: no peer is named yet; or an XRC initiator, which connects from RTS on */
	AW_PAIR_WAITING, /* waits for the peer's Request, or until it is time to call */
	AW_PAIR_CALLING, /* TCP's handshake with the peer has not ended */
	AW_PAIR_ASKED, /* our Request is under way */
	AW_PAIR_JOINED, /* connected, or was until the peer left */
	AW_PAIR_OVER, /* the QP is in ERR */
};

enum aw_pair_verdict {
	AW_PAIR_ACCEPT, /* a call of our own is given up */
	AW_PAIR_HOLD, /* the Request may be for what the QP does next */
	AW_PAIR_REJECT, /* with the reason that aw_pair_match gives */
};

/* The GID of a loopback address, to which a path without GRH leads. */
void aw_pair_loopback_gid(uint8_t gid[GID_LEN]);

/* The address and the TCP port that lead to an end; port 0: the address alone. */
void aw_pair_address(const struct aw_pair_end *end, uint16_t port, struct sockaddr_storage *addr);

/*
 * True for the end that calls at once; the other end waits for a moment. When both have called all
 * the same, the connection that this end made stays. Both ends compute the same result.
 */
bool aw_pair_is_caller(const struct aw_pair *told);

/* True for a QP that is connected to itself. */
bool aw_pair_is_self(const struct aw_pair *told);

/* True when request comes from the address that it names. */
bool aw_pair_is_from(const struct pair *request, const struct sockaddr_storage *peer);

/*
 * PAIR_OK, or why a Request is not from the peer that the program named. from: the address that it comes from, which it
 * names; a link-local one names the peer on its link alone.
 */
enum pair_answer aw_pair_match(const struct aw_pair *told, const struct pair *request,
			       const struct sockaddr_storage *from);

/* The decision on a Request that comes from the address that it names. */
enum aw_pair_verdict aw_pair_judge(enum aw_pair_phase phase, const struct aw_pair *told,
				   const struct pair *request, const struct sockaddr_storage *from);

/* True when the incarnation a is later than b: incarnations wrap. */
static inline bool aw_pair_is_later(uint32_t a, uint32_t b)
{
	return (int32_t)(a - b) > 0;
}

#endif
