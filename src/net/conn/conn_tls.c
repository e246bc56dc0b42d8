// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "net/conn/conn_tls.h"

#include "base/log.h"
#include "net/base/addr.h"
#include "net/base/io_now.h"
#include "net/tls/cause.h"

#include <errno.h>
#include <string.h>

static void log_secured(const struct aw_conn *c, bool accepts) AW_REQUIRES(c->lock)
{
	if (aw_log_level() >= AW_LOG_INFO)
		aw_log(AW_LOG_INFO, "connection secured by tls peer %s as %s certificate %s%s%s",
		       aw_addr_text(&c->info.peer).text, accepts ? "responder" : "initiator",
		       c->info.identity->name, aw_tls_is_resumed(c->tls) ? " resumed" : "",
		       aw_tls_sends_pieces(c->tls) ? " records kernel" : "");
}

int aw_conn_handshake(struct aw_conn *c, bool accepts, enum aw_tls_io *io)
{
	int err = 0;

	if (!c->tls)
		err = aw_tls_create(c->fd, (const struct sockaddr *)&c->info.peer, accepts,
				    &c->want, &c->tls);
	if (err)
		return err;
	*io = aw_tls_handshake(c->tls);
	if (*io != AW_TLS_DONE)
		return 0;
	c->info.identity = aw_tls_identify(c->tls);
	if (!c->info.identity)
		return ENOMEM;
	log_secured(c, accepts);
	return 0;
}

void aw_conn_drop_crc(struct aw_conn *c)
{
	/* RFC 5044 4.4: no CRC where something at least as strong finds what it would. */
	if (!c->local.crc_asked)
		c->local.crc = false;
}

enum aw_conn_begun aw_conn_look(struct aw_conn *c)
{
	uint8_t first = 0;
	ssize_t n = aw_recv_now(c->fd, &first, 1, MSG_PEEK);
	bool is_tls = n == 1 && (first == AW_TLS_RECORD_ALERT || first == AW_TLS_RECORD_HANDSHAKE);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return AW_CONN_BEGUN_NOT;
	if (is_tls || (c->want.mode == AW_TLS_REQUIRE && first != 'M'))
		return AW_CONN_BEGUN_TLS;
	return AW_CONN_BEGUN_MPA;
}

bool aw_conn_tls_shares(const struct aw_conn *c)
{
	const struct aw_tls_settings *settings = aw_tls_settings();

	if (!settings || !settings->host_path)
		return false;
	if (settings->by_kernel && aw_log_level() >= AW_LOG_INFO)
		aw_log(AW_LOG_INFO,
		       "connection peer %s stays on tcp: memory is not for records that the kernel "
		       "makes, as ANYWARP_TLS_RECORDS asks: set that to user for the host path",
		       aw_addr_text(&c->info.peer).text);
	return !settings->by_kernel;
}

/* The words in the clear count for nothing: both ends begin anew within TLS, where they do not offer that again. */
static void leave_clear(struct aw_conn *c) AW_REQUIRES(c->lock)
{
	c->started_tls = true;
	c->local.tls = false;
	c->local.host = c->local.host && aw_conn_tls_shares(c);
	aw_conn_drop_crc(c);
	c->in.done = 0;
}

bool aw_conn_say_start_tls(struct aw_conn *c)
{
	uint8_t frame[MPA_HDR_LEN];
	size_t len = aw_mpa_start_tls(frame);

	if (aw_send_now(c->fd, frame, len) != (ssize_t)len)
		return false;
	leave_clear(c);
	return true;
}

void aw_conn_ask_within(struct aw_conn *c)
{
	uint8_t pd[MPA_PD_MAX];
	size_t pd_len;
	const uint8_t *asked = aw_frame_pd(&c->out, &pd_len);

	memcpy(pd, asked, pd_len);
	leave_clear(c);
	c->out.len = aw_mpa_request(&c->local, pd, pd_len, c->out.octets);
	c->out.done = 0;
}
