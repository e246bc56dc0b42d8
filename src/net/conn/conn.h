// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A TCP connection in MPA start-up, as initiator or as responder, until a QP takes its socket. No
// function blocks. Events run on the progress thread with no lock held, and never after
// aw_conn_destroy has returned.
#ifndef NET_CONN_H
#define NET_CONN_H

#include "core/startup.h"
#include "net/qp/uqp.h"
#include "net/tls/identity.h"

#include <sys/socket.h>

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
	/* the peer, from the event on, where TLS protects the stream; else NULL; borrowed for the conn's life */
	struct aw_tls_identity *identity;
	int err; /* FAILED: ECONNREFUSED, ETIMEDOUT, EHOSTUNREACH, ECONNRESET, EPROTO, EOPNOTSUPP
		    (no common RTR), ENOMEM (the peer wants more IRD than there is) ... */
	/*
	 * FAILED: the revision with which the caller may ask once more over another connection, as the peer
	 * may not have understood a Request of revision 2, or not have read it; 0: none
	 */
	uint8_t next_revision;
};

typedef void aw_conn_fn(void *arg, struct aw_conn *conn, enum aw_conn_event event);

/* Valid from the event on, for the conn's life. */
const struct aw_conn_info *aw_conn_info(const struct aw_conn *conn);

/* The parameters of an initiator, all borrowed for the call. */
struct aw_conn_ask {
	const struct sockaddr *peer;
	const struct sockaddr
		*from; /* the address and port that fd is bound to; NULL: asked of fd */
	bool again; /* in place of a conn that failed: does not wait for others to the same peer */
	bool connected; /* the program has connected the socket to peer: there is no second try */
	/*
	 * The peer's QP waits again behind a stream that ends unused (net/roce/rc.c), so an
	 * accepted conn that no QP takes ends without a Terminate, which would end that QP.
	 */
	bool plain_end;
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

/*
 * Writes the parameters that aw_conn_connect had, for a second try; borrowed for the conn's life.
 */
void aw_conn_asked(const struct aw_conn *conn, struct aw_conn_ask *ask);

/*
 * Sets the receiver of FAILED after a REQUEST was handed over (the new id), also of a failure that
 * happened before this call. Returns when no event runs, except the caller's own.
 */
void aw_conn_listen_to(struct aw_conn *conn, aw_conn_fn *fn, void *arg);

/*
 * Responder: gives the socket to qp, which is ready for the peer's first FPDU, and sends the
 * accepting Reply. ird, ord: the values to answer, at most the result's. 0, EINVAL, ECONNRESET (the peer
 * is gone), or aw_uqp_attach's error. After EINVAL for ird, ord or pd_len nothing was sent, and the
 * Request can still be answered; in every other case the conn can only be destroyed.
 */
int aw_conn_accept(struct aw_conn *conn, struct aw_uqp *qp, uint16_t ird, uint16_t ord,
		   const void *pd, size_t pd_len);

/*
 * Responder: sends the rejecting Reply and closes. 0, also when the peer is gone, or EINVAL. The
 * caller then destroys the conn.
 */
int aw_conn_reject(struct aw_conn *conn, const void *pd, size_t pd_len);

/* Initiator after ACCEPTED: gives the socket to qp. 0, EINVAL or aw_uqp_attach's error. */
int aw_conn_attach(struct aw_conn *conn, struct aw_uqp *qp);

/*
 * Ends the conn, and closes its socket if it still has one. Any thread may call it, also from the
 * conn's own event. Called from elsewhere it waits for a running event, so the caller must hold no
 * lock that the event may want.
 */
void aw_conn_destroy(struct aw_conn *conn);

/* Initiator: true when the Request, or a part of it, may have reached the peer. */
bool aw_conn_has_asked(struct aw_conn *conn);

/*
 * Sets the options that every socket keeps for its life. An accepted socket inherits them from its
 * listener.
 */
void aw_conn_set_options(int fd);

/* A responder's socket. */
struct aw_conn_socket {
	int fd; /* connected, non-blocking */
	bool given; /* the program has connected it; otherwise it was accepted */
	struct sockaddr_storage peer;
	struct sockaddr_storage local; /* AF_UNSPEC: asked of fd */
};

/*
 * For net/conn/listener.c: a responder on a socket, which the conn owns on success. fn gets one event, REQUEST or
 * FAILED; after a REQUEST aw_conn_listen_to sets the receiver. 0, ENOMEM, EINVAL (the rules for TLS are wrong), or
 * aw_watch_add's error.
 */
int aw_conn_respond(const struct aw_conn_socket *socket, const struct aw_mpa_local *local,
		    aw_conn_fn *fn, void *arg, struct aw_conn **conn);

/* For net/conn/listener.c: the conn's watch, as aw_watch_look takes it. */
uint64_t aw_conn_watch_key(const struct aw_conn *conn);

/*
 * For net/conn/listener.c: true when a responder waits for its Request, or for TLS's handshake, and no
 * byte can be read yet.
 */
bool aw_conn_is_silent(struct aw_conn *conn);

#endif
