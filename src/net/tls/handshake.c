// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// OpenSSL reads and writes memory. It is given one record at a time, since nothing but its own result says which record of type
// application_data is the handshake's last, and which the first behind it.
#include "net/tls/handshake.h"

#include "net/tls/cause.h"
#include "net/tls/expect.h"
#include "net/tls/session.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CAUSE_MAX 256
#define TYPE_MIN 20 /* change_cipher_spec */
#define TYPE_MAX 23 /* application_data */

struct aw_handshake {
	/* fixed after create */
	SSL *ssl;
	BIO *in, *out; /* of ssl */
	bool accepts;
	struct aw_tls_expect expect;

	enum aw_handshake_state state;
	struct aw_tls_secrets secrets;
	/* The header of the record that is being taken, and how much of it and of the record has come. */
	uint8_t header[AW_HANDSHAKE_HEADER];
	size_t header_len, body_len;
	size_t records; /* that are taken */
	uint8_t first[AW_HANDSHAKE_HEADER]; /* the peer's first bytes */
	size_t first_len;
	char cause[CAUSE_MAX];
};

static const struct aw_openssl *const o = &aw_openssl;

static size_t body_size(const struct aw_handshake *handshake)
{
	return (size_t)handshake->header[3] << 8 | handshake->header[4];
}

size_t aw_handshake_wanted(const struct aw_handshake *handshake)
{
	if (handshake->state != AW_HANDSHAKE_MORE)
		return 0;
	if (handshake->header_len < AW_HANDSHAKE_HEADER)
		return AW_HANDSHAKE_HEADER - handshake->header_len;
	return body_size(handshake) - handshake->body_len;
}

static enum aw_handshake_state fail(struct aw_handshake *handshake, bool cut, int io_errno)
{
	struct aw_tls_end end = {
		.accepts = handshake->accepts,
		.cut = cut,
		.io_errno = io_errno,
		.first = handshake->first,
		.first_len = handshake->first_len,
	};
	int reason = aw_tls_session_explain(handshake->ssl, &end, handshake->cause, CAUSE_MAX);

	handshake->state = AW_HANDSHAKE_FAILED;
	if (reason == SSL_R_CALLBACK_FAILED)
		handshake->state = AW_HANDSHAKE_OTHER;
	return handshake->state;
}

/* The peer has chosen no protocol, or another one, which it must not: it learns that nothing comes, for which TLS has no alert. */
static enum aw_handshake_state refuse_protocol(struct aw_handshake *handshake)
{
	snprintf(
		handshake->cause, CAUSE_MAX,
		"the peer speaks tls, but not for records of anywarp: is its program run by this version of anywarp?");
	(void)o->SSL_shutdown(handshake->ssl);
	handshake->state = AW_HANDSHAKE_FAILED;
	return handshake->state;
}

/* Has OpenSSL go on with what it was given. */
static enum aw_handshake_state step(struct aw_handshake *handshake)
{
	int result;

	o->ERR_clear_error();
	result = o->SSL_do_handshake(handshake->ssl);
	if (result != 1)
		return aw_tls_session_waits(handshake->ssl, result) ? AW_HANDSHAKE_MORE
								    : fail(handshake, false, 0);
	if (!aw_tls_session_has_protocol(handshake->ssl))
		return refuse_protocol(handshake);
	assert(handshake->secrets.client_is_known && handshake->secrets.server_is_known);
	handshake->state = AW_HANDSHAKE_DONE;
	return handshake->state;
}

static bool prepare(struct aw_handshake *handshake)
{
	BIO *in = o->BIO_new(o->BIO_s_mem()), *out = o->BIO_new(o->BIO_s_mem());

	if (!in || !out) {
		(void)o->BIO_free(in);
		(void)o->BIO_free(out);
		return false;
	}
	handshake->in = in;
	handshake->out = out;
	o->SSL_set_bio(handshake->ssl, in, out);
	return o->SSL_set_num_tickets(handshake->ssl, 0) == 1 &&
	       aw_tls_secrets_keep(handshake->ssl, &handshake->secrets);
}

int aw_handshake_create(const struct sockaddr *peer, bool accepts, const struct aw_tls_want *want,
			struct aw_handshake **made)
{
	struct aw_handshake *handshake = calloc(1, sizeof(*handshake));
	int err = ENOMEM;

	if (!handshake)
		return err;
	handshake->accepts = accepts;
	err = aw_tls_session_make(peer, accepts, want, AW_TLS_ALPN_RECORD, &handshake->expect,
				  &handshake->ssl);
	if (!err && !prepare(handshake))
		err = ENOMEM;
	if (err) {
		aw_handshake_free(handshake);
		return err;
	}
	if (!accepts)
		(void)step(handshake);
	*made = handshake;
	return 0;
}

void aw_handshake_free(struct aw_handshake *handshake)
{
	if (!handshake)
		return;
	if (handshake->ssl)
		o->SSL_free(handshake->ssl);
	explicit_bzero(&handshake->secrets, sizeof(handshake->secrets));
	free(handshake);
}

/*
 * A peer that speaks no TLS gets the alert of a version if it has connected: an anywarp end without TLS knows what that is. OpenSSL would
 * tell it nothing.
 */
static enum aw_handshake_state refuse_stranger(struct aw_handshake *handshake)
{
	o->ERR_clear_error();
	if (handshake->records == 0 && handshake->accepts)
		(void)o->BIO_write(handshake->out, aw_tls_plain_alert, AW_TLS_PLAIN_ALERT_LEN);
	if (handshake->records == 0)
		return fail(handshake, false, 0);
	snprintf(handshake->cause, CAUSE_MAX, "the peer sent no tls record amid the handshake");
	handshake->state = AW_HANDSHAKE_FAILED;
	return handshake->state;
}

/* RFC 8446 5.1: a record has one of four types, the version of TLS 1.0 to 1.2, and a length that is bounded. */
static bool is_record(const uint8_t header[AW_HANDSHAKE_HEADER])
{
	size_t size = (size_t)header[3] << 8 | header[4];

	return header[0] >= TYPE_MIN && header[0] <= TYPE_MAX && header[1] == 3 && size > 0 &&
	       size <= AW_HANDSHAKE_RECORD_MAX;
}

/* Gives the bytes to OpenSSL, whose memory may be out. */
static bool give(struct aw_handshake *handshake, const void *octets, size_t len)
{
	assert(len <= AW_HANDSHAKE_RECORD_MAX);
	return o->BIO_write(handshake->in, octets, (int)len) == (int)len;
}

static enum aw_handshake_state take_header(struct aw_handshake *handshake, const void *octets,
					   size_t len)
{
	memcpy(handshake->header + handshake->header_len, octets, len);
	handshake->header_len += len;
	handshake->body_len = 0;
	if (handshake->records == 0) {
		memcpy(handshake->first, handshake->header, handshake->header_len);
		handshake->first_len = handshake->header_len;
	}
	if (handshake->header_len < AW_HANDSHAKE_HEADER)
		return AW_HANDSHAKE_MORE;
	if (!is_record(handshake->header))
		return refuse_stranger(handshake);
	return give(handshake, handshake->header, AW_HANDSHAKE_HEADER)
		       ? AW_HANDSHAKE_MORE
		       : fail(handshake, false, ENOMEM);
}

enum aw_handshake_state aw_handshake_take(struct aw_handshake *handshake, const void *octets,
					  size_t len)
{
	if (handshake->state != AW_HANDSHAKE_MORE)
		return handshake->state;
	assert(len <= aw_handshake_wanted(handshake));
	if (handshake->header_len < AW_HANDSHAKE_HEADER)
		return take_header(handshake, octets, len);
	if (!give(handshake, octets, len))
		return fail(handshake, false, ENOMEM);
	handshake->body_len += len;
	if (aw_handshake_wanted(handshake) > 0)
		return AW_HANDSHAKE_MORE;
	handshake->records++;
	handshake->header_len = 0;
	return step(handshake);
}

enum aw_handshake_state aw_handshake_cut(struct aw_handshake *handshake, int io_errno)
{
	if (handshake->state != AW_HANDSHAKE_MORE)
		return handshake->state;
	o->ERR_clear_error();
	return fail(handshake, io_errno == 0, io_errno);
}

size_t aw_handshake_output(struct aw_handshake *handshake, void *to, size_t len)
{
	int n = o->BIO_read(handshake->out, to, len < INT_MAX ? (int)len : INT_MAX);

	return n > 0 ? (size_t)n : 0;
}

const char *aw_handshake_cause(const struct aw_handshake *handshake)
{
	return handshake->cause;
}

uint16_t aw_handshake_cipher(const struct aw_handshake *handshake)
{
	return o->SSL_CIPHER_get_protocol_id(o->SSL_get_current_cipher(handshake->ssl));
}

const struct aw_tls_secrets *aw_handshake_secrets(const struct aw_handshake *handshake)
{
	return &handshake->secrets;
}

struct aw_tls_identity *aw_handshake_identify(const struct aw_handshake *handshake)
{
	return aw_tls_session_identify(handshake->ssl);
}
