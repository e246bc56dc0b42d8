// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// rsockets' stream protocol in its iWARP form, one end of it, as a machine without I/O. Bytes are put into
// a send ring and leave as orders: an RDMA Write into a buffer that the peer advertised, and a Send of 4
// bytes behind it. What came is in the receive ring, which the peer writes. The peer's numbers are checked
// before they count: -EPROTO, and nothing was touched. No lock, no clock, no memory of its own.
#ifndef XSOCK_STREAM_STREAM_H
#define XSOCK_STREAM_STREAM_H

#include "xsock/stream/msg.h"

#include <sys/uio.h>

#define AW_XS_SGL_MAX 8 /* entries of our SGL, and of the peer's that we use */
#define AW_XS_RING_MIN 4096u
#define AW_XS_RING_MAX (1u << 26)
#define AW_XS_QUEUE_MIN 16u
#define AW_XS_QUEUE_MAX 8192u
#define AW_XS_SQ_SPARE 8u /* WRs of the SQ beyond its size, for credits and the end */
#define AW_XS_RQ_SPARE 16u /* receives beyond the credits, for what needs none */
#define AW_XS_NOTES 8u /* entries of peers' tables under way */

/* All registered by who drives the stream; the target with the right to be written, and so recv. */
struct aw_xs_memory {
	uint8_t *send, *recv;
	uint32_t send_len, recv_len; /* AW_XS_RING_MIN to _MAX */
	uint32_t recv_start; /* the receive ring begins with so much: recv_len by a power of 2 */
	uint8_t *target; /* aw_xs_target_len(iomaps) bytes: the SGL and the I/O map, zeroed */
	uint16_t iomaps; /* aw_xs_iomaps_round */
	uint8_t *
		notes; /* AW_XS_NOTES times AW_XS_IOMAP_LEN bytes: what is written to the peer's tables */
	uint32_t recv_key, target_key; /* may be set later: they count from hello on */
};

enum aw_xs_kind {
	AW_XS_DATA,
	AW_XS_CREDIT,
	AW_XS_URGENT,
	AW_XS_IOMAP,
	AW_XS_IOWRITE,
	AW_XS_CTRL,
};

struct aw_xs_span {
	const uint8_t *octets;
	uint32_t len;
};

/* A Write, if it has spans, and then a Send of msg, if it has one. */
struct aw_xs_work {
	enum aw_xs_kind kind;
	uint32_t wrs; /* 1 or 2 */
	uint32_t octets; /* of the send ring, free again when it is done */
	uint32_t spans;
	struct aw_xs_span span[2];
	uint64_t addr;
	uint32_t key;
	bool has_msg;
	uint8_t msg[AW_XS_MSG_LEN];
};

/* How far an end has got, each way. */
enum aw_xs_end {
	AW_XS_OPEN,
	AW_XS_SHUT, /* sends no more */
	AW_XS_GONE, /* neither sends nor receives */
};

struct aw_xs_stream {
	/* fixed after init */
	struct aw_xs_memory mem;
	uint32_t sq_size, rq_size;

	/* fixed after meet */
	bool met, anywarp;
	uint8_t ext; /* agreed */
	bool peer_net, tx_net, rx_net; /* byte orders: of the peer, of messages either way */
	struct aw_xs_sge peer_sgl, peer_iomap; /* tables that we write; len counts entries */
	uint16_t peer_credits; /* as many as the peer can ever grant ahead */
	uint32_t chunks; /* the receive ring is advertised in so many */

	/* sending; positions in bytes since the start of either ring */
	uint64_t put, posted, freed; /* of the send ring, freed <= posted <= put */
	uint64_t put_base; /* the position that is at the ring's start */
	uint64_t octets_out; /* stream bytes posted */
	uint16_t seq, seq_limit; /* messages that need credit: sent, granted */
	struct aw_xs_sge run[AW_XS_SGL_MAX]; /* advertised by the peer, taken over, not full */
	uint32_t runs;
	uint64_t window; /* their bytes */
	uint32_t sgl_next; /* entry of our SGL that the peer fills next */
	uint32_t sq_used;
	uint32_t notes_used, notes_next; /* notes under way; where the next goes */
	bool urgent_due;
	uint64_t urgent_out; /* position in octets_out's terms of the urgent byte */
	enum aw_xs_end tx_wanted, tx_end;

	/* receiving */
	uint64_t adv, came, got; /* advertised, received, consumed: got <= came <= adv */
	/* In bytes of the ring, which at recv_used begins anew; a place at its end may stand for that. */
	uint32_t recv_used, adv_at, got_at;
	bool bulk; /* it has been filled well since it began anew */
	uint16_t rseq, rseq_told; /* messages with credit that came; at the last grant */
	uint32_t peer_sgl_next;
	uint32_t adv_open; /* buffers advertised that the peer has not filled */
	uint64_t adv_end[AW_XS_SGL_MAX]; /* where they end, oldest first */
	bool urgent_inline; /* the urgent byte is one of the stream */
	bool urgent_known, urgent_read; /* a mark is there; its byte was received out of line */
	uint64_t urgent_in; /* position of the urgent byte */
	enum aw_xs_end rx_end;

	bool open; /* messages may be sent */
	int error; /* 0, or the negative errno that ended it */
};

size_t aw_xs_target_len(uint16_t iomaps);

/* Sizes are brought within their bounds. mem: as it says there; target and notes zeroed. */
void aw_xs_stream_init(struct aw_xs_stream *s, const struct aw_xs_memory *mem, uint32_t sq_size,
		       uint32_t rq_size);

/* Our private data, and the peer's. 0 or -EPROTO. */
void aw_xs_stream_hello(const struct aw_xs_stream *s, uint8_t octets[AW_XS_HELLO_LEN]);
__attribute__((warn_unused_result)) int aw_xs_stream_meet(struct aw_xs_stream *s,
							  const uint8_t *octets, size_t len);

/* The connection is there: orders may come. */
void aw_xs_stream_open(struct aw_xs_stream *s);

/* The connection is over. Unless both ways were over in order, that is -ECONNRESET. */
void aw_xs_stream_over(struct aw_xs_stream *s);

/* It ends here, for this reason; the first one stays. */
void aw_xs_stream_fail(struct aw_xs_stream *s, int error);

/* Both ways over, in order. */
bool aw_xs_stream_is_done(const struct aw_xs_stream *s);

/* --- sending --- */

size_t aw_xs_stream_room(const struct aw_xs_stream *s);

/* Takes bytes into the send ring: how many. */
size_t aw_xs_stream_put(struct aw_xs_stream *s, const struct iovec *iov, int n);

/* The byte put last is urgent. */
void aw_xs_stream_put_urgent(struct aw_xs_stream *s);

/*
 * What is to be posted next: true, and that must be posted. all: also bytes that are fewer than min, which else
 * wait for more.
 */
bool aw_xs_stream_next(struct aw_xs_stream *s, uint32_t min, struct aw_xs_work *work);

/* The oldest order under way is done: its wrs and bytes. Orders are done in order. */
void aw_xs_stream_done(struct aw_xs_stream *s, enum aw_xs_kind kind, uint32_t wrs, uint32_t octets);

/* After what was put; no more may be put. AW_XS_GONE: nor will the peer be listened to. */
void aw_xs_stream_end(struct aw_xs_stream *s, enum aw_xs_end end);

/* True once that was posted, and with it all that was put; or where it cannot be any more. */
bool aw_xs_stream_has_ended(const struct aw_xs_stream *s);

/*
 * Bytes of the stream from memory of the caller's instead of the ring, if nothing is put that is not posted:
 * how many, at most len, the order's spans to be filled in; 0: no room.
 */
uint32_t aw_xs_stream_direct(struct aw_xs_stream *s, size_t len, struct aw_xs_work *work);

/* Tells the peer of map, its entry index. False: no room, try again after some order is done. */
bool aw_xs_stream_iomap(struct aw_xs_stream *s, uint32_t index, const struct aw_xs_iomap *map,
			struct aw_xs_work *work);

/* Writes to where the peer's map has offset: bytes taken; 0 where it has none; -EAGAIN: no room. */
int64_t aw_xs_stream_iowrite(struct aw_xs_stream *s, const void *octets, size_t len,
			     uint64_t offset, struct aw_xs_work *work);

/* --- receiving --- */

/* A Send of the peer's came: 0 or -EPROTO, which also is s->error then. */
__attribute__((warn_unused_result)) int aw_xs_stream_message(struct aw_xs_stream *s,
							     const uint8_t *octets, size_t len);

size_t aw_xs_stream_pending(const struct aw_xs_stream *s);
size_t aw_xs_stream_get(struct aw_xs_stream *s, const struct iovec *iov, int n, bool peek);

/* Drops what came. */
void aw_xs_stream_discard(struct aw_xs_stream *s);

/* 0 with the byte; -EINVAL: no mark; -EAGAIN: announced, not here. */
int aw_xs_stream_get_urgent(struct aw_xs_stream *s, bool peek, uint8_t *octet);

/* Is there an urgent byte that was not received yet; is the next byte the urgent one? */
bool aw_xs_stream_is_urgent(const struct aw_xs_stream *s);
bool aw_xs_stream_at_mark(const struct aw_xs_stream *s);

#endif
