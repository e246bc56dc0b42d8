// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// recvmmsg(2) and sendmsg(2) of UD datagrams, with what the program sees of their IP headers: the
// addresses of both ends, hop limit and traffic class. A socket is of IPv6 and carries IPv4 too, or
// of IPv4.
#include "net/ud/udsock_io.h"

#include "net/base/io_now.h"
#include "net/ud/ud.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#define RECEIVE_BUFFER (4 << 20) /* for a burst while no thread reads; the system may give less */

static int set(const struct aw_udsock *sock, int level, int option, int value)
{
	return setsockopt(sock->fd, level, option, &value, sizeof(value)) == 0 ? 0 : errno;
}

int aw_udsock_prepare(struct aw_udsock *sock)
{
	socklen_t len = sizeof(sock->family);

	if (getsockopt(sock->fd, SOL_SOCKET, SO_DOMAIN, &sock->family, &len) != 0)
		return errno;
	/* More than the system's limit needs CAP_NET_ADMIN. */
	if (set(sock, SOL_SOCKET, SO_RCVBUFFORCE, RECEIVE_BUFFER) != 0)
		set(sock, SOL_SOCKET, SO_RCVBUF, RECEIVE_BUFFER);
	set(sock, IPPROTO_IP, IP_RECVTTL, 1);
	set(sock, IPPROTO_IP, IP_RECVTOS, 1);
	/* Where the path has a smaller MTU, IP fragments the datagram. */
	set(sock, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DONT);
	if (sock->family == AF_INET)
		return set(sock, IPPROTO_IP, IP_PKTINFO, 1);
	set(sock, IPPROTO_IPV6, IPV6_RECVHOPLIMIT, 1);
	set(sock, IPPROTO_IPV6, IPV6_RECVTCLASS, 1);
	set(sock, IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_DONT);
	return set(sock, IPPROTO_IPV6, IPV6_RECVPKTINFO, 1);
}

/* The kernel gives one byte for some of these values and an int for others. */
static uint8_t octet_of(const struct cmsghdr *c)
{
	int value = 0;

	if (c->cmsg_len >= CMSG_LEN(sizeof(int)))
		memcpy(&value, CMSG_DATA(c), sizeof(value));
	else if (c->cmsg_len > CMSG_LEN(0))
		value = CMSG_DATA(c)[0];
	return (uint8_t)value;
}

static void read_ipv4(const struct cmsghdr *c, struct ud_route *route)
{
	struct in_pktinfo info;

	if (c->cmsg_type == IP_PKTINFO) {
		memcpy(&info, CMSG_DATA(c), sizeof(info));
		gid_of_ipv4(route->dst, &info.ipi_addr);
	} else if (c->cmsg_type == IP_TTL) {
		route->hop_limit = octet_of(c);
	} else if (c->cmsg_type == IP_TOS) {
		route->traffic_class = octet_of(c);
	}
}

static void read_ipv6(const struct cmsghdr *c, struct ud_route *route)
{
	struct in6_pktinfo info;

	if (c->cmsg_type == IPV6_PKTINFO) {
		memcpy(&info, CMSG_DATA(c), sizeof(info));
		memcpy(route->dst, &info.ipi6_addr, GID_LEN);
		route->ifindex = info.ipi6_ifindex;
	} else if (c->cmsg_type == IPV6_HOPLIMIT) {
		route->hop_limit = octet_of(c);
	} else if (c->cmsg_type == IPV6_TCLASS) {
		route->traffic_class = octet_of(c);
	}
}

static void read_route(struct msghdr *msg, struct ud_route *route)
{
	const struct sockaddr_storage *from = msg->msg_name;

	memset(route, 0, sizeof(*route));
	if (from->ss_family == AF_INET)
		gid_of_ipv4(route->src, &((const struct sockaddr_in *)from)->sin_addr);
	else
		memcpy(route->src, &((const struct sockaddr_in6 *)from)->sin6_addr, GID_LEN);
	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		if (c->cmsg_level == IPPROTO_IP)
			read_ipv4(c, route);
		else if (c->cmsg_level == IPPROTO_IPV6)
			read_ipv6(c, route);
	}
}

static void deliver(struct aw_udsock *sock, struct aw_ud_slot *slot, struct mmsghdr *read)
	AW_REQUIRES(sock->lock)
{
	struct ud_route route;
	struct aw_ud_arrival arrival = { .route = &route, .body = slot->body };

	if (read->msg_hdr.msg_flags & (MSG_TRUNC | MSG_CTRUNC) ||
	    !ud_parse(slot->header, read->msg_len, &arrival.hdr))
		return;
	arrival.len = read->msg_len - UD_HDR_LEN;
	read_route(&read->msg_hdr, &route);
	ud_grh_build(&route, arrival.len, slot->body);
	sock->deliver(sock->arg, &arrival);
}

bool aw_udsock_read(struct aw_udsock *sock)
{
	struct mmsghdr msgs[AW_UD_BATCH];
	struct iovec iov[AW_UD_BATCH][2];
	int n, state;

	memset(msgs, 0, sizeof(msgs));
	for (int i = 0; i < AW_UD_BATCH; i++) {
		struct aw_ud_slot *slot = &sock->stage->slots[i];

		iov[i][0] = (struct iovec){ slot->header, sizeof(slot->header) };
		iov[i][1] = (struct iovec){ slot->body + UD_GRH_LEN, UD_PAYLOAD_MAX };
		msgs[i].msg_hdr = (struct msghdr){
			.msg_name = &slot->from,
			.msg_namelen = sizeof(slot->from),
			.msg_iov = iov[i],
			.msg_iovlen = 2,
			.msg_control = slot->control,
			.msg_controllen = sizeof(slot->control),
		};
	}
	state = aw_cancel_disable();
	n = recvmmsg(sock->fd, msgs, AW_UD_BATCH, MSG_DONTWAIT, NULL);
	aw_cancel_restore(state);
	for (int i = 0; i < n; i++)
		deliver(sock, &sock->stage->slots[i], &msgs[i]);
	return n == AW_UD_BATCH;
}

/*
 * To any other destination routing picks the interface: this host's own addresses are behind
 * another one.
 */
static uint32_t leaves_by(const struct aw_ah *ah)
{
	return ud_addr_is_multicast(ah->dst) || gid_is_link_local(ah->dst) ? ah->ifindex : 0;
}

static socklen_t write_address(int family, const struct aw_ah *ah, uint16_t port,
			       struct sockaddr_storage *to)
{
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)to;
	struct sockaddr_in *in = (struct sockaddr_in *)to;

	memset(to, 0, sizeof(*to));
	if (family == AF_INET) {
		in->sin_family = AF_INET;
		in->sin_port = htons(port);
		memcpy(&in->sin_addr, ah->dst + GID_IPV4_AT, sizeof(in->sin_addr));
		return sizeof(*in);
	}
	in6->sin6_family = AF_INET6;
	in6->sin6_port = htons(port);
	in6->sin6_scope_id = leaves_by(ah);
	memcpy(&in6->sin6_addr, ah->dst, GID_LEN);
	return sizeof(*in6);
}

static void add_control(struct msghdr *msg, int level, int type, const void *data, size_t len)
{
	struct cmsghdr *c =
		(struct cmsghdr *)(void *)((char *)msg->msg_control + msg->msg_controllen);

	c->cmsg_level = level;
	c->cmsg_type = type;
	c->cmsg_len = CMSG_LEN(len);
	memcpy(CMSG_DATA(c), data, len);
	msg->msg_controllen += CMSG_SPACE(len);
}

static void add_controls(int family, const struct aw_ah *ah, struct msghdr *msg)
{
	bool ipv4 = gid_is_ipv4(ah->dst), has_source = !gid_is_zero(ah->src);
	int level = ipv4 ? IPPROTO_IP : IPPROTO_IPV6;
	int tclass = ah->traffic_class, hops = ah->hop_limit;

	if (has_source && family == AF_INET) {
		struct in_pktinfo in = { .ipi_ifindex = (int)leaves_by(ah) };

		memcpy(&in.ipi_spec_dst, ah->src + GID_IPV4_AT, sizeof(in.ipi_spec_dst));
		add_control(msg, IPPROTO_IP, IP_PKTINFO, &in, sizeof(in));
	} else if (has_source) {
		struct in6_pktinfo in6 = { .ipi6_ifindex = leaves_by(ah) };

		memcpy(&in6.ipi6_addr, ah->src, GID_LEN);
		add_control(msg, IPPROTO_IPV6, IPV6_PKTINFO, &in6, sizeof(in6));
	}
	if (tclass)
		add_control(msg, level, ipv4 ? IP_TOS : IPV6_TCLASS, &tclass, sizeof(tclass));
	if (hops && ud_addr_is_multicast(ah->dst))
		add_control(msg, level, ipv4 ? IP_TTL : IPV6_HOPLIMIT, &hops, sizeof(hops));
}

int aw_udsock_send(struct aw_udsock *sock, const struct aw_ah *ah, uint16_t port,
		   const struct iovec *iov, size_t count)
{
	_Alignas(struct cmsghdr) uint8_t control[AW_UD_CONTROL] = { 0 };
	struct sockaddr_storage to;
	struct msghdr msg = {
		.msg_name = &to,
		.msg_iov = (struct iovec *)iov,
		.msg_iovlen = count,
		.msg_control = control,
	};

	if (sock->family == AF_INET && !gid_is_ipv4(ah->dst))
		return EAFNOSUPPORT;
	if (ud_addr_is_multicast(ah->dst))
		port = AW_UD_GROUP_PORT;
	msg.msg_namelen = write_address(sock->family, ah, port, &to);
	add_controls(sock->family, ah, &msg);
	if (msg.msg_controllen == 0)
		msg.msg_control = NULL;
	return aw_sendmsg_now(sock->fd, &msg) >= 0 ? 0 : errno;
}
