// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A dump is one request, which the kernel filters by state.
#include "xsock/base/sockdiag.h"

#include <inttypes.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define REPLY_LEN 16384

/*
 * The kernel's TCP states. netinet/tcp.h has their names, but cannot be included beside
 * linux/tcp.h, whose tcp_info is newer.
 */
#define STATE_TIME_WAIT 6
#define STATE_NEW_SYN_RECV 12
/* A socket in one of these has no inode. */
#define STATES_OF_NO_FILE (1u << STATE_TIME_WAIT | 1u << STATE_NEW_SYN_RECV)

/*
 * Fills in the counters. An older kernel's tcp_info is shorter; the fields that it lacks are zero,
 * and `counted` is false then.
 */
static void read_counters(struct aw_sockdiag_conn *conn, const void *data, size_t len)
{
	struct tcp_info info = { 0 };

	conn->counted = len >= offsetof(struct tcp_info, tcpi_bytes_retrans) +
				       sizeof(info.tcpi_bytes_retrans);
	memcpy(&info, data, len < sizeof(info) ? len : sizeof(info));
	conn->bytes_in = info.tcpi_bytes_received;
	conn->bytes_out = info.tcpi_bytes_sent - info.tcpi_bytes_retrans;
	conn->rtt_us = info.tcpi_rtt;
	conn->retransmits = info.tcpi_total_retrans;
}

struct conn_visit {
	aw_sockdiag_fn *use;
	void *arg;
};

static void use_conn(const struct inet_diag_msg *sock, size_t len, const struct conn_visit *visit)
{
	struct aw_sockdiag_conn conn = {
		.ino = sock->idiag_inode,
		.state = sock->idiag_state,
		.ipv6 = sock->idiag_family == AF_INET6,
		.local_port = ntohs(sock->id.idiag_sport),
		.peer_port = ntohs(sock->id.idiag_dport),
	};
	const struct rtattr *attr = (const struct rtattr *)(sock + 1);
	int left = (int)(len - sizeof(*sock));

	memcpy(conn.local, sock->id.idiag_src, sizeof(conn.local));
	memcpy(conn.peer, sock->id.idiag_dst, sizeof(conn.peer));
	for (; RTA_OK(attr, left); attr = RTA_NEXT(attr, left))
		if (attr->rta_type == INET_DIAG_INFO)
			read_counters(&conn, RTA_DATA(attr), RTA_PAYLOAD(attr));
	visit->use(&conn, visit->arg);
}

/*
 * Reads a dump and calls use_conn for each socket. Returns whether the dump was complete: it ends
 * by NLMSG_DONE, and NLMSG_ERROR means that there is none.
 */
static bool read_dump(int fd, const struct conn_visit *visit)
{
	_Alignas(struct nlmsghdr) char reply[REPLY_LEN];

	for (;;) {
		ssize_t got = recv(fd, reply, sizeof(reply), 0);
		unsigned left = got > 0 ? (unsigned)got : 0;
		const struct nlmsghdr *head = (const struct nlmsghdr *)reply;

		if (!NLMSG_OK(head, left))
			return false;
		for (; NLMSG_OK(head, left); head = NLMSG_NEXT(head, left)) {
			if (head->nlmsg_type == NLMSG_DONE)
				return true;
			if (head->nlmsg_type != SOCK_DIAG_BY_FAMILY ||
			    head->nlmsg_len < NLMSG_LENGTH(sizeof(struct inet_diag_msg)))
				return false;
			use_conn(NLMSG_DATA(head), head->nlmsg_len - NLMSG_HDRLEN, visit);
		}
	}
}

bool aw_sockdiag_each(bool ipv6, aw_sockdiag_fn *use, void *arg)
{
	const struct {
		struct nlmsghdr head;
		struct inet_diag_req_v2 body;
	} request = {
		.head = { .nlmsg_len = sizeof(request),
			  .nlmsg_type = SOCK_DIAG_BY_FAMILY,
			  .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP },
		.body = { .sdiag_family = ipv6 ? AF_INET6 : AF_INET,
			  .sdiag_protocol = IPPROTO_TCP,
			  .idiag_ext = 1u << (INET_DIAG_INFO - 1),
			  .idiag_states = ~STATES_OF_NO_FILE },
	};
	struct conn_visit visit = { use, arg };
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
	bool whole;

	if (fd < 0)
		return false;
	whole = send(fd, &request, sizeof(request), MSG_DONTWAIT) == sizeof(request) &&
		read_dump(fd, &visit);
	close(fd);
	return whole;
}

bool aw_sockdiag_fd(int dir, const char *path, uint64_t *ino)
{
	char target[64];
	ssize_t len = readlinkat(dir, path, target, sizeof(target) - 1);

	target[len > 0 ? len : 0] = '\0';
	return sscanf(target, "socket:[%" SCNu64 "]", ino) == 1;
}
