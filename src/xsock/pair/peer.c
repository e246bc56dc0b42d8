// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Asks the kernel for one socket, by the addresses of both its ends: a request and its answer, no dump.
#include "xsock/pair/peer.h"

#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <string.h>

#include "xsock/base/ip.h"
#include "xsock/base/libc.h"
#include "xsock/pair/spare.h"

struct diag_request {
	struct nlmsghdr head;
	struct inet_diag_req_v2 body;
};

struct diag_answer {
	struct nlmsghdr head;
	struct inet_diag_msg sock;
	uint8_t more[256];
};

/* own: the address of the socket that is looked for. The kernel finds a socket by its IPv4 addresses also where it is one of IPv6. */
static void fill_request(struct diag_request *request, const struct aw_tcp_end *own,
			 const struct aw_tcp_end *peer)
{
	bool v4 = aw_ip_is_v4(own->ip) && aw_ip_is_v4(peer->ip);
	struct inet_diag_sockid *id = &request->body.id;
	size_t at = v4 ? 12 : 0;

	memset(request, 0, sizeof(*request));
	request->head = (struct nlmsghdr){ .nlmsg_len = sizeof(*request),
					   .nlmsg_type = SOCK_DIAG_BY_FAMILY,
					   .nlmsg_flags = NLM_F_REQUEST };
	request->body.sdiag_family = v4 ? AF_INET : AF_INET6;
	request->body.sdiag_protocol = IPPROTO_TCP;
	request->body.idiag_states = ~0u;
	id->idiag_sport = own->port;
	id->idiag_dport = peer->port;
	memcpy(id->idiag_src, own->ip + at, sizeof(own->ip) - at);
	memcpy(id->idiag_dst, peer->ip + at, sizeof(peer->ip) - at);
	id->idiag_cookie[0] = id->idiag_cookie[1] = INET_DIAG_NOCOOKIE;
}

static int open_netlink(void)
{
	return aw_libc()->socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
}

bool aw_pair_find_peer(const struct aw_tcp_end *local, const struct aw_tcp_end *remote, ino_t *ino)
{
	static struct aw_spare_place place;
	struct diag_request request;
	struct diag_answer answer;
	struct aw_spare spare;
	ssize_t got = -1;

	if (aw_spare_take(&spare, &place, open_netlink) < 0)
		return false;
	fill_request(&request, remote, local);
	*ino = 0;
	/* The kernel has given the answer when send(2) returns. */
	if (aw_libc()->send(spare.fd, &request, sizeof(request), MSG_DONTWAIT) ==
	    (ssize_t)sizeof(request))
		got = aw_libc()->recv(spare.fd, &answer, sizeof(answer), MSG_DONTWAIT);
	if (got >= (ssize_t)NLMSG_LENGTH(sizeof(answer.sock)) &&
	    answer.head.nlmsg_type == SOCK_DIAG_BY_FAMILY &&
	    answer.sock.id.idiag_sport == request.body.id.idiag_sport &&
	    answer.sock.id.idiag_dport == request.body.id.idiag_dport)
		*ino = answer.sock.idiag_inode;
	aw_spare_give_back(&spare, got >= (ssize_t)sizeof(answer.head));
	return *ino;
}
