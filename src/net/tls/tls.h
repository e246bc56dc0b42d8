// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A TLS 1.3 session, under MPA or around a program's own bytes: both ends prove who they are by certificates, on the TCP connection before
// the first of these (docs/tls.md). The session reads and writes the connection's non-blocking socket, which stays its owner's; no call waits.
// Records are made and opened here, in user space, or by the kernel (ktls.h), where the user asks for that.
//
// One thread at a time uses a session, under its owner's lock: the connection's, then the QP's.
#ifndef NET_TLS_TLS_H
#define NET_TLS_TLS_H

#include "net/base/io_now.h"
#include "net/tls/identity.h"
#include "net/tls/records.h"
#include "net/tls/want.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>

#define AW_TLS_SEND_MAX (64u * 1024) /* bytes that become records before the socket is asked */
/* Bytes of records that wait for the socket: a full send, and what the handshake or a key update adds. */
#define AW_TLS_OUT_MAX (AW_TLS_SEND_MAX + 32u * 1024)
#define AW_TLS_TURN_READS \
	4 /* of the socket in a turn, of 96 KiB each, so that other QPs have theirs */
/*
 * Buffers of that size that wait, in the process, for the rest of a record. Further sessions, and all whose peers are not known
 * yet, wait with one of a single record.
 */
#define AW_TLS_LARGE_MAX 64
#define AW_TLS_CAUSE_MAX 256

struct aw_tls;

enum aw_tls_io {
	AW_TLS_DONE,
	AW_TLS_MORE, /* the peer's bytes are missing, or the socket is full (aw_tls_has_output) */
	AW_TLS_FAILED, /* aw_tls_cause says why; an alert was sent */
};

/*
 * A session over fd, to the peer at this address, which want lets in. accepts: the peer has connected, and speaks first. 0,
 * ENOMEM, or EINVAL: the settings are wrong (aw_tls_check).
 */
int aw_tls_create(int fd, const struct sockaddr *peer, bool accepts, const struct aw_tls_want *want,
		  struct aw_tls **tls);

/* Tells a peer that speaks no TLS that this end wants it, by an alert. */
void aw_tls_tell_plain(int fd);

/* Sends nothing. Takes NULL. */
void aw_tls_free(struct aw_tls *tls);

/* The next step, once the socket is ready. */
enum aw_tls_io aw_tls_handshake(struct aw_tls *tls);

/*
 * As recv(2): the bytes of one record at most. 0: the peer has ended its direction. -1: EAGAIN; or the session is over, which
 * aw_tls_cause explains: ECONNRESET when TCP ended it, maybe cut by somebody between the two ends, and EPROTO.
 */
ssize_t aw_tls_recv(struct aw_tls *tls, void *buf, size_t len);

/* From here on the socket is read so often at most, until the next call; aw_tls_recv then returns EAGAIN. */
void aw_tls_begin_turn(struct aw_tls *tls);

/*
 * Makes records of up to AW_TLS_SEND_MAX bytes in all, which leave by aw_tls_send_sealed. Returns the bytes that it took; 0: the
 * records before must leave first. -1: EPIPE, ENOBUFS (memory is out), or the session is over.
 */
ssize_t aw_tls_seal(struct aw_tls *tls, const void *buf, size_t len);

/*
 * One such record of pieces: start, the pieces in order, and finish. start returns how many of len bytes it takes; 0 and -1 as above. A piece
 * that is gone leaves the record as it is, and another start begins it anew. False: the session is over.
 */
ssize_t aw_tls_seal_start(struct aw_tls *tls, size_t len);
bool aw_tls_seal_add(struct aw_tls *tls, const void *buf, size_t len)
	__attribute__((warn_unused_result));
bool aw_tls_seal_finish(struct aw_tls *tls) __attribute__((warn_unused_result));

/* How many bytes the next start would take. */
size_t aw_tls_seal_room(const struct aw_tls *tls);

/* True when the kernel makes the records: aw_tls_send_pieces sends the caller's memory, without sealing. */
bool aw_tls_sends_pieces(const struct aw_tls *tls);
/* As sendmsg(2); -1 also when the session is over. EFAULT: memory is unmapped. */
ssize_t aw_tls_send_pieces(struct aw_tls *tls, const struct iovec *iov, size_t count);

/* The maker of the records: the two directions' may for a moment, or where the kernel refuses one, be different. */
enum aw_tls_by {
	AW_TLS_BY_USER,
	AW_TLS_BY_KERNEL,
	AW_TLS_BY_BOTH,
};
enum aw_tls_by aw_tls_by(const struct aw_tls *tls);

/*
 * Returns the bytes of the caller in the records that have left since it was told last; 0: it has been told of all. -1: EAGAIN, and
 * it is told of all of them later; or the session is over.
 */
ssize_t aw_tls_send_sealed(struct aw_tls *tls);

/*
 * As send(2). After EAGAIN the next call offers the same bytes, with others behind them or not; its result counts those that
 * have left meanwhile.
 */
ssize_t aw_tls_send(struct aw_tls *tls, const void *buf, size_t len);

/* Sends what waits for the socket. True when nothing does any more. */
bool aw_tls_flush(struct aw_tls *tls);
bool aw_tls_has_output(const struct aw_tls *tls);

/* True when TCP has been given all that was sent. */
bool aw_tls_has_left(const struct aw_tls *tls);

/* True when aw_tls_recv may return bytes of which the socket knows nothing any more. */
bool aw_tls_has_input(const struct aw_tls *tls);

/* Grows with each read that the socket gave something, be it a part of a record, or one that has nothing for the caller of aw_tls_recv. */
uint64_t aw_tls_heard(const struct aw_tls *tls);

/* True when a byte of the peer has come. */
bool aw_tls_has_begun(const struct aw_tls *tls);

/*
 * Ends this direction (close_notify), so that the peer can tell the end from one that somebody else has made. True when that
 * has left; else a flush sends it. Has no effect on a session that failed.
 */
bool aw_tls_finish(struct aw_tls *tls);

/* In words, with a remedy. Valid for the session's life. */
const char *aw_tls_cause(const struct aw_tls *tls);

/*
 * The peer, once the handshake is done, with a reference for the caller. NULL: memory is out, or the peer is a client that has shown no
 * certificate.
 */
struct aw_tls_identity *aw_tls_identify(const struct aw_tls *tls);

/* True when the session goes on from an earlier one with the peer (net/tls/resume.h). */
bool aw_tls_is_resumed(const struct aw_tls *tls);

/* recv and send of a socket, through its session if there is one. */
static inline ssize_t aw_tls_or_plain_recv(int fd, struct aw_tls *tls, void *buf, size_t len)
{
	return tls ? aw_tls_recv(tls, buf, len) : aw_recv_now(fd, buf, len, 0);
}

static inline ssize_t aw_tls_or_plain_send(int fd, struct aw_tls *tls, const void *buf, size_t len)
{
	return tls ? aw_tls_send(tls, buf, len) : aw_send_now(fd, buf, len);
}

#endif
