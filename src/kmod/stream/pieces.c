// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The walk over a receive queue. TCP's skbs may overlap, so the place in each follows from its sequence numbers.
#include "kmod/stream/pieces.h"

#include "kmod/mr/mr.h"
#include "wire/crc32c.h"

#include <linux/crc32c.h>
#include <linux/minmax.h>
#include <net/tcp.h>

static bool pieces_place(const struct awk_source *source, const struct aw_mr *mr, u8 *dst,
			 size_t at, size_t len)
{
	struct awk_pieces_walk walk;
	bool placed = true;
	const u8 *p;
	size_t n;

	awk_pieces_begin(&walk, container_of(source, struct awk_pieces, source), at, len);
	while ((p = awk_pieces_next(&walk, &n))) {
		placed = placed && awk_mr_place(mr, dst, p, n);
		dst += n;
		len -= n;
	}
	return placed && len == 0;
}

void awk_pieces_init(struct awk_pieces *pieces, struct sock *sk, struct sk_buff *skb,
		     unsigned int offset)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	sock_owned_by_me(sk);
	pieces->source.place = pieces_place;
	pieces->sk = sk;
	pieces->skb = skb;
	pieces->seq = TCP_SKB_CB(skb)->seq + offset;
	/* A FIN has a number as well. */
	pieces->len = tp->rcv_nxt - pieces->seq - !!(sk->sk_shutdown & RCV_SHUTDOWN);
}

void awk_pieces_begin(struct awk_pieces_walk *walk, const struct awk_pieces *pieces, size_t at,
		      size_t len)
{
	walk->pieces = pieces;
	walk->skb = pieces->skb;
	walk->seq = pieces->seq + at;
	walk->left = len;
	walk->used = walk->in_skb = 0;
}

/* Goes on to the next skb with bytes of the walk. False when there is none. */
static bool walk_skb(struct awk_pieces_walk *walk)
{
	struct sk_buff_head *queue = &walk->pieces->sk->sk_receive_queue;

	for (; walk->left > 0 && walk->skb; walk->skb = skb_peek_next(walk->skb, queue)) {
		unsigned int offset = walk->seq - TCP_SKB_CB(walk->skb)->seq;

		if (offset >= walk->skb->len)
			continue;
		walk->used = 0;
		walk->in_skb = min_t(size_t, walk->left, walk->skb->len - offset);
		skb_prepare_seq_read(walk->skb, offset, offset + walk->in_skb, &walk->state);
		walk->seq += walk->in_skb;
		walk->left -= walk->in_skb;
		walk->skb = skb_peek_next(walk->skb, queue);
		return true;
	}
	return false;
}

const u8 *awk_pieces_next(struct awk_pieces_walk *walk, size_t *len)
{
	const u8 *p;
	unsigned int n;

	do {
		/* At the end of the skb this gives back what it has mapped. */
		n = walk->in_skb ? skb_seq_read(walk->used, &p, &walk->state) : 0;
		if (n > 0) {
			*len = min(n, walk->in_skb - walk->used);
			walk->used += *len;
			return p;
		}
	} while (walk_skb(walk));
	return NULL;
}

void awk_pieces_copy(const struct awk_pieces *pieces, size_t at, u8 *dst, size_t len)
{
	struct awk_pieces_walk walk;
	const u8 *p;
	size_t n;

	awk_pieces_begin(&walk, pieces, at, len);
	while ((p = awk_pieces_next(&walk, &n))) {
		memcpy(dst, p, n);
		dst += n;
	}
}

u32 awk_pieces_crc(const struct awk_pieces *pieces, size_t len)
{
	u32 crc = CRC32C_INIT;
	struct awk_pieces_walk walk;
	const u8 *p;
	size_t n;

	awk_pieces_begin(&walk, pieces, 0, len);
	while ((p = awk_pieces_next(&walk, &n)))
		crc = crc32c(crc, p, n);
	return crc;
}
