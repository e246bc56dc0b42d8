// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A TCP connection in MPA start-up, as initiator or as responder, until a QP takes its socket.
// Never blocks. Events come on the progress thread with no lock held; never after destroy returned.
#ifndef NET_CONN_H
#define NET_CONN_H

#include "core/startup.h"
#include "net/uqp.h"

#include <sys/socket.h>

/*
 * From TCP up to the frame being whole; also for TCP's own connect. On a socket that the program has given it runs
 * from the frame's first octet: there TCP may have accepted long before the peer's program does.
 */
#define AW_CONN_STARTUP_MS 10000

/*
 * A peer that acknowledges nothing for so long though asked is lost: neither our octets or probes of its
 * window (net/lost.h), nor, when there are none under way, TCP's own questions, which begin after half of it
 * (keep-alive). As iWARP adapters do, who ask too; TCP alone would take a quarter of an hour, or never find out.
 * RFC 9293 3.8.3 wants at least 100 seconds. A peer that answers and takes no octet lives.
 */
#define AW_CONN_LOST_MS 120000

/* A refused connection is tried again, after pauses of 1, 2, 4 ... ms: 127 ms in all. */
#define AW_CONN_REFUSALS_MAX 7

struct aw_conn;

enum aw_conn_event {
	AW_CONN_REQUEST, /* responder: a valid Request is there; accept, reject or destroy it */
	AW_CONN_ACCEPTED, /* initiator: a Reply without R; attach the QP or destroy */
	AW_CONN_REJECTED, /* initiator: a Reply with R; destroy */
	AW_CONN_FAILED, /* initiator, or a Request not yet answered: see err; destroy */
};

struct aw_conn_info {
	struct sockaddr_storage local; /* initiator: with the port once TCP is connected */
	struct sockaddr_storage peer;
	struct aw_mpa_result
		result; /* REQUEST, ACCEPTED, REJECTED; pd borrowed for the conn's life */
	bool given; /* the program has connected the socket */
	int err; /* FAILED: ECONNREFUSED, ETIMEDOUT, EHOSTUNREACH, ECONNRESET, EPROTO, EOPNOTSUPP
		    (no common RTR), ENOMEM (the peer wants more IRD than there is) ... */
	bool plain_only; /* FAILED: the peer took a revision 2 Request for malformed, or for 1; over
			    another connection it can be asked again */
};

typedef void aw_conn_fn(void *arg, struct aw_conn *conn, enum aw_conn_event event);

/* Valid from the event on, for the conn's life. */
const struct aw_conn_info *aw_conn_info(const struct aw_conn *conn);

/* What an initiator wants of whom; all of it borrowed for the call. */
struct aw_conn_ask {
	const struct sockaddr *peer;
	bool connected; /* the socket is, to peer, and given: there is no other one, and no second try */
	const struct aw_mpa_local *local;
	const void *pd;
	size_t pd_len;
};

/*
 * Starts connecting. fd is a non-blocking TCP socket, bound or not, and the conn's from here on
 * success. Exactly one event follows. 0, or EINVAL (pd too long), ENOMEM, or connect(2)'s error
 * when it is known at once.
 */
int aw_conn_connect(int fd, const struct aw_conn_ask *ask, aw_conn_fn *fn, void *arg,
		    struct aw_conn **conn);

/* What an initiator asked, to ask it again; borrowed for the conn's life. */
void aw_conn_asked(const struct aw_conn *conn, struct aw_conn_ask *ask);

/*
 * Who hears of FAILED after a REQUEST was handed over (the new id); also of one that happened
 * before. Returns when no event is running but the caller's own.
 */
void aw_conn_listen_to(struct aw_conn *conn, aw_conn_fn *fn, void *arg);

/*
 * Responder: sends the accepting Reply and gives the socket to qp, in this order towards the
 * peer but with the QP ready for its first FPDU. ird, ord: what to answer, at most the result's.
 * 0, EINVAL, ECONNRESET (the peer is gone), or what aw_uqp_attach says. After EINVAL for ird, ord
 * or pd_len nothing was sent, and the Request is still to be answered; in every other case the
 * conn is left to be destroyed.
 */
int aw_conn_accept(struct aw_conn *conn, struct aw_uqp *qp, uint16_t ird, uint16_t ord,
		   const void *pd, size_t pd_len);

/*
 * Responder: sends the rejecting Reply and closes. 0, also when the peer is gone, or EINVAL.
 * Destroy it after.
 */
int aw_conn_reject(struct aw_conn *conn, const void *pd, size_t pd_len);

/* Initiator after ACCEPTED: gives the socket to qp. 0, EINVAL or what aw_uqp_attach says. */
int aw_conn_attach(struct aw_conn *conn, struct aw_uqp *qp);

/*
 * Ends it; closes the socket if still its own. Any thread; also from its own event. From elsewhere
 * it waits for a running event: hold no lock that the event may want.
 */
void aw_conn_destroy(struct aw_conn *conn);

/* The same without a word to the peer, whom another process has, too. The progress thread is held. */
void aw_conn_forget(struct aw_conn *conn);

/* Initiator: whether the Request, or a part of it, may have reached the peer. */
bool aw_conn_has_asked(struct aw_conn *conn);

/* What every socket has for its life, also under a QP. An accepted one has it from its listener. */
void aw_conn_set_options(int fd);

/*
 * For net/listener.c: a responder on a connected, non-blocking socket, given or accepted, which is the
 * conn's on success. fn gets one event, REQUEST or FAILED; after a REQUEST aw_conn_listen_to decides
 * who hears. 0 or what aw_watch_add says.
 */
int aw_conn_respond(int fd, bool given, const struct aw_mpa_local *local, aw_conn_fn *fn, void *arg,
		    struct aw_conn **conn);

/*
 * For net/listener.c: whether a responder still waits for its Request while nothing of it lies there
 * to be read.
 */
bool aw_conn_is_silent(struct aw_conn *conn);

#endif
