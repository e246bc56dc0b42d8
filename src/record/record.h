// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A sockets connection between two anywarp ends, as a record beside its TCP socket: what is half read and half
// sent. The program's fd is the TCP socket itself; the kernel answers poll, epoll and dup for it. A record holds no
// pointer and may be in memory that several processes share.
//
// The kernel says what is readable. So bytes leave the socket only when the program gets them at once, or
// when they are part of an FPDU whose last byte is still in the socket or on its way: the fd is readable
// as long as the program has not had all of what has come.
#ifndef RECORD_RECORD_H
#define RECORD_RECORD_H

#include "record/frame.h"

#include <poll.h>
#include <sys/socket.h>

#define AW_RECORD_FRAMES 8 /* FPDUs that one call sends or receives */

/* What the record asks of the C library, whose names may be the caller's own wrappers. */
struct aw_record_calls {
	ssize_t (*recvmsg)(int fd, struct msghdr *msg, int flags);
	ssize_t (*sendmsg)(int fd, const struct msghdr *msg, int flags);
	int (*getsockopt)(int fd, int level, int name, void *value, socklen_t *len);
	int (*setsockopt)(int fd, int level, int name, const void *value, socklen_t len);
	int (*shutdown)(int fd, int how);
	int (*poll)(struct pollfd *fds, nfds_t count, int timeout_ms);
	aw_frame_crc_fn *crc; /* CRC32c */
	bool (*is_record)(const uint8_t *data,
			  size_t len); /* of a Reply's private data: the peer has a record */
};

struct aw_record_rx {
	bool reply_due; /* before the first FPDU */
	uint32_t msn; /* due next */
	uint32_t have; /* bytes of the next FPDU, or of the Reply, that have left the socket */
	uint32_t given; /* of a held FPDU's payload to the program */
	bool long_last; /* the last FPDU was as long as can be: the next one probably is, too */
	bool held; /* it is whole and right, its last byte is in the socket */
	uint32_t lowat; /* SO_RCVLOWAT as the record has set it; 0: as it was */
	int error; /* an errno that the program has yet to get; 0 */
	bool ended; /* the stream's end, or an error, is all that is to come */
	enum aw_error verdict; /* the peer's fault, of which aw_record_end is to tell it; AW_OK */
	uint8_t bytes[AW_RECORD_FRAMES * AW_FRAME_MAX + AW_FRAME_HEAD];
};

struct aw_record_tx {
	uint32_t msn; /* of the last FPDU sent */
	uint32_t room; /* bytes that the send buffer takes whole without another look */
	uint32_t rest_at,
		rest; /* where an FPDU's end that the kernel did not take stands in bytes, and its length */
	bool reply; /* the rest is the Reply, which goes out with the first FPDU */
	bool ended; /* EPIPE from here on */
	uint8_t bytes[AW_FRAME_MAX];
};

struct aw_record {
	bool crc; /* agreed at start-up */
	struct aw_record_rx rx;
	struct aw_record_tx tx;
};

/* Full operation begins (RFC 5044 7.1): nothing was sent or received yet. */
void aw_record_init(struct aw_record *record, bool crc);

/*
 * The active end, which knows that its peer has records: sends the Request, behind which FPDUs may follow at once. What
 * comes first is the Reply, which makes no poller wake. 0 or a negative errno.
 */
int aw_record_initiate(struct aw_record *record, const struct aw_record_calls *calls, int fd,
		       const void *data, size_t len);

/*
 * The passive end, which has taken the Request out of the socket. Its Reply goes out with its first FPDU: a peer that has
 * closed by then, or has nothing to read, is not to be found out by an answer that no program has written.
 */
void aw_record_respond(struct aw_record *record, const void *data, size_t len);

/* One process and thread at a time is in a record's rx half, one in its tx half. No call waits. */

/*
 * As recvmsg on a stream socket that does not wait: bytes, 0 at the stream's end, or a negative errno. Fewer bytes than
 * there is room for mean that the socket had no more. The peer's fault is -EPROTO; its Terminate, or an end inside of an
 * FPDU, is -ECONNRESET. Behind both rx.verdict is set, and aw_record_end is due.
 */
ssize_t aw_record_receive(struct aw_record *record, const struct aw_record_calls *calls, int fd,
			  const struct iovec *iov, int count);

/* The same, but the bytes stay (MSG_PEEK). */
ssize_t aw_record_peek(struct aw_record *record, const struct aw_record_calls *calls, int fd,
		       const struct iovec *iov, int count);

/* How many bytes a receive would give (FIONREAD); queued: what the kernel says of the socket. */
ssize_t aw_record_pending(struct aw_record *record, const struct aw_record_calls *calls, int fd,
			  size_t queued);

/*
 * As sendmsg on a stream socket that does not wait: the bytes taken, or a negative errno. -EAGAIN: the fd is not
 * writable, and will tell when it is. flags: MSG_MORE.
 */
ssize_t aw_record_send(struct aw_record *record, const struct aw_record_calls *calls, int fd,
		       const struct iovec *iov, int count, int flags);

/* Sends what the kernel did not take of an FPDU, before a shutdown: no Reply. 0, -EAGAIN, or what ended the connection. */
int aw_record_flush(struct aw_record *record, const struct aw_record_calls *calls, int fd);

/* Of the tx half: tells the peer rx.verdict by a Terminate (RFC 5040 4.8), unless it has ended first, and ends the connection. */
void aw_record_end(struct aw_record *record, const struct aw_record_calls *calls, int fd);

#endif
