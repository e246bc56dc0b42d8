// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// An endpoint: one connection that carries a byte stream over RDMA, by public verbs and rdma_cm alone.
// Errors are negative errno, readiness is poll(2)'s bits. Nothing blocks but aw_xs_ep_wait and
// aw_xs_ep_drain. Every call may be made in any thread; close is an endpoint's last one, made when no
// other call is under way (shut it down to wake who waits). There are no signals: -EPIPE is all.
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

/* Zero stands for the default of each. */
struct aw_xs_options {
	uint32_t sndbuf, rcvbuf; /* bytes */
	uint16_t sq_size, rq_size; /* messages */
	uint32_t inline_data; /* bytes */
	uint16_t iomap_size; /* buffers that the peer may map for us: 0 is none */
	bool nodelay; /* small messages are not combined */
	uint32_t
		patience_ms; /* a closed one's, with a peer that has not answered the start-up yet */
};

enum aw_xs_state {
	AW_XS_IDLE, /* created */
	AW_XS_CONNECTING, /* connect, initiate, respond or accept, and no answer yet */
	AW_XS_ESTABLISHED, /* both ways, or one of them, as aw_xs_ep_ready tells */
	AW_XS_CLOSED, /* both ways over, in order */
	AW_XS_FAILED, /* aw_xs_ep_error has told or will tell why */
};

struct aw_xs_stats {
	enum aw_xs_state state;
	bool anywarp_peer; /* agreed on our extension: MSG_OOB works */
	uint64_t octets_in, octets_out; /* received from the peer, sent to it */
	uint32_t send_credits, receive_credits; /* messages we may send; that the peer may */
	uint32_t send_window; /* bytes of receive buffer at the peer that we may fill now */
};

int aw_xs_ep_create(const struct aw_xs_options *o, struct aw_xs_ep **ep);

/* Each returns 0 when under way: POLLOUT, or POLLERR, tells of the end. Once an endpoint. */
int aw_xs_ep_connect(struct aw_xs_ep *ep, const struct sockaddr *src, const struct sockaddr *dst);
/* Whether librdmacm takes sockets (anywarp/cm.h). Else the two calls behind are -EOPNOTSUPP. */
bool aw_xs_ep_takes_sockets(void);
/* fd is an established TCP socket; the endpoint's own where 0 is returned. */
int aw_xs_ep_initiate(struct aw_xs_ep *ep, int fd);
int aw_xs_ep_respond(struct aw_xs_ep *ep, int fd);
/*
 * A ticket goes with what connect asks, behind the protocol's own bytes: for who has given it, to know us by.
 * refusal: what a peer that rejected has said, at most max bytes of it; how many there are, 0 of other ends.
 */
#define AW_XS_TICKET_AT 40
#define AW_XS_TICKET_LEN 16
void aw_xs_ep_set_ticket(struct aw_xs_ep *ep, const uint8_t ticket[AW_XS_TICKET_LEN]);
size_t aw_xs_ep_refusal(struct aw_xs_ep *ep, void *octets, size_t max);
/*
 * Takes the id of RDMA_CM_EVENT_CONNECT_REQUEST and answers the peer; where that fails the id is rejected and
 * destroyed. The event is the caller's and must not be acknowledged before the call; afterwards it must be.
 */
int aw_xs_ep_accept(struct aw_xs_ep *ep, struct rdma_cm_event *request);

/*
 * Makes what progress there is to make, and tells
 * POLLIN (bytes, the end of the stream, or an error), POLLOUT (at least one byte will be taken, or the
 * answer is an error), POLLPRI (an urgent byte not yet received), POLLRDHUP (the peer sends no more),
 * POLLHUP (both ways over), POLLERR (aw_xs_ep_error has something to tell).
 */
short aw_xs_ep_ready(struct aw_xs_ep *ep);

/* Like SO_ERROR: a positive errno or 0, and forgotten with that. The endpoint stays failed. */
int aw_xs_ep_error(struct aw_xs_ep *ep);

enum aw_xs_state aw_xs_ep_state(struct aw_xs_ep *ep);

/*
 * Waits until one of events (or POLLERR or POLLHUP) holds and returns what does, as aw_xs_ep_ready. Progress is
 * made in the caller's thread. A timeout below 0 is none. 0: the time is over; -EINTR: a signal.
 */
int aw_xs_ep_wait(struct aw_xs_ep *ep, short events, int64_t timeout_ns);

/*
 * For event loops. `ready; arm; poll(fds)`, in this order each time: where arm is false, something has happened
 * already, so look at ready again and do not sleep. fds[i].fd may be -1, and may change with each call of
 * ready until the endpoint is established; later it never changes but to -1. fds[i].events are filled in.
 * Whether an fd is readable means no more than that ready and arm have to be called. Level-triggered.
 */
#define AW_XS_EP_FDS 2
void aw_xs_ep_fds(struct aw_xs_ep *ep, struct pollfd fds[AW_XS_EP_FDS]);
bool aw_xs_ep_arm(struct aw_xs_ep *ep);
/* The same where other threads make progress, too: false also if one of events holds, whoever brought it about. */
bool aw_xs_ep_arm_for(struct aw_xs_ep *ep, short events);

/*
 * How many bytes were taken: -EAGAIN where none can be, -EPIPE where our direction is over, -ECONNRESET, ...
 * Bytes are taken also while connecting. flags: MSG_MORE (may be held back for what follows), MSG_OOB (the last
 * byte is urgent; -EOPNOTSUPP with a peer that is not anywarp). Other flags are ignored.
 */
ssize_t aw_xs_ep_send(struct aw_xs_ep *ep, const struct iovec *iov, int n, int flags);

/*
 * How many bytes came; 0 at the end of the stream. flags: MSG_PEEK, MSG_OOB (the urgent byte, out of line: -EINVAL
 * where there is none, -EAGAIN where it is announced and not here yet). Bytes stop at the urgent mark, as
 * TCP's do; the urgent byte itself is not in the stream unless aw_xs_ep_set_oobinline.
 */
ssize_t aw_xs_ep_recv(struct aw_xs_ep *ep, const struct iovec *iov, int n, int flags);

/* SHUT_RD, SHUT_WR or SHUT_RDWR; what was taken is sent before the end is told. -ENOTCONN. Wakes who waits. */
int aw_xs_ep_shutdown(struct aw_xs_ep *ep, int how);

/*
 * Frees the endpoint, at once for the caller. What was taken still arrives: the endpoint lingers in a thread of
 * its own, also past the return of main. abort: the peer gets a reset and nothing more.
 */
void aw_xs_ep_close(struct aw_xs_ep *ep, bool abort);

/* Waits until the peer has room for, and TCP has, all that was taken: for SO_LINGER. 0, -ETIMEDOUT, -EINTR, error */
int aw_xs_ep_drain(struct aw_xs_ep *ep, int64_t timeout_ns);

size_t aw_xs_ep_pending(struct aw_xs_ep *ep); /* FIONREAD */
size_t aw_xs_ep_unsent(struct aw_xs_ep *ep); /* SIOCOUTQ: taken and not yet in the peer's hands */
bool aw_xs_ep_at_mark(struct aw_xs_ep *ep); /* SIOCATMARK */
void aw_xs_ep_set_nodelay(struct aw_xs_ep *ep, bool nodelay);
void aw_xs_ep_set_oobinline(struct aw_xs_ep *ep, bool oobinline);
/* Zeroed where not known (yet). */
void aw_xs_ep_names(struct aw_xs_ep *ep, struct sockaddr_storage *local,
		    struct sockaddr_storage *peer);
void aw_xs_ep_stats(struct aw_xs_ep *ep, struct aw_xs_stats *stats);

/*
 * riomap, riounmap, riowrite. iomap: prot is PROT_WRITE (the peer may write) or PROT_NONE; offset -1 stands for
 * the address; returns the offset or a negative errno. iowrite: bytes taken, fewer where no map of the peer
 * covers the rest (0: none at all), -EAGAIN where there is no room for any.
 */
off_t aw_xs_ep_iomap(struct aw_xs_ep *ep, void *buf, size_t len, int prot, off_t offset);
int aw_xs_ep_iounmap(struct aw_xs_ep *ep, void *buf, size_t len);
ssize_t aw_xs_ep_iowrite(struct aw_xs_ep *ep, const void *buf, size_t count, off_t offset);

/*
 * For the extended calls. pd: for regions, the endpoint's alone (NULL before there is a QP). post: one RDMA Write or
 * Read of the caller's regions, in order with the stream; done is called once, by whichever thread makes progress,
 * with 0 or a positive errno, under the endpoint's lock: it must call nothing of this header. -EAGAIN: the queue is full.
 */
struct ibv_pd *aw_xs_ep_pd(struct aw_xs_ep *ep);
int aw_xs_ep_post(struct aw_xs_ep *ep, const struct ibv_send_wr *wr,
		  void (*done)(void *arg, int err), void *arg);

/*
 * Bytes of the stream straight from the caller's registered memory, in order with aw_xs_ep_send: how many were taken,
 * or -EAGAIN; done is called once, as of post, when that memory may be used again.
 */
ssize_t aw_xs_ep_send_zero(struct aw_xs_ep *ep, const void *buf, size_t len, uint32_t lkey,
			   void (*done)(void *arg, int err), void *arg);

/* Waits until no closed endpoint of this process lingers any more. At exit this happens by itself. */
int aw_xs_ep_drain_all(int64_t timeout_ns);

/* As rdma_get_cm_event, but no thread is cancelled in it: locks are held. */
int aw_xs_ep_cm_event(struct rdma_event_channel *channel, struct rdma_cm_event **event);

#endif
