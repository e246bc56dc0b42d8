// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Bytes of a socket's receive queue where they lie: in the pieces of one skb, and of those behind it.
#ifndef KMOD_STREAM_PIECES_H
#define KMOD_STREAM_PIECES_H

#include "kmod/qp/qp.h"

#include <linux/skbuff.h>
#include <linux/types.h>

struct sock;

/* Valid while the socket's lock is held and nothing is taken out of the queue. */
struct awk_pieces {
	struct awk_source source;
	struct sock *sk;
	struct sk_buff *skb; /* has the first byte */
	u32 seq; /* TCP's number of the first byte */
	size_t len; /* the bytes that the queue has from there on */
};

/* A walk over some of them: awk_pieces_next gives one piece after the other, then NULL, to which each walk has to go. */
struct awk_pieces_walk {
	const struct awk_pieces *pieces;
	struct sk_buff *skb; /* the next one */
	u32 seq; /* of the next byte that is in no piece of an skb before */
	size_t left; /* bytes from seq on */
	struct skb_seq_state state; /* the place in the skb before */
	unsigned int used, in_skb; /* bytes of the skb before: given so far, and to be given */
};

/* The bytes from offset in the skb on. */
void awk_pieces_init(struct awk_pieces *pieces, struct sock *sk, struct sk_buff *skb,
		     unsigned int offset);

/* at + len: at most pieces->len. */
void awk_pieces_begin(struct awk_pieces_walk *walk, const struct awk_pieces *pieces, size_t at,
		      size_t len);
const u8 *awk_pieces_next(struct awk_pieces_walk *walk, size_t *len);

/* As awk_pieces_begin for at and len. */
void awk_pieces_copy(const struct awk_pieces *pieces, size_t at, u8 *dst, size_t len);
u32 awk_pieces_crc(const struct awk_pieces *pieces, size_t len);

#endif
