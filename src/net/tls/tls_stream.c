// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The bytes within a session whose handshake is done: records that are opened and made, and its end.
#include "net/tls/tls_impl.h"

#include "net/base/bounds.h"
#include "net/tls/session.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

static const struct aw_openssl *const o = &aw_openssl;

void aw_tls_begin_turn(struct aw_tls *tls)
{
	tls->reads_left = AW_TLS_TURN_READS;
}

/* The result of a step of the receiving half. */
enum tls_step {
	STEP_DATA, /* bytes went to the caller, or to rest */
	STEP_AGAIN,
	STEP_SOCKET, /* no whole record is there */
	STEP_OVER, /* the peer's close_notify has come, or the session has failed */
};

static enum tls_step judge_opened(struct aw_tls *tls, enum aw_tls_opened opened)
{
	switch (opened) {
	case AW_TLS_OPENED_DATA:
		return STEP_DATA;
	case AW_TLS_OPENED_TICKET:
	case AW_TLS_OPENED_OTHER:
		return STEP_AGAIN;
	case AW_TLS_OPENED_CLOSE:
		tls->closed = true;
		return STEP_OVER;
	case AW_TLS_OPENED_FAULT:
		break;
	}
	aw_tls_fail(tls);
	return STEP_OVER;
}

/* OpenSSL keeps the ticket for the next connection (resume.h). */
static bool give_ticket(struct aw_tls *tls, const uint8_t *record, size_t size)
{
	uint8_t none;
	int n;

	tls->ticket = record;
	tls->ticket_len = size;
	o->ERR_clear_error();
	n = o->SSL_read(tls->ssl, &none, 1);
	return n <= 0 && aw_tls_session_waits(tls->ssl, n);
}

/* A responder's first records may be tickets, which OpenSSL needs as they came: so they are not opened in place. */
static __attribute__((noinline)) enum tls_step open_first(struct aw_tls *tls, uint8_t *record,
							  size_t size)
{
	uint8_t apart[AW_TLS_SEALED_MAX];
	size_t len = 0;
	enum aw_tls_opened opened = aw_tls_records_open(&tls->records, record, size, apart, &len);

	tls->in_used += size;
	tls->takes_tickets = opened == AW_TLS_OPENED_TICKET;
	if (tls->takes_tickets && !give_ticket(tls, record, size)) {
		tls->records.fault = "a ticket that OpenSSL does not take";
		tls->records.alert = AW_TLS_DECODE_ERROR;
		opened = AW_TLS_OPENED_FAULT;
	}
	if (opened == AW_TLS_OPENED_DATA) {
		memcpy(record, apart, len);
		tls->rest = record;
		tls->rest_len = len;
	}
	return judge_opened(tls, opened);
}

/* Opens the next record. *len: room in buf; then the bytes there. Where buf is too small they are opened in place. */
static enum tls_step open_next(struct aw_tls *tls, uint8_t *buf, size_t *len)
{
	size_t size, got = 0;
	enum aw_tls_opened opened;
	uint8_t *record;
	bool fits;

	if (aw_tls_waiting(tls) < AW_AEAD_HEAD)
		return STEP_SOCKET;
	record = tls->in + tls->in_used;
	if (!aw_tls_records_size(&tls->records, record, &size))
		return judge_opened(tls, AW_TLS_OPENED_FAULT);
	if (aw_tls_waiting(tls) < size)
		return STEP_SOCKET;
	fits = size - AW_AEAD_HEAD - AW_AEAD_TAG <= *len;
	*len = 0;
	if (tls->takes_tickets)
		return open_first(tls, record, size);
	opened = aw_tls_records_open(&tls->records, record, size,
				     fits ? buf : record + AW_AEAD_HEAD, &got);
	tls->in_used += size;
	if (opened == AW_TLS_OPENED_DATA && fits) {
		*len = got;
	} else if (opened == AW_TLS_OPENED_DATA) {
		tls->rest = record + AW_AEAD_HEAD;
		tls->rest_len = got;
	}
	return judge_opened(tls, opened);
}

/* As above, of records that the kernel has opened; several of data at once. */
static enum tls_step take_kernels(struct aw_tls *tls, uint8_t *buf, size_t *len)
{
	bool fits = *len >= AW_TLS_RECORD_MAX;
	uint8_t *to = fits ? buf : aw_tls_take_in(tls);
	size_t room = fits ? *len : AW_TLS_RECORD_MAX;
	enum aw_tls_opened opened;
	uint8_t type;
	ssize_t n;

	*len = 0;
	if (!to) {
		tls->io_errno = ENOMEM;
		return STEP_SOCKET;
	}
	n = aw_ktls_recv(tls, to, room, &type);
	if (n < 0 && tls->records.fault)
		return judge_opened(tls, AW_TLS_OPENED_FAULT);
	if (n < 0 || tls->fin_seen)
		return STEP_SOCKET;
	opened = aw_tls_records_take(&tls->records, type, to, (size_t)n);
	if (tls->records.opens_anew && opened != AW_TLS_OPENED_FAULT && !aw_ktls_follow(tls))
		opened = AW_TLS_OPENED_FAULT;
	if (opened == AW_TLS_OPENED_DATA && fits) {
		*len = (size_t)n;
	} else if (opened == AW_TLS_OPENED_DATA) {
		tls->rest = to;
		tls->rest_len = (size_t)n;
	}
	return judge_opened(tls, opened);
}

static ssize_t take_rest(struct aw_tls *tls, void *buf, size_t len)
{
	if (len > tls->rest_len)
		len = tls->rest_len;
	memcpy(buf, tls->rest, len);
	tls->rest += len;
	tls->rest_len -= len;
	return (ssize_t)len;
}

/* The next bytes; 0 and -1 as aw_tls_recv. */
static ssize_t receive(struct aw_tls *tls, void *buf, size_t room)
{
	enum tls_step step = STEP_AGAIN;
	size_t len = 0;

	while (step == STEP_AGAIN && tls->rest_len == 0 && !tls->closed) {
		len = room;
		aw_ktls_begin_receives(tls);
		if (tls->ktls.receives == AW_KTLS_KERNEL)
			step = take_kernels(tls, buf, &len);
		else if ((step = open_next(tls, buf, &len)) == STEP_SOCKET &&
			 aw_tls_read_socket(tls) > 0)
			step = STEP_AGAIN;
	}
	if (tls->rest_len > 0)
		return take_rest(tls, buf, room);
	if (step == STEP_SOCKET && (tls->fin_seen || tls->io_errno))
		aw_tls_fail(tls);
	if (step == STEP_DATA)
		return (ssize_t)len;
	if (tls->closed)
		return 0;
	errno = tls->err ? tls->err : EAGAIN;
	return -1;
}

/* A peer that asks for a KeyUpdate gets it before any other record. While records wait for the socket there is one behind them at most. */
static void answer_update(struct aw_tls *tls)
{
	size_t len;

	if (!tls->records.owes_update || tls->err || tls->finished || tls->out_len > 0)
		return;
	if (aw_tls_sends_pieces(tls)) {
		(void)!aw_ktls_update(tls);
		return;
	}
	if (!aw_tls_make_room(tls, EXTRA_MAX))
		return;
	len = aw_tls_records_put_update(&tls->records, tls->out);
	tls->out_len = len;
	if (len == 0)
		aw_tls_fail(tls);
}

ssize_t aw_tls_recv(struct aw_tls *tls, void *buf, size_t len)
{
	ssize_t n;
	int error;

	if (tls->err) {
		errno = tls->err;
		return -1;
	}
	n = receive(tls, buf, len);
	error = errno;
	aw_tls_give_back(tls);
	answer_update(tls);
	errno = error;
	return n;
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
	aw_ktls_begin_sends(tls);
	return (ssize_t)sent;
}

bool aw_tls_sends_pieces(const struct aw_tls *tls)
{
	return tls->ktls.sends == AW_KTLS_KERNEL;
}

ssize_t aw_tls_send_pieces(struct aw_tls *tls, const struct iovec *iov, size_t count)
{
	return aw_ktls_send(tls, iov, count);
}

enum aw_tls_by aw_tls_by(const struct aw_tls *tls)
{
	bool sends = tls->ktls.sends == AW_KTLS_KERNEL;

	if (sends != (tls->ktls.receives == AW_KTLS_KERNEL))
		return AW_TLS_BY_BOTH;
	return sends ? AW_TLS_BY_KERNEL : AW_TLS_BY_USER;
}

/* False: the cipher has failed, and the session is over. */
static bool has_sealed(struct aw_tls *tls, bool right)
{
	if (!right) {
		aw_tls_fail(tls);
		errno = tls->err;
	}
	return right;
}

/* RFC 8446 5.5: keys are for so many records. */
static bool update_keys(struct aw_tls *tls)
{
	uint32_t most = atomic_load_explicit(&aw_bounds.tls_records_max, memory_order_relaxed);
	size_t len;

	if ((tls->records.seals.key.seq < most ||
	     !aw_suite_is_bounded(tls->records.seals.key.suite)) &&
	    !tls->records.owes_update)
		return true;
	len = aw_tls_records_put_update(&tls->records, tls->out + tls->out_len);
	tls->out_len += len;
	return has_sealed(tls, len > 0);
}

size_t aw_tls_seal_room(const struct aw_tls *tls)
{
	return AW_TLS_SEND_MAX - tls->owed;
}

ssize_t aw_tls_seal_start(struct aw_tls *tls, size_t len)
{
	size_t room = aw_tls_seal_room(tls);

	if (tls->err || tls->finished) {
		errno = tls->err ? tls->err : EPIPE;
		return -1;
	}
	if (room > AW_TLS_RECORD_MAX)
		room = AW_TLS_RECORD_MAX;
	if (len > room)
		len = room;
	if (len == 0)
		return 0;
	if (!aw_tls_make_room(tls, len + EXTRA_MAX)) {
		errno = ENOBUFS;
		return -1;
	}
	if (!update_keys(tls))
		return -1;
	tls->sealing = len;
	if (!has_sealed(tls, aw_tls_records_start(&tls->records, tls->out + tls->out_len, len)))
		return -1;
	return (ssize_t)len;
}

bool aw_tls_seal_add(struct aw_tls *tls, const void *buf, size_t len)
{
	return has_sealed(tls, aw_tls_records_add(&tls->records, buf, len));
}

bool aw_tls_seal_finish(struct aw_tls *tls)
{
	if (!has_sealed(tls, aw_tls_records_finish(&tls->records, AW_TLS_DATA)))
		return false;
	tls->out_len += tls->sealing + AW_TLS_SEALED_EXTRA;
	tls->owed += tls->sealing;
	return true;
}

ssize_t aw_tls_seal(struct aw_tls *tls, const void *buf, size_t len)
{
	const uint8_t *from = buf;
	size_t sealed = 0;
	ssize_t n = 0;

	while (sealed < len && (n = aw_tls_seal_start(tls, len - sealed)) > 0) {
		if (!aw_tls_seal_add(tls, from + sealed, (size_t)n) || !aw_tls_seal_finish(tls))
			return -1;
		sealed += (size_t)n;
	}
	return sealed > 0 ? (ssize_t)sealed : n;
}

ssize_t aw_tls_send(struct aw_tls *tls, const void *buf, size_t len)
{
	const struct iovec piece = { .iov_base = (void *)(uintptr_t)buf, .iov_len = len };
	ssize_t n = aw_tls_send_sealed(tls);

	if (n != 0)
		return n;
	if (aw_tls_sends_pieces(tls))
		return aw_ktls_send(tls, &piece, 1);
	n = aw_tls_seal(tls, buf, len);
	return n > 0 ? aw_tls_send_sealed(tls) : n;
}

/* OpenSSL resumes no session whose end it does not know of. */
static void put_close_notify(struct aw_tls *tls)
{
	tls->finished = true;
	o->SSL_set_shutdown(tls->ssl, SSL_SENT_SHUTDOWN);
	if (aw_tls_sends_pieces(tls))
		tls->ktls.owes_close = true;
	else if (aw_tls_make_room(tls, EXTRA_MAX))
		tls->out_len += aw_tls_records_put_alert(&tls->records, tls->out + tls->out_len,
							 AW_TLS_CLOSE_NOTIFY);
}

bool aw_tls_finish(struct aw_tls *tls)
{
	if (tls->secured && !tls->err && !tls->finished)
		put_close_notify(tls);
	return tls->err || aw_tls_flush(tls);
}
