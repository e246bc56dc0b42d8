// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// How the two ends of an extended socket come together. Where both have anywarp's librdmacm, MPA starts on the
// TCP connection itself (anywarp/cm.h). Otherwise they agree there on a place to meet by rdma_cm (rendezvous.h),
// and TCP's connection stays beside. Who is active speaks first, and who is passive tells by that what to do.
#include "xsock/ext/ext.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <unistd.h>

#include "xsock/ext/ext_place.h"
#include "xsock/ext/ext_tcp.h"
#include "xsock/ext/rendezvous.h"

#define START_NS INT64_C(10000000000) /* for the peer's program to do the same */

struct start {
	struct aw_ext *ext;
	bool nodelay;
	int tcp; /* -1: it is the endpoint's */
	struct sockaddr_storage local, peer;
	int64_t until_ns;
};

static int make_ep(struct start *s)
{
	struct aw_xs_options options = { .nodelay = s->nodelay };

	return -aw_xs_ep_create(&options, &s->ext->ep);
}

/* Until both ends have agreed. What came of it later is told by the stream. 0 or an errno. */
static int await(struct start *s)
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

/* MPA on the TCP connection. */
static int give(struct start *s, int (*begin)(struct aw_xs_ep *ep, int fd))
{
	int err = -begin(s->ext->ep, s->tcp);

	if (err)
		return err;
	s->tcp = -1;
	return await(s);
}

static void set_port(struct sockaddr_storage *address, uint16_t port)
{
	if (address->ss_family == AF_INET6)
		((struct sockaddr_in6 *)address)->sin6_port = htons(port);
	else
		((struct sockaddr_in *)address)->sin_port = htons(port);
}

static int why_no_place(enum aw_place_status status)
{
	switch (status) {
	case AW_PLACE_READY:
		break;
	case AW_PLACE_NO_DEVICE:
		return ENODEV;
	case AW_PLACE_NONE:
		return ECONNREFUSED;
	case AW_PLACE_VERSION:
		return EPROTONOSUPPORT;
	}
	return 0;
}

static int go_to(struct start *s, const struct aw_place *place)
{
	int err = why_no_place(place->status);

	if (err)
		return err;
	set_port(&s->local, 0);
	set_port(&s->peer, place->port);
	aw_xs_ep_set_ticket(s->ext->ep, place->ticket);
	err = -aw_xs_ep_connect(s->ext->ep, (struct sockaddr *)&s->local,
				(struct sockaddr *)&s->peer);
	return err ? err : await(s);
}

static int ask(struct start *s)
{
	uint8_t probe[AW_RENDEZVOUS_QUESTION_LEN], answer[AW_RENDEZVOUS_ANSWER_LEN];
	struct aw_place place;
	int err;

	aw_rendezvous_question_put(probe);
	err = aw_ext_tcp_write(s->tcp, probe, sizeof(probe), s->until_ns);
	if (!err)
		err = aw_ext_tcp_read(s->tcp, answer, sizeof(answer), s->until_ns);
	if (err)
		return err;
	if (!aw_rendezvous_answer_get(answer, sizeof(answer), &place))
		return EPROTO;
	return go_to(s, &place);
}

/* The MPA Request was rejected by an end that cannot take it, and tells where it waits. */
static int follow(struct start *s, int refused)
{
	uint8_t octets[AW_RENDEZVOUS_ANSWER_LEN];
	struct aw_place place;
	size_t len = aw_xs_ep_refusal(s->ext->ep, octets, sizeof(octets));
	int err;

	if (!aw_rendezvous_answer_get(octets, len, &place))
		return refused;
	aw_xs_ep_close(s->ext->ep, true);
	s->ext->ep = NULL;
	err = make_ep(s);
	return err ? err : go_to(s, &place);
}

static int be_active(struct start *s)
{
	int err;

	if (!aw_xs_ep_takes_sockets())
		return ask(s);
	err = give(s, aw_xs_ep_initiate);
	return err == ECONNREFUSED ? follow(s, err) : err;
}

/* The peer is told of the place, or why there is none. */
static int invite(struct start *s, int (*tell)(struct start *s, const struct aw_place *place),
		  bool tcp_stays)
{
	struct aw_ext_place place;
	int err = aw_ext_place_open(&place, &s->local);
	int told = tell(s, &place.place);

	if (!err)
		err = told;
	if (!err)
		err = aw_ext_place_await(&place, s->ext->ep, tcp_stays ? s->tcp : -1, s->until_ns);
	aw_ext_place_close(&place);
	return err ? err : await(s);
}

static int tell_by_answer(struct start *s, const struct aw_place *place)
{
	uint8_t answer[AW_RENDEZVOUS_ANSWER_LEN];

	aw_rendezvous_answer_put(answer, place);
	return aw_ext_tcp_write(s->tcp, answer, sizeof(answer), s->until_ns);
}

static int tell_by_rejecting(struct start *s, const struct aw_place *place)
{
	uint8_t reply[AW_RENDEZVOUS_REJECT_LEN];

	aw_rendezvous_reject_put(reply, place);
	return aw_ext_tcp_write(s->tcp, reply, sizeof(reply), s->until_ns);
}

static int tell_version(struct start *s)
{
	const struct aw_place none = { .status = AW_PLACE_VERSION };
	int err = tell_by_answer(s, &none);

	return err ? err : EPROTONOSUPPORT;
}

static int answer_probe(struct start *s)
{
	uint8_t probe[AW_RENDEZVOUS_QUESTION_LEN];
	int err = aw_ext_tcp_read(s->tcp, probe, sizeof(probe), s->until_ns);

	if (err)
		return err;
	if (!aw_rendezvous_question_is_known(probe))
		return tell_version(s);
	return invite(s, tell_by_answer, true);
}

/* The Request's own bytes say nothing to us; the initiator closes TCP when it is rejected. */
static int answer_mpa(struct start *s)
{
	uint8_t header[AW_RENDEZVOUS_MPA_HEADER_LEN], rest[AW_RENDEZVOUS_MPA_PRIVATE_MAX];
	size_t len;
	int err;

	if (aw_xs_ep_takes_sockets())
		return give(s, aw_xs_ep_respond);
	err = aw_ext_tcp_read(s->tcp, header, sizeof(header), s->until_ns);
	if (!err && !aw_rendezvous_mpa_rest(header, &len))
		return EPROTO;
	if (!err)
		err = aw_ext_tcp_read(s->tcp, rest, len, s->until_ns);
	return err ? err : invite(s, tell_by_rejecting, false);
}

static int be_passive(struct start *s)
{
	uint8_t key[AW_RENDEZVOUS_KEY_LEN];
	int err = aw_ext_tcp_peek(s->tcp, key, sizeof(key), s->until_ns);

	if (err)
		return err;
	switch (aw_rendezvous_opening(key)) {
	case AW_OPENING_MPA:
		return answer_mpa(s);
	case AW_OPENING_QUESTION:
		return answer_probe(s);
	case AW_OPENING_OTHER:
		break;
	}
	return EPROTO;
}

/* Devices know IPv4 addresses as such. */
static void unmap(struct sockaddr_storage *address)
{
	struct sockaddr_in6 v6 = *(struct sockaddr_in6 *)address;
	struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = v6.sin6_port };

	if (address->ss_family != AF_INET6 || !IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr))
		return;
	memcpy(&v4.sin_addr, v6.sin6_addr.s6_addr + 12, sizeof(v4.sin_addr));
	memset(address, 0, sizeof(*address));
	memcpy(address, &v4, sizeof(v4));
}

static int read_names(struct start *s)
{
	socklen_t local_len = sizeof(s->local), peer_len = sizeof(s->peer);

	if (getsockname(s->tcp, (struct sockaddr *)&s->local, &local_len) != 0 ||
	    getpeername(s->tcp, (struct sockaddr *)&s->peer, &peer_len) != 0)
		return errno;
	unmap(&s->local);
	unmap(&s->peer);
	return 0;
}

int aw_ext_connect(struct aw_ext *ext, const struct aw_ext_request *request)
{
	struct start s = {
		.ext = ext,
		.nodelay = request->nodelay,
		.tcp = request->tcp,
		.until_ns = aw_ext_until_ns(START_NS),
	};
	int err = read_names(&s);

	if (!err)
		err = make_ep(&s);
	if (!err)
		err = request->role == IWARP_ACTIVE ? be_active(&s) : be_passive(&s);
	if (s.tcp >= 0 && err)
		shutdown(s.tcp, SHUT_RDWR); /* nobody can tell what is still under way there */
	if (s.tcp >= 0)
		close(s.tcp);
	return err;
}
