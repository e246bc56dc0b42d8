// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A session's state beside OpenSSL's: the records that wait for the socket, and why it ended. OpenSSL reads and writes
// through a BIO of ours. Its records are collected, so that several records leave by one send. OpenSSL's queue of errors
// belongs to the thread, which may be the program's: it is emptied before each call, as each of its users has to.
#include "net/tls/tls.h"

#include "base/log.h"
#include "net/base/bounds.h"
#include "net/tls/cause.h"
#include "net/tls/expect.h"
#include "net/tls/resume.h"
#include "net/tls/session.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_MAX 4 /* bytes by which a peer that speaks no TLS is known */
#define SPARES 16 /* buffers for output that the process keeps */
#define RECORDS_EXTRA 256 /* by which AW_TLS_SEND_MAX bytes grow as records (RFC 8446 5.2) */

struct aw_tls {
	/* fixed after create */
	SSL *ssl;
	int fd;
	bool accepts;
	struct aw_tls_expect expect;

	bool secured; /* the handshake is done */
	bool has_input; /* the last read returned bytes, so there may be more */
	bool finished; /* close_notify is sent, or waits in out */
	uint32_t reads_left; /* of the socket, in this turn */
	uint8_t first[FIRST_MAX]; /* the peer's first bytes */
	size_t first_len;

	/* Records that the socket has not taken yet; NULL: none. */
	uint8_t *out; /* AW_TLS_OUT_MAX bytes */
	size_t out_sent, out_len;
	uint32_t records; /* that this end has made under its keys */
	size_t owed; /* bytes of the caller that are in them, and were not reported as sent */

	/* Why the session is over. */
	bool fin_seen; /* TCP's */
	int io_errno;
	int err; /* 0: it is not */
	char cause[AW_TLS_CAUSE_MAX];
};

static const struct aw_openssl *const o = &aw_openssl;

static void keep_first(struct aw_tls *tls, const char *from, size_t len)
{
	for (size_t i = 0; i < len && tls->first_len < FIRST_MAX; i++)
		tls->first[tls->first_len++] = (uint8_t)from[i];
}

static int bio_read(BIO *bio, char *to, int len)
{
	struct aw_tls *tls = o->BIO_get_data(bio);
	ssize_t n = -1;

	o->BIO_clear_flags(bio, BIO_FLAGS_RWS | BIO_FLAGS_SHOULD_RETRY);
	errno = EAGAIN;
	if (tls->reads_left > 0) {
		tls->reads_left--;
		n = aw_recv_now(tls->fd, to, (size_t)len, 0);
	}
	if (n > 0)
		keep_first(tls, to, (size_t)n);
	else if (n == 0)
		tls->fin_seen = true;
	else if (errno == EAGAIN || errno == EINTR)
		o->BIO_set_flags(bio, BIO_FLAGS_READ | BIO_FLAGS_SHOULD_RETRY);
	else
		tls->io_errno = errno;
	return (int)n;
}

/*
 * Buffers that sessions have given back, for the next one: from the heap they would come and go with each send. An
 * exchange or a compare-and-swap moves a buffer, so a fork needs no lock; acquire and release are each other's partners.
 */
static _Atomic(uint8_t *) spares[SPARES];

static uint8_t *take_spare(void)
{
	for (int i = 0; i < SPARES; i++) {
		uint8_t *spare = atomic_load_explicit(&spares[i], memory_order_relaxed);

		if (spare)
			spare = atomic_exchange_explicit(&spares[i], NULL, memory_order_acquire);
		if (spare)
			return spare;
	}
	return malloc(AW_TLS_OUT_MAX);
}

static void give_spare(uint8_t *spare)
{
	for (int i = 0; i < SPARES; i++) {
		uint8_t *none = NULL;

		if (atomic_compare_exchange_strong_explicit(
			    &spares[i], &none, spare, memory_order_release, memory_order_relaxed))
			return;
	}
	free(spare);
}

/* False: memory is out, or the bound is reached. */
static bool make_room(struct aw_tls *tls, size_t len)
{
	if (!tls->out)
		tls->out = take_spare();
	return tls->out && len <= AW_TLS_OUT_MAX - tls->out_len;
}

/* At the bound OpenSSL waits, as for a full socket: a peer that makes this end answer, and reads nothing, gets no more. */
static int bio_write(BIO *bio, const char *from, int len)
{
	struct aw_tls *tls = o->BIO_get_data(bio);

	o->BIO_clear_flags(bio, BIO_FLAGS_RWS | BIO_FLAGS_SHOULD_RETRY);
	if (!make_room(tls, (size_t)len)) {
		o->BIO_set_flags(bio, BIO_FLAGS_WRITE | BIO_FLAGS_SHOULD_RETRY);
		return -1;
	}
	memcpy(tls->out + tls->out_len, from, (size_t)len);
	tls->out_len += (size_t)len;
	return len;
}

static long bio_ctrl(BIO *bio, int cmd, long num, void *ptr)
{
	const struct aw_tls *tls = o->BIO_get_data(bio);

	(void)num, (void)ptr;
	if (cmd == BIO_CTRL_EOF)
		return tls->fin_seen;
	return cmd == BIO_CTRL_FLUSH;
}

static pthread_once_t bio_once = PTHREAD_ONCE_INIT;
static BIO_METHOD *bio_method;

static void make_bio_method(void)
{
	/* BIO_TYPE_SOURCE_SINK of openssl/bio.h. */
	bio_method = o->BIO_meth_new(o->BIO_get_new_index() | 0x0400, "anywarp");
	if (!bio_method)
		return;
	o->BIO_meth_set_read(bio_method, bio_read);
	o->BIO_meth_set_write(bio_method, bio_write);
	o->BIO_meth_set_ctrl(bio_method, bio_ctrl);
}

static bool set_bio(struct aw_tls *tls)
{
	BIO *bio;

	pthread_once(&bio_once, make_bio_method);
	bio = bio_method ? o->BIO_new(bio_method) : NULL;
	if (!bio)
		return false;
	o->BIO_set_data(bio, tls);
	o->BIO_set_init(bio, 1);
	o->SSL_set_bio(tls->ssl, bio, bio);
	return true;
}

int aw_tls_create(int fd, const struct sockaddr *peer, bool accepts, const struct aw_tls_want *want,
		  struct aw_tls **made)
{
	struct aw_tls *tls = calloc(1, sizeof(*tls));
	int err = ENOMEM;

	if (!tls)
		return err;
	tls->fd = fd;
	tls->accepts = accepts;
	err = aw_tls_session_make(peer, accepts, want, want->without_mpa ? NULL : AW_TLS_ALPN,
				  &tls->expect, &tls->ssl);
	if (!err && !set_bio(tls))
		err = ENOMEM;
	if (err) {
		aw_tls_free(tls);
		return err;
	}
	aw_tls_resume_begin(tls->ssl, accepts);
	*made = tls;
	return 0;
}

void aw_tls_free(struct aw_tls *tls)
{
	if (!tls)
		return;
	if (tls->ssl)
		o->SSL_free(tls->ssl);
	free(tls->out);
	free(tls);
}

bool aw_tls_flush(struct aw_tls *tls)
{
	while (tls->out_sent < tls->out_len) {
		ssize_t n = aw_send_now(tls->fd, tls->out + tls->out_sent,
					tls->out_len - tls->out_sent);

		if (n < 0) {
			if (errno != EAGAIN && errno != EINTR && errno != ENOBUFS)
				tls->io_errno = errno;
			return false;
		}
		tls->out_sent += (size_t)n;
	}
	if (tls->out)
		give_spare(tls->out);
	tls->out = NULL;
	tls->out_sent = tls->out_len = 0;
	return true;
}

void aw_tls_tell_plain(int fd)
{
	(void)!aw_send_now(fd, aw_tls_plain_alert, AW_TLS_PLAIN_ALERT_LEN);
}

/* OpenSSL answers nothing to bytes that are no TLS. A program of anywarp's that runs without it knows what an alert is. */
static void answer_strange(struct aw_tls *tls)
{
	bool is_tls = tls->first_len == 0 || tls->first[0] == 21 || tls->first[0] == 22;

	if (is_tls || tls->secured || !tls->accepts || tls->out_len > 0 ||
	    !make_room(tls, AW_TLS_PLAIN_ALERT_LEN))
		return;
	memcpy(tls->out, aw_tls_plain_alert, AW_TLS_PLAIN_ALERT_LEN);
	tls->out_len = AW_TLS_PLAIN_ALERT_LEN;
}

/* The session is over. The alert by which the peer is told leaves if the socket has room. */
static void fail(struct aw_tls *tls)
{
	struct aw_tls_end end = {
		.accepts = tls->accepts,
		.secured = tls->secured,
		.cut = tls->fin_seen,
		.io_errno = tls->io_errno,
		.first = tls->first,
		.first_len = tls->first_len,
	};

	(void)aw_tls_session_explain(tls->ssl, &end, tls->cause, sizeof(tls->cause));
	tls->err = EPROTO;
	if (tls->fin_seen)
		tls->err = ECONNRESET;
	else if (tls->io_errno)
		tls->err = tls->io_errno;
	answer_strange(tls);
	(void)aw_tls_flush(tls);
}

/* A server that speaks TLS and no MPA chooses no protocol. It learns that nothing comes: TLS has no alert for it. */
static bool check_alpn(struct aw_tls *tls)
{
	if (aw_tls_session_has_protocol(tls->ssl))
		return true;
	snprintf(
		tls->cause, sizeof(tls->cause),
		"the peer speaks tls, but not for mpa: is its program run by anywarp? a sockets program here "
		"reaches it by a rule tls-plain");
	(void)aw_tls_finish(tls);
	tls->err = EPROTO;
	return false;
}

enum aw_tls_io aw_tls_handshake(struct aw_tls *tls)
{
	int result;

	if (tls->err)
		return AW_TLS_FAILED;
	aw_tls_begin_turn(tls);
	o->ERR_clear_error();
	result = o->SSL_do_handshake(tls->ssl);
	if (result != 1 && !aw_tls_session_waits(tls->ssl, result)) {
		fail(tls);
		return AW_TLS_FAILED;
	}
	if (!aw_tls_flush(tls) && tls->io_errno) {
		fail(tls);
		return AW_TLS_FAILED;
	}
	if (result != 1)
		return AW_TLS_MORE;
	tls->secured = tls->has_input = true;
	return check_alpn(tls) ? AW_TLS_DONE : AW_TLS_FAILED;
}

void aw_tls_begin_turn(struct aw_tls *tls)
{
	tls->reads_left = AW_TLS_TURN_READS;
}

ssize_t aw_tls_recv(struct aw_tls *tls, void *buf, size_t len)
{
	int n;

	if (tls->err) {
		errno = tls->err;
		return -1;
	}
	o->ERR_clear_error();
	n = o->SSL_read(tls->ssl, buf, len < INT_MAX ? (int)len : INT_MAX);
	tls->has_input = n > 0;
	if (n > 0)
		return n;
	if (o->SSL_get_error(tls->ssl, n) == SSL_ERROR_ZERO_RETURN)
		return 0;
	if (!aw_tls_session_waits(tls->ssl, n)) {
		fail(tls);
		errno = tls->err;
	} else {
		errno = EAGAIN;
	}
	return -1;
}

ssize_t aw_tls_send_sealed(struct aw_tls *tls)
{
	size_t sent = tls->owed;

	if (tls->err) {
		errno = tls->err;
		return -1;
	}
	if (!aw_tls_flush(tls)) {
		errno = tls->io_errno ? tls->io_errno : EAGAIN;
		return -1;
	}
	tls->owed = 0;
	return (ssize_t)sent;
}

/* RFC 8446 5.5: keys are for so many records. The message that changes them leaves before the next record. */
static void count_records(struct aw_tls *tls, size_t sealed)
{
	uint32_t most = atomic_load_explicit(&aw_bounds.tls_records_max, memory_order_relaxed);

	tls->records += (uint32_t)((sealed + AW_TLS_RECORD_MAX - 1) / AW_TLS_RECORD_MAX);
	if (tls->records >= most && o->SSL_key_update(tls->ssl, SSL_KEY_UPDATE_NOT_REQUESTED) == 1)
		tls->records = 0;
}

ssize_t aw_tls_seal(struct aw_tls *tls, const void *buf, size_t len)
{
	size_t room = AW_TLS_SEND_MAX - tls->owed;
	int n;

	if (tls->err || tls->finished) {
		errno = tls->err ? tls->err : EPIPE;
		return -1;
	}
	if (room == 0)
		return 0;
	if (len > room)
		len = room;
	if (!make_room(tls, len + RECORDS_EXTRA)) {
		errno = ENOBUFS;
		return -1;
	}
	o->ERR_clear_error();
	n = o->SSL_write(tls->ssl, buf, (int)len);
	if (n <= 0) {
		fail(tls);
		errno = tls->err;
		return -1;
	}
	tls->owed += (size_t)n;
	count_records(tls, (size_t)n);
	return n;
}

ssize_t aw_tls_send(struct aw_tls *tls, const void *buf, size_t len)
{
	ssize_t n = aw_tls_send_sealed(tls);

	if (n != 0)
		return n;
	n = aw_tls_seal(tls, buf, len);
	return n > 0 ? aw_tls_send_sealed(tls) : n;
}

bool aw_tls_has_output(const struct aw_tls *tls)
{
	return tls->out_len > 0;
}

bool aw_tls_has_input(const struct aw_tls *tls)
{
	return tls->has_input && !tls->err;
}

bool aw_tls_has_begun(const struct aw_tls *tls)
{
	return tls->first_len > 0;
}

bool aw_tls_finish(struct aw_tls *tls)
{
	if (tls->secured && !tls->err && !tls->finished) {
		o->ERR_clear_error();
		(void)o->SSL_shutdown(tls->ssl);
		tls->finished = true;
	}
	return tls->err || aw_tls_flush(tls);
}

bool aw_tls_is_resumed(const struct aw_tls *tls)
{
	return o->SSL_session_reused(tls->ssl) == 1;
}

const char *aw_tls_cause(const struct aw_tls *tls)
{
	return tls->cause;
}

struct aw_tls_identity *aw_tls_identify(const struct aw_tls *tls)
{
	return aw_tls_session_identify(tls->ssl);
}
