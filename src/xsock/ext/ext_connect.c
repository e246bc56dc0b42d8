// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Connects the two ends of an extended socket. If both have anywarp's librdmacm, MPA starts on the
// TCP connection itself (anywarp/cm.h). Otherwise they agree on that connection on a place to meet
// by rdma_cm (rendezvous.h), and the TCP connection stays open. The active end sends the first
// frame, from which the passive end knows what to do.
#include "xsock/ext/ext.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "xsock/ext/ext_place.h"
#include "xsock/ext/ext_tcp.h"
#include "xsock/ext/rendezvous.h"

/* how long the peer's program has to start the connection, too */
#define START_NS INT64_C(10000000000)

struct ext_start {
	struct aw_ext *ext;
	bool nodelay;
	int tcp; /* -1: the endpoint has taken it */
	struct sockaddr_storage local, peer;
	int64_t until_ns;
};

static int make_ep(struct ext_start *s)
{
	struct aw_xs_options options = { .nodelay = s->nodelay };

	return -aw_xs_ep_create(&options, &s->ext->ep);
}

/*
 * Waits until both ends have agreed. Returns 0 or an errno. A later failure is found on the stream.
 */
static int await_established(struct ext_start *s)
{
	struct aw_ext *ext = s->ext;
	struct aw_xs_stats stats;
	int bits, error;

	do
		bits = aw_xs_ep_wait(ext->ep, POLLOUT,
				     aw_ext_left_ms(s->until_ns) * INT64_C(1000000));
	while (bits == -EINTR);
	if (bits < 0)
		return -bits;
	if (bits == 0)
		return ETIMEDOUT;
	aw_xs_ep_stats(ext->ep, &stats);
	ext->peer_knows = stats.anywarp_peer;
	if (stats.state == AW_XS_ESTABLISHED || stats.state == AW_XS_CLOSED || ext->peer_knows)
		return 0;
	error = aw_xs_ep_error(ext->ep);
	return error ? error : ECONNRESET;
}

/* Starts MPA on the TCP connection. */
static int start_mpa(struct ext_start *s, int (*begin)(struct aw_xs_ep *ep, int fd))
{
	int err = -begin(s->ext->ep, s->tcp);

	if (err)
		return err;
	s->tcp = -1;
	return await_established(s);
}

static int connect_to_place(struct ext_start *s, const struct aw_place *place)
{
	int err;

	switch (place->status) {
	case AW_PLACE_READY:
		break;
	case AW_PLACE_NO_DEVICE:
		return ENODEV;
	case AW_PLACE_NONE:
		return ECONNREFUSED;
	case AW_PLACE_VERSION:
		return EPROTONOSUPPORT;
	}
	aw_ext_place_set_port(&s->local, 0);
	aw_ext_place_set_port(&s->peer, place->port);
	aw_xs_ep_set_ticket(s->ext->ep, place->ticket);
	err = -aw_xs_ep_connect(s->ext->ep, (struct sockaddr *)&s->local,
				(struct sockaddr *)&s->peer);
	return err ? err : await_established(s);
}

static int request_place(struct ext_start *s)
{
	uint8_t request_frame[AW_RENDEZVOUS_REQUEST_LEN], reply[AW_RENDEZVOUS_REPLY_LEN];
	struct aw_place place;
	int err;

	aw_rendezvous_request_put(request_frame);
	err = aw_ext_tcp_write(s->tcp, request_frame, sizeof(request_frame), s->until_ns);
	if (!err)
		err = aw_ext_tcp_read(s->tcp, reply, sizeof(reply), s->until_ns);
	if (err)
		return err;
	if (!aw_rendezvous_reply_get(reply, sizeof(reply), &place))
		return EPROTO;
	return connect_to_place(s, &place);
}

static int start_active(struct ext_start *s)
{
	uint8_t bytes[AW_RENDEZVOUS_REPLY_LEN];
	struct aw_place place;
	size_t len;
	int err;

	if (!aw_xs_ep_takes_sockets())
		return request_place(s);
	err = start_mpa(s, aw_xs_ep_initiate);
	if (err != ECONNREFUSED)
		return err;

	/* A peer that takes no sockets rejects the MPA Request; its private data names the place. */
	len = aw_xs_ep_refusal(s->ext->ep, bytes, sizeof(bytes));
	if (!aw_rendezvous_reply_get(bytes, len, &place))
		return err;
	aw_xs_ep_close(s->ext->ep, true);
	s->ext->ep = NULL;
	err = make_ep(s);
	return err ? err : connect_to_place(s, &place);
}

/* Opens a place, sends it to the peer (or the reason why there is none), and waits there. */
static int await_at_place(struct ext_start *s,
			  int (*send_place)(struct ext_start *s, const struct aw_place *place),
			  bool tcp_stays)
{
	struct aw_ext_place place;
	int err = aw_ext_place_open(&place, &s->local);
	int sent = send_place(s, &place.place);

	if (!err)
		err = sent;
	if (!err)
		err = aw_ext_place_await(&place, s->ext->ep, tcp_stays ? s->tcp : -1, s->until_ns);
	aw_ext_place_close(&place);
	return err ? err : await_established(s);
}

static int send_by_reply(struct ext_start *s, const struct aw_place *place)
{
	uint8_t reply[AW_RENDEZVOUS_REPLY_LEN];

	aw_rendezvous_reply_put(reply, place);
	return aw_ext_tcp_write(s->tcp, reply, sizeof(reply), s->until_ns);
}

static int send_by_reject(struct ext_start *s, const struct aw_place *place)
{
	uint8_t reply[AW_RENDEZVOUS_REJECT_LEN];

	aw_rendezvous_reject_put(reply, place);
	return aw_ext_tcp_write(s->tcp, reply, sizeof(reply), s->until_ns);
}

static int serve_request(struct ext_start *s)
{
	const struct aw_place none = { .status = AW_PLACE_VERSION };
	uint8_t request_frame[AW_RENDEZVOUS_REQUEST_LEN];
	int err = aw_ext_tcp_read(s->tcp, request_frame, sizeof(request_frame), s->until_ns);

	if (err)
		return err;
	if (!aw_rendezvous_request_is_known(request_frame)) {
		err = send_by_reply(s, &none);
		return err ? err : EPROTONOSUPPORT;
	}
	return await_at_place(s, send_by_reply, true);
}

/* This librdmacm cannot use the Request's content; the initiator closes TCP when it is rejected. */
static int serve_mpa(struct ext_start *s)
{
	uint8_t header[AW_RENDEZVOUS_MPA_HEADER_LEN], rest[AW_RENDEZVOUS_MPA_PRIVATE_MAX];
	size_t len;
	int err;

	if (aw_xs_ep_takes_sockets())
		return start_mpa(s, aw_xs_ep_respond);
	err = aw_ext_tcp_read(s->tcp, header, sizeof(header), s->until_ns);
	if (!err && !aw_rendezvous_mpa_rest(header, &len))
		return EPROTO;
	if (!err)
		err = aw_ext_tcp_read(s->tcp, rest, len, s->until_ns);
	return err ? err : await_at_place(s, send_by_reject, false);
}

static int start_passive(struct ext_start *s)
{
	uint8_t key[AW_RENDEZVOUS_KEY_LEN];
	int err = aw_ext_tcp_peek(s->tcp, key, sizeof(key), s->until_ns);

	if (err)
		return err;
	switch (aw_rendezvous_opening(key)) {
	case AW_OPENING_MPA:
		return serve_mpa(s);
	case AW_OPENING_REQUEST:
		return serve_request(s);
	case AW_OPENING_OTHER:
		break;
	}
	return EPROTO;
}

/* Devices have IPv4 addresses, not those mapped into IPv6. */
static void unmap_v4(struct sockaddr_storage *address)
{
	struct sockaddr_in6 v6 = *(struct sockaddr_in6 *)address;
	struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = v6.sin6_port };

	if (address->ss_family != AF_INET6 || !IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr))
		return;
	memcpy(&v4.sin_addr, v6.sin6_addr.s6_addr + 12, sizeof(v4.sin_addr));
	memset(address, 0, sizeof(*address));
	memcpy(address, &v4, sizeof(v4));
}

int aw_ext_connect(struct aw_ext *ext, const struct aw_ext_request *request)
{
	struct ext_start s = {
		.ext = ext,
		.nodelay = request->nodelay,
		.tcp = request->tcp,
		.until_ns = aw_now_ns() + START_NS,
	};
	socklen_t local_len = sizeof(s.local), peer_len = sizeof(s.peer);
	int err = 0;

	if (getsockname(s.tcp, (struct sockaddr *)&s.local, &local_len) != 0 ||
	    getpeername(s.tcp, (struct sockaddr *)&s.peer, &peer_len) != 0)
		err = errno;
	if (!err) {
		unmap_v4(&s.local);
		unmap_v4(&s.peer);
		err = make_ep(&s);
	}
	if (!err)
		err = request->role == IWARP_ACTIVE ? start_active(&s) : start_passive(&s);
	if (s.tcp >= 0 && err)
		shutdown(s.tcp, SHUT_RDWR); /* bytes may still be in transit there */
	if (s.tcp >= 0)
		close(s.tcp);
	return err;
}
