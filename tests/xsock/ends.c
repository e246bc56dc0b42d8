// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A set-up needs both ends' events: one thread drives them in turn.
#include "ends.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

void ends_bind(struct ends *ends)
{
	memset(ends, 0, sizeof(*ends));
	ends->address.sin_family = AF_INET;
	ends->address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	ends->channel = rdma_create_event_channel();
	assert_non_null(ends->channel);
	assert_int_equal(rdma_create_id(ends->channel, &ends->listener, NULL, RDMA_PS_TCP), 0);
	assert_int_equal(rdma_bind_addr(ends->listener, (struct sockaddr *)&ends->address), 0);
	ends->address.sin_port = rdma_get_src_port(ends->listener);
}

void ends_listen(struct ends *ends)
{
	ends_bind(ends);
	assert_int_equal(rdma_listen(ends->listener, 8), 0);
}

struct aw_xs_ep *ends_create(const struct aw_xs_options *options)
{
	struct aw_xs_ep *ep;

	assert_int_equal(aw_xs_ep_create(options, &ep), 0);
	return ep;
}

static void accept_one(struct ends *ends)
{
	struct rdma_cm_event *event;

	assert_int_equal(rdma_get_cm_event(ends->channel, &event), 0);
	assert_int_equal(event->event, RDMA_CM_EVENT_CONNECT_REQUEST);
	assert_int_equal(aw_xs_ep_accept(ends->server, event), 0);
	assert_int_equal(rdma_ack_cm_event(event), 0);
}

void ends_open(struct ends *ends, const struct aw_xs_options *options)
{
	ends_listen(ends);
	ends->client = ends_create(options);
	ends->server = ends_create(options);
	assert_int_equal(aw_xs_ep_connect(ends->client, NULL, (struct sockaddr *)&ends->address),
			 0);
	accept_one(ends);
	ends_wait(ends->client, POLLOUT);
	ends_wait(ends->server, POLLOUT);
	assert_int_equal(aw_xs_ep_state(ends->client), AW_XS_ESTABLISHED);
	assert_int_equal(aw_xs_ep_state(ends->server), AW_XS_ESTABLISHED);
}

void ends_close(struct ends *ends)
{
	if (ends->client)
		aw_xs_ep_close(ends->client, false);
	if (ends->server)
		aw_xs_ep_close(ends->server, false);
	if (ends->listener)
		rdma_destroy_id(ends->listener);
	if (ends->channel)
		rdma_destroy_event_channel(ends->channel);
	assert_int_equal(aw_xs_ep_drain_all(LONG), 0);
}

void ends_sockets(int fd[2])
{
	struct sockaddr_in address = { .sin_family = AF_INET };
	socklen_t len = sizeof(address);
	int listener = socket(AF_INET, SOCK_STREAM, 0);

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(bind(listener, (struct sockaddr *)&address, len), 0);
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &len), 0);
	fd[0] = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(connect(fd[0], (struct sockaddr *)&address, len), 0);
	fd[1] = accept(listener, NULL, NULL);
	assert_true(fd[1] >= 0);
	close(listener);
}

uint8_t ends_octet(uint64_t at)
{
	return (uint8_t)((at + 1) * 0x9e3779b97f4a7c15 >> 56);
}

void ends_wait(struct aw_xs_ep *ep, short events)
{
	int got = aw_xs_ep_wait(ep, events, LONG);

	assert_true(got > 0);
	assert_int_equal(got & events, events);
}

void ends_send(struct aw_xs_ep *ep, uint64_t at, size_t len)
{
	uint8_t octets[5000];

	while (len > 0) {
		struct iovec iov = { octets, len < sizeof(octets) ? len : sizeof(octets) };
		ssize_t n;

		for (size_t i = 0; i < iov.iov_len; i++)
			octets[i] = ends_octet(at + i);
		n = aw_xs_ep_send(ep, &iov, 1, 0);
		if (n == -EAGAIN) {
			ends_wait(ep, POLLOUT);
			continue;
		}
		assert_true(n > 0);
		at += (size_t)n;
		len -= (size_t)n;
	}
}

void ends_recv(struct aw_xs_ep *ep, uint64_t at, size_t len)
{
	uint8_t octets[7000];

	while (len > 0) {
		struct iovec iov = { octets, len < sizeof(octets) ? len : sizeof(octets) };
		ssize_t n = aw_xs_ep_recv(ep, &iov, 1, 0);

		if (n == -EAGAIN) {
			ends_wait(ep, POLLIN);
			continue;
		}
		assert_true(n > 0);
		for (size_t i = 0; i < (size_t)n; i++)
			if (octets[i] != ends_octet(at + i))
				assert_int_equal(octets[i], ends_octet(at + i));
		at += (size_t)n;
		len -= (size_t)n;
	}
}

void ends_send_text(struct aw_xs_ep *ep, const char *text, int flags)
{
	struct iovec iov = { (void *)(uintptr_t)text, strlen(text) };

	assert_int_equal(aw_xs_ep_send(ep, &iov, 1, flags), strlen(text));
}

void ends_recv_text(struct aw_xs_ep *ep, const char *text, int flags)
{
	char got[100];
	size_t len = 0;

	if (flags & MSG_OOB)
		ends_wait(ep, POLLPRI);
	while (len < strlen(text)) {
		struct iovec iov = { got + len, strlen(text) - len };
		ssize_t n = aw_xs_ep_recv(ep, &iov, 1, flags);

		if (n == -EAGAIN) {
			ends_wait(ep, flags & MSG_OOB ? POLLPRI : POLLIN);
			continue;
		}
		assert_true(n > 0);
		len += (size_t)n;
	}
	assert_memory_equal(got, text, len);
}

void ends_expect(struct aw_xs_ep *ep, ssize_t answer)
{
	char octet;
	struct iovec iov = { &octet, 1 };

	assert_int_equal(aw_xs_ep_recv(ep, &iov, 1, 0), answer);
}
