// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A session's handshake, which is OpenSSL's; the records behind it are ours (records.h). The bytes that come from the socket wait in a buffer
// of the session, from which OpenSSL takes one record at a time: of the peer's first ones behind the handshake only tickets are for
// it. Both send into another buffer, so that several records leave by one send. OpenSSL's queue of errors
// belongs to the thread, which may be the program's: it is emptied before each call, as each of its users has to.
#include "net/tls/tls_impl.h"

#include "net/tls/cause.h"
#include "net/tls/resume.h"
#include "net/tls/session.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct aw_openssl *const o = &aw_openssl;

/* The ticket that is OpenSSL's, and nothing else. */
static size_t read_ticket(struct aw_tls *tls, char *to, size_t len)
{
	if (len > tls->ticket_len)
		len = tls->ticket_len;
	if (len > 0)
		memcpy(to, tls->ticket, len);
	tls->ticket += len;
	tls->ticket_len -= len;
	return len;
}

static int bio_read(BIO *bio, char *to, int room)
{
	struct aw_tls *tls = o->BIO_get_data(bio);
	size_t len = (size_t)room;
	ssize_t n = 1;

	o->BIO_clear_flags(bio, BIO_FLAGS_RWS | BIO_FLAGS_SHOULD_RETRY);
	if (tls->secured) {
		len = read_ticket(tls, to, len);
		n = len > 0 ? 1 : -1;
	} else {
		if (aw_tls_waiting(tls) == 0)
			n = aw_tls_read_socket(tls);
		if (len > aw_tls_waiting(tls))
			len = aw_tls_waiting(tls);
		if (n > 0)
			memcpy(to, tls->in + tls->in_used, len);
		tls->in_used += len;
		tls->tickets_at = tls->out_len;
	}
	if (n > 0)
		return (int)len;
	if (n < 0 && !tls->io_errno)
		o->BIO_set_flags(bio, BIO_FLAGS_READ | BIO_FLAGS_SHOULD_RETRY);
	return (int)n;
}

/*
 * At the bound OpenSSL waits, as for a full socket: a peer that makes this end answer, and reads nothing, gets no more. Behind the
 * handshake nothing of it leaves: the keys count records that it does not know.
 */
static int bio_write(BIO *bio, const char *from, int len)
{
	struct aw_tls *tls = o->BIO_get_data(bio);

	o->BIO_clear_flags(bio, BIO_FLAGS_RWS | BIO_FLAGS_SHOULD_RETRY);
	if (tls->secured)
		return len;
	if (!aw_tls_make_room(tls, (size_t)len)) {
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
	if (!err && !(set_bio(tls) && aw_tls_secrets_keep(tls->ssl, &tls->secrets)))
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
	aw_tls_records_end(&tls->records);
	explicit_bzero(&tls->secrets, sizeof(tls->secrets));
	aw_tls_free_buffers(tls);
	free(tls);
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
	    !aw_tls_make_room(tls, AW_TLS_PLAIN_ALERT_LEN))
		return;
	memcpy(tls->out, aw_tls_plain_alert, AW_TLS_PLAIN_ALERT_LEN);
	tls->out_len = AW_TLS_PLAIN_ALERT_LEN;
}

/* The words for an end that the records have found, and the alert that tells the peer of it. */
static void explain_records(struct aw_tls *tls)
{
	struct aw_tls_records *records = &tls->records;
	int reason = records->ended_by_peer ? SSL_AD_REASON_OFFSET + records->alert : 0;
	struct aw_tls_end end = {
		.accepts = tls->accepts,
		.secured = true,
		.without_mpa = !tls->expect.alpn,
		.reason = reason,
		.reason_text = records->fault,
	};

	if (records->ended_by_peer)
		end.reason_text = o->ERR_reason_error_string(AW_OPENSSL_SSL_ERROR(reason));
	aw_tls_explain(&end, tls->cause, sizeof(tls->cause));
	o->ERR_clear_error();
	if (records->ended_by_peer)
		return;
	if (aw_tls_sends_pieces(tls))
		aw_ktls_put_alert(tls, records->alert);
	else if (aw_tls_records_are_on(records) && aw_tls_make_room(tls, EXTRA_MAX))
		tls->out_len +=
			aw_tls_records_put_alert(records, tls->out + tls->out_len, records->alert);
}

void aw_tls_fail(struct aw_tls *tls)
{
	struct aw_tls_end end = {
		.accepts = tls->accepts,
		.secured = tls->secured,
		.cut = tls->fin_seen,
		.io_errno = tls->io_errno,
		.first = tls->first,
		.first_len = tls->first_len,
	};

	tls->err = EPROTO;
	if (tls->records.fault) {
		explain_records(tls);
	} else {
		(void)aw_tls_session_explain(tls->ssl, &end, tls->cause, sizeof(tls->cause));
		if (tls->fin_seen)
			tls->err = ECONNRESET;
		else if (tls->io_errno)
			tls->err = tls->io_errno;
		answer_strange(tls);
	}
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

/* The records that OpenSSL has made behind what it has read last: of a responder that is done, its tickets. */
static uint64_t count_tickets(const struct aw_tls *tls)
{
	uint64_t count = 0;

	for (size_t at = tls->tickets_at; tls->accepts && at + AW_AEAD_HEAD <= tls->out_len;
	     count++)
		at += aw_tls_record_len(tls->out + at);
	return count;
}

/* The records are this end's own from here on. */
static bool begin_records(struct aw_tls *tls)
{
	uint16_t suite = o->SSL_CIPHER_get_protocol_id(o->SSL_get_current_cipher(tls->ssl));
	bool begun = aw_suite_is_known(suite) && tls->secrets.client_is_known &&
		     tls->secrets.server_is_known &&
		     aw_tls_records_begin(&tls->records, suite, &tls->secrets, !tls->accepts,
					  count_tickets(tls));

	if (!aw_suite_is_known(suite))
		tls->records.fault =
			"a cipher suite of openssl.cnf that is not known here: allow one with GCM or "
			"ChaCha20-Poly1305 there";
	else if (!begun)
		tls->io_errno = ENOMEM;
	explicit_bzero(&tls->secrets, sizeof(tls->secrets));
	tls->takes_tickets = !tls->accepts;
	tls->secured = begun;
	if (begun)
		aw_ktls_choose(tls);
	return begun;
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
		aw_tls_fail(tls);
		return AW_TLS_FAILED;
	}
	if (result == 1 && !begin_records(tls)) {
		aw_tls_fail(tls);
		return AW_TLS_FAILED;
	}
	if (!aw_tls_flush(tls) && tls->io_errno) {
		aw_tls_fail(tls);
		return AW_TLS_FAILED;
	}
	aw_tls_give_back(tls);
	if (result != 1)
		return AW_TLS_MORE;
	if (!check_alpn(tls))
		return AW_TLS_FAILED;
	aw_ktls_begin_sends(tls);
	return AW_TLS_DONE;
}

bool aw_tls_has_begun(const struct aw_tls *tls)
{
	return tls->first_len > 0;
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
