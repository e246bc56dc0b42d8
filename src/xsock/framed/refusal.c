// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The line. Strangers may come by the thousand: the lines that find no room are left out.
#include "xsock/framed/refusal.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/socket.h>

#include "base/log.h"
#include "net/tls/cause.h"
#include "net/tls/openssl.h"
#include "xsock/base/ip.h"
#include "xsock/base/libc.h"
#include "xsock/base/sockopt.h"

#define CAUSE_MAX 256

void aw_refusal_log_tls(int fd, const union aw_address *peer, const char *cause)
{
	char text[INET6_ADDRSTRLEN] = "ADDRESS";
	union aw_address found;
	socklen_t len = sizeof(found);
	int saved = errno;
	uint8_t ip[16];
	uint16_t port = 0;

	if (!peer && aw_libc()->getpeername(fd, (struct sockaddr *)&found, &len) == 0)
		peer = &found;
	if (peer && aw_ip_get((const struct sockaddr *)peer, ip, &port))
		aw_ip_write(ip, text);
	if (aw_log_has_room())
		aw_log(AW_LOG_ERROR,
		       "fd %d has no tls connection with peer %s port %u: %s; a peer that may do without: --rule "
		       "'off remote=%s' before the others",
		       fd, text, ntohs(port), cause, text);
	errno = saved;
}

void aw_refusal_log_insecure(int fd, const union aw_address *peer)
{
	aw_refusal_log_tls(fd, peer, "the line of the proxy process about that peer has the cause");
}

void aw_refusal_log_alert(int fd, const union aw_address *peer, unsigned alert)
{
	const struct aw_tls_end end = {
		.secured = true,
		.for_records = true,
		.reason = SSL_AD_REASON_OFFSET + (int)alert,
		.reason_text = "look at that end's log",
	};
	char cause[CAUSE_MAX];

	aw_tls_explain(&end, cause, sizeof(cause));
	aw_refusal_log_tls(fd, peer, cause);
}

void aw_refusal_log(int fd, const union aw_address *peer, enum aw_refusal why)
{
	static const char *const reasons[] = {
		[AW_REFUSAL_OTHER_CLIENT] = "its first bytes are no MPA Request",
		[AW_REFUSAL_SILENT_CLIENT] = "it has sent no MPA Request within 10 s",
		[AW_REFUSAL_CLIENT] = "it has sent something else, or no MPA Request within 10 s",
		[AW_REFUSAL_OTHER_SERVER] = "its first bytes are no MPA Reply of anywarp's",
		[AW_REFUSAL_SILENT_SERVER] = "it has sent no MPA Reply within 10 s",
		[AW_REFUSAL_ENDED] = "it has ended the connection before an MPA Reply",
	};
	char text[INET6_ADDRSTRLEN] =
		"ADDRESS"; /* the kernel forgets the peer of a connection that has ended */
	union aw_address found;
	socklen_t len = sizeof(found);
	int saved = errno;
	uint8_t ip[16];
	uint16_t port = 0;

	if (!peer && aw_libc()->getpeername(fd, (struct sockaddr *)&found, &len) == 0)
		peer = &found;
	if (peer && aw_ip_get((const struct sockaddr *)peer, ip, &port))
		aw_ip_write(ip, text);
	if (aw_log_has_room())
		aw_log(AW_LOG_ERROR,
		       "fd %d cannot be iWARP with peer %s port %u: %s: run the peer under 'anywarp sockets "
		       "--rule on', or leave it to TCP: --rule 'off remote=%s'%s%s%s",
		       fd, text, ntohs(port), reasons[why], text,
		       why < AW_REFUSAL_OTHER_SERVER
			       ? ""
			       : "; a server of rdma-core's rsockets: --rule 'rsockets remote=",
		       why < AW_REFUSAL_OTHER_SERVER ? "" : text,
		       why < AW_REFUSAL_OTHER_SERVER ? "" : "'");
	errno = saved;
}

bool aw_refusal_is_due_to_mptcp(int fd)
{
	int saved = errno;
	bool is_due = aw_sockopt_int(fd, SOL_SOCKET, SO_PROTOCOL, IPPROTO_TCP) == IPPROTO_MPTCP;

	if (is_due && aw_log_has_room())
		aw_log(AW_LOG_ERROR,
		       "fd %d cannot be iWARP: it is a socket of MPTCP: run the program without mptcpize, or set it "
		       "off: --rule off",
		       fd);
	errno = saved;
	return is_due;
}
