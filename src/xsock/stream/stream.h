// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// One end of rsockets' stream protocol in its iWARP form, as a machine without I/O. Bytes are put
// into a send ring and go out as works: an RDMA Write into a buffer that the peer has advertised,
// then a Send of 4 bytes. Received bytes are in the receive ring, which the peer writes to. The
// peer's numbers are checked before they have an effect: -EPROTO otherwise. No lock, no clock, no
// memory of its own: the caller (endpoint/, tests, fuzzers) serialises calls.
#ifndef XSOCK_STREAM_STREAM_H
#define XSOCK_STREAM_STREAM_H

#include "xsock/stream/msg.h"

#include <sys/uio.h>

#define AW_XS_SGL_MAX 8 /* entries of our SGL, and how many of the peer's we use */
#define AW_XS_RING_MIN 4096u
#define AW_XS_RING_MAX (1u << 26)
#define AW_XS_QUEUE_MIN 16u
#define AW_XS_QUEUE_MAX 8192u
#define AW_XS_SQ_SPARE 8u /* WRs of the SQ beyond its size, for credits and the stream's end */
#define AW_XS_RQ_SPARE 16u /* receives beyond the credits, for messages without credit */

/* Memory that the caller registers; target and recv with remote write access. */
struct aw_xs_memory {
	uint8_t *send, *recv;
	uint32_t send_len, recv_len; /* AW_XS_RING_MIN to _MAX */
	uint32_t recv_start; /* the receive ring's first size: recv_len divided by a power of 2 */
	uint8_t *target; /* aw_xs_target_len(iomaps) bytes: the SGL and the I/O map, zeroed */
	uint16_t iomaps; /* aw_xs_iomaps_round */
	uint32_t recv_key, target_key; /* may be set later, but before aw_xs_stream_hello */
};

struct aw_xs_span {
	const uint8_t *bytes;
	uint32_t len;
};

/* A piece of work to post: a Write, if there are spans or an entry, then a Send of msg, if has_msg. */
struct aw_xs_work {
	uint32_t wrs; /* 1 or 2 */
	uint32_t bytes; /* bytes of the send ring that are freed when the work is done */
	uint32_t spans;
	struct aw_xs_span span[2];
	uint32_t entry_len;
	uint8_t entry
		[AW_XS_IOMAP_LEN]; /* of the peer's tables; the work is posted with a copy of it */
	uint64_t addr;
	uint32_t key;
	bool has_msg;
	uint8_t msg[AW_XS_MSG_LEN];
};

/* How far a direction has ended. */
enum aw_xs_end {
	AW_XS_OPEN,
	AW_XS_SHUT, /* the end sends no more */
	AW_XS_GONE, /* the end neither sends nor receives */
};

struct aw_xs_stream {
	/* fixed after init */
	struct aw_xs_memory mem;
	uint32_t sq_size, rq_size;

	/* fixed after meet */
	bool met, anywarp;
	uint8_t ext; /* the extensions that both ends have */
	bool peer_net, tx_net, rx_net; /* big-endian: the peer; messages sent; messages received */
	/* the peer's tables, which we write; len is in entries */
	struct aw_xs_sge peer_sgl, peer_iomap;
	uint16_t peer_credits; /* how many credits the peer grants at most */
	uint32_t chunks; /* the receive ring is advertised in so many buffers */

	/* sending; positions count bytes since the beginning */
	uint64_t put, posted, freed; /* positions of the send ring, freed <= posted <= put */
	uint64_t put_base; /* the position at the ring's start */
	uint64_t bytes_out; /* bytes of the stream that were posted */
	uint16_t seq, seq_limit; /* messages with credit: the last one sent, the last one granted */
	/* buffers that the peer has advertised, not yet full */
	struct aw_xs_sge run[AW_XS_SGL_MAX];
	uint32_t runs;
	uint32_t sgl_next; /* the entry of our SGL that the peer writes next */
	uint32_t sq_used;
	bool urgent_due;
	uint64_t urgent_out; /* position of the urgent byte, as bytes_out counts */
	enum aw_xs_end tx_wanted, tx_end;

	/* receiving */
	uint64_t adv, came, got; /* positions advertised, received, consumed; got <= came <= adv */
	/* Offsets in the ring, which wraps at recv_used; the offset recv_used may stand for 0. */
	uint32_t recv_used, adv_at, got_at;
	bool bulk; /* the ring was well filled since it wrapped */
	uint16_t rseq, rseq_granted; /* messages with credit received; rseq at the last grant */
	uint32_t peer_sgl_next;
	uint32_t adv_open; /* advertised buffers that the peer has not filled */
	uint64_t adv_end[AW_XS_SGL_MAX]; /* the positions at which they end, oldest first */
	bool urgent_inline; /* the urgent byte is received in line */
	bool urgent_known, urgent_read; /* there is a mark; its byte was received out of line */
	uint64_t urgent_in; /* the position of the urgent byte */
	enum aw_xs_end rx_end;

	bool open; /* messages may be sent */
	int error; /* 0, or the negative errno that ended the stream */
};

/* Returns the length of the target: the SGL and the I/O map. */
size_t aw_xs_target_len(uint16_t iomaps);

/* Initialises the stream. target of mem is zeroed. */
void aw_xs_stream_init(struct aw_xs_stream *s, const struct aw_xs_memory *mem, uint32_t sq_size,
		       uint32_t rq_size);

/*
 * aw_xs_stream_hello writes our private data; aw_xs_stream_meet takes the peer's and returns 0 or
 * -EPROTO.
 */
void aw_xs_stream_hello(const struct aw_xs_stream *s, uint8_t bytes[AW_XS_HELLO_LEN]);
__attribute__((warn_unused_result)) int aw_xs_stream_meet(struct aw_xs_stream *s,
							  const uint8_t *bytes, size_t len);

/* Called when the connection is established: works may follow. */
void aw_xs_stream_open(struct aw_xs_stream *s);

/*
 * Called when the connection has ended. Unless both directions had ended in order, the stream fails
 * with -ECONNRESET.
 */
void aw_xs_stream_disconnected(struct aw_xs_stream *s);

/* Ends the stream with a negative errno; the first one stays. */
void aw_xs_stream_fail(struct aw_xs_stream *s, int error);

/* Returns whether both directions have ended in order. */
bool aw_xs_stream_is_done(const struct aw_xs_stream *s);

size_t aw_xs_stream_room(const struct aw_xs_stream *s);

/* Copies bytes into the send ring. Returns how many. */
size_t aw_xs_stream_put(struct aw_xs_stream *s, const struct iovec *iov, int n);

/* Makes the byte that was put last the urgent one. */
void aw_xs_stream_put_urgent(struct aw_xs_stream *s);

/*
 * Stores the next work, which the caller must post, and returns true; false: there is none. Fewer
 * than min bytes wait for more.
 */
bool aw_xs_stream_next(struct aw_xs_stream *s, uint32_t min, struct aw_xs_work *work);

/* Called when the oldest posted work has completed, with its wrs and bytes. Works complete in order. */
void aw_xs_stream_done(struct aw_xs_stream *s, uint32_t wrs, uint32_t bytes);

/*
 * Ends our direction after the bytes that were put; no more may be put. AW_XS_GONE: the peer's
 * messages are ignored, too.
 */
void aw_xs_stream_end(struct aw_xs_stream *s, enum aw_xs_end end);

/* Returns whether the end, and all bytes before it, were posted, or cannot be any more. */
bool aw_xs_stream_has_ended(const struct aw_xs_stream *s);

/*
 * Makes a work of at most len bytes of the caller's memory, if all bytes that were put are posted.
 * The caller fills in the spans. Returns how many bytes; 0: no room.
 */
uint32_t aw_xs_stream_direct(struct aw_xs_stream *s, size_t len, struct aw_xs_work *work);

/*
 * Makes the work that writes map into entry index of the peer's I/O map. False: no room until a
 * work completes.
 */
bool aw_xs_stream_iomap(struct aw_xs_stream *s, uint32_t index, const struct aw_xs_iomap *map,
			struct aw_xs_work *work);

/*
 * Makes the work that writes to the memory that the peer has mapped at offset. Returns how many
 * bytes were taken; 0: no map has offset; -EAGAIN: no room.
 */
int64_t aw_xs_stream_iowrite(struct aw_xs_stream *s, const void *bytes, size_t len, uint64_t offset,
			     struct aw_xs_work *work);

/* Returns whether aw_xs_stream_iowrite has room. Bytes of the stream that wait for the peer go first. */
bool aw_xs_stream_may_iowrite(const struct aw_xs_stream *s);

/* Takes a message of the peer's. Returns 0 or -EPROTO, which is also stored in s->error. */
__attribute__((warn_unused_result)) int aw_xs_stream_message(struct aw_xs_stream *s,
							     const uint8_t *bytes, size_t len);

size_t aw_xs_stream_pending(const struct aw_xs_stream *s);
size_t aw_xs_stream_get(struct aw_xs_stream *s, const struct iovec *iov, int n, bool peek);

/* Drops the bytes that were received. */
void aw_xs_stream_discard(struct aw_xs_stream *s);

/*
 * Returns 0 with the urgent byte; -EINVAL: there is no mark; -EAGAIN: the byte is announced, but
 * has not come.
 */
int aw_xs_stream_get_urgent(struct aw_xs_stream *s, bool peek, uint8_t *byte);

/*
 * aw_xs_stream_is_urgent returns whether there is an urgent byte that was not received;
 * aw_xs_stream_at_mark whether it is the next byte.
 */
bool aw_xs_stream_is_urgent(const struct aw_xs_stream *s);
bool aw_xs_stream_at_mark(const struct aw_xs_stream *s);

#endif
