// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// An endpoint: one connection that transports a byte stream over RDMA, by public verbs and rdma_cm
// alone. Functions return negative errnos; readiness is in poll(2)'s bits. Only aw_xs_ep_wait,
// aw_xs_ep_wait_iowrite, aw_xs_ep_drain and aw_xs_ep_drain_all block. Any thread may call any function: each takes the
// endpoint's lock. aw_xs_ep_close is the last call on an endpoint, made when no other call is in
// progress (a shutdown wakes the threads that wait). No call raises SIGPIPE. Called by proxy/, ext/
// and rsockets/.
#ifndef XSOCK_ENDPOINT_EP_H
#define XSOCK_ENDPOINT_EP_H

#include <infiniband/verbs.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/uio.h>

struct aw_xs_ep;

/* Zero means the default. */
struct aw_xs_options {
	uint32_t sndbuf, rcvbuf; /* bytes */
	uint16_t sq_size, rq_size; /* messages */
	uint32_t inline_data; /* bytes */
	uint16_t iomap_size; /* how many buffers of the peer's we may write to; 0: none */
	bool nodelay; /* small messages are not combined */
	/*
	 * how long a closed endpoint waits for a peer that has not finished start-up; 0: as for any
	 * stall
	 */
	uint32_t startup_timeout_ms;
};

enum aw_xs_state {
	AW_XS_IDLE, /* created */
	/* after connect, initiate, respond or accept, until both ends have agreed */
	AW_XS_CONNECTING,
	AW_XS_ESTABLISHED, /* at least one direction is open */
	AW_XS_CLOSED, /* both directions have ended in order */
	AW_XS_FAILED, /* aw_xs_ep_error returns the errno, once */
};

struct aw_xs_stats {
	enum aw_xs_state state;
	bool anywarp_peer; /* both ends have anywarp's extension: MSG_OOB works */
	uint64_t bytes_in, bytes_out; /* received from the peer, sent to it */
	/* how many messages we may send; how many the peer may */
	uint32_t send_credits, receive_credits;
};

/* Creates an endpoint. o NULL: all defaults. Returns 0 or -ENOMEM. */
int aw_xs_ep_create(const struct aw_xs_options *o, struct aw_xs_ep **ep);

/*
 * Starts a connection, once per endpoint. Returns 0 when start-up has begun; POLLOUT or POLLERR
 * reports its end. Initiate, respond and accept likewise.
 */
int aw_xs_ep_connect(struct aw_xs_ep *ep, const struct sockaddr *src, const struct sockaddr *dst);
/*
 * Returns whether librdmacm takes sockets (anywarp/cm.h). Without that the next two functions
 * return -EOPNOTSUPP.
 */
bool aw_xs_ep_takes_sockets(void);
/* Starts MPA on fd, a connected TCP socket. The endpoint takes fd if 0 is returned. */
int aw_xs_ep_initiate(struct aw_xs_ep *ep, int fd);
int aw_xs_ep_respond(struct aw_xs_ep *ep, int fd);
/*
 * set_ticket: aw_xs_ep_connect sends the ticket behind the protocol's own bytes, so that the peer
 * knows who connects. refusal: copies at most max bytes of the private data by which a peer has
 * rejected; returns how many, 0 if none has.
 */
#define AW_XS_TICKET_AT 40
#define AW_XS_TICKET_LEN 16
void aw_xs_ep_set_ticket(struct aw_xs_ep *ep, const uint8_t ticket[AW_XS_TICKET_LEN]);
size_t aw_xs_ep_refusal(struct aw_xs_ep *ep, void *bytes, size_t max);
/*
 * Accepts the connection of an RDMA_CM_EVENT_CONNECT_REQUEST and takes its id; after an error the
 * id is rejected and destroyed. The caller acknowledges the event after the call, not before.
 */
int aw_xs_ep_accept(struct aw_xs_ep *ep, struct rdma_cm_event *request);

/*
 * Makes progress and returns the readiness: POLLIN (bytes, the end of the stream, or an error),
 * POLLOUT (a send takes at least one byte or fails), POLLPRI (an urgent byte not yet received),
 * POLLRDHUP (the peer sends no more), POLLHUP (both directions have ended), POLLERR (aw_xs_ep_error
 * returns an errno).
 */
short aw_xs_ep_ready(struct aw_xs_ep *ep);

/* Returns, like SO_ERROR, a positive errno once, or 0. The endpoint stays failed. */
int aw_xs_ep_error(struct aw_xs_ep *ep);

enum aw_xs_state aw_xs_ep_state(struct aw_xs_ep *ep);

/*
 * Waits until one of events, POLLERR or POLLHUP holds, and returns the readiness as aw_xs_ep_ready.
 * The calling thread makes progress. timeout_ns below 0: no limit. Returns 0 at the time-out,
 * -EINTR after a signal.
 */
int aw_xs_ep_wait(struct aw_xs_ep *ep, short events, int64_t timeout_ns);
/*
 * Tells a librdmacm that lends connections to threads that sleep (anywarp's) that threads of the
 * caller serve the endpoint, which it otherwise learns when one sleeps in aw_xs_ep_wait.
 */
void aw_xs_ep_attend(struct aw_xs_ep *ep);
/* on: threads in aw_xs_ep_wait, and later ones that would have to wait, return -ECANCELED, until it is turned off. */
void aw_xs_ep_interrupt(struct aw_xs_ep *ep, bool on);

/*
 * For event loops: `ready; arm; poll(fds)`, in this order each time. If arm returns false,
 * something has happened already: call ready again and do not sleep. fds[i].fd may be -1, and may
 * change with each call of ready until the endpoint is established; later it changes only to -1.
 * fds[i].events are filled in, level-triggered. A readable fd means only that ready and arm have to
 * be called. While a thread sleeps so, the completions of aw_xs_ep_post wake it, whichever thread
 * has posted.
 */
#define AW_XS_EP_FDS 2
void aw_xs_ep_fds(struct aw_xs_ep *ep, struct pollfd fds[AW_XS_EP_FDS]);
bool aw_xs_ep_arm(struct aw_xs_ep *ep);
/* As aw_xs_ep_arm, where other threads make progress, too: also false if one of events holds. */
bool aw_xs_ep_arm_for(struct aw_xs_ep *ep, short events);

/*
 * Returns how many bytes were taken; -EAGAIN: none can be; -EPIPE: our direction has ended; or
 * another errno. Bytes are taken during start-up, too. flags: MSG_MORE (the bytes may be held back
 * for the next ones), MSG_OOB (the last byte is urgent; -EOPNOTSUPP if the peer is not anywarp).
 * Other flags are ignored.
 */
ssize_t aw_xs_ep_send(struct aw_xs_ep *ep, const struct iovec *iov, int n, int flags);

/*
 * Returns how many bytes were received; 0 at the end of the stream. flags: MSG_PEEK, MSG_OOB
 * (receives the urgent byte out of line; -EINVAL: there is none; -EAGAIN: it is announced, but has
 * not come). As in TCP, a receive stops at the urgent mark, and the urgent byte is in the stream
 * only after aw_xs_ep_set_oobinline.
 */
ssize_t aw_xs_ep_recv(struct aw_xs_ep *ep, const struct iovec *iov, int n, int flags);

/*
 * how: SHUT_RD, SHUT_WR or SHUT_RDWR. The bytes that were taken are sent before the end of the
 * stream. Wakes the threads that wait. Returns 0 or -ENOTCONN.
 */
int aw_xs_ep_shutdown(struct aw_xs_ep *ep, int how);

/*
 * Closes the endpoint; the caller must not use it any more. The bytes that were taken still arrive:
 * the endpoint lingers in the executor's thread, also after main has returned. abort: the peer gets
 * a reset instead.
 */
void aw_xs_ep_close(struct aw_xs_ep *ep, bool abort);
/*
 * Ends the connection as aw_xs_ep_close without abort does; the endpoint stays the caller's until it is closed, too,
 * because what was made on its PD has to go first.
 */
void aw_xs_ep_hang_up(struct aw_xs_ep *ep);
/* Resets the connection, unless it has ended. The endpoint stays the caller's. */
void aw_xs_ep_reset(struct aw_xs_ep *ep);

/*
 * Waits, for SO_LINGER, until TCP has taken all bytes. Returns 0, -ETIMEDOUT, -EINTR or the
 * connection's error.
 */
int aw_xs_ep_drain(struct aw_xs_ep *ep, int64_t timeout_ns);

size_t aw_xs_ep_pending(struct aw_xs_ep *ep); /* FIONREAD */
/* SIOCOUTQ: bytes taken that the peer has not received */
size_t aw_xs_ep_unsent(struct aw_xs_ep *ep);
bool aw_xs_ep_at_mark(struct aw_xs_ep *ep); /* SIOCATMARK */
void aw_xs_ep_set_nodelay(struct aw_xs_ep *ep, bool nodelay);
void aw_xs_ep_set_oobinline(struct aw_xs_ep *ep, bool oobinline);
/* Stores the addresses; zeroes where one is not known yet. */
void aw_xs_ep_names(struct aw_xs_ep *ep, struct sockaddr_storage *local,
		    struct sockaddr_storage *peer);
void aw_xs_ep_stats(struct aw_xs_ep *ep, struct aw_xs_stats *stats);

/*
 * riomap, riounmap, riowrite. iomap: prot is PROT_WRITE (the peer may write) or PROT_NONE; offset
 * -1 means the address; returns the offset or a negative errno. iowrite: returns how many bytes
 * were taken, of those that one map of the peer's covers (0: none does); -EAGAIN: there is no
 * room.
 */
off_t aw_xs_ep_iomap(struct aw_xs_ep *ep, void *buf, size_t len, int prot, off_t offset);
int aw_xs_ep_iounmap(struct aw_xs_ep *ep, void *buf, size_t len);
ssize_t aw_xs_ep_iowrite(struct aw_xs_ep *ep, const void *buf, size_t count, off_t offset);
/* As aw_xs_ep_wait, until aw_xs_ep_iowrite has room or fails. */
int aw_xs_ep_wait_iowrite(struct aw_xs_ep *ep, int64_t timeout_ns);

/*
 * For the extended calls. pd: the endpoint's own PD, for regions; NULL before there is a QP. post:
 * posts one RDMA Write or Read of one of the caller's regions, in order with the stream; note, unless
 * NULL, is sent on the stream behind it and together with it, all of it. done is called once, with 0 or
 * a positive errno, by the thread that makes progress, under the endpoint's lock: it must call no
 * function of this header. -EAGAIN: the queue is full, or there is no room for the note.
 */
struct ibv_pd *aw_xs_ep_pd(struct aw_xs_ep *ep);
int aw_xs_ep_post(struct aw_xs_ep *ep, const struct ibv_send_wr *wr, const struct iovec *note,
		  void (*done)(void *arg, int err), void *arg);

/*
 * Sends bytes of the stream from the caller's registered memory, in order with aw_xs_ep_send.
 * Returns how many were taken, or -EAGAIN; done is called once, as for post, when that memory may
 * be used again.
 */
ssize_t aw_xs_ep_send_zero(struct aw_xs_ep *ep, const void *buf, size_t len, uint32_t lkey,
			   void (*done)(void *arg, int err), void *arg);

/*
 * Waits until no closed endpoint of this process lingers. exit(3) does so by itself, for the time that is left of
 * aw_xs_exit_left_ns: the first exit handler to call that sets the limit for all of exit.
 */
int aw_xs_ep_drain_all(int64_t timeout_ns);
int64_t aw_xs_exit_left_ns(int64_t limit_ns);

/* As rdma_get_cm_event, but with cancellation off: the caller holds locks. */
int aw_xs_ep_cm_event(struct rdma_event_channel *channel, struct rdma_cm_event **event);

#endif
