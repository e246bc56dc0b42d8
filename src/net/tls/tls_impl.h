// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A session's state, for the files that carry it out: the handshake (tls.c), its buffers (tls_buffers.c), and the records behind it
// (tls_stream.c).
#ifndef NET_TLS_TLS_IMPL_H
#define NET_TLS_TLS_IMPL_H

#include "net/tls/expect.h"
#include "net/tls/ktls.h"
#include "net/tls/secrets.h"
#include "net/tls/spare.h"
#include "net/tls/tls.h"

#define FIRST_MAX 4 /* bytes by which a peer that speaks no TLS is known */
/* By which records grow: of a send (RFC 8446 5.2), and a KeyUpdate and an alert beside it. */
#define EXTRA_MAX 256

_Static_assert(AW_TLS_SPARE_BYTES >= AW_TLS_OUT_MAX && AW_TLS_SPARE_BYTES >= AW_TLS_SEALED_MAX,
	       "a spare has room for either direction's records");

struct aw_tls {
	/* fixed after create */
	SSL *ssl;
	int fd;
	bool accepts;
	struct aw_tls_expect expect;

	bool secured; /* the handshake is done */
	bool closed; /* the peer's close_notify has come */
	bool finished; /* close_notify is sent, or waits in out */
	uint32_t reads_left; /* of the socket, in this turn */
	uint64_t heard; /* reads of the socket that gave something */
	uint8_t first[FIRST_MAX]; /* the peer's first bytes */
	size_t first_len;

	struct aw_tls_secrets secrets; /* the handshake's, until the records begin */
	struct aw_tls_records records;
	struct aw_ktls ktls;
	/* OpenSSL has been given all of the peer's records so far, so that it takes another one: a ticket. */
	bool takes_tickets;
	const uint8_t *ticket; /* a record that it reads now */
	size_t ticket_len;

	/* The bytes that came from the socket and are not used yet; NULL: none. */
	uint8_t *in;
	size_t in_used, in_len;
	size_t in_size; /* AW_TLS_SPARE_BYTES, or AW_TLS_SEALED_MAX: it waits for the rest of a record */
	bool in_is_counted; /* it is one of AW_TLS_LARGE_MAX */
	/* A record's bytes that are opened, in front of in_used. */
	const uint8_t *rest;
	size_t rest_len;

	/* Records that the socket has not taken yet; NULL: none. */
	uint8_t *out; /* AW_TLS_OUT_MAX bytes */
	size_t out_sent, out_len;
	size_t tickets_at; /* where in out OpenSSL has written behind what it read last */
	size_t sealing; /* bytes of content of the record that is being made */
	size_t owed; /* bytes of the caller that are in them, and were not reported as sent */

	/* Why the session is over. */
	bool fin_seen; /* TCP's */
	int io_errno;
	int err; /* 0: it is not */
	char cause[AW_TLS_CAUSE_MAX];
};

static inline size_t aw_tls_waiting(const struct aw_tls *tls)
{
	return tls->in_len - tls->in_used;
}

/* Reads the socket once. -1: errno is EAGAIN, also when this turn has read enough, or io_errno says what failed. 0: TCP has ended. */
ssize_t aw_tls_read_socket(struct aw_tls *tls);

/* The buffer of what comes, where nothing waits in it. NULL: memory is out. */
uint8_t *aw_tls_take_in(struct aw_tls *tls);

/* At the end of a turn: the buffer of what came is free where nothing waits there, and else no larger than it may be. */
void aw_tls_give_back(struct aw_tls *tls);
void aw_tls_free_buffers(struct aw_tls *tls);

/* Room in out for len bytes. False: memory is out, or the bound is reached. */
bool aw_tls_make_room(struct aw_tls *tls, size_t len);

/* The session is over. The alert by which the peer is told leaves if the socket has room. */
void aw_tls_fail(struct aw_tls *tls);

#endif
