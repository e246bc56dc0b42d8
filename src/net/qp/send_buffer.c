// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "net/qp/send_buffer.h"

#include "net/qp/times.h"

#include <netinet/in.h>
/* glibc's netinet/tcp.h has no tcpi_min_rtt. */
#include <linux/tcp.h>
#include <sys/socket.h>

#ifndef SO_BUF_LOCK
#define SO_BUF_LOCK 72 /* Linux 5.14: whether TCP may size the buffers */
#endif

/* Segments longer than jumbo frames mean that both ends are on this host. */
#define ONE_HOST_SEGMENT 16384
/* The kernel doubles this value, and grants it wherever its limit (net.core.wmem_max) is the default one. */
#define BOUND (208 * 1024)

static void set_bound(int fd)
{
	int octets = BOUND;

	setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &octets, sizeof(octets));
}

/* False: the kernel cannot do that. */
static bool leave_to_tcp(int fd)
{
	int locks = 0;

	return setsockopt(fd, SOL_SOCKET, SO_BUF_LOCK, &locks, sizeof(locks)) == 0;
}

void aw_send_buffer_ready(int fd, uint32_t segment_size)
{
	if (segment_size >= ONE_HOST_SEGMENT)
		set_bound(fd);
}

void aw_send_buffer_begin(struct aw_send_buffer *buffer, uint32_t segment_size)
{
	bool one_host = segment_size >= ONE_HOST_SEGMENT;

	*buffer = (struct aw_send_buffer){ .one_host = one_host, .bounded = one_host };
}

void aw_send_buffer_look(struct aw_send_buffer *buffer, int fd)
{
	struct tcp_info info = { 0 };
	socklen_t len = sizeof(info);

	if (buffer->one_host || buffer->is_tcps ||
	    getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) != 0)
		return;
	bool bounded = aw_send_buffer_is_bounded(info.tcpi_min_rtt, info.tcpi_rtt);

	if (bounded == buffer->bounded)
		return;
	/* Before a bound, too: an older kernel would keep it when the path is another one. */
	buffer->is_tcps = !leave_to_tcp(fd);
	buffer->bounded = bounded && !buffer->is_tcps;
	if (buffer->bounded)
		set_bound(fd);
}

bool aw_send_buffer_is_bounded(uint32_t min_rtt_us, uint32_t rtt_us)
{
	return min_rtt_us <= AW_SHORT_RTT_US && rtt_us <= AW_QUEUED_RTT_US;
}
