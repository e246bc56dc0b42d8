// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A record: the state of a sockets connection between two anywarp ends beside its TCP socket,
// mainly the FPDUs that are read or sent in part. The program's fd is the TCP socket itself; the
// kernel answers poll, epoll and dup for it. A record holds no pointer and may be in memory that
// several processes share.
//
// The kernel decides whether the fd is readable. Therefore bytes leave the socket only when the
// program gets them at once, or when they are part of an FPDU whose last byte is still in the
// socket or on its way: the fd stays readable as long as the program has not had all that has come.
//
// An urgent byte (MSG_OOB) is an FPDU of its own, at whose last byte TCP's urgent pointer stands.
// The caller sets SO_OOBINLINE on fd, so that this byte stays in the stream.
//
// The two halves change independently, each under its lock in the slot.
//
// half  state                                       fields                            next
// rx    the Reply is due (active end)               reply_due                         receiving; ended
// rx    receiving: `have` bytes of the next FPDU                                      held; ended
//       are here
// rx    held: the FPDU is right, its last byte is   held, given                       receiving when the
//       in the socket                                                                 program has read it
// rx    ended: only the stream's end or `error` is  ended; fault (the peer's)
//       to come
// tx    the Reply waits for the first FPDU          reply, rest                       sending
//       (passive end)
// tx    sending                                                                       partly taken; ended
// tx    partly taken: the next call, or a thread,   rest, rest_urgent, fin_due        sending; ended
//       sends the rest first, then the stream's
//       end if one is due
// tx    sending, and noted in case the process is   intent                            sending; partly taken;
//       killed                                                                        ended
// tx    a send failed behind bytes: the next        error                             sending
//       returns the errno
// tx    ended: a write is EPIPE                     ended
//
// Four rules keep the kernel's answers to poll and epoll true.
// - A read takes bytes out of the socket only as far as they make whole FPDUs for the room that
//   the program gave. Bytes that have left the socket and not reached the program are the
//   beginning of one FPDU, whose rest makes the fd readable. If an FPDU is larger than the
//   program's buffer, its last byte stays in the socket. SO_RCVLOWAT keeps a beginning from waking
//   a poller.
// - No MSG_EOR, which keeps FPDUs in buffers of their own and costs bandwidth. Instead the record
//   asks the send buffer for its room (SO_MEMINFO; without it, whether the fd is writable) when
//   the room that it knew of is used up.
// - A short read means that the socket is empty, as edge-triggered programs assume: a read goes on
//   until the kernel has given less than it was asked for.
// - One call moves several FPDUs: up to sixteen of at most 16 KiB by one sendmsg, and as many by
//   one recvmsg.
//
// Under TLS (aw_record_secure) each FPDU is a TLS record (frame.h), and these rules hold as they are. A half's key counts its
// TLS records, and no number is used for two plaintexts. So TCP is offered only what lies sealed in tx.bytes, and what TCP has
// not taken stays there and is sent as it is; a half whose process was killed while it sealed (intent.seals) is broken. The stream's
// end is close_notify, and TCP's without it is a reset.
//
// The bit that announces records in the hello is 4; an end whose bit is 2 has records without
// urgent bytes, and the two refuse each other.
#ifndef RECORD_RECORD_H
#define RECORD_RECORD_H

#include "record/frame.h"

#include <poll.h>
#include <stdatomic.h>
#include <sys/socket.h>

#define AW_RECORD_FPDUS 16 /* FPDUs that one call sends or receives */
#define AW_RECORD_SEALED \
	4 /* FPDUs of the longest kind that one call seals: they stay in the record until TCP has them */

/* The calls that a record makes; the C library's names may be the caller's own wrappers. */
struct aw_record_calls {
	ssize_t (*recvmsg)(int fd, struct msghdr *msg, int flags);
	ssize_t (*sendmsg)(int fd, const struct msghdr *msg, int flags);
	int (*getsockopt)(int fd, int level, int name, void *value, socklen_t *len);
	int (*setsockopt)(int fd, int level, int name, const void *value, socklen_t len);
	int (*shutdown)(int fd, int how);
	int (*poll)(struct pollfd *fds, nfds_t count, int timeout_ms);
	int (*ioctl)(int fd, unsigned long request,
		     int *answer); /* SIOCATMARK, SIOCOUTQ, FIONREAD */
	/* true when the private data of start-up tells of a record; sealed: of one under TLS */
	bool (*is_record)(const uint8_t *data, size_t len, bool sealed);
	const struct aw_record_cipher *cipher; /* NULL: no record is under TLS */
};

/* A program that has records defines it. */
extern const struct aw_record_calls aw_record_calls;

/* The program's place beside an urgent byte. */
enum aw_mark {
	AW_MARK_NONE,
	AW_MARK_FRONT, /* that byte's FPDU comes next; its last byte alone is still in the socket */
	AW_MARK_BEHIND, /* the program was there when it received the byte by MSG_OOB */
};

/*
 * The last count (FIONREAD), so that the next one looks only at what has come since. A program may
 * count before each of many small reads.
 */
struct aw_record_count {
	bool known;
	uint32_t bytes; /* of payload that the program has not received since */
	uint32_t end; /* of the FPDUs counted: a position in the stream, as taken */
	uint32_t msn; /* of the FPDU that is due there */
};

/*
 * The halves of a record change apart, each under its lock in the slot.
 *
 *   rx:  reply due (active end: `reply_due`) --> receiving (`have` bytes of the next FPDU have left the socket) <--> held
 *        held: the next FPDU is right, and its last byte is still in the socket; the program was given `given` bytes of it
 *        each --> ended: only the stream's end or `error` is still to come; `fault` is what aw_record_end tells the peer
 *   tx:  reply waits (passive end: `reply`, `rest`), and goes out with the first FPDU --> sending <--> partly taken
 *        partly taken: the next call, or a thread started for it, sends `rest` of an FPDU first, and behind it the stream's end
 *        where the program has shut it down (`fin_due`); `rest_urgent`: TCP's urgent pointer goes to its end
 *        each --> ended: a write is EPIPE; a send that failed behind bytes leaves `error` to the next one
 *        While TCP is given bytes, `intent` notes them in case that the process is killed.
 */
struct aw_record_rx {
	bool reply_due; /* the Reply has not come yet */
	uint32_t msn; /* of the FPDU that is due next */
	uint32_t have; /* bytes of the next FPDU, or of the Reply, that have left the socket */
	uint32_t given; /* bytes of a held FPDU's payload that the program was given */
	bool held; /* the next FPDU is whole and right, and its last byte is still in the socket */
	bool counted; /* the program has asked how much it can read */
	struct aw_record_count count;
	uint32_t taken; /* bytes that have left the socket, modulo 2^32 */
	uint32_t lowat; /* SO_RCVLOWAT as the record has set it; 0: not set */
	uint32_t due; /* bytes that must come before another read has any use; 0: not known */
	uint32_t wanted; /* the program's own SO_RCVLOWAT */
	bool in_line; /* the program's own SO_OOBINLINE */
	enum aw_mark mark;
	int error; /* an errno that the program has yet to get, or 0 */
	bool ended; /* only the stream's end, or an error, is still to come */
	/* The program has called shutdown(SHUT_RD) or had the connection's error: an end that TCP shows need not be the stream's. */
	bool shut;
	enum aw_error fault; /* the peer's fault, for aw_record_end to tell; AW_OK */
	struct aw_record_key key;
	bool notified; /* the peer's close_notify has come */
	uint8_t alert; /* the number of the peer's fatal alert; 0: none has come */
	uint8_t updates; /* KeyUpdates since the program was last given bytes */
	_Atomic(uint32_t)
		asked; /* how often the peer has asked for a KeyUpdate; the tx half looks */
	/* Of the next FPDU; of others behind it where the program counts beyond an urgent byte. */
	uint8_t bytes[8 * AW_FPDU_MAX];
};

/* A note of the FPDUs that a process is about to send, in case it is killed (record/intent.h). */
struct aw_record_intent {
	bool open; /* the rest holds, and other fields of aw_record_tx may be half written */
	bool seals; /* numbers of the key may be in use for bytes that are not in the record */
	uint32_t msn, rest_at, rest, sent; /* of aw_record_tx before the call */
	uint32_t count; /* FPDUs of the call; 0: it sends the rest */
	uint32_t lens[AW_RECORD_FPDUS]; /* bytes of each */
};

struct aw_record_tx {
	uint32_t msn; /* of the last FPDU sent */
	uint32_t sent; /* bytes that TCP has taken, modulo 2^32 */
	bool active; /* this end has made the TCP connection */
	struct aw_record_intent intent;
	uint32_t room; /* bytes that the send buffer is certain to take */
	uint32_t rest_at, rest; /* the end of an FPDU that the kernel did not take */
	bool reply; /* the rest is the Reply, which goes out with the first FPDU */
	bool rest_urgent; /* the rest is an urgent FPDU's: TCP's urgent pointer goes to its end */
	bool ended; /* sending is EPIPE from here on */
	bool fin_due; /* the program has shut the stream down; the rest goes out first */
	int error; /* an errno that a send with bytes could not return: the next one's; or 0 */
	struct aw_record_key key;
	uint32_t answered; /* as rx.asked when this half has last sent a KeyUpdate */
	bool notifies; /* the close_notify is made: nothing is sent behind it */
	uint8_t bytes[AW_RECORD_SEALED * AW_FPDU_MAX];
};

struct aw_record {
	struct aw_record_rx rx;
	struct aw_record_tx tx;
};

/*
 * Initializes a record at the beginning of full operation (RFC 5044 7.1): nothing was sent or
 * received yet.
 */
void aw_record_init(struct aw_record *record);

/*
 * Initializes a record under TLS, whose handshake is over on fd: all that TCP has not given yet is the peer's application data. 0; -EOPNOTSUPP:
 * there is no such cipher. The secrets stay the caller's to wipe.
 */
int aw_record_secure(struct aw_record *record, int fd, const struct aw_record_secrets *secrets);
/* Wipes the keys of a record that is not used any more. */
void aw_record_forget_keys(struct aw_record *record);

/* The ids of a record's keys; 0: it has none. */
struct aw_record_key_ids {
	uint64_t tx, rx;
};
struct aw_record_key_ids aw_record_key_ids(const struct aw_record *record);
/* Wipes what this process has of the keys, whose record others may go on using. */
void aw_record_leave_keys(struct aw_record_key_ids ids);

/*
 * Returns whether err, a negative errno of a send or receive, is the connection's failure, which the kernel reports once. Others,
 * as EFAULT or ENOMEM, are the call's alone; EPIPE comes again.
 */
bool aw_record_is_failure(ssize_t err);

/*
 * The record was initialized, or secured, before the start-up.
 *
 * For the active end, which takes its peer for one with records: sends the Request, behind which FPDUs
 * may follow at once. The peer's Reply comes first and wakes no poller. 0 or a negative errno.
 */
int aw_record_initiate(struct aw_record *record, int fd, const void *data, size_t len);

/*
 * For the passive end, which has taken the Request out of the socket. aw_record_answer sends the Reply, unless the peer has ended
 * its stream, and returns 0 or a negative errno. The Reply goes out with the first FPDU then: sent to a peer that has closed it
 * would draw a reset, though no program has sent anything.
 */
void aw_record_respond(struct aw_record *record, const void *data, size_t len);
int aw_record_answer(struct aw_record *record, int fd);

/*
 * For the active end, whose peer may have answered: takes the Reply out of the socket if it is there and alone. True: it is due no
 * more.
 */
bool aw_record_take_answer(struct aw_record *record, int fd);
/* The Reply has not come in time, and is due no more: what is still to come is the stream's end. */
void aw_record_give_up(struct aw_record *record);

/*
 * Takes a client's Request out of the socket, where nothing else is in front of it. 0; -EAGAIN: not all of it is there, and it
 * stays; -EPROTO: that is none; -ENODATA at the stream's end; or a negative errno.
 */
int aw_record_take_request(struct aw_record *record, int fd);

/*
 * For a copy, which this process alone has, of a record that another process has written: returns whether the copy may be used. Its
 * bytes may be anything; the peer or the program sees a broken stream then.
 */
bool aw_record_is_sound(struct aw_record *record);

/*
 * At most one process and thread at a time may be in a record's rx half, and one in its tx half. No
 * call waits.
 */

/* Flags of aw_record_receive. */
enum {
	AW_RECORD_GOES_ON = 1, /* the program's call has got bytes, and so ends at an urgent one */
};

/*
 * Like recvmsg on a non-blocking stream socket: the bytes received, 0 at the stream's end, or a
 * negative errno. Fewer bytes than there is room for mean that the socket had no more, or that the
 * next byte is urgent (AW_MARK_FRONT). flags: AW_RECORD_GOES_ON. A fault of the peer is -EPROTO;
 * its Terminate, or an end within an FPDU, is -ECONNRESET. After either, rx.fault is set, and
 * aw_record_end is due.
 */
ssize_t aw_record_receive(struct aw_record *record, int fd, const struct iovec *iov, int count,
			  int flags);

/*
 * As aw_record_receive, but the bytes stay (MSG_PEEK). due: NULL, or the caller waits until there are bytes for all of its room. Where
 * the look has found some and not all of them, *due is how many bytes must be in the socket for the others; else, or where no
 * others come before an urgent byte or the stream's end, *due is 0.
 */
ssize_t aw_record_peek(struct aw_record *record, int fd, const struct iovec *iov, int count,
		       size_t *due);

/*
 * For a poller that the kernel has told that fd is readable: returns whether a receive returns bytes, the end or an error. False: only a
 * part of an FPDU has come, and has left the socket; SO_RCVLOWAT keeps pollers asleep until the rest is there.
 */
bool aw_record_is_readable(struct aw_record *record, int fd);

/* How many bytes a receive would give (FIONREAD). */
ssize_t aw_record_pending(struct aw_record *record, int fd);

/*
 * Receives the urgent byte that the program does not have in line (MSG_OOB). 1; -EINVAL: there is
 * none, or it was received; -EAGAIN: the peer has announced it, and it has not come; 0: so when the
 * stream ended; -EPROTO: as aw_record_receive. With MSG_PEEK in flags the byte stays.
 */
ssize_t aw_record_receive_urgent(struct aw_record *record, int fd, uint8_t *byte, int flags);

/*
 * True when the next byte is urgent, or one that the program does not have in line stood before it
 * (SIOCATMARK).
 */
bool aw_record_is_at_mark(struct aw_record *record, int fd);

/* Sets the program's own SO_RCVLOWAT: 1 or more bytes of payload. */
void aw_record_set_wanted(struct aw_record *record, int fd, uint32_t wanted);

/*
 * Like sendmsg on a non-blocking stream socket: the bytes taken, or a negative errno. -EAGAIN: the
 * fd is not writable; pollers are told when it is. Of flags MSG_MORE and MSG_OOB count; with MSG_OOB
 * the last byte is urgent.
 */
ssize_t aw_record_send(struct aw_record *record, int fd, const struct iovec *iov, int count,
		       int flags);

/*
 * How many of len bytes aw_record_send takes at once, and for certain, with no other sender in between: those of one
 * FPDU at most. 0: the fd is not writable; pollers are told when it is.
 */
size_t aw_record_room(struct aw_record *record, int fd, size_t len);

/*
 * Sends the rest of an FPDU or Request that the kernel did not take, as before a shutdown, and the
 * stream's end where it is due; a Reply stays. 0, -EAGAIN, or the negative errno that ended the
 * connection.
 */
int aw_record_flush(struct aw_record *record, int fd);
/*
 * As aw_record_flush, before the program's end of the stream: under TLS sends the close_notify as well, behind which nothing
 * can be sent.
 */
int aw_record_finish(struct aw_record *record, int fd);

/*
 * For the process that gets the tx half after another one was killed in it. True: the stream goes on; FPDUs of the
 * killed process that TCP has taken are sent, others are not; under TLS those that it has sealed are sent. False: TCP has taken a
 * part of an FPDU, or the process was sealing.
 */
bool aw_record_recover(struct aw_record *record, int fd);

/*
 * Tells the peer rx.fault by a Terminate (RFC 5040 4.8), or by an alert where a TLS record was wrong, unless the peer has ended the
 * stream first, and ends the connection. Part of the tx half.
 */
void aw_record_end(struct aw_record *record, int fd);

#endif
