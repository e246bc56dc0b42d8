// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The header of a datagram: a tag, the IP version, an operation (0: the program's bytes), the
// header's length, one reserved byte, a QP number (0: there is no QP), and the sender's IP address.
// A datagram without such a header is dropped: it is not from an rsocket.
#define _GNU_SOURCE // POLLRDHUP
#include "xsock/rsockets/rs_datagram.h"

#include <netinet/in.h>
#include <poll.h>
#include <string.h>

enum {
	AT_VERSION = 4,
	AT_OPERATION = 5,
	AT_LENGTH = 6,
	AT_ADDRESS = 12,
	LENGTH_4 = 16,
	LENGTH_6 = 28,
	OPERATION_DATA = 0,
	IOV_COUNT_MAX = 64,
};

#define READABLE (POLLIN | POLLRDNORM)

static const unsigned char tag[AT_VERSION] = { 0x55, 0x55, 0x55, 0x55 };

/* Writes the header and returns its length. */
static size_t put_header(const struct aw_rs *rs, unsigned char header[LENGTH_6])
{
	struct sockaddr_storage name = { 0 };
	socklen_t len = sizeof(name);
	bool is_4 = rs->domain == AF_INET;

	getsockname(rs->fd, (struct sockaddr *)&name, &len);
	memset(header, 0, LENGTH_6);
	memcpy(header, tag, sizeof(tag));
	header[AT_VERSION] = is_4 ? 4 : 6;
	header[AT_OPERATION] = OPERATION_DATA;
	header[AT_LENGTH] = is_4 ? LENGTH_4 : LENGTH_6;
	if (is_4)
		memcpy(header + AT_ADDRESS, &((struct sockaddr_in *)&name)->sin_addr, 4);
	else
		memcpy(header + AT_ADDRESS, &((struct sockaddr_in6 *)&name)->sin6_addr, 16);
	return header[AT_LENGTH];
}

/* Returns the length of the header at the beginning of these bytes; 0: there is none. */
static size_t header_length(const unsigned char *bytes, size_t len)
{
	size_t length;

	if (len < LENGTH_4 || memcmp(bytes, tag, sizeof(tag)) != 0 ||
	    bytes[AT_OPERATION] != OPERATION_DATA)
		return 0;
	if (bytes[AT_VERSION] != 4 && bytes[AT_VERSION] != 6)
		return 0;
	length = bytes[AT_VERSION] == 4 ? LENGTH_4 : LENGTH_6;
	return bytes[AT_LENGTH] == length && length <= len ? length : 0;
}

ssize_t aw_rs_datagram_send(struct aw_rs *rs, const struct msghdr *msg, int flags)
{
	struct iovec iov[IOV_COUNT_MAX + 1];
	unsigned char header[LENGTH_6];
	struct msghdr whole = *msg;
	ssize_t sent;
	int ready;

	if (msg->msg_iovlen > IOV_COUNT_MAX)
		return -EMSGSIZE;
	iov[0] = (struct iovec){ header, put_header(rs, header) };
	if (msg->msg_iovlen)
		memcpy(iov + 1, msg->msg_iov, msg->msg_iovlen * sizeof(*iov));
	whole.msg_iov = iov;
	whole.msg_iovlen = msg->msg_iovlen + 1;
	for (;;) {
		sent = sendmsg(rs->fd, &whole, flags | MSG_DONTWAIT | MSG_NOSIGNAL);
		if (sent >= 0)
			return sent - (ssize_t)iov[0].iov_len;
		if (errno != EAGAIN || !aw_rs_may_block(rs, flags))
			return -errno;
		ready = aw_rs_wait_fd(rs, POLLOUT, rs->options.send_timeout_ns);
		if (ready < 0)
			return ready;
	}
}

/*
 * Drops datagrams without a header. Returns the header's length of the first datagram, or -EAGAIN.
 * With the lock this datagram is still the first one when it is received.
 */
static ssize_t find_datagram(struct aw_rs *rs) AW_REQUIRES(rs->lock)
{
	unsigned char header[LENGTH_6];
	ssize_t got;

	for (;;) {
		got = recv(rs->fd, header, sizeof(header), MSG_PEEK | MSG_DONTWAIT);
		if (got < 0)
			return -errno;
		if (atomic_load(&rs->closed))
			return -EBADF;
		if (header_length(header, (size_t)got))
			return (ssize_t)header_length(header, (size_t)got);
		if (recv(rs->fd, header, sizeof(header), MSG_DONTWAIT) < 0)
			return -errno;
	}
}

static ssize_t receive_datagram(struct aw_rs *rs, struct msghdr *msg, int flags)
	AW_REQUIRES(rs->lock)
{
	struct iovec iov[IOV_COUNT_MAX + 1];
	unsigned char header[LENGTH_6];
	struct msghdr whole = *msg;
	ssize_t length = find_datagram(rs), got;

	if (length < 0)
		return length;
	iov[0] = (struct iovec){ header, (size_t)length };
	if (msg->msg_iovlen)
		memcpy(iov + 1, msg->msg_iov, msg->msg_iovlen * sizeof(*iov));
	whole.msg_iov = iov;
	whole.msg_iovlen = msg->msg_iovlen + 1;
	got = recvmsg(rs->fd, &whole, flags | MSG_DONTWAIT);
	if (got < length)
		return got < 0 ? -errno : -EAGAIN;
	msg->msg_namelen = whole.msg_namelen;
	msg->msg_flags = whole.msg_flags;
	return got - length;
}

ssize_t aw_rs_datagram_recv(struct aw_rs *rs, struct msghdr *msg, int flags)
{
	ssize_t got;
	int ready;

	if (msg->msg_iovlen > IOV_COUNT_MAX)
		return -EMSGSIZE;
	for (;;) {
		pthread_mutex_lock(&rs->lock);
		got = receive_datagram(rs, msg, flags & ~MSG_WAITALL);
		pthread_mutex_unlock(&rs->lock);
		if (got != -EAGAIN || !aw_rs_may_block(rs, flags))
			return got;
		ready = aw_rs_wait_fd(rs, POLLIN | POLLRDHUP, rs->options.recv_timeout_ns);
		if (ready < 0)
			return ready;
		// Shut down for receiving, the socket is readable for ever, and the kernel's own call returns 0.
		if (ready & POLLRDHUP) {
			msg->msg_namelen = 0;
			return 0;
		}
	}
}

short aw_rs_datagram_events(short events)
{
	return (short)(events & READABLE ? events | POLLRDHUP : events);
}

short aw_rs_datagram_revents(struct aw_rs *rs, short events, short asked)
{
	short revents = asked & (short)(events | POLLERR | POLLHUP | POLLNVAL);

	if (!(revents & READABLE) || (asked & (POLLERR | POLLHUP | POLLRDHUP)))
		return revents;
	pthread_mutex_lock(&rs->lock);
	if (find_datagram(rs) == -EAGAIN)
		revents &= ~READABLE;
	pthread_mutex_unlock(&rs->lock);
	return revents;
}
